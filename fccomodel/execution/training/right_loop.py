"""Signs that a training loop of one's own leaves something out: each is told once, as a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from fccomodel.core.diagnostics import PACKAGE, Diagnostic, render
from fccomodel.core.source import Source
from fccomodel.execution.training.errors import criterion as errors
from fccomodel.execution.training.right_rows import BATCHES_IN_ORDER

#: batches without a call of ``criterion.step()`` after which that is told, in lengths of the first stage
STAGES_WITHOUT_STEP = 2
#: backward passes in evaluation mode after which that is told
PASSES_IN_EVALUATION = 10
#: batches whose scores have no gradient after which that is told
BATCHES_OF_CONSTANTS = 10
#: steps in which a variable does not move after which that is told
STEPS_UNMOVED = 100
#: the folder of torch, whose calls stand between a loop and a criterion
TORCH = Path(torch.__file__).resolve().parent


def warn(diagnostic: Diagnostic, source: Source) -> None:
    """Warns of a diagnostic at the line of the user's own code that led here."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and _inside(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn("\n" + render([diagnostic], source), UserWarning, stacklevel=level)


def _inside(file: str) -> bool:
    """Whether a file is of this package, of torch, or generated."""
    path = Path(file)
    return path.is_relative_to(PACKAGE) or path.is_relative_to(TORCH) or not path.is_absolute()


class RightLoop:
    """The record of what a loop did so far with a criterion, from which each warning follows.

    variables  of the model beside its nets, by name
    stage      batches of the first stage
    """

    def __init__(self, variables: torch.nn.ParameterDict, stage: int, source: Source):
        self.source, self.stage = source, stage
        self.stepped = False
        self.batches = self.in_evaluation = self.constants = 0
        self.unmoved = 0
        self.places = {name: value.detach().clone() for name, value in variables.items()}

    # ------------------------------------------------------------------------------------ each batch
    def batch(self, scores: Mapping[str, Iterable[torch.Tensor]]) -> None:
        """After a loss in train mode that has a gradient; ``scores`` by the name of the net."""
        self.batches += 1
        if not self.stepped and self.batches == STAGES_WITHOUT_STEP * self.stage:
            self._tell(errors.criterion_without_step(self.batches))
        constants = [net for net, parts in scores.items() if not any(part.requires_grad for part in parts)]
        if len(constants) < len(scores):
            self.constants = 0
            return
        self.constants += 1
        if self.constants == BATCHES_OF_CONSTANTS:
            self._tell(errors.criterion_of_constants(constants, list(self.places)))

    def evaluated(self, loss: torch.Tensor) -> None:
        """After the loss of a batch in evaluation mode, whose backward passes are counted."""
        if loss.requires_grad:
            loss.register_hook(self._passed)

    def _passed(self, gradient: torch.Tensor) -> None:
        """One backward pass in evaluation mode."""
        self.in_evaluation += 1
        if self.in_evaluation == PASSES_IN_EVALUATION:
            self._tell(errors.criterion_in_evaluation(PASSES_IN_EVALUATION))

    # ------------------------------------------------------------------------------------- each step
    def before_step(self, variables: torch.nn.ParameterDict) -> None:
        """Before a step of the criterion: whether an optimizer moves the variables."""
        self.stepped = True
        if self.unmoved < 0 or not self.places:
            return
        still = [name for name, value in variables.items() if self._still(name, value)]
        if not still:
            self.unmoved = -1
            return
        self.unmoved += 1
        if self.unmoved == STEPS_UNMOVED:
            self.unmoved = -1
            self._tell(errors.criterion_unmoved(still, STEPS_UNMOVED))

    def _still(self, name: str, value: torch.nn.Parameter) -> bool:
        """Whether a variable has a gradient, and is where the last step left it."""
        if value.grad is None or not bool(value.grad.any()):
            return False
        return torch.equal(value.detach(), self.places[name])

    def after_step(self, variables: torch.nn.ParameterDict) -> None:
        """After a step of the criterion, which may have moved variables into their sets."""
        if self.unmoved >= 0:
            for name, value in variables.items():
                self.places[name].copy_(value.detach())

    def rows_in_order(self, table: str, rows: Sequence[int]) -> None:
        """The row numbers of the first batches count on."""
        self._tell(errors.criterion_in_order(table, BATCHES_IN_ORDER, rows))

    def rows_never_drawn(self, table: str, first: int, last: int, drawn: int) -> None:
        """Rows at one end of a table are in no batch."""
        self._tell(errors.criterion_never_drawn(table, first, last, drawn))

    def _tell(self, diagnostic: Diagnostic) -> None:
        warn(diagnostic, self.source)
