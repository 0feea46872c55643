"""The value of any expression of a bound problem in float64, differentiable in the variables.

It is the reference for all other evaluation. ``evaluate`` is the entry point. ``evaluator`` walks
expressions, ``ranging`` gives the elements of a reduction (as ``spaces``), ``reductions`` combines
them, and ``pairs`` and ``inner_maximum`` have closed forms.
"""

from fccomodel.evaluation.interpret.evaluator import Evaluator, combinations, evaluate
from fccomodel.evaluation.kernels.net_rows import net_apply

__all__ = ["Evaluator", "combinations", "evaluate", "net_apply"]
