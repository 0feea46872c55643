"""Every kind of reduction keeps what it declares: values and weights three ways, range, growth,
curvature, duals, syntax."""

import itertools
import math
import re

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from support.conformance_tools import Book

from fccomodel import conic, pipeline
from fccomodel.conic.cones import Cones, assembled
from fccomodel.core import ir
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.rewrite import apply as make
from fccomodel.core.source import Source
from fccomodel.evaluation import logarithms
from fccomodel.evaluation.interpret import evaluate
from fccomodel.evaluation.interpret.reductions import Streamed, collapse, stream
from fccomodel.evaluation.interpret.spaces import Product
from fccomodel.evaluation.sets.axes import Named
from fccomodel.language.parse import parse
from fccomodel.library import reductions
from fccomodel.library.atoms import Interval
from fccomodel.library.cones import heaviest
from fccomodel.library.reductions import ByMeans, Option, Reduction, Site, tails
from fccomodel.library.reductions.expectation import E
from fccomodel.library.reductions.mean import MEAN
from fccomodel.structure import RULES

BOOK = Book(Reduction, Option, ByMeans)
ALL = reductions.all()
N = 7


def tail(e: np.ndarray, m: float) -> float:
    """The mean of the m largest, the last of them in part."""
    total, left = 0.0, m
    for x in sorted(e, reverse=True):
        total, left = total + min(1.0, left) * x, max(0.0, left - 1.0)
    return total / m


#: by name, the value in NumPy of elements and option
BRUTE = {
    "E": lambda e, o: np.mean(e),
    "mean": lambda e, o: np.mean(e),
    "prob": lambda e, o: np.mean(e),
    "sum": lambda e, o: np.sum(e),
    "prod": lambda e, o: np.prod(e),
    "max": lambda e, o: np.max(e),
    "min": lambda e, o: np.min(e),
    "variance": lambda e, o: np.var(e),
    "cvar": lambda e, o: tail(e, o * len(e)),
    "topk": lambda e, o: tail(e, min(o, len(e))),
    "logmeanexp": lambda e, o: o * np.log(np.mean(np.exp(e / o))),
    "logsumexp": lambda e, o: np.log(np.sum(np.exp(e))),
    "pmean": lambda e, o: np.mean(e**o) ** (1 / o),
}


def where(kind: Reduction) -> Interval:
    """Where its option lies."""
    (lies,) = kind.option.domains(Interval())
    return lies


def settings(kind: Reduction) -> list[dict[str, float]]:
    """Values of its option all over where it may lie."""
    if kind.option is None:
        return [{}]
    (low, high, low_open, _), name = where(kind), kind.option.name
    if kind.option.counts:
        return [{name: k} for k in (low, 3.0, 50.0)]
    if high < math.inf:
        return [{name: low + share * (high - low)} for share in (0.13, 0.5, 1.0)]
    return [{name: low + more} for more in (0.4, 1.0, 2.5, *([] if low_open else [0.0]))]


CASES = [(kind, options) for kind in ALL.values() for options in settings(kind)]
cases = pytest.mark.parametrize(
    ("kind", "options"), CASES, ids=[f"{k.name}{list(o.values()) or ''}" for k, o in CASES]
)
kinds = pytest.mark.parametrize("kind", ALL.values(), ids=ALL)


def drawn(
    kind: Reduction, shape: int | tuple[int, ...] = N, seed: int = 0, *, positive: bool = False
) -> torch.Tensor:
    """Elements where they may lie."""
    rng = np.random.default_rng(seed)
    if kind.condition:
        return torch.tensor(rng.integers(0, 2, shape).astype(float))
    e = rng.normal(0, 1.3, shape)
    return torch.tensor(np.abs(e) + 0.05 if positive or kind.domain.lo >= 0 else e)


def at_once(kind: Reduction, e: torch.Tensor, options: dict) -> torch.Tensor:
    """R over the last axis."""
    space = Product(over=(e.dim() - 1,), kept=tuple(range(e.dim() - 1)), lengths=dict(enumerate(e.shape)))
    return collapse(kind, space, Named(e, tuple(range(e.dim()))), options).data


def streamed(kind: Reduction, e: torch.Tensor, options: dict, size: int = 3) -> torch.Tensor:
    """The same in blocks of a few elements."""
    axes = tuple(range(e.dim()))
    space = Product(over=axes[-1:], kept=axes[:-1], lengths=dict(enumerate(e.shape)))
    plan = Streamed(
        kind=kind, space=space, size=size, leaves=(Named(e, axes),), body=lambda block, pieces: Named(pieces[0], axes),
        count=space.count, event=(), options=options,
    )  # fmt: skip
    return stream(plan).data


def value(kind: Reduction, e: torch.Tensor, options: dict) -> float:
    return float(at_once(kind, e, options))


def gradient(f, e: torch.Tensor) -> torch.Tensor:
    e = e.clone().requires_grad_(True)
    (found,) = torch.autograd.grad(f(e).sum(), e)
    return found


def brute(kind: Reduction, e: torch.Tensor, options: dict) -> np.ndarray:
    """The value along the last axis, by NumPy."""
    option = next(iter(options.values()), None)
    return np.apply_along_axis(lambda line: BRUTE[kind.name](line, option), -1, e.numpy())


# ------------------------------------------------------------------------------------------- values
@BOOK.checks("name", "value")
@cases
def test_values_at_once_in_blocks_and_by_brute_force(kind, options):
    assert reductions.get(kind.name) is kind
    for seed, shape in itertools.product(range(5), (1, N, (4, N))):
        e = drawn(kind, shape, seed)
        expected = torch.tensor(brute(kind, e, options))
        assert torch.allclose(at_once(kind, e, options), expected, rtol=1e-12, atol=1e-12)
        assert torch.allclose(streamed(kind, e, options), expected, rtol=1e-12, atol=1e-12)


@cases
def test_values_where_elements_are_equal_zero_or_huge(kind, options):
    same = torch.ones(N).double()
    zero = torch.zeros(N).double()
    one = torch.cat([zero[:1], drawn(kind, N - 1, 3)])
    huge = torch.tensor([0.0, 700.0, 710.0]).double()
    for e in (
        same,
        zero,
        one,
        *([] if kind.condition or kind.option and kind.option.name == "p" else [huge]),
    ):
        expected = brute(kind, e, options) if e is not huge or not kind.logarithmic else None
        for found in (at_once(kind, e, options), streamed(kind, e, options, size=2)):
            assert bool(torch.isfinite(found))
            assert expected is None or float(found) == pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@BOOK.checks("tex")
@pytest.mark.parametrize("kind", reductions.all().values(), ids=reductions.all())
def test_notation(kind):
    """It shows the elements, what they range over, and the option."""
    wanted = {"over", "body", *([kind.option.name] if kind.option else [])}
    assert not kind.tex or set(re.findall(r"<(\w+)", kind.tex)) == wanted


@kinds
@BOOK.checks("tex_of_one")
def test_the_formula_of_option_one_has_no_option(kind):
    assert not kind.tex_of_one or set(re.findall(r"<(\w+)", kind.tex_of_one)) == {"over", "body"}


@BOOK.checks("cone")
@cases
def test_values_by_cell_as_conic_programs(kind, options):
    """Where the elements are held, the estimates are as tight as the values of two cells."""
    if kind.cone is None and kind.cap is None:
        return
    e = drawn(kind, N, 2)
    places, n = np.arange(N) % 2, torch.tensor([(N + 1) // 2, N // 2]).double()
    k = Cones()
    u = k.variable((N,))
    k.zero(u - e)
    if kind.cone is not None:
        estimates = kind.cone(k, u, places, n, options)
    else:
        estimates = heaviest(k, u * kind.sign, places, kind.cap(n, options).expand(2).numpy()) * kind.sign
    program = assembled(k, estimates.sum() * kind.sign)
    expected = sum(float(brute(kind, e[places == cell], options)) for cell in range(2))
    assert kind.sign * (conic.minimised(program).obj_val + program.constant) == pytest.approx(
        expected, abs=1e-6
    )


@BOOK.checks("slope", "kinked")
@cases
def test_weights_at_once_and_in_blocks_are_the_derivative(kind, options):
    """Autograd through the formula, the weights block by block, and differences agree; at ties, the
    weights are a subgradient."""
    for seed, shape in itertools.product(range(4), (N, (3, N))):
        e = drawn(kind, shape, seed)
        first = gradient(lambda x: at_once(kind, x, options), e)
        second = gradient(lambda x: streamed(kind, x, options), e)
        assert torch.allclose(first, second, rtol=1e-10, atol=1e-12)
        direction, h = torch.tensor(np.random.default_rng(seed + 9).normal(size=tuple(e.shape))), 1e-6
        change = (at_once(kind, e + h * direction, options) - at_once(kind, e - h * direction, options)) / (
            2 * h
        )
        if not kind.condition:
            assert torch.allclose((first * direction).sum(-1), change, rtol=1e-4, atol=1e-7)
        if kind.kinked:
            assert torch.allclose((first * e).sum(-1), at_once(kind, e, options), rtol=1e-12, atol=1e-12)
    tied = torch.tensor([1.0, 1.0, 1.0, 0.5, 0.5, 0.5]).double()
    if kind.kinked:
        q = gradient(lambda x: streamed(kind, x, options), tied)
        assert torch.allclose(q, gradient(lambda x: at_once(kind, x, options), tied))
        for seed in range(20):
            other = drawn(kind, len(tied), seed)
            assert kind.sign * (value(kind, other, options) - float(q @ other)) >= -1e-12


@kinds
def test_kinks_are_where_elements_change_places(kind):
    bends = []
    for options in settings(kind):
        for seed in range(12):
            v = torch.tensor(np.random.default_rng(seed).normal(size=6))
            e, h = torch.full((6,), 1.0).double(), 1e-5
            two = (
                at_once(kind, e + h * v, options)
                + at_once(kind, e - h * v, options)
                - 2 * at_once(kind, e, options)
            )
            bends.append(abs(float(two)) / h)
    assert (max(bends) > 1e-2) == kind.kinked


@kinds
def test_the_derivative_of_a_product_holds_at_zeros(kind):
    if kind.name != "prod":
        return
    for e in ([0.0, 2.0, -3.0], [0.0, 0.0, 5.0], [1.0, -2.0, 4.0], [0.0, 1e300, 1e300]):
        x = torch.tensor(e).double()
        others = (
            torch.tensor([math.prod(e[:k] + e[k + 1 :]) for k in range(len(e))])
            .double()
            .clamp(-1.7e308, 1.7e308)
        )
        for f in (at_once, streamed):
            assert bool(torch.isfinite(f(kind, x, {})))
            assert torch.allclose(
                gradient(lambda x, f=f: f(kind, x, {}), x).clamp(-1.7e308, 1.7e308), others, rtol=1e-9
            )


# ------------------------------------------------------------------------------ what programs carry
@BOOK.checks("program", "program_slope")
@cases
def test_functions_that_programs_carry(kind, options):
    if kind.program is None:
        assert kind.linear or kind.logarithmic or kind.lowered or kind.by_means, (
            "it is lowered to sums and means"
        )
        return
    level = tuple(options.values())
    for seed, mask in itertools.product(range(4), (None, torch.tensor([1, 0, 1, 1, 0, 1, 1.0]).double())):
        e = drawn(kind, (4, N), seed)
        kept = e if mask is None else e[:, mask == 1]
        given = {} if mask is None else {"mask": mask}
        found = kind.program(e, 1, *level, **given)
        assert torch.allclose(found, at_once(kind, kept, options), rtol=1e-12, atol=1e-12)
        slope = kind.program_slope(e, found[:, None], 1, *level, **given)
        weights = slope if mask is None else slope[:, mask == 1]
        assert torch.allclose(
            weights, gradient(lambda x: at_once(kind, x, options), kept), rtol=1e-10, atol=1e-12
        )
        assert mask is None or not bool(slope[:, mask == 0].any())
        whole = kind.program(e, (0, 1), *level, **given)
        assert float(whole) == pytest.approx(value(kind, kept.reshape(-1), options), rel=1e-12, abs=1e-12)
        over = kind.program_slope(
            e, whole[None, None], (0, 1), *level, **({} if mask is None else {"mask": mask.expand(4, N)})
        )
        flat = (over if mask is None else over[:, mask == 1]).reshape(-1)
        assert torch.allclose(
            flat, gradient(lambda x: at_once(kind, x, options), kept.reshape(-1)), rtol=1e-10, atol=1e-12
        )


def test_programs_carry_functions_by_their_names():
    carried = reductions.programs()
    assert all(f.__name__ == name for name, f in carried.items())
    declared = [f for k in ALL.values() for f in (k.program, k.program_slope, k.program_cap) if f is not None]
    assert len(carried) == len(declared)


class Numbers:
    """Graph operations on tensors."""

    @staticmethod
    def apply(name: str, *args: torch.Tensor) -> torch.Tensor:
        return {"sub": torch.sub, "square": torch.square, "add": torch.add, "mul": torch.mul}[name](*args)


@BOOK.checks("lowered")
@cases
def test_what_is_lowered_to_means(kind, options):
    if kind.lowered is not None:
        e = drawn(kind)
        assert torch.allclose(
            kind.lowered(Numbers, torch.mean, lambda mean: mean, e), at_once(kind, e, options), rtol=1e-12
        )


# -------------------------------------------------------------------------------------------- facts
def site(kind: Reduction, e: torch.Tensor, options: dict, where: Interval | None = None) -> Site:
    found = Interval(float(e.min()), float(e.max())) if where is None else where
    return Site(
        where=found,
        count=len(e),
        every=True,
        compact=True,
        options={n: Interval.point(v) for n, v in options.items()},
    )


@BOOK.checks("range")
@cases
def test_range(kind, options):
    for seed in range(40):
        e = drawn(kind, seed=seed)
        tight, loose = site(kind, e, options), Interval(float(e.min()), float(e.max()) + 1)
        for known in (
            kind.range(tight),
            kind.range(site(kind, e, options, loose)),
            kind.interval(tight.where),
        ):
            assert known.lo - 1e-12 <= value(kind, e, options) <= known.hi + 1e-12
    empty_or_fewer = kind.range(Site(where=Interval(0.5, 2.0), count=9))
    if kind.total and not kind.logarithmic:
        fewer = [value(kind, torch.full((n,), x).double(), options) for n in range(1, 10) for x in (0.5, 2.0)]
        assert empty_or_fewer.lo <= min(fewer) and max(fewer) <= empty_or_fewer.hi


@BOOK.checks("increasing", "domain")
@kinds
def test_growth(kind):
    falls = 0
    for options, seed in itertools.product(settings(kind), range(30)):
        e = drawn(kind, seed=seed)
        assert all(kind.domain.has(float(x)) for x in e)
        more = torch.maximum(e, drawn(kind, seed=seed + 100))
        falls += value(kind, more, options) < value(kind, e, options) - 1e-12
    assert (falls == 0) == kind.increasing


@BOOK.checks("curvature")
@cases
def test_curvature_by_chords(kind, options):
    above, below = 0.0, 0.0
    for seed in range(60):
        a, b = drawn(kind, seed=seed), drawn(kind, seed=seed + 100)
        chord = 0.3 * value(kind, a, options) + 0.7 * value(kind, b, options)
        gap = value(kind, 0.3 * a + 0.7 * b, options) - chord
        above, below = max(above, gap), min(below, gap)
    word = kind.curvature(site(kind, drawn(kind), options, Interval(max(kind.domain.lo, -9.0), 9.0)))
    flat = {"above": above < 1e-10, "below": below > -1e-10}
    assert flat == {"affine": {"above": True, "below": True}, "convex": {"above": True, "below": False},
                    "concave": {"above": False, "below": True}, "none": {"above": False, "below": False}}.get(word) or (
        all(flat.values()) and degenerate(kind, options)
    )  # fmt: skip


def degenerate(kind: Reduction, options: dict) -> bool:
    """It is the mean of all elements at this value of its option."""
    e = drawn(kind, seed=77)
    return value(kind, e, options) == pytest.approx(float(e.mean()), rel=1e-12)


@BOOK.checks("lipschitz", "bend")
@cases
def test_steepness(kind, options):
    """The sum of |weights| and, of smooth kinds, the second derivative along random directions."""
    steepest = 0.0
    for seed in range(30):
        e = drawn(kind, seed=seed)
        here = site(kind, e, options)
        sizes = gradient(lambda x: at_once(kind, x, options), e).abs().sum()
        limit = kind.lipschitz(here)
        assert not limit.known or float(sizes) <= limit.value * (1 + 1e-12)
        steepest = max(steepest, float(sizes))
        bend = kind.bend(here)
        assert (bend is None) == kind.kinked or not here.where.positive
        if bend is not None and bend.known and bend.finite:
            hessian = torch.autograd.functional.hessian(lambda x: at_once(kind, x, options), e)
            v = torch.tensor(np.random.default_rng(seed).normal(size=N))
            assert abs(float(v @ hessian @ v)) <= bend.value * float(v.abs().max()) ** 2 * (1 + 1e-9) + 1e-12
    assert steepest > 0


@BOOK.checks("needs")
@kinds
def test_what_it_needs(kind):
    """Where nothing is amiss curvature is known; elsewhere there is a reason, and where the elements
    are wrong a fix."""
    for options in settings(kind):
        good = Site(where=Interval(0.5, 2.0), options={n: Interval.point(v) for n, v in options.items()})
        why, fix = kind.needs(good)
        assert bool(why) == (kind.condition or kind.curvature(good) == "none")
        wrong, fix = kind.needs(Site(where=Interval(-2.0, 2.0), options=good.options))
        assert bool(wrong) == bool(why) or kind.domain.lo > -2 and fix


@BOOK.checks("comonotone")
@kinds
def test_elements_in_one_order_are_added_alike(kind):
    """R(d + e) = R(d) + R(e) where d and e stand in one order, and R(c e) = c R(e)."""
    same = []
    for options, seed in itertools.product(settings(kind), range(6)):
        e, f = (drawn(kind, seed=s).sort().values for s in (seed, seed + 50))
        apart = value(kind, e, options) + value(kind, f, options)
        same.append(value(kind, e + f, options) == pytest.approx(apart, rel=1e-12, abs=1e-12))
    assert all(same) == (kind.comonotone or kind.linear) and (not kind.comonotone or kind.homogeneous)


@BOOK.checks("linear", "total", "twin", "homogeneous", "degree")
@kinds
def test_sums_means_and_polynomials(kind):
    twice, scaled, linear = [], [], []
    for options, seed in itertools.product(settings(kind), range(6)):
        e, f = drawn(kind, seed=seed), drawn(kind, seed=seed + 50)
        doubled = {n: 2 * v if kind.option.counts else v for n, v in options.items()}
        twice.append(
            value(kind, torch.cat([e, e]), doubled)
            == pytest.approx(value(kind, e, options), rel=1e-12, abs=1e-12)
        )
        scaled.append(
            value(kind, 2.5 * e, options)
            == pytest.approx(2.5 * value(kind, e, options), rel=1e-12, abs=1e-12)
        )
        weights = [gradient(lambda x, o=options: at_once(kind, x, o), x) for x in (e, f)]
        linear.append(bool((weights[0] == weights[0][0]).all()) and torch.equal(*weights))
        line = [value(kind, e + t * (f - e), options) for t in np.linspace(0, 1, 6)]
        if kind.degree is not None:
            assert np.abs(np.diff(line, kind.degree + 1)).max() < 1e-10
            assert kind.condition or np.abs(np.diff(line, kind.degree)).max() > 1e-6
    counts = kind.option is not None and kind.option.counts
    assert all(twice) == (not kind.total) or counts
    assert all(scaled) == kind.homogeneous
    assert all(linear) == kind.linear
    assert kind.linear == (kind.degree == 1) and (not kind.homogeneous or not kind.degree or kind.degree == 1)
    if kind.twin:
        twin = ALL[kind.twin]
        assert twin.twin == kind.name and not set(twin.binders) & set(kind.binders)
        assert value(twin, drawn(kind), {}) == value(kind, drawn(kind), {})


@BOOK.checks("logarithmic", "through_log")
@cases
def test_logarithms(kind, options):
    logarithm = reductions.logarithm(kind)
    assert (logarithm is not None) == kind.additive
    if logarithm is not None:
        assert logarithm.logarithmic
        default = {} if logarithm.option is None else {logarithm.option.name: logarithm.option.default}
        e = drawn(kind)
        assert value(logarithm, e, default) == pytest.approx(
            math.log(value(kind, e.exp(), options)), rel=1e-12
        )
    assert kind.logarithmic == any(reductions.logarithm(other) is kind for other in ALL.values())
    if kind.through_log is not None:
        e = drawn(kind, positive=True)
        assert value(kind, e, options) == pytest.approx(
            math.exp(value(kind.through_log, e.log(), options)), rel=1e-12
        )


@BOOK.checks("settles", "sampled", "worst", "opposite")
@kinds
def test_what_it_measures(kind):
    rng = np.random.default_rng(0)
    for options in settings(kind):
        e = drawn(kind, seed=4)
        if kind.worst:
            assert float(e.mean()) - 1e-12 <= value(kind, e, options) <= float(e.max()) + 1e-12
        if kind.opposite:
            other = ALL[kind.opposite]
            assert other.opposite == kind.name and other.sign == -kind.sign
            assert value(kind, e, options) == -value(other, -e, options)
    assert not kind.settles or not kind.total and kind.degree is not None
    many = torch.tensor(rng.uniform(0.5, 1.5, size=6000))
    many = (many > 0.9).double() if kind.condition else many
    some = many[torch.from_numpy(rng.permutation(6000)[:3000])]
    close = []
    for options in [*settings(kind), *([{"k": 3000.0}] if kind.option and kind.option.counts else [])]:
        of_some = value(MEAN, some, {}) * 6000 if kind.total and kind.linear else value(kind, some, options)
        close.append(of_some == pytest.approx(value(kind, many, options), rel=0.03, abs=0.0))
    assert all(close) == kind.sampled


@BOOK.checks("cap", "program_cap")
@cases
def test_dual(kind, options):
    """The largest of q.e over weights of at most the cap: by linear programming."""
    if kind.cap is None:
        assert not kind.kinked or kind.program_cap is None
        return
    for seed, n in itertools.product(range(6), (1, 4, N)):
        e = drawn(kind, n, seed)
        cap = float(kind.cap(torch.tensor(n, dtype=torch.float64), options))
        best = linprog(-kind.sign * e.numpy(), A_eq=np.ones((1, n)), b_eq=[1.0], bounds=[(0, cap)] * n)
        assert value(kind, e, options) == pytest.approx(kind.sign * -best.fun, rel=1e-9, abs=1e-9)
        q = gradient(lambda x: at_once(kind, x, options), e)
        assert (
            float(q.min()) >= -1e-15 and float(q.max()) <= cap + 1e-12 and float(q.sum()) == pytest.approx(1)
        )
        if kind.program_cap is None:
            assert cap == 1 and kind.extreme
            continue
        x = torch.cat([e, torch.full((2,), -math.inf).double()])
        assert float(kind.program_cap(x, *options.values(), (-1,))) == pytest.approx(cap, rel=1e-12)
    assert kind.tail != kind.extreme and kind.coupling == (kind.sign > 0)


# ----------------------------------------------------------------------------------------- rewrites
HEAD = "dim d; set K; data D : table(x: real[d], g: K); var w[d]; "


def bound(text: str):
    rng = np.random.default_rng(1)
    data = {"D": {"x": rng.normal(size=(12, 2)), "g": np.array(["a", "b", "c"])[np.arange(12) % 3]}}
    made = pipeline.compile_model(Source(text=HEAD + text, name="m.fcco"))
    return made.problem, pipeline.bind(made, pipeline.Binding(data=data))


def written(kind: Reduction, options: dict, body: str) -> str:
    """The reduction over the rows, as models write it."""
    head = kind.name + (f"({', '.join(f'{n} = {v!r}' for n, v in options.items())})" if options else "")
    return f"{head}[z {'~' if '~' in kind.binders else 'in'} D] {body}"


@BOOK.checks("by_means", "stable", "number", "of", "words")
@cases
def test_forms_of_the_same_value(kind, options):
    if not kind.written or kind.condition:
        return
    for body in ("(0.3 + dot(w, z.x)^2)", "exp(dot(w, z.x))"):
        problem, data = bound(f"minimize {written(kind, options, body)};")
        node, point = problem.objective.expr, {"w": torch.tensor([0.4, -0.7]).double()}
        assert isinstance(node, ir.Reduce)
        expected = float(evaluate(data, node, point))
        means: list[ir.Expr] = []

        def mean(inner: ir.Expr, node: ir.Reduce = node, means: list = means) -> ir.Expr:
            means.append(E.over(node, inner))
            return means[-1]

        if kind.by_means is not None:
            other = kind.by_means.of(node, mean)
            assert len(means) == kind.by_means.number and kind.by_means.words
            assert float(evaluate(data, other, point)) == pytest.approx(expected, rel=1e-12)
        form = kind.stable(node, logarithms.of(data).log)
        if form is not None:
            assert float(evaluate(data, form, point)) == pytest.approx(expected, rel=1e-12)
    assert kind.by_means is None or not kind.linear


def test_a_reduction_over_the_same_elements_keeps_what_becomes_of_empty_groups():
    problem, _ = bound("minimize mean[k in K] cvar(tail = 0.5, empty = drop)[z ~ D | z.g == k] dot(w, z.x);")
    (node,) = (
        n for n in ir.walk(problem.objective.expr) if isinstance(n, ir.Reduce) and reductions.of(n).tail
    )
    other = MEAN.over(node, make("square", node.body), tail=ir.Const(value=1.0))
    assert (
        set(other.options) == {"empty", "tail"} and other.kind == MEAN.name and other.binders == node.binders
    )


# ------------------------------------------------------------------------------------------- syntax
def codes(text: str) -> set[str]:
    """The codes of what is wrong with a model."""
    try:
        pipeline.compile_model(Source(text=HEAD + text, name="m.fcco"))
    except FccoError as error:
        return {d.code for d in error.diagnostics}
    return set()


@BOOK.checks("written", "binders", "condition", "arrays", "scalar")
@kinds
def test_syntax(kind):
    statement = f"let r = {kind.form.replace('...', 'u')};"
    assert (
        (parse(Source(text=statement, name="m.fcco")).statements[0].value.kind == kind.name)
        if kind.written
        else True
    )
    if not kind.written:
        with pytest.raises(FccoError):
            parse(Source(text=statement, name="m.fcco"))
        return
    options = settings(kind)[1 % len(settings(kind))]
    body = "(dot(w, z.x) > 0)" if kind.condition else "dot(w, z.x)"
    for binder in ("in", "~"):
        text = written(kind, options, body).replace("z in", "z ~").replace("z ~", f"z {binder}")
        assert ("F0406" in codes(f"let r = {text}; minimize sumsq(w);")) == (binder not in kind.binders)
    assert bool(codes(f"minimize {written(kind, options, 'dot(w, z.x)')} + sumsq(w);")) == kind.condition
    assert kind.arrays == (not codes(f"minimize sumsq({written(kind, options, 'z.x')}) + sumsq(w);"))
    assert kind.arrays or kind.condition or kind.scalar


@BOOK.checks("option", "example", "domain", "counts", "default")
@kinds
def test_options(kind):
    if kind.option is None or not kind.written:
        return
    o, lies = kind.option, where(kind)

    def found(given: str) -> set[str]:
        return codes(f"minimize {kind.name}{given}[z {kind.binders[0]} D] dot(w, z.x)^2;")

    assert (
        not found(f"({o.name} = {o.example})")
        and found("") == {"F0408"}
        and found("(nothing = 1)") == {"F0408"}
    )
    assert o.default is None or lies.has(o.default)
    outside = [
        lies.lo - 1,
        *([lies.lo] if lies.lo_open else []),
        *([lies.hi + 1] if lies.hi < math.inf else []),
    ]
    assert all(found(f"({o.name} = {x})") == {"F0421"} for x in outside)
    inside = [*([] if lies.lo_open else [lies.lo]), *([lies.hi] if lies.hi < math.inf else [])]
    assert not any(found(f"({o.name} = {x})") for x in inside)
    assert found(f"({o.name} = {lies.lo + 0.5})") == ({"F0421"} if o.counts else set())
    in_list = f"minimize {kind.name}({o.name} = 3)[i in {{1, 2}}] (i * sumsq(w));"
    assert not o.counts or codes(in_list) == {"F0421"}


@BOOK.checks("meaning", "rule", "law", "words", "cite")
@kinds
def test_names_and_rules(kind):
    assert kind.meaning and "\n" not in kind.meaning + kind.cite
    assert kind.law and RULES[kind.rule] == kind.law
    known = {
        "interval",
        "noun",
        "bent",
        "gradient",
        "differentiable",
        "kink",
        "affine",
        "lacks",
        "fix",
        "unknown",
    }
    assert set(kind.words) <= known and all(kind.words.values())
    assert not kind.average or kind.words["noun"]


def test_registry():
    assert reductions.get("nothing") is None
    assert list(ALL) == sorted(ALL) and set(BRUTE) == set(ALL)
    assert reductions.named(lambda kind: kind.total) == ("logsumexp", "prod", "sum")


def test_every_field_is_checked():
    assert not BOOK.missing, f"no test checks {sorted(BOOK.missing)}"


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("share", [1e-3, 0.05, 0.5, 1.0])
def test_the_largest_are_found_without_an_order(share, shuffled, monkeypatch):
    """The weights of many elements are those of few, and so are programs' means and weights where no
    mask is."""
    rng = torch.Generator().manual_seed(0)
    x, entry = torch.randn(7 * 60, generator=rng, dtype=torch.float64), torch.arange(7).repeat_interleave(60)
    entry = entry[torch.randperm(len(entry), generator=rng)] if shuffled else entry
    expected = tails.heaviest(x, entry, lambda n: 1 / (share * n))
    monkeypatch.setattr(tails, "UNORDERED_FROM", 0)
    found = tails.heaviest(x, entry, lambda n: 1 / (share * n))
    torch.testing.assert_close(found, expected.clamp(max=1.0))
    rows, mask = x.view(7, 60), torch.ones(7, 60, dtype=torch.float64)
    for dim in (1, (0, 1)):
        for part in ("program", "program_slope"):
            more = (None,) if part == "program_slope" else ()
            f = getattr(reductions.get("cvar"), part)
            torch.testing.assert_close(f(rows, *more, dim, share), f(rows, *more, dim, share, mask))
