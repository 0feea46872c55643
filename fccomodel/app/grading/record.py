"""What grading says: the verdict, where answer and key differ, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.core.diagnostics import Diagnostic, render
from fccomodel.core.source import Source, Span

#: What a difference can be, each with the sentence that describes it.
KINDS: Mapping[str, str] = {
    "sense": "minimize and maximize are exchanged",
    "sign": "a sign is wrong",
    "number": "a number or a param is another one",
    "param": "another param or array stands here",
    "label": "another label stands here",
    "variable": "another variable stands here",
    "column": "another column stands here",
    "net": "another net stands here",
    "index": "an index is wrong",
    "set": "a set is another one",
    "sets of the reduction": "the reduction goes over other sets",
    "reduction": "the reduction is of another kind",
    "option": "an option of the reduction has another value",
    "condition": "a condition is another one",
    "missing condition": "a condition is missing",
    "extra condition": "there is a condition too many",
    "strictness": "a strict bound stands in the place of one that allows equality, or the reverse",
    "relation": "a relation points the other way, or is another one",
    "function": "another function or operation stands here",
    "formula": "another formula stands here",
    "missing term": "a term is missing",
    "extra term": "there is a term too many",
    "missing factor": "a factor is missing",
    "extra factor": "there is a factor too many",
    "bound": "the bound is another one",
    "reversed": "the constraint points the other way",
    "equation": "an equation stands in the place of an inequality, or the reverse",
    "family": "the constraint holds for other members",
    "missing constraint": "a constraint is missing",
    "extra constraint": "there is a constraint that the task does not have",
    "set of a variable": "the bounds or the set of a variable are others",
    "missing declaration": "a declaration is missing",
    "extra declaration": "there is a declaration that the task does not have",
    "default": "the param has another value",
    "objective": "the objective is another function",
}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One place where an answer differs from the key.

    kind    a word of ``KINDS``
    part    ``objective``, the label of a constraint, or a name
    answer  the answer's text there, or ""
    key     the key's text there, or ""
    span    the place in the answer's text, or None
    """

    kind: str
    part: str
    answer: str = ""
    key: str = ""
    span: Span | None = None

    def sentence(self, *, hints: bool = False) -> str:
        """The difference in words; ``hints`` leaves out what the key says."""
        text = f"{self.part}: {KINDS[self.kind]}"
        if self.answer:
            text += f"\n    yours: {self.answer}"
        if self.key and not hints:
            text += f"\n    key:   {self.key}"
        return text


@dataclass(frozen=True, kw_only=True)
class CostOfDifferences:
    """The cost of the differences: the answer's optimum judged by the key, on the same data.

    objective      the key's objective at the answer's optimum
    best           the key's objective at its own optimum
    violation      by how much the answer's optimum violates the key's constraints
    worst          the constraint that is violated most, or ""
    """

    objective: float
    best: float
    violation: float
    worst: str = ""

    @property
    def sentence(self) -> str:
        """The cost in words."""
        text = f"At your optimum the key's objective is {self.objective:.6g}; "
        text += f"its own optimum is {self.best:.6g}."
        if self.worst:
            text += f" Your optimum violates `{self.worst}` by {self.violation:.3g}."
        return text


@dataclass(frozen=True, eq=False, kw_only=True)
class Grade(Shown):
    """The judgement of one answer.

    verdict      ``same``, ``different``, ``undecided``, or ``invalid`` (the answer does not compile)
    basis        what the verdict rests on, in a sentence
    parts        for each part of the key, whether the answer has it
    differences  where they differ
    notes        what is the same in other words, or could not be compared
    cost         what the differences cost, if that was asked for and could be computed
    diagnostics  for ``invalid``: the errors
    source       the answer's text
    """

    verdict: str
    basis: str
    parts: Mapping[str, bool] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    cost: CostOfDifferences | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    source: Source | None = field(default=None, repr=False)

    @property
    def same(self) -> bool:
        """Whether the answer states the key's problem."""
        return self.verdict == "same"

    @property
    def score(self) -> float:
        """1 for the same problem, else the share of the key's parts that the answer has.

        It stays below 1 for any other verdict, and is 0 for an answer that does not compile.
        """
        if self.same:
            return 1.0
        if not self.parts:
            return 0.0
        right = sum(self.parts.values())
        return min(right, len(self.parts) - 1) / len(self.parts)

    @property
    def json(self) -> dict[str, Any]:
        """The grade as JSON values."""
        return self.record()

    def record(self, *, hints: bool = False) -> dict[str, Any]:
        """The grade as JSON values; ``hints`` leaves out what the key says."""
        record: dict[str, Any] = {
            "verdict": self.verdict,
            "score": self.score,
            "basis": self.basis,
            "parts": dict(self.parts),
            "differences": [self._difference(one, hints) for one in self.differences],
            "notes": list(self.notes),
            "errors": [{"code": d.code, "message": d.message, "fix": d.fix} for d in self.diagnostics],
        }
        if self.cost is not None:
            record["cost"] = vars(self.cost)
        return record

    def _difference(self, one: Difference, hints: bool) -> dict[str, Any]:
        key = "" if hints else one.key
        record = {"kind": one.kind, "part": one.part, "answer": one.answer, "key": key}
        if one.span is None or self.source is None:
            return record
        line, column = self.source.place(one.span)
        return {**record, "line": line, "column": column}

    def text(self, *, hints: bool = False) -> str:
        """The grade in words; ``hints`` leaves out what the key says."""
        lines = [f"{VERDICTS[self.verdict]} {self.basis}".strip()]
        if self.diagnostics:
            lines.append(render(self.diagnostics, self.source))
        for one in self.differences:
            place = ""
            if one.span is not None and self.source is not None:
                place = "line {}, column {}, ".format(*self.source.place(one.span))
            lines.append(f"- {place}{one.sentence(hints=hints)}")
        lines += [f"- {note}" for note in self.notes]
        if self.cost is not None:
            lines.append(self.cost.sentence)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def with_cost(self, cost: CostOfDifferences | None) -> Grade:
        """The grade with what the differences cost."""
        return replace(self, cost=cost)


#: The first sentence of a grade.
VERDICTS: Mapping[str, str] = {
    "same": "The same problem.",
    "different": "Another problem.",
    "undecided": "Not decided.",
    "invalid": "The answer is not a model.",
}
