"""What concepts ask of their arguments: every kind of demand, and every concept that makes one."""

from math import inf

import numpy as np
import pytest

from fccomodel.library import atoms, distributions, reductions, sets
from fccomodel.library.atoms import NONZERO, WHOLE, Domain, Interval, OrderCondition, enclosing

UV = ("u", "v")
HALF = Domain(domain=(None, Interval(0.0, inf, lo_open=True)))
ENDS = Domain(orders=(OrderCondition(0, 1),))
APART = Domain(orders=(OrderCondition(0, 1, strict=True),))
POWER = Domain(domain=lambda u, p: (Interval(0.0, inf) if p.lo % 1 or not p.is_point else None, None))

CONCEPTS = {
    **{f"atom {name}": (atom, atom.names(2)) for name, atom in atoms.all().items() if not atom.internal},
    **{
        f"option of {name}": (kind.option, (kind.option.name,))
        for name, kind in reductions.all().items()
        if kind.option
    },
    **{f"elements of {name}": (kind.elements, ("e",)) for name, kind in reductions.all().items()},
    **{f"set {name}": (simple, simple.arguments) for name, simple in sets.all().items()},
    **{f"distribution {name}": (drawn, drawn.parameters) for name, drawn in distributions.all().items()},
}
LIMITED = {name: entry for name, entry in CONCEPTS.items() if entry[0].limited}
OF_MATRICES = [name for name, entry in LIMITED.items() if getattr(entry[0], "regular", None)]
OF_NUMBERS = [name for name in LIMITED if name not in OF_MATRICES]


def cases(*values):
    return [None if v is None else np.asarray(v, float) for v in values]


@pytest.mark.parametrize(
    ("asks", "values", "argument", "needs", "case", "entry", "value"),
    [
        (HALF, cases(None, [1, 2, 0, -1]), 1, "a value in (0, inf)", 2, (), 0.0),
        (HALF, cases(None, [[1, 2], [3, np.nan]]), 1, "a value in (0, inf)", 1, (1,), np.nan),
        (Domain(nonzero=(0,)), cases([3, 0]), 0, NONZERO, 1, (), 0.0),
        (Domain(counts=(0,)), cases([3, 2.5]), 0, WHOLE, 1, (), 2.5),
        (ENDS, cases([0, 2], [1, 1]), 0, "a value of at most `v`, which is 1", 1, (), 2.0),
        (ENDS, cases([1], [[2, 0]]), 0, "a value of at most `v`, which is 0", 0, (1,), 1.0),
        (APART, cases([0, 1], [1, 1]), 0, "a value less than `v`, which is 1", 1, (), 1.0),
        (POWER, cases([-1, -2, -3], [2, 3, 0.5]), 0, "a value in [0, inf)", 2, (), -3.0),
    ],
)
def test_values_that_break_a_demand(asks, values, argument, needs, case, entry, value):
    found = asks.broken(values, UV)
    assert (found.argument, found.needs, found.case, found.entry) == (argument, needs, case, entry)
    assert found.value == value or np.isnan(found.value) and np.isnan(value)


@pytest.mark.parametrize(
    ("asks", "values"),
    [
        (HALF, cases(None, [1, 2])),
        (HALF, cases([-1, -2], None)),
        (Domain(nonzero=(0,)), cases([3, -1])),
        (Domain(counts=(0,)), cases([3, 2])),
        (ENDS, cases([0, 1], [1, 1])),
        (ENDS, cases([3], None)),
        (APART, cases([0.0], [[1, 2]])),
        (POWER, cases([-1, -2, 3], [2, 3, 0.5])),
    ],
)
def test_values_as_asked(asks, values):
    assert asks.broken(values, UV) is None


@pytest.mark.parametrize(
    ("asks", "where", "refuted", "doubted"),
    [
        (HALF, (Interval(), Interval()), False, True),
        (HALF, (Interval(), Interval(1.0, 2.0)), False, False),
        (HALF, (Interval(), Interval(-1.0, 0.0)), True, True),
        (Domain(nonzero=(0,)), (Interval(0.0, 0.0),), True, True),
        (Domain(nonzero=(0,)), (Interval(-1.0, 1.0),), False, True),
        (Domain(counts=(0,)), (Interval.point(2.5),), True, True),
        (Domain(counts=(0,)), (Interval.point(2.0),), False, False),
        (Domain(counts=(0,)), (Interval(1.0, 3.0),), False, True),
        (ENDS, (Interval.point(2.0), Interval(0.0, 5.0)), False, True),
        (ENDS, (Interval.point(2.0), Interval(0.0, 1.0)), True, True),
        (ENDS, (Interval.point(1.0), Interval(1.0, 5.0)), False, False),
        (APART, (Interval.point(1.0), Interval.point(1.0)), True, True),
    ],
)
def test_intervals(asks, where, refuted, doubted):
    assert (asks.refuted(where, UV) is not None) == refuted and bool(list(asks.doubts(where, UV))) == doubted


@pytest.mark.parametrize("name", OF_MATRICES)
def test_functions_of_matrices_tell_singular_ones(name):
    """Bounds of the entries leave it open whether a matrix is regular; its numbers do not."""
    asks, names = LIMITED[name]
    regular, singular = np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones((2, 2))
    (position,) = asks.regular
    values = [np.ones((2, 2)) for _ in names]
    values[position] = np.stack([regular, singular])
    wrong = asks.broken(values, names)
    assert (wrong.argument, wrong.case, abs(wrong.value) < 1e-12) == (position, 1, True)
    values[position] = np.stack([regular, regular])
    assert asks.broken(values, names) is None
    anywhere = [Interval(-3.0, 3.0)] * len(names)
    assert list(asks.doubts(anywhere, names)) and asks.refuted(anywhere, names) is None


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_every_concept_tells_inside_from_outside(name):
    """At random points, values as asked are in no interval that is refuted; values that are not are in
    none without doubt."""
    asks, names = LIMITED[name]
    rng, seen = np.random.default_rng(0), set()
    for _ in range(400):
        values = [np.round(rng.choice([-2.5, -1, 0, 0.3, 0.5, 1, 1.5, 2, 3, 4]), 3)[None] for _ in names]
        points = [Interval.point(float(v[0])) for v in values]
        wrong = asks.broken(values, names)
        seen.add(wrong is None)
        assert (
            (wrong is not None)
            == (asks.refuted(points, names) is not None)
            == bool(list(asks.doubts(points, names)))
        )
        wider = [Interval(u.lo - rng.choice([0.0, 1.0]), u.hi + rng.choice([0.0, 1.0])) for u in points]
        if wrong is None:
            assert asks.refuted(wider, names) is None
        elif not callable(asks.domain):
            assert list(asks.doubts(wider, names))
    assert seen == {True, False} or asks.amiss is not atoms.nothing


def test_groups_that_do_not_come_out_even_are_told():
    amiss = atoms.all()["group_norm"].amiss
    assert amiss((6,), None, 3.0) == "" and "groups of 4" in amiss((6,), None, 4.0)


def test_what_is_no_number_is_anywhere():
    assert enclosing(np.array([1.0, np.nan])) == Interval() and enclosing(np.array([])) == Interval()
    assert enclosing(np.array([[3.0, -1.0]])) == Interval(-1.0, 3.0)
