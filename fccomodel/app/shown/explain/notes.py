"""What the reader of a model should know besides: assumptions in use, conditions not proved, lint, and
what will be large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from fccomodel.core.diagnostics import FccoError, quoting
from fccomodel.core.memory import available, in_words
from fccomodel.core.options import Unused
from fccomodel.data.bound import Bound, mapped
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.sets import preparing
from fccomodel.structure import RULES, Analysis
from fccomodel.structure.facts import Fact, Standing

#: Elements of a problem's reductions whose passes take too little memory to be told.
FEW_NUMBERS = 1 << 21
#: Characters of an expression in a note.
LONGEST_TEXT = 60
#: Bytes that full passes and reports hold for a row of a table whose vectors stay in files: values
#: of its own.
PER_ROW = 130


def warnings(analysis: Analysis, plan: Any = None) -> list[str]:
    """What the reader should know: cautions about data and options, assumptions in use, conditions not
    proved, the lint of the model, and what its ``plan`` will take of the memory."""
    unused = getattr(plan, "unused", ())
    if analysis.bound is None:
        said = [f"{one}." for one in unused]
    else:
        said = _cautions(analysis.bound, unused)
    roots = [analysis.objective, *analysis.constraints.values()]
    for root in roots:
        said += [f"{f.reason}: {analysis.problem.text(f.subject)}" for f in root.domain]
    left = analysis.left_to_binding.items()
    said += [
        f"{needs}: `{analysis.problem.text(argument)}`, which is checked when it is bound"
        for argument, needs in left
    ]
    for root in roots:
        for fact in _behind([root.curvature_fact, root.differentiable, root.gradient, root.lipschitz]):
            if fact.standing == Standing.ASSUMED and not any(
                u.standing == Standing.ASSUMED for u in fact.uses
            ):
                said.append(f"assumed, not proved: {fact.reason or RULES[fact.rule]}")
    said += [getattr(w, "message", str(w)) for w in analysis.problem.warnings]
    said += _large(analysis)
    said += _memory(analysis, plan)
    return list(dict.fromkeys(said))


def _cautions(bound: Bound, unused: Sequence[Unused]) -> list[str]:
    """What a report would say beside its verdict."""
    from fccomodel.report import cautions

    return [one.message for one in cautions.of(cautions.Subject(bound=bound, unused=unused))]


def _large(analysis: Analysis) -> list[str]:
    """What will be large on the data: of so many elements a report may take some."""
    if analysis.bound is None:
        return []
    from fccomodel.report.new_rows import subsample

    said = _in_files(analysis.bound)
    if (whole := subsample.amount(analysis.bound)) <= subsample.LARGE_ELEMENTS or not subsample.thinnable(
        analysis.bound
    ):
        return said
    drawn = "where the budget is short of that, the report is of rows drawn at random"
    return [*said, f"{whole:.1e} elements are evaluated: {drawn}"]


def _memory(analysis: Analysis, plan: Any) -> list[str]:
    """The largest array of a solve, and what it takes in all; nothing where no more than
    ``FEW_NUMBERS`` are formed."""
    bound = analysis.bound
    if bound is None or plan is None:
        return []
    from fccomodel.report.new_rows import subsample

    if subsample.amount(bound) <= FEW_NUMBERS:
        return []
    from fccomodel.program.lower import foreseen, lower

    with quoting(analysis.problem.source):
        try:
            found = foreseen(lower(analysis.problem, bound, plan))
        except FccoError as error:
            return [f"a solve ends with {one.code}: {one.message}" for one in error.diagnostics]
    if found.of is None:
        of = ""
    else:
        of = f", of {cut(analysis.problem.text(found.of))}"
    room = f"{in_words(available())} are available"
    return [
        f"memory: a solve takes {in_words(found.total)} at most; its largest array is "
        f"{in_words(found.largest)}{of}; {room}"
    ]


def _in_files(bound: Bound) -> list[str]:
    """What of the tables stays in files, and what must be in memory."""
    said = []
    for name, table in bound.tables.items():
        kept = {column: values for column, values in table.columns.items() if mapped(values)}
        for column, values in kept.items():
            shape = " x ".join(f"{size:,}" for size in values.shape)
            if drawn(values):
                said.append(
                    f"{name}.{column} ({shape}, {values.dtype}) is not read as a whole: its rows are drawn"
                )
                continue
            said.append(
                f"{name}.{column} ({shape}, {values.dtype}) stays in its file of {_size(values.nbytes)}"
            )
        if kept and table.indices:
            files = sum(array.nbytes for arrays in table.indices.values() for array in arrays.values())
            said.append(f"groups and orders of {name} stay in their files of {_size(files)}")
        if kept:
            size = _size(table.n * PER_ROW)
            said.append(
                f"in memory are about {size} for the {table.n:,} rows of {name}: {PER_ROW} bytes each, "
                "and blocks"
            )
        if kept and (indices := preparing.held(bound, name)):
            said.append(
                f"in memory are {_size(indices)} of groups and orders of {name} that were not prepared"
            )
    return said


def _size(count: int) -> str:
    """Bytes as people say them."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:,.0f} MB"


def _behind(facts: Iterable[Fact]) -> Iterator[Fact]:
    """All facts that some follow from, themselves included, each once."""
    seen: set[int] = set()
    stack = list(facts)
    while stack:
        fact = stack.pop()
        if id(fact) not in seen:
            seen.add(id(fact))
            yield fact
            stack.extend(fact.uses)


def cut(text: str) -> str:
    """The text of an expression, its end left out where it is long."""
    if len(text) <= LONGEST_TEXT:
        return f"`{text}`"
    return f"`{text[:LONGEST_TEXT]} ...`"
