"""Selections: conditions taken apart and realised, against brute force over all pairs."""

import numpy as np
import pytest
import torch

from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.data.bound import Bound, BoundTable
from fccomodel.evaluation.sets import elements, realising, selections

torch.set_num_threads(1)
RANDOM = np.random.default_rng(0)
N = 23
COLUMNS = {
    "t": RANDOM.integers(0, 7, N).astype(float),
    "g": RANDOM.integers(0, 4, N),
    "h": RANDOM.integers(0, 2, N).astype(float),
    "x": RANDOM.normal(size=(N, 3)),
}
GROUPS = ir.LabelSet(name="G")
SIGNS = ir.ValueSet(name="S", items=(ir.Const(value=0.0), ir.Const(value=1.0)))
REAL = ir.ColumnType(kind="real")
TABLE = ir.Table(
    name="D",
    columns={
        "t": REAL,
        "g": ir.ColumnType(kind="values", domain=GROUPS),
        "h": REAL,
        "x": ir.ColumnType(kind="real", shape=("d",)),
    },
)
ROWS = ir.RowSet(name="D", table="D")


def bind(**changes) -> Bound:
    problem = ir.Problem(
        name="m",
        source=Source(text="minimize 0;"),
        objective=ir.Objective(sense="minimize", expr=ir.Const(value=0.0)),
        tables={"D": TABLE},
        sets={"G": GROUPS, "S": SIGNS},
    )
    table = BoundTable(name="D", n=N, columns=COLUMNS)
    return Bound(
        **{
            "problem": problem,
            "tables": {"D": table},
            "labels": {"G": ("a", "b", "c", "d")},
            "dims": {"d": 3},
        }
        | changes
    )


def binder(name: str, domain: ir.Set = ROWS, kind: str = "~") -> ir.Binder:
    return ir.Binder(name=name, kind=kind, domain=domain)


def col(b: ir.Binder, name: str) -> ir.Column:
    return ir.Column(binder=b, name=name)


def op(name: str, *args: ir.Expr) -> ir.Apply:
    return ir.Apply(op=name, args=args)


def both(*parts: ir.Expr) -> ir.Expr:
    result = parts[0]
    for part in parts[1:]:
        result = op("and", result, part)
    return result


OUT, K, C, J = binder("i"), binder("k", GROUPS, "in"), binder("c", SIGNS, "in"), binder("j")
T, G, H = (COLUMNS[name] for name in "tgh")
A, B = np.arange(N)[:, None], np.arange(N)[None, :]
TWO = ir.Const(value=2.0)
PAIRS = {
    "key": (op("eq", col(J, "g"), col(OUT, "g")), G[A] == G[B]),
    "key with a formula": (
        op("eq", op("add", col(OUT, "t"), TWO), op("mul", TWO, col(J, "t"))),
        T[A] + 2 == 2 * T[B],
    ),
    "two keys": (
        both(op("eq", col(J, "g"), col(OUT, "g")), op("eq", col(OUT, "h"), col(J, "h"))),
        (G[A] == G[B]) & (H[A] == H[B]),
    ),
    "suffix": (op("ge", col(J, "t"), col(OUT, "t")), T[B] >= T[A]),
    "open suffix": (op("lt", col(OUT, "t"), col(J, "t")), T[B] > T[A]),
    "prefix": (op("le", col(J, "t"), col(OUT, "t")), T[B] <= T[A]),
    "open prefix": (op("gt", col(OUT, "t"), col(J, "t")), T[B] < T[A]),
    "window": (
        both(
            op("ge", col(J, "t"), op("sub", col(OUT, "t"), TWO)),
            op("lt", col(J, "t"), op("add", col(OUT, "t"), TWO)),
        ),
        (T[B] >= T[A] - 2) & (T[B] < T[A] + 2),
    ),
    "suffix in a group": (
        both(op("eq", col(J, "g"), col(OUT, "g")), op("ge", col(J, "t"), col(OUT, "t"))),
        (G[A] == G[B]) & (T[B] >= T[A]),
    ),
    "not itself": (op("ne", ir.Element(binder=J), ir.Element(binder=OUT)), A != B),
    "others of its group": (
        both(op("eq", col(J, "g"), col(OUT, "g")), op("ne", ir.Element(binder=OUT), ir.Element(binder=J))),
        (G[A] == G[B]) & (A != B),
    ),
    "distance": (
        op("le", op("abs", op("sub", col(OUT, "t"), col(J, "t"))), TWO),
        np.abs(T[A] - T[B]) <= 2,
    ),
    "distance in a group": (
        both(
            op("gt", TWO, op("abs", op("sub", col(J, "t"), col(OUT, "t")))),
            op("eq", col(J, "g"), col(OUT, "g")),
            op("ne", ir.Element(binder=J), ir.Element(binder=OUT)),
        ),
        (np.abs(T[A] - T[B]) < 2) & (G[A] == G[B]) & (A != B),
    ),
    "sum after a row": (
        both(
            op("lt", op("add", col(OUT, "t"), col(J, "t")), ir.Const(value=7.0)),
            op("lt", col(OUT, "t"), col(J, "t")),
        ),
        (T[A] + T[B] < 7) & (T[B] > T[A]),
    ),
    "rounded": (
        op(
            "ge",
            op(
                "sub",
                op("mul", ir.Const(value=0.3), col(OUT, "t")),
                op("div", col(J, "t"), ir.Const(value=10.0)),
            ),
            ir.Const(value=0.2),
        ),
        0.3 * T[A] - T[B] / 10 >= 0.2,
    ),
    "mask": (op("ne", col(J, "t"), col(OUT, "t")), T[A] != T[B]),
    "mask of an or": (
        op("or", op("eq", col(J, "g"), col(OUT, "g")), op("gt", col(J, "t"), col(OUT, "t"))),
        (G[A] == G[B]) | (T[B] > T[A]),
    ),
    "static too": (
        both(op("eq", col(J, "h"), ir.Const(value=1.0)), op("ge", col(J, "t"), col(OUT, "t"))),
        (H[B] == 1) & (T[B] >= T[A]),
    ),
    "label": (
        both(
            op("eq", col(J, "g"), ir.Label(text="b")), op("ne", ir.Element(binder=J), ir.Element(binder=OUT))
        ),
        (G[B] == 1) & (A != B),
    ),
}


def table_of(bound: Bound, sel: selections.Selection, ranges: realising.SelectionArrays) -> np.ndarray:
    """Which (parent, element) pairs the ranges describe, masks left out."""
    found = np.zeros((len(ranges.start), N), dtype=int)
    for i, (start, size) in enumerate(zip(ranges.start, ranges.size, strict=True)):
        rows = ranges.rows[start : start + size]
        keep = np.ones(size, dtype=bool)
        if ranges.skip is not None and ranges.skip[i] >= 0:
            keep[ranges.skip[i]] = False
        np.add.at(found[i], rows[keep], 1)
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_those_of_brute_force(name):
    condition, expected = PAIRS[name]
    bound = bind()
    (sel,) = selections.split((J,), condition)
    assert sel.parents == (OUT,)
    ranges = realising.realise(bound, sel, empty="keep")
    found = table_of(bound, sel, ranges)
    if sel.masks:
        assert (found >= expected).all() and found.max() == 1
        valid = found.sum(1)
        np.testing.assert_allclose(ranges.accept * valid, expected.sum(1), atol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected.astype(int))
        assert ranges.accept is None


def test_how_conditions_are_taken_apart():
    def kinds(name: str) -> tuple[int, ...]:
        (sel,) = selections.split((J,), PAIRS[name][0])
        return tuple(len(part) for part in (sel.static, sel.keys, sel.orders, sel.excludes, sel.masks))

    assert kinds("two keys") == (0, 2, 0, 0, 0)
    assert kinds("window") == (0, 0, 2, 0, 0)
    assert kinds("others of its group") == (0, 1, 0, 1, 0)
    assert kinds("distance") == (0, 0, 2, 0, 0)
    assert kinds("distance in a group") == (0, 1, 2, 1, 0)
    assert kinds("sum after a row") == (0, 0, 2, 0, 0)
    assert kinds("rounded") == (0, 0, 1, 0, 0)
    assert kinds("mask of an or") == (0, 0, 0, 0, 1)
    assert kinds("static too") == (1, 0, 1, 0, 0)
    assert selections.split((J,), None)[0].parents == ()


def test_a_conjunct_belongs_to_the_last_binder_it_mentions():
    first, second = selections.split(
        (OUT, J), both(op("eq", col(OUT, "h"), ir.Const(value=1.0)), op("eq", col(OUT, "g"), col(J, "g")))
    )
    assert len(first.static) == 1 and not first.keys
    assert len(second.keys) == 1 and second.parents == (OUT,)
    own, outer = second.keys[0]
    assert own.binder is J and outer.binder is OUT


def test_two_different_orders_leave_one_as_a_mask():
    condition = both(op("ge", col(J, "t"), col(OUT, "t")), op("le", col(J, "h"), col(OUT, "h")))
    (sel,) = selections.split((J,), condition)
    assert len(sel.orders) == 1 and len(sel.masks) == 1
    ranges = realising.realise(bind(), sel, empty="keep")
    expected = (T[B] >= T[A]) & (H[B] <= H[A])
    np.testing.assert_allclose(ranges.accept * ranges.size, expected.sum(1))


def test_two_parents_of_different_sets():
    condition = both(op("eq", col(J, "g"), ir.Element(binder=K)), op("eq", col(J, "h"), ir.Element(binder=C)))
    (sel,) = selections.split((J,), condition)
    assert sel.parents == (K, C)
    ranges = realising.realise(bind(), sel, empty="keep")
    assert ranges.start.shape == (4, 2)
    for k in range(4):
        for c in range(2):
            start, size = ranges.start[k, c], ranges.size[k, c]
            rows = ranges.rows[start : start + size]
            assert sorted(rows) == np.flatnonzero((G == k) & (H == c)).tolist()


def test_elements_of_sets():
    bound = bind()
    where = op("eq", col(OUT, "h"), ir.Const(value=1.0))
    some = ir.RowSet(name="P", table="D", row=OUT, where=where)
    np.testing.assert_array_equal(elements.ids(bound, some), np.flatnonzero(H == 1))
    span = ir.ValueSet(name="T", low=ir.Const(value=-0.3), high=ir.Const(value=0.3), step=ir.Const(value=0.1))
    np.testing.assert_allclose(elements.values(bound, span), np.linspace(-0.3, 0.3, 7), atol=1e-15)
    assert elements.names(bound, span)[1:4] == ["-0.2", "-0.1", "0"]
    assert elements.names(bound, GROUPS) == ["a", "b", "c", "d"]
    assert elements.names(bound, SIGNS) == ["0", "1"]
    assert elements.size(bound, "G") == 4 and elements.size(bound, "d") == 3 and elements.size(bound, 7) == 7


def test_an_empty_group_is_named():
    bound = bind(labels={"G": ("a", "b", "c", "d", "rare")})
    (sel,) = selections.split((J,), op("eq", col(J, "g"), ir.Element(binder=K)))
    with pytest.raises(FccoError, match="k = rare"):
        realising.realise(bound, sel)
    assert realising.realise(bound, sel, empty="keep").size[4] == 0


def test_an_empty_set_is_named():
    (sel,) = selections.split((J,), op("gt", col(J, "t"), ir.Const(value=99.0)))
    with pytest.raises(FccoError, match="no element of `D`"):
        realising.realise(bind(), sel)


def test_a_condition_needs_data_alone():
    (sel,) = selections.split((J,), op("gt", col(J, "t"), ir.Var(name="w")))
    with pytest.raises(FccoError, match="decided by data alone"):
        realising.realise(bind(), sel)


def test_draws_of_a_distribution_are_masked():
    noise = binder(
        "e", ir.Distribution(name="normal", family="normal", args=(ir.Const(value=0.0), ir.Const(value=1.0)))
    )
    (sel,) = selections.split((noise,), op("gt", ir.Column(binder=noise, name=None), ir.Const(value=0.0)))
    assert sel.masks and not sel.static
