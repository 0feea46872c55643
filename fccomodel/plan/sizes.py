"""Batch sizes: the numbers of blocks and samples in a step, and in all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, prod
from typing import Any

from fccomodel.core import ir
from fccomodel.core.options import Origins
from fccomodel.data.bound import Bound
from fccomodel.evaluation.sets import elements, members, realising, selections
from fccomodel.normal_form import NormalForm

#: (binder, number of its elements, inner) -> the number that a step takes, or None for all.
Batch = Callable[[ir.Binder, int, bool], int | None]
#: Sets whose elements can be listed.
LISTED = ir.RowSet | ir.ValueSet | ir.LabelSet
#: Draws of a distribution in a step if no batch size is set.
DRAWN = 256
#: Number that stands for the elements of a distribution.
ENDLESS = 1 << 30
#: Samples, or blocks, in a step.
STEP_SAMPLES = 512
#: Samples of an expectation in a step of nets.
NET_SAMPLES = 128
#: Blocks in a step of nets.
NET_BLOCKS = 64
#: Samples of a step of nets for all blocks together that draw their own.
SAMPLES_OF_BLOCKS = 512
#: Samples of each such block, at least.
LEAST_SAMPLES = 16
#: Elements of a listed set up to which a step takes all of them.
SMALL_SET = 4096
#: Rows of each set in a step of nets whose passes are expensive, and of all its groups together.
OF_DEAR_NETS = 32
#: Rows of each group in such a step, at least.
LEAST_OF_DEAR_NETS = 8
#: Combinations of rows (triples and larger tuples) in a step, at most.
TUPLES = 1 << 18
#: Combinations of rows of all blocks together that draw their own, in a step, at most.
TUPLES_OF_BLOCKS = 1 << 20


def batches(
    settled: Origins,
    nets: bool,
    apart: Mapping[ir.Binder, int] | None = None,
    deep: int = 0,
    thrifty: bool = False,
    crowded: Mapping[ir.Binder, int] | None = None,
) -> tuple[Batch, dict[str, int]]:
    """The batch sizes of a step. Few elements are all taken; of more, as many as cost little compared
    with the step itself.

    nets      samples of nets cost more, so that there are fewer
    apart     binder -> the number of blocks that draw their own samples: fewer each
    deep      the number of binders of rows in one combination: fewer of triples and larger tuples
    thrifty   every row of the nets is expensive: as many as people take by hand
    crowded   binder -> samples of each block, where all blocks together would have too many
    """
    fixed_inner, fixed_outer = "inner_batch" in settled, "outer_batch" in settled
    inner: Any = NET_SAMPLES if nets else STEP_SAMPLES
    outer: Any = NET_BLOCKS if nets else STEP_SAMPLES
    if thrifty:
        inner = outer = OF_DEAR_NETS
    if deep >= 3:
        most = round(TUPLES ** (1 / deep))
        inner, outer = min(inner, most), min(outer, most)
    if fixed_inner:
        inner = settled["inner_batch"][0]
    if fixed_outer:
        outer = settled["outer_batch"][0]

    def batch(binder: ir.Binder, n: int, is_inner: bool) -> int | None:
        """The number of elements that a step draws of a binder, or None for all."""
        is_random = binder.kind == "~"
        size = int(inner if is_random else outer)
        if is_random and not fixed_inner and apart and binder in apart:
            together, least = SAMPLES_OF_BLOCKS, LEAST_SAMPLES
            if thrifty:
                together, least = OF_DEAR_NETS, LEAST_OF_DEAR_NETS
            size = min(size, max(together // apart[binder], least))
        fixed = fixed_inner if is_random else fixed_outer
        if not fixed and crowded and binder in crowded:
            return crowded[binder] if n > crowded[binder] else None
        small = isinstance(binder.domain, ir.ValueSet | ir.LabelSet) and n <= SMALL_SET
        if small and (is_random or not fixed_outer):
            return None
        if fixed:
            whole = size
        else:
            whole = 2 * size
        if n <= whole:
            return None
        return size

    return batch, {"outer_batch": int(outer), "inner_batch": int(inner)}


def of_steps(
    settled: Origins,
    normal: NormalForm,
    bound: Bound | None,
    *,
    nets: bool,
    deep: int,
    thrifty: bool,
    every_block: bool = False,
) -> tuple[Batch, dict[str, int]]:
    """The batch sizes of the steps on a normal form (see ``batches``): blocks that draw samples of their
    own take fewer each.

    every_block   every step has samples of all blocks
    """
    of_shared_samples, _ = batches(settled, nets, deep=deep, thrifty=thrifty)
    blocks_apart = None
    if nets:
        blocks_apart = apart(normal, bound, of_shared_samples)
    samples_of_crowds = crowded(normal, bound, of_shared_samples, every_block=every_block)
    return batches(settled, nets, blocks_apart, deep, thrifty, samples_of_crowds)


def depth(roots: Iterable[ir.Expr]) -> int:
    """The largest number of binders of rows whose elements are combined, in one reduction or in nested
    ones."""
    known: dict[int, int] = {}

    def of(root: ir.Expr) -> int:
        """The largest number of expectations inside one another below a root."""
        stack = [root]
        while stack:
            node = stack[-1]
            if missing := [child for child in node.children if id(child) not in known]:
                stack += missing
                continue
            if isinstance(node, ir.Reduce):
                binders = node.binders
            else:
                binders = ()
            rows = [binder for binder in binders if isinstance(binder.domain, ir.RowSet)]
            known[id(stack.pop())] = len(rows) + max((known[id(child)] for child in node.children), default=0)
        return known[id(root)]

    return max(map(of, roots), default=0)


def counted(
    normal: NormalForm, bound: Bound, batch: Batch, drawn: Mapping[ir.Binder, int] | None = None
) -> dict[str, Any]:
    """The largest numbers of the problem: n blocks, B1 of them in a step, B2 samples of each, and rows of
    an expectation (inf over a distribution).

    drawn   samples of binders that share them
    """
    together = drawn or {}

    def size(node: ir.Reduce | ir.Constraint, inner: bool) -> tuple[float, int]:
        """The values that a step takes of a node, and the elements it visits."""
        whole, visited = 1.0, 1
        for binder, count in taken(node, bound):
            size = together.get(binder) or batch(binder, count, inner)
            whole, visited = whole * count, visited * (count if size is None else min(size, count))
        for binder in node.binders if inner else ():
            if isinstance(binder.domain, ir.Distribution):
                whole, visited = inf, visited * (batch(binder, ENDLESS, inner) or DRAWN)
        return whole, visited

    reformed = normal.reformed
    outer = [size(n, False) for e in reformed.roots for n in _outer(e)]
    outer += [size(c, False) for c in reformed.constraints]
    inner = [size(m, True) for term in normal.terms for m in term.means]
    n, B1 = max(outer, default=(1, 1))
    rows, B2 = max(inner, default=(1, 1))
    return {"n": int(n), "B1": B1, "B2": B2, "rows": rows if rows == inf else int(rows)}


def draws(normal: NormalForm, bound: Bound, batch: Batch) -> bool:
    """Whether steps take only some of the blocks or rows, or draws of a distribution."""
    numbers = counted(normal, bound, batch)
    return numbers["B1"] < numbers["n"] or _only_some_rows(normal, numbers)


def sampled(normal: NormalForm, bound: Bound, batch: Batch) -> bool:
    """Whether steps take only some of the rows of an expectation, or draws of a distribution."""
    return _only_some_rows(normal, counted(normal, bound, batch))


def _only_some_rows(normal: NormalForm, numbers: Mapping[str, Any]) -> bool:
    """Whether steps do so, for the numbers that ``counted`` gives."""
    return endless(normal) or numbers["B2"] < numbers["rows"]


def endless(normal: NormalForm) -> bool:
    """Whether an expectation is over a distribution, which no step and no pass sees as a whole."""
    means = (n for e in normal.reformed.roots for n in ir.walk(e) if isinstance(n, ir.Reduce))
    return any(isinstance(b.domain, ir.Distribution) for mean in means for b in mean.binders)


def apart(normal: NormalForm, bound: Bound | None, batch: Batch) -> dict[ir.Binder, int]:
    """The number of a step's blocks that draw samples of their own, by binder: blocks that the samples'
    condition names.
    """
    if bound is None:
        return {}
    blocks: dict[ir.Binder, int] = {}
    for mean in (m for term in normal.terms for m in term.means):
        if mean.condition is not None:
            blocks |= dict.fromkeys(mean.binders, _blocks_of(mean, bound, batch))
    return blocks


def crowded(
    normal: NormalForm, bound: Bound | None, batch: Batch, *, every_block: bool = False
) -> dict[ir.Binder, int]:
    """For binders of pairs and larger tuples that every block of a step draws for itself, the samples
    with which all blocks together have ``TUPLES_OF_BLOCKS``; none for fewer.

    every_block   a step has all blocks, not those of ``batch`` alone
    """
    if bound is None:
        return {}
    samples: dict[ir.Binder, int] = {}
    for mean in (m for term in normal.terms for m in term.means):
        each, binders = _largest_tuples(mean, bound, batch)
        if len(binders) < 2 or mean.condition is None:
            continue
        blocks = _blocks_of(mean, bound, all_of_each if every_block else batch)
        if blocks > 1 and blocks * each > TUPLES_OF_BLOCKS:
            most = max(TUPLES_OF_BLOCKS / blocks, 1.0) ** (1 / len(binders))
            samples |= dict.fromkeys(binders, max(round(most), LEAST_SAMPLES))
    return samples


def _largest_tuples(mean: ir.Reduce, bound: Bound, batch: Batch) -> tuple[float, tuple[ir.Binder, ...]]:
    """The number of tuples that a step takes of a mean and the reductions inside it, and their binders."""
    known: dict[int, tuple[float, tuple[ir.Binder, ...]]] = {}
    stack: list[ir.Expr] = [mean]
    while stack:
        node = stack[-1]
        if missing := [child for child in node.children if id(child) not in known]:
            stack += missing
            continue
        number, binders = max((known[id(child)] for child in node.children), key=_first, default=(1.0, ()))
        if isinstance(node, ir.Reduce):
            own = dict(taken(node, bound))
            number *= prod(batch(binder, n, True) or n for binder, n in own.items())
            binders = (*own, *binders)
        known[id(stack.pop())] = number, binders
    return known[id(mean)]


def _first(pair: tuple[float, tuple[ir.Binder, ...]]) -> float:
    """The number of tuples, by which they are compared."""
    return pair[0]


def all_of_each(binder: ir.Binder, count: int, inner: bool) -> None:
    """The batch of a step that takes all elements of every binder."""


def _blocks_of(mean: ir.Reduce, bound: Bound, batch: Batch) -> int:
    """The number of blocks of a step that the condition of an expectation names."""
    assert mean.condition is not None
    named = [b for b in ir.free_binders(mean.condition) if b not in mean.binders]
    counts = [(b, len(elements.ids(bound, b.domain))) for b in named if isinstance(b.domain, LISTED)]
    return prod(min(count, batch(b, count, False) or count) for b, count in counts)


def rounds(normal: NormalForm, bound: Bound | None, batch: Batch) -> float:
    """The largest n / B1 of the outer reductions: the steps between two visits of a block. Infinite
    before binding."""
    if bound is None:
        return inf
    most = 1.0
    for binder, count in (pair for node in _outer(normal.objective) for pair in taken(node, bound)):
        most = max(most, count / (batch(binder, count, False) or count))
    return most


def taken(node: ir.Reduce | ir.Constraint, bound: Bound) -> Iterator[tuple[ir.Binder, int]]:
    """The binders over sets that can be listed, and the number of elements of each, at least one."""
    for part in selections.split(node.binders, node.condition):
        if isinstance(part.binder.domain, LISTED):
            yield part.binder, max(1, len(realising.index(bound, members.alone(part)).rows))


def _outer(root: ir.Expr) -> list[ir.Reduce]:
    """The reductions over blocks: a reduction inside depends on their elements."""
    return [node for node in ir.walk(root) if isinstance(node, ir.Reduce) and _indexes(node)]


def _indexes(node: ir.Reduce) -> bool:
    """Whether a reduction inside depends on this one's elements."""
    inside = (n for n in ir.walk(node.body) if isinstance(n, ir.Reduce))
    return any(b in node.binders for n in inside for b in ir.free_binders(n))
