"""The words for what differs: which part, where in its text, and how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fccomodel.app.grading import functions
from fccomodel.app.grading.located import Matcher, Spot, shown
from fccomodel.app.grading.names import NamePairing
from fccomodel.app.grading.record import Difference
from fccomodel.core import ir
from fccomodel.core.source import Span

if TYPE_CHECKING:
    from fccomodel.app.grading.judging import PairingResult


def differences(found: PairingResult, key: ir.Problem, answer: ir.Problem) -> Iterator[Difference]:
    """Every place where the answer differs from the key, as far as the texts show it."""
    told = Teller(found, key, answer)
    yield from told.declarations()
    if not found.objective.same and not _unpaired(found):
        yield from told.objective()
    yield from told.constraints()
    yield from told.domains()


def other_defaults(names: NamePairing, key: ir.Problem, answer: ir.Problem) -> Iterator[Difference]:
    """The params whose values in the two texts are different numbers."""
    for own, other in names.params.items():
        ours, theirs = key.params[own].default, answer.params[other].default
        if isinstance(ours, ir.Const) and (not isinstance(theirs, ir.Const) or ours.value != theirs.value):
            span = shown(answer.params[other].span)
            yield Difference(
                kind="default",
                part=f"param {other}",
                answer=_text(answer, shown(theirs.span) if theirs is not None else None),
                key=f"{ours.value:g}",
                span=span,
            )


def _unpaired(found: PairingResult) -> bool:
    """Whether the comparison of values was not possible."""
    return found.objective.kind == "unknown" and found.trial is None and found.undefined is None


class Teller:
    """Says where two problems differ, part by part."""

    def __init__(self, found: PairingResult, key: ir.Problem, answer: ir.Problem):
        self.found, self.key, self.answer = found, key, answer
        self.matcher = Matcher(found.names)

    def made(self, part: str, spot: Spot, whole: Span | None = None) -> Difference:
        """A difference from a pair of places; a missing part is shown at the whole statement."""
        place = shown(spot.answer) or shown(whole)
        if whole is not None and place is not None and not whole.start <= place.start < whole.end:
            place = shown(whole)  # the part stands in a definition or a `let`, which may be right
        return Difference(
            kind=spot.kind,
            part=part,
            answer=spot.before[1] + _text(self.answer, shown(spot.answer)),
            key=spot.before[0] + _text(self.key, shown(spot.key)),
            span=place,
        )

    # ---------------------------------------------------------------------------- declarations
    def declarations(self) -> Iterator[Difference]:
        """Names without a partner."""
        for kind, name in self.found.names.missing:
            yield Difference(kind="missing declaration", part=f"{kind} {name}", key=name)
        for kind, name in self.found.names.extra:
            span = None
            if kind == "variable":
                span = shown(self.answer.variables[name].span)
            yield Difference(kind="extra declaration", part=f"{kind} {name}", answer=name, span=span)

    # ------------------------------------------------------------------------------- objective
    def objective(self) -> Iterator[Difference]:
        """Where the objectives differ."""
        ours, theirs = self.key.objective, self.answer.objective
        spots = self.matcher.spots(ours.expr, theirs.expr)
        if ours.sense[:3] != theirs.sense[:3]:
            yield Difference(
                kind="sense", part="objective", answer=theirs.sense, key=ours.sense, span=shown(theirs.span)
            )
            if self.found.objective.kind == "reversed":
                return
        for spot in _few(spots):
            yield self.made("objective", spot, theirs.span)
        if not spots and ours.sense[:3] == theirs.sense[:3]:
            yield Difference(
                kind="objective",
                part="objective",
                answer=_text(self.answer, theirs.expr.span),
                key=_text(self.key, ours.expr.span),
                span=shown(theirs.expr.span),
            )

    # ----------------------------------------------------------------------------- constraints
    def constraints(self) -> Iterator[Difference]:
        """Constraints of one model without an equal in the other, in pairs where they are alike."""
        found = self.found.regions
        ours = [c for c in self.key.constraints if c.label in found.unlike[0]]
        theirs = [c for c in self.answer.constraints if c.label in found.unlike[1]]
        extra = list(theirs)
        for own in ours:
            partner = self._partner(own, extra) or self._partner(own, _labelled(self.answer, own.label))
            if partner is None and own.label not in found.missing:
                continue
            if partner is None:
                yield Difference(
                    kind="missing constraint", part=own.label, key=_text(self.key, shown(own.span))
                )
                continue
            if partner in extra:
                extra.remove(partner)
            yield from self._pair(own, partner)
        for other in extra:
            if other.label not in found.extra:
                continue
            same_label = _labelled(self.key, other.label)
            if same_label:
                yield from self._pair(same_label[0], other)
                continue
            text = _text(self.answer, shown(other.span))
            yield Difference(kind="extra constraint", part=other.label, answer=text, span=shown(other.span))

    def _partner(self, own: ir.Constraint, others: list[ir.Constraint]) -> ir.Constraint | None:
        """The answer's constraint that stands for one of the key's: by its label, else by its variables."""
        same_label = [c for c in others if c.label == own.label]
        if same_label:
            return same_label[0]
        wanted = {self.found.names.variables.get(name) for name in ir.variables_of(own.body)}
        alike = [c for c in others if set(ir.variables_of(c.body)) == wanted]
        return alike[0] if alike else None

    def _pair(self, own: ir.Constraint, other: ir.Constraint) -> Iterator[Difference]:
        """Where a constraint of the key and the one that stands for it differ."""
        if own.kind != other.kind:
            yield self.made(other.label, Spot(kind="equation", key=own.span, answer=other.span))
            return
        kind = self._reversed_or_moved(own, other)
        if kind == "reversed":
            yield self.made(other.label, Spot(kind=kind, key=own.span, answer=other.span))
            return
        inner, spots = self.matcher, []
        if len(own.binders) != len(other.binders):
            spots = [Spot(kind="family", key=own.span, answer=other.span)]
        elif own.binders:
            inner, spots = self.matcher.bound_to(own.binders, other.binders, (own.condition, other.condition))
        spots += inner.spots(own.body, other.body)
        if not spots:
            kind = kind or "formula"
            spots = [Spot(kind=kind, key=own.span, answer=other.span)]
        for spot in _few(spots):
            yield self.made(other.label, spot, other.span)

    def _reversed_or_moved(self, own: ir.Constraint, other: ir.Constraint) -> str:
        """``reversed`` if the bodies are opposite, ``bound`` if they differ by a number, or ''."""
        ours, theirs = self._values(own.label, other.label)
        if ours is None or theirs is None or ours.shape != theirs.shape:
            return ""
        ends = np.argsort(ours, axis=None)[[0, -1]]
        low, high = ours.flat[ends[0]], ours.flat[ends[1]]
        if high == low:
            return ""
        factor = (theirs.flat[ends[1]] - theirs.flat[ends[0]]) / (high - low)
        rest = theirs - factor * ours
        size = np.maximum(np.abs(theirs), np.abs(factor * ours))
        if factor == 0 or not functions.close(rest, np.full_like(rest, np.median(rest)), size).all():
            return ""
        return "reversed" if factor < 0 else "bound"

    def _values(self, own: str, other: str) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The rows of two constraints at some points of the trial."""
        from fccomodel.app.grading.points import random_point
        from fccomodel.app.grading.values import sides

        if self.found.trial is None:
            return None, None
        key, answer = sides(self.found.trial)
        rng = np.random.default_rng(4)
        points = [random_point(key, number, rng) for number in range(functions.NEEDED)]
        rows = []
        for side, label in ((key, own), (answer, other)):
            values = [side.at(point).rows for point in points]
            rows.append(np.array([v[[name == label for name in side.labels]] for v in values]))
        return rows[0], rows[1]

    # --------------------------------------------------------------------------------- domains
    def domains(self) -> Iterator[Difference]:
        """Variables whose bounds or sets differ, unless constraints make up for it."""
        if self.found.regions.same:
            return
        for name in self.found.domains:
            other = self.answer.variables[self.found.names.variables[name]]
            yield Difference(
                kind="set of a variable",
                part=f"variable {other.name}",
                answer=_text(self.answer, shown(other.span)),
                key=_text(self.key, shown(self.key.variables[name].span)),
                span=shown(other.span),
            )


def _labelled(problem: ir.Problem, label: str) -> list[ir.Constraint]:
    """The constraints with a label that the user has given."""
    return [c for c in problem.constraints if c.label == label]


#: Spots that are told of one part.
TOLD = 4


def _few(spots: list[Spot]) -> list[Spot]:
    """The first spots; more of them would hide what matters."""
    return list(dict.fromkeys(spots))[:TOLD]


def _text(problem: ir.Problem, span: Span | None) -> str:
    """The text of a model at a place, on one line."""
    if span is None:
        return ""
    return " ".join(problem.source.text[span.start : span.end].split()).rstrip(";")
