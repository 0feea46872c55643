"""Every simple set keeps what it declares: projections by the variational inequality, normal cones,
supports, emptiness."""

import inspect
import math
import re

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from support.conformance_tools import Book

from fccomodel import conic, pipeline
from fccomodel.conic.cones import Cones, assembled
from fccomodel.core.source import Source
from fccomodel.library import sets
from fccomodel.library.atoms import Interval
from fccomodel.library.identities import canonical
from fccomodel.library.sets import SimpleSet
from fccomodel.library.sets.capped_simplex import project_capped
from fccomodel.normal_form import constant_values
from fccomodel.program.emit.carried import carried

BOOK = Book(SimpleSet)
ALL = sets.all()
MATRIX = torch.tensor([[1.0, 2.0, 0.0, 1.0, -1.0], [0.0, 1.0, 1.0, -2.0, 0.5]], dtype=torch.float64)
LOW = torch.tensor([-1.0, 0.0, 0.2, -math.inf, 0.3], dtype=torch.float64)
HIGH = torch.tensor([1.0, math.inf, 0.2, 0.0, 0.4], dtype=torch.float64)
CASES = {
    "box": ("box", (-0.5, 0.8)),
    "box of tensors": ("box", (LOW, HIGH)),
    "half-space": ("box", (0.1, math.inf)),
    "nonneg": ("nonneg", ()),
    "simplex": ("simplex", ()),
    "capped 0.5": ("capped_simplex", (0.5,)),
    "capped 1": ("capped_simplex", (1.0,)),
    "capped 0.05": ("capped_simplex", (0.05,)),
    "capped 0.3": ("capped_simplex", (0.3,)),
    "ball": ("ball", (0.9,)),
    "point": ("ball", (0.0,)),
    "ball1": ("ball1", (1.3,)),
    "large ball1": ("ball1", (5.0,)),
    "corner": ("ball1", (0.0,)),
    "affine": ("affine", (MATRIX, torch.tensor([0.5, -1.0]).double())),
    "affine of low rank": (
        "affine",
        (torch.cat([MATRIX, MATRIX[:1] * 2]), torch.tensor([0.5, -1.0, 1.0]).double()),
    ),
}
cases = pytest.mark.parametrize(
    ("simple", "args"), [(ALL[name], args) for name, args in CASES.values()], ids=CASES
)
N = 5


def vectors(count: int, scale: float = 1.5) -> torch.Tensor:
    rng = np.random.default_rng(3)
    return torch.tensor(
        rng.normal(0, scale, (count, N)) * rng.integers(0, 2, (count, N)) + rng.normal(0, 0.3, (count, N))
    )


def members(simple: SimpleSet, args: tuple, count: int = 200) -> torch.Tensor:
    """Points of the set, its corners among them."""
    return torch.stack([simple.project(v, *simple.prepare(*args)) for v in vectors(count, 3.0)])


@BOOK.checks("tex")
@pytest.mark.parametrize("simple", ALL.values(), ids=ALL)
def test_notation(simple):
    """It shows every argument."""
    assert not simple.tex or set(re.findall(r"<(\w+)", simple.tex)) - {"shape"} == {
        str(k) for k in range(len(simple.arguments))
    }


@BOOK.checks("name", "meaning", "arguments", "cite")
@pytest.mark.parametrize("simple", ALL.values(), ids=ALL)
def test_names(simple):
    assert sets.get(simple.name) is simple and simple.meaning and "\n" not in simple.meaning + simple.cite
    assert sets.get("nothing") is None


@BOOK.checks("project", "prepare", "contains")
@cases
def test_projection(simple, args):
    """<v - p, c - p> <= 0 for every point c of the set, and p is one."""
    others = members(simple, args)
    assert all(simple.contains(c, *args, tolerance=1e-9) for c in others)
    huge = vectors(3, 1e20) if "simplex" in simple.name else []
    for v in [*vectors(60), torch.zeros(N).double(), torch.ones(N).double(), *vectors(5, 1e4), *huge]:
        p = simple.project(v, *simple.prepare(*args))
        assert simple.contains(p, *args, tolerance=1e-9)
        assert float(((others - p) @ (v - p)).max()) <= 1e-8 * (1 + float(v.norm()))
        assert torch.allclose(simple.project(p, *simple.prepare(*args)), p, atol=1e-12)
    outside = others[0] + torch.full((N,), 10.0).double()
    if simple.name == "nonneg" or (simple.name == "box" and args[1] is math.inf):
        outside = -outside
    assert not simple.contains(outside, *args, tolerance=1e-3)


@BOOK.checks("cone")
@cases
def test_the_set_as_a_conic_program(simple, args):
    """The nearest point by the interior-point method is the projection."""
    for v in vectors(4):
        k = Cones()
        w = k.variable((N,))
        simple.cone(k, w, *args)
        program = assembled(k, k.squares(w - v))
        answer = conic.solve(conic.Conic(program, 1.0, {"w": (0, (N,))}, {}))
        p = simple.project(v, *simple.prepare(*args))
        assert np.allclose(answer.variables["w"], p, atol=1e-4)


@cases
def test_projection_in_float32(simple, args):
    narrow = [a.float() if isinstance(a, torch.Tensor) else a for a in simple.prepare(*args)]
    for v in vectors(30):
        p = simple.project(v.float(), *narrow)
        assert p.dtype == torch.float32
        assert torch.allclose(p, simple.project(v, *simple.prepare(*args)).float(), atol=2e-5)


@BOOK.checks("in_steps")
@cases
def test_projection_where_entries_have_steps_of_their_own(simple, args):
    """<(v - p) / steps, c - p> <= 0 for every point c of the set, and p is one; of equal steps the
    nearest point."""
    if simple.in_steps is None:
        return
    others, rng = members(simple, args), np.random.default_rng(1)
    for v in [*vectors(40), torch.zeros(N).double(), *vectors(5, 1e3)]:
        steps = torch.tensor(10 ** rng.uniform(-3, 3, N))
        p = simple.in_steps(v, steps, *simple.prepare(*args))
        assert simple.contains(p, *args, tolerance=1e-9)
        pull = (v - p) / steps
        assert float(((others - p) @ pull).max()) <= 1e-4 * (1e-3 + float(pull.norm()))
        same = simple.in_steps(v, torch.full_like(v, 0.3), *simple.prepare(*args))
        assert torch.allclose(same, simple.project(v, *simple.prepare(*args)), atol=1e-5)


@BOOK.checks("tangent")
@cases
def test_tangent_and_distance_to_the_normal_cone(simple, args):
    """v - p is normal at p; a normal s satisfies <s, c - p> <= 0; the rest of s is at least as long as
    any ascent shows."""
    others = members(simple, args)
    for k, v in enumerate(vectors(60)):
        p = simple.project(v, *simple.prepare(*args))
        assert float(simple.normal_distance(v - p, p, *args, tolerance=1e-9)) < 1e-8
        assert float(simple.normal_distance(3 * (v - p), p, *args, tolerance=1e-9)) < 1e-8
        s = vectors(61)[60 - k]
        distance = float(simple.normal_distance(s, p, *args, tolerance=1e-9))
        # the projection of s on the tangent cone is the limit of projected steps
        step = (simple.project(p + 1e-6 * s, *simple.prepare(*args)) - p) / 1e-6
        assert torch.allclose(simple.tangent(s, p, *args, tolerance=1e-9), step, atol=1e-4)
        far = others - p
        length = far.norm(dim=1)
        assert (
            float(
                ((far @ s)[length > 1e-6] / length[length > 1e-6]).max()
                if bool((length > 1e-6).any())
                else 0.0
            )
            <= distance + 1e-8
        )


@BOOK.checks("support")
@cases
def test_support(simple, args):
    others = members(simple, args)
    for s in [*vectors(40), torch.zeros(N).double()]:
        support = float(simple.support(s, *args))
        assert float((others @ s).max()) <= support + 1e-8
        if support < math.inf:
            far = simple.project(others[0] + 1e7 * s, *simple.prepare(*args))
            assert float((far * s).sum()) == pytest.approx(support, abs=1e-5)


@BOOK.checks("length", "bounded", "round", "cap")
@cases
def test_sizes(simple, args):
    """No point is longer than ``longest`` says, which is finite where the set is bounded; the largest
    weight is ``cap``."""
    near = [torch.as_tensor(a, dtype=torch.float64) for a in args]
    ends = [Interval(float(a.min()), float(a.max())) for a in near]
    most = simple.longest((N,), *ends)
    points = members(simple, args)
    assert all(float(c.norm()) <= most * (1 + 1e-9) for c in points)
    assert (most < math.inf) <= simple.bounded(*ends)
    far = simple.project(vectors(1, 1e6)[0], *simple.prepare(*args))
    assert simple.bounded(*ends) or float(far.norm()) > 1e3
    if simple.cap is not None:
        assert bool((points >= -1e-9).all()) and float((points.sum(-1) - 1).abs().max()) < 1e-9
        assert float(points.max()) == pytest.approx(min(1.0, simple.cap(N, *args)))
    if simple.round:
        turned = torch.linalg.qr(torch.tensor(np.random.default_rng(1).normal(size=(N, N)))).Q
        assert all(simple.contains(turned @ c, *args, tolerance=1e-9) for c in points)


@BOOK.checks("entries", "entrywise")
@cases
def test_entries(simple, args):
    where = simple.entries(*args)
    for c in members(simple, args):
        assert bool(((c >= where.lo - 1e-9) & (c <= where.hi + 1e-9)).all())
        near = [torch.as_tensor(a, dtype=torch.float64) for a in args]
        ends = [Interval(float(a.min()) - 0.1, float(a.max())) for a in near]
        wider = simple.entries(*ends)
        assert where.inside(wider), "arguments known by intervals"
    if simple.entrywise:
        v, w = vectors(2)
        moved = v.clone()
        moved[2] = w[2]
        apart = simple.project(moved, *args) != simple.project(v, *args)
        assert not bool(apart[[0, 1, 3, 4]].any())


@BOOK.checks("normals")
@cases
def test_normals(simple, args):
    """What a projection takes away is generated by the normals; no more of any vector is than
    ``tangent`` leaves."""
    for v, other in zip(vectors(12), vectors(12, 5.0).flip(0), strict=True):
        w = simple.project(v, *simple.prepare(*args))
        normals = simple.normals(w, *args, tolerance=1e-9)
        rows, unit = normals.rows.numpy(), np.eye(N)
        generators = np.concatenate(
            [
                -unit[normals.low],
                unit[normals.high],
                rows,
                -rows[: len(rows) * normals.equation],
                np.zeros((1, N)),
            ]
        )
        distance = float(simple.normal_distance(other, w, *args, tolerance=1e-9))
        if normals.whole:
            assert nnls(generators.T, (v - w).numpy())[1] <= 1e-7
            assert nnls(generators.T, other.numpy())[1] == pytest.approx(distance, abs=1e-9)
        for one in torch.from_numpy(generators):
            assert float(simple.normal_distance(one, w, *args, tolerance=1e-9)) <= 1e-9


@BOOK.checks("domain", "orders", "amiss")
@pytest.mark.parametrize(
    ("name", "shape", "args", "reason"),
    [
        ("box", (3,), (1.0, 0.5), "`low` is 1, and needs a value of at most `high`, which is 0.5."),
        (
            "box",
            (2,),
            (torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.5])),
            "`low`[2] is 2, and needs a value of at most",
        ),
        (
            "box",
            (2,),
            (0.0, torch.tensor([1.0, -1.0])),
            "`low`[2] is 0, and needs a value of at most `high`, which is -1",
        ),
        ("simplex", (0,), (), "without entries"),
        ("capped_simplex", (4,), (1.5,), "`alpha` is 1.5, and needs a value in (0, 1]"),
        ("capped_simplex", (4,), (0.0,), "`alpha` is 0, "),
        ("capped_simplex", (0,), (0.5,), "without entries"),
        ("ball", (4,), (-1.0,), "`radius` is -1, and needs a value in [0, inf)"),
        ("ball1", (4,), (-1.0,), "`radius` is -1, and needs a value in [0, inf)"),
        (
            "affine",
            (2,),
            (torch.tensor([[1.0, 1.0], [2.0, 2.0]]).double(), torch.tensor([1.0, 3.0]).double()),
            "contradict",
        ),
    ],
)
def test_empty_sets(name, shape, args, reason):
    assert reason in ALL[name].empty(shape, *args)


@cases
def test_sets_with_points_are_not_empty(simple, args):
    assert simple.empty((N,), *args) == ""


@cases
def test_the_projection_stands_by_itself(simple, args):
    """Its source, and that of what it calls, runs with nothing but torch, as it does inside a solver."""
    scope = {"torch": torch}
    for function in carried([simple.project]):
        exec(compile(inspect.getsource(function), "solver", "exec"), scope)  # noqa: S102
    v = vectors(1)[0]
    prepared = simple.prepare(*args)
    assert torch.equal(scope[simple.project.__name__](v, *prepared), simple.project(v, *prepared))


FUNCTIONS = {
    "norm1": lambda w: w.abs().sum(),
    "norm2": lambda w: w.norm(),
    "norm_fro": lambda w: w.norm(),
    "sumsq": lambda w: w.square().sum(),
    "norminf": lambda w: w.abs().max(),
    "abs": lambda w: w.abs().max(),
    "square": lambda w: w.square().max(),
}


@BOOK.checks("levels")
@pytest.mark.parametrize(("simple", "form"), [(s, form) for s in ALL.values() for form in s.levels])
def test_level_sets(simple, form):
    """The set holds w exactly where f(w) <= t."""
    for w in vectors(20):
        value, arguments = float(FUNCTIONS[form](w)), simple.levels[form]
        assert simple.contains(w, *arguments(1.001 * value)) and not simple.contains(
            w, *arguments(0.999 * value)
        )


@pytest.mark.parametrize(
    ("constraint", "found"),
    [
        ("norm1(w) <= 2", ("w", "ball1", (2,))),
        ("1 <= 3 - norm1(w) / 2", ("w", "ball1", (4,))),
        ("sum(abs(w)) <= 2", ("w", "ball1", (2,))),
        ("norm2(w) <= 2", ("w", "ball", (2,))),
        ("2 * dot(w, w) <= 8", ("w", "ball", (2,))),
        ("sumsq(w) <= tau", ("w", "ball", (0.5,))),
        ("norm_fro(A) <= 1", ("A", "ball", (1,))),
        ("norminf(w) <= 2", ("w", "box", (-2, 2))),
        ("t <= 3", ("t", "box", (-math.inf, 3))),
        ("1 - 2 * t <= 3", ("t", "box", (-1, math.inf))),
        ("t^2 <= 4", ("t", "box", (-2, 2))),
        ("[i in d]: w[i] >= -1", ("w", "box", (-1, math.inf))),
        ("[i in d]: abs(w[i]) <= 1", ("w", "box", (-1, 1))),
        ("[k in K, i in d]: A[k, i] <= 1", ("A", "box", (-math.inf, 1))),
        ("norm1(w) >= 1", None),
        ("norm1(w) <= t", None),
        ("norm1(w) + sum(w) <= 2", None),
        ("norm1(w - 1) <= 2", ("w", "ball1", (2,), 1.0)),
        ("norm2(1 - 2 * w) <= 2", ("w", "ball", (1,), 0.5)),
        ("sumsq(w + tau) <= 4", ("w", "ball", (2,), -0.25)),
        ("norminf(w - 1) <= 2", ("w", "box", (-1, 3))),
        ("abs(2 * t - 6) <= 2", ("t", "box", (2, 4))),
        ("max[i in d] abs(w[i]) <= 2", ("w", "box", (-2, 2))),
        ("sqrt(sum[i in d] w[i] * w[i]) <= 2", ("w", "ball", (2,))),
        ("norm2(w - dot(w, w)) <= 2", None),
        ("w[1] <= 2", None),
        ("[i in d | i >= 2]: w[i] <= 2", None),
        ("[k in K]: A[k, 1] <= 2", None),
        ("[i in d]: w[i] <= i", None),
        ("norm1(w) == 2", None),
        ("sum(p) == 1", ("p", "simplex", ())),
        ("2 * sum(p) == 2", ("p", "simplex", ())),
        ("sum(p) == 2", None),
        ("sum(w) == 1", None),
    ],
)
def test_constraints_that_are_sets(constraint, found):
    label = "" if constraint.startswith("[") else ": "
    text = "dim d; set K = {0, 1}; param tau >= 0 default 0.25; data D : table(x: real[d]);\n"
    text += "var w[d]; var p[d] >= 0; var A[K, d]; var t;\n"
    text += f"minimize E[z ~ D] square(dot(w, z.x) - t) + sumsq(A);\nsubject to c{label}{constraint};"
    problem = canonical(pipeline.compile_model(Source(text=text, name="m")).problem)
    value = constant_values(problem, None)
    recognised = sets.recognise(problem.constraints[0], problem.variables, value)
    assert (recognised is None) == (found is None)
    if recognised is not None:
        name, domain = recognised
        centre = () if domain.centre is None else (value(domain.centre),)
        assert (name, domain.family, tuple(map(value, domain.args)), *centre) == found


def test_matrices_and_batches():
    v = vectors(4).reshape(4, N)
    rows = ALL["simplex"].project(v)
    assert all(torch.allclose(rows[k], ALL["simplex"].project(v[k])) for k in range(4))
    assert float(ALL["ball"].project(v, 1.0).norm()) == pytest.approx(1.0)
    assert torch.allclose(ALL["ball1"].project(v, 1.0), ALL["ball1"].project(v.reshape(-1), 1.0).view(4, N))
    assert ALL["box"].project(v, -0.1, 0.1).abs().max() <= 0.1


@pytest.mark.parametrize(("name", "args"), [("simplex", ()), ("capped_simplex", (0.4,))])
def test_the_rows_of_a_matrix(name, args):
    """A product of simplexes: everything is that of the rows, one by one."""
    simple, s = ALL[name], vectors(3)
    w = simple.project(vectors(3, 3.0), *args)
    assert simple.contains(w, *args) and not simple.contains(w + torch.eye(3, N) - 0.2, *args)
    assert float(simple.support(s, *args)) == pytest.approx(
        sum(float(simple.support(row, *args)) for row in s)
    )
    tangents = [simple.tangent(row, at, *args, tolerance=1e-9) for row, at in zip(s, w, strict=True)]
    torch.testing.assert_close(simple.tangent(s, w, *args, tolerance=1e-9), torch.stack(tangents))
    normals = simple.normals(w, *args, tolerance=1e-9)
    assert normals.rows.shape == (3, 3 * N) and torch.equal(
        normals.rows @ w.reshape(-1), w.new_ones(3) * w.sum(-1)
    )


def test_a_cap_for_each_row():
    """Rows with caps of their own are the rows one by one; entries of -inf and of any size are in
    their place."""
    v = vectors(6)
    v[1, 0], v[2, 3], v[3, 1] = -math.inf, 1e18, -1e18
    caps = torch.tensor([0.3, 0.5, 0.2, 0.4, 1.0, 2.0]).double()[:, None]
    q = project_capped(v, caps)
    assert (
        float((q.sum(-1) - 1).abs().max()) < 1e-12
        and bool((q >= 0).all())
        and bool((q <= caps).all())
        and q[1, 0] == 0
    )
    assert all(torch.equal(q[k], project_capped(v[k], float(caps[k]))) for k in range(6))
    assert torch.allclose(q[4:], ALL["simplex"].project(v[4:]), atol=1e-12)


def test_large_vectors():
    v = torch.tensor(np.random.default_rng(0).normal(size=100_000))
    for name, args in (("simplex", ()), ("capped_simplex", (0.1,))):
        p = ALL[name].project(v, *args)
        assert ALL[name].contains(p, *args, tolerance=1e-9)
        assert float(ALL[name].normal_distance(v - p, p, *args, tolerance=1e-12)) < 1e-8
        narrow = ALL[name].project(v.float(), *args)
        assert abs(float(narrow.double().sum()) - 1) < 1e-3


def test_every_declared_field_is_checked():
    assert BOOK.missing == {"square", "symmetric"}, "test_matrix_sets.py checks the sets of square matrices"
