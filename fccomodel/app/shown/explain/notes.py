"""Notes on a model: assumptions in use, conditions that are not proved, lint, and the memory needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fccomodel.app.shown.explain.costly import costly
from fccomodel.core.diagnostics import FccoError, quoting
from fccomodel.core.memory import available, in_words
from fccomodel.core.options import Unused
from fccomodel.data.bound import Bound, mapped
from fccomodel.data.drawn import drawn
from fccomodel.evaluation.sets import preparing
from fccomodel.pipeline.memory_needed import LOADED_LATE, memory_needed
from fccomodel.plan import Plan
from fccomodel.structure import RULES, Analysis
from fccomodel.structure.facts import Fact, Standing

#: Elements of a problem's reductions, or numbers of its data, up to which memory is not mentioned.
FEW_NUMBERS = 1 << 21
#: Largest number of characters of an expression in a note.
LONGEST_TEXT = 60
#: Bytes in memory for each row of a table whose vectors stay in files, in full passes and reports.
PER_ROW = 130


def warnings(analysis: Analysis, plan: Plan | None = None) -> list[str]:
    """All notes on a model, each once.

    They are: cautions about data and options, conditions that are not proved or are checked with the
    data, assumptions in use, the lint of the model, texts that cost more than others of the same meaning,
    and the memory that the plan needs.
    """
    problem = analysis.problem
    unused = () if plan is None else plan.unused
    if analysis.bound is None:
        texts = [f"{option}." for option in unused]
        texts += _assumed_lengths(analysis)
    else:
        texts = _cautions(analysis.bound, unused)
    roots = [analysis.objective, *analysis.constraints.values()]
    for root in roots:
        texts += [f"{fact.reason}: {problem.text(fact.subject)}" for fact in root.domain]
    for argument, needs in analysis.left_to_binding.items():
        texts.append(f"{needs}: `{problem.text(argument)}`, which is checked when it is bound")
    for root in roots:
        for fact in _behind([root.curvature_fact, root.differentiable, root.gradient, root.lipschitz]):
            if _is_assumption(fact):
                texts.append(f"assumed, not proved: {fact.reason or RULES[fact.rule]}")
    texts += [getattr(warning, "message", str(warning)) for warning in problem.warnings]
    texts += costly(problem)
    texts += _large(analysis)
    texts += _memory(analysis, plan)
    return list(dict.fromkeys(texts))


def _assumed_lengths(analysis: Analysis) -> list[str]:
    """A note on recursions whose number of steps comes with the data."""
    dims = sorted(analysis.problem.counting)
    if not dims:
        return []
    return [
        f"the data say how many steps a recursion has ({', '.join(dims)}): what is said here is of a few "
        f"steps, with a small size in place of {', '.join(dims)}. It may be otherwise for the sizes of the "
        "data, and is found again when they are bound"
    ]


def _is_assumption(fact: Fact) -> bool:
    """Whether a fact is assumed itself, and not only because it follows from an assumed one."""
    if fact.standing != Standing.ASSUMED:
        return False
    return all(premise.standing != Standing.ASSUMED for premise in fact.uses)


def _cautions(bound: Bound, unused: Sequence[Unused]) -> list[str]:
    """The cautions that a report would show beside its verdict."""
    from fccomodel.report import cautions

    subject = cautions.Subject(bound=bound, unused=unused)
    return [caution.message for caution in cautions.of(subject)]


def _large(analysis: Analysis) -> list[str]:
    """Notes on large data: tables in files, and a report that may use a sample of the rows."""
    if analysis.bound is None:
        return []
    from fccomodel.data.subsets import RandomParts
    from fccomodel.evaluation.passes import amount
    from fccomodel.report.new_rows import subsample

    texts = _in_files(analysis.bound)
    count = amount(analysis.bound)
    if count > subsample.LARGE_ELEMENTS and not RandomParts(bound=analysis.bound).obstacle:
        drawn = "where the budget is short of that, the report is of rows drawn at random"
        texts.append(f"{count:.1e} elements are evaluated: {drawn}")
    return texts


def _memory(analysis: Analysis, plan: Plan | None) -> list[str]:
    """A note on the memory of a solve, part by part, and on its largest array; none for small problems."""
    bound = analysis.bound
    if bound is None or plan is None or not _takes_memory(bound):
        return []
    with quoting(analysis.problem.source):
        try:
            needed = memory_needed(analysis, plan)
        except FccoError as error:
            return [f"a solve ends with {one.code}: {one.message}" for one in error.diagnostics]
    parts = [f"its run {in_words(needed.run)}"]
    if needed.interior:
        parts.append(f"the interior-point method {in_words(needed.interior)}")
    if needed.report is not None:
        parts.append(f"its report {in_words(needed.report)}")
    parts.append(f"libraries {in_words(LOADED_LATE)}")
    largest = in_words(needed.largest)
    if needed.of is not None:
        largest += f", of {cut(analysis.problem.text(needed.of))}"
    return [
        f"memory: a solve takes {in_words(needed.total)} at most ({', '.join(parts)}); "
        f"its largest array is {largest}; {in_words(available())} are available"
    ]


def _takes_memory(bound: Bound) -> bool:
    """Whether a problem has so many elements or numbers, or such nets, that its memory is worth a note."""
    from fccomodel.data.net_costs import dear
    from fccomodel.evaluation.passes import amount

    columns = [column for table in bound.tables.values() for column in table.columns.values()]
    numbers = sum(array.size for array in (*columns, *bound.arrays.values()))
    return max(numbers, amount(bound)) > FEW_NUMBERS or dear(bound)


def _in_files(bound: Bound) -> list[str]:
    """Notes on the columns that stay in files, and on the memory that their tables still take."""
    texts = []
    for name, table in bound.tables.items():
        in_files = {column: values for column, values in table.columns.items() if mapped(values)}
        if not in_files:
            continue
        for column, values in in_files.items():
            shape = " x ".join(f"{size:,}" for size in values.shape)
            if drawn(values):
                texts.append(
                    f"{name}.{column} ({shape}, {values.dtype}) is not read as a whole: its rows are drawn"
                )
                continue
            size = _size(values.nbytes)
            texts.append(f"{name}.{column} ({shape}, {values.dtype}) stays in its file of {size}")
        if table.indices:
            files = sum(array.nbytes for arrays in table.indices.values() for array in arrays.values())
            texts.append(f"groups and orders of {name} stay in their files of {_size(files)}")
        texts.append(
            f"in memory are about {_size(table.n * PER_ROW)} for the {table.n:,} rows of {name}: "
            f"{PER_ROW} bytes each, and blocks"
        )
        indices = preparing.held(bound, name)
        if indices:
            texts.append(
                f"in memory are {_size(indices)} of groups and orders of {name} that were not prepared"
            )
    return texts


def _size(count: int) -> str:
    """A number of bytes in MB or GB."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:,.0f} MB"


def _behind(facts: Iterable[Fact]) -> Iterator[Fact]:
    """These facts and all facts from which they follow, each once."""
    seen: set[int] = set()
    stack = list(facts)
    while stack:
        fact = stack.pop()
        if id(fact) not in seen:
            seen.add(id(fact))
            yield fact
            stack.extend(fact.uses)


def cut(text: str) -> str:
    """The text of an expression in backquotes, shortened if it is long."""
    if len(text) <= LONGEST_TEXT:
        return f"`{text}`"
    return f"`{text[:LONGEST_TEXT]} ...`"
