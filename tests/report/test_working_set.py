"""Least squares over many cones: the working set's answer is that of all cones at once."""

import numpy as np
import pytest

from fccomodel.core.work import Meter
from fccomodel.report.kinks.weights import WeightSet
from fccomodel.report.kkt import multipliers, working_set
from fccomodel.report.kkt.groups import Cone, KinkWeights, Simple, Weighing
from fccomodel.report.kkt.least_squares import Squares

SIMPLEX = WeightSet(kind="simplex", high=0.4)
BOX = WeightSet(kind="box", low=-0.5, high=1.0)
#: Unknowns of a cone: its multiplier, two rows of four weights, a kink of three inside one of them.
OF_CONE = 12


def squares(seed: int, cones: int, *, nested: bool) -> Squares:
    """Many cones with kinks, perhaps nested, one kink in the objective, and two plain multipliers."""
    rng = np.random.default_rng(seed)
    groups, owner = [], []
    for k in range(cones):
        first = OF_CONE * k
        at = first + 1 + np.arange(8).reshape(2, 4)
        inside = {}
        if nested:
            inside = {int(at[0, 1]): (KinkWeights(at=first + 9 + np.arange(3)[None], weights=BOX),)}
        parts = [KinkWeights(at=at, weights=SIMPLEX, inside=inside)]
        if not nested:
            parts.append(KinkWeights(at=first + 9 + np.arange(3)[:, None], weights=BOX))
        groups.append(Cone(at=first, parts=tuple(parts)))
        owner += [1 + k] * OF_CONE
    first = OF_CONE * cones
    groups.append(Weighing(part=KinkWeights(at=first + np.arange(4)[None], weights=SIMPLEX)))
    groups.append(Simple(at=first + 4 + np.arange(2), free=np.array([False, True])))
    owner += [0] * 4 + [1 + cones, 2 + cones]
    size = first + 6
    diagonal = np.zeros(size)
    diagonal[0:first:OF_CONE] = -rng.exponential(size=cones)
    return Squares(
        matrix=rng.normal(size=(5, size)), offset=3 * rng.normal(size=5), owner=np.array(owner),
        rate=0.1 * rng.random(size), constant=0.1 * rng.random(3 + cones), diagonal=diagonal, groups=groups,
    )  # fmt: skip


def start(found: Squares) -> np.ndarray:
    """The point of the sets with all multipliers 0."""
    z = np.zeros(found.size)
    for group in found.groups:
        group.project(z)
    return z


@pytest.mark.parametrize("nested", [False, True])
def test_its_answer_is_that_of_all_cones(nested, monkeypatch):
    found = squares(int(nested), 14, nested=nested)
    together = multipliers._solve_together(found, start(found), Meter(20.0))
    monkeypatch.setattr(working_set, "MANY_UNKNOWNS", 100)
    assert working_set.helps(found)
    z = multipliers.solve(found, start(found), Meter(20.0))
    inside = z.copy()
    for group in found.groups:
        group.project(inside)
    np.testing.assert_allclose(inside, z, atol=1e-7)
    length, other = (np.linalg.norm(found.residual(x)) for x in (z, together))
    assert length <= other * (1 + 1e-6)
    assert 0 < sum(z[group.at] > 1e-9 for group in found.groups if isinstance(group, Cone)) < 14


def test_projections_that_take_too_much_are_not_begun():
    """The price of a projection grows with the weights' number; the start is kept."""
    found = squares(0, 400, nested=False)
    begin, meter = start(found), Meter(0.05)
    assert multipliers.descend(found, begin, meter).z is begin
    assert not meter.spent
