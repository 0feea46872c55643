"""Every atom keeps every promise that it declares: random places, against sympy, NumPy and autograd in
float64."""

import ast
import itertools
import math
import re

import numpy as np
import pytest
import sympy
import torch
from support.conformance_tools import PARAMETERS, Book, formula, parameter, place, points, torch_value

from fccomodel import conic
from fccomodel.conic.cones import Cones, assembled
from fccomodel.core.source import Source
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from fccomodel.library import atoms
from fccomodel.library.atoms import ArrayAtom, Atom, Interval, Properties, ScalarAtom, ShapeError, Site
from fccomodel.library.atoms._formula import symbolic

BOOK = Book(Atom, ScalarAtom, ArrayAtom, Properties)
ALL = atoms.all()
SCALAR = [atom for atom in ALL.values() if isinstance(atom, ScalarAtom)]
REAL = [atom for atom in SCALAR if not atom.boolean]
ARRAY = [atom for atom in ALL.values() if isinstance(atom, ArrayAtom)]
ROUNDS = 25


def named(found):
    return pytest.mark.parametrize("atom", found, ids=lambda atom: atom.name)


@pytest.fixture
def rng(request):
    return np.random.default_rng(sum(map(ord, request.node.name)))


def free_count(atom: Atom, count: int) -> int:
    return count - len(atom.parameters)


def scalar_place(rng, atom: ScalarAtom) -> tuple[Interval, ...]:
    """Intervals for the arguments; parameters are points, sometimes ranges."""
    count = int(rng.integers(2, 5)) if atom.variadic else len(atom.arguments)
    poles = () if callable(atom.nonzero) else atom.nonzero
    found: list[Interval] = []
    for k, name in enumerate(atom.names(count)):
        if name in atom.parameters:
            value = parameter(rng, atom, name)
            wide = rng.random() < 0.2
            found.append(
                Interval(*sorted((value, parameter(rng, atom, name)))) if wide else Interval.point(value)
            )
        else:
            found.append(place(rng, Interval(), avoid_zero=k in poles))
    domains = atom.domains(*found)
    for k, (where, domain) in enumerate(zip(found, domains, strict=True)):
        if domain is not None and atom.names(count)[k] not in atom.parameters:
            found[k] = where if where.inside(domain) else place(rng, domain, avoid_zero=k in poles)
    return tuple(found)


def fixed(atom: Atom, where: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """The same place with one value for every parameter."""
    names = atom.names(len(where))
    return tuple(
        Interval.point(w.lo) if n in atom.parameters else w for n, w in zip(names, where, strict=True)
    )


def draw(rng, atom: ScalarAtom, where: tuple[Interval, ...], count: int) -> list[np.ndarray]:
    found = []
    for k, interval in enumerate(where):
        x = points(rng, interval, count)
        if k in atom.poles(*where):
            x = np.where(
                np.abs(x) < 1e-3, min(interval.hi, 0.1) if interval.hi > 0 else max(interval.lo, -0.1), x
            )
        found.append(x)
    return found


def varying_choices(atom: Atom, count: int):
    """All choices of varying arguments for functions of several, None for the rest."""
    free = free_count(atom, count)
    if free == 1 and not atom.variadic:
        return [None]
    return [c for c in itertools.product((True, False), repeat=count) if any(c)][: 2**3]


def close(a, b, tolerance=1e-11):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(invalid="ignore"):
        return np.all(
            (np.abs(a - b) <= tolerance * (1 + np.abs(a) + np.abs(b)))
            | (np.isnan(a) & np.isnan(b))
            | (a == b)
        )


# ----------------------------------------------------------------------------------------- registry
@BOOK.checks("name", "aliases", "meaning", "cite", "internal", "boolean", "arguments", "parameters")
@named(ALL.values())
def test_names(atom):
    assert atoms.get(atom.name) is atom and ALL[atom.name] is atom
    for alias in atom.aliases:
        assert alias not in ALL and atoms.get(alias) is atom
    assert atom.meaning and "\n" not in atom.meaning + atom.cite
    count = 3 if atom.variadic else len(atom.arguments)
    names = atom.names(count)
    assert len(set(names)) == count and not set(names) & {"y", "dy", "pi"}
    assert atom.accepts(count) and not atom.accepts(0) and atom.accepts(count + 1) == atom.variadic
    assert atom.signature.startswith(atom.name + "(")
    assert names[count - len(atom.parameters) :] == atom.parameters, "parameters come last"
    if atom.derivative == ():
        assert atom.internal, "only what no model writes may lack a derivative"


@BOOK.checks("tex")
@named(ALL.values())
def test_notation(atom):
    """It shows every argument, and no other."""
    if atom.tex and "<...>" not in atom.tex:
        assert {int(k) for k in re.findall(r"<(\d)", atom.tex)} == set(range(len(atom.arguments)))


def test_the_language_has_these():
    wanted = """exp log log1p expm1 sqrt abs pos hinge sqhinge square inv tanh sigmoid log1pexp softplus logsigmoid relu silu
        elu huber pinball eps_insensitive smooth_hinge scad mcp entr erf normcdf pow add sub mul div neg max min dot sum sumsq
        norm1 norm2 norminf group_norm logsumexp softmax kl chi2 matmul transpose outer concat norm_nuc norm_fro mean sign step
        le lt ge gt eq ne and or not clip sum_squares"""
    assert [name for name in wanted.split() if atoms.get(name) is None] == []
    assert atoms.get("no_such_atom") is None


# ------------------------------------------------------------------------------------------- values
@BOOK.checks("formula", "torch")
@named(SCALAR)
def test_value_of_torch_numpy_and_sympy(atom, rng):
    for _ in range(ROUNDS):
        where = scalar_place(rng, atom) if not atom.boolean else (Interval(),) * len(atom.arguments)
        xs = draw(rng, atom, fixed(atom, where), 20)
        if atom.name in ("and", "or", "not"):
            xs = [x > 0 for x in xs]
        tensors = [torch.tensor(x) for x in xs]
        count = len(xs)
        expected = atom.value(*xs)
        # a parameter as a Python number, as it is in a solver
        numbers = tuple(
            float(x[0]) if name in atom.parameters else None
            for name, x in zip(atom.names(count), xs, strict=True)
        )
        found = torch_value(atom, tensors, numbers=numbers)
        assert found.dtype == (torch.bool if atom.boolean else torch.float64)
        assert close(found.to(torch.float64), expected)
        if not all(n is None for n in numbers) and atom.name != "pow":
            assert close(torch_value(atom, tensors), expected), "parameters as tensors"
        expression = symbolic(atom.definition(count))
        values = {sympy.Symbol(n, real=True): x for n, x in zip(atom.names(count), xs, strict=True)}
        if not atom.boolean:
            exact = expression.subs({s: sympy.Float(float(x[0]), 30) for s, x in values.items()}).evalf(20)
            assert close(float(exact), expected.flat[0]), "sympy and NumPy read one formula"


@named([a for a in REAL if len(a.arguments) > 1 and not a.parameters or a.variadic])
def test_numbers_among_the_arguments(atom, rng):
    """``max(u, 0)`` or ``1 - u``: a number stands in the text wherever an argument may."""
    for at in range(3 if atom.variadic else 2):
        count = 3 if atom.variadic else 2
        xs = [torch.tensor(rng.uniform(0.5, 2, 7)) for _ in range(count)]
        for value in (1.25, -0.75):
            args = [torch.full_like(x, value) if k == at else x for k, x in enumerate(xs)]
            numbers = tuple(value if k == at else None for k in range(count))
            assert close(torch_value(atom, args, numbers=numbers), torch_value(atom, args))
    if atom.variadic:
        mixed = torch_value(atom, xs, numbers=(0.9, None, 1.1))
        assert close(
            mixed, torch_value(atom, [torch.full_like(xs[0], 0.9), xs[1], torch.full_like(xs[0], 1.1)])
        )


@named(REAL)
def test_float32_is_stable(atom, rng):
    """Values and derivatives in float32 are finite and close to those in float64, for large arguments too."""
    for _ in range(10):
        where = fixed(atom, scalar_place(rng, atom))
        xs = [torch.tensor(x, dtype=torch.float32) for x in draw(rng, atom, where, 50)]
        if atom.name in ("sign", "step"):
            continue
        names = dict(zip(atom.names(len(xs)), xs, strict=True))
        wide = {name: x.double() for name, x in names.items()}
        numbers = tuple(float(x[0]) if atom.name == "pow" and k else None for k, x in enumerate(xs))
        y, exact = torch_value(atom, xs, numbers=numbers), torch_value(atom, wide.values(), numbers=numbers)
        site = Site(shapes=((),) * len(xs), numbers=numbers, python=tuple(n is not None for n in numbers))
        slopes = [formula(text, names | {"y": y}) for text in atom.derivatives(site)]
        slopes64 = [formula(text, wide | {"y": exact}) for text in atom.derivatives(site)]
        smooth = torch.ones(len(y), dtype=torch.bool)
        for kink in atom.kinks(*where):
            smooth &= (xs[0] - kink.lo).abs() > 1e-5
        if atom.name in ("max", "min"):
            smooth &= torch.stack(xs).sort(0).values.diff(dim=0).abs().amin(0) > 1e-5
        for found, target, mask in [
            (y, exact, smooth | True),
            *((s, t, smooth) for s, t in zip(slopes, slopes64, strict=True)),
        ]:
            found, target = torch.broadcast_tensors(found.double(), target)
            if found.shape != mask.shape:
                found, target = found.expand(mask.shape), target.expand(mask.shape)
            big = target.abs() > 1e30
            error = (found - target).abs()[mask & ~big]
            assert bool((error <= 2e-5 * (1 + target[mask & ~big].abs())).all()), atom.name


# -------------------------------------------------------------------------------------- derivatives
def smooth_points(atom, where, xs):
    """Points away from kinks and ties, as a mask."""
    mask = np.ones(len(xs[0]), dtype=bool)
    for kink in atom.kinks(*where):
        mask &= np.abs(xs[0] - kink.lo) > 1e-6
    if atom.name in ("max", "min"):
        mask &= np.min(np.diff(np.sort(np.stack(xs), axis=0), axis=0), axis=0) > 1e-6
    return mask


@BOOK.checks("derivative")
@named([atom for atom in REAL if atom.derivative != ()])
def test_derivative_of_scalar_atoms(atom, rng):
    for _ in range(ROUNDS):
        where = fixed(atom, scalar_place(rng, atom))
        xs = draw(rng, atom, where, 30)
        mask = smooth_points(atom, where, xs)
        tensors = [torch.tensor(x[mask], requires_grad=True) for x in xs]
        numbers = tuple(float(x[0]) if atom.name == "pow" and k else None for k, x in enumerate(xs))
        free = tensors[: free_count(atom, len(xs))]
        y = torch_value(atom, tensors, numbers=numbers)
        expected = (
            torch.autograd.grad(y.sum(), free, allow_unused=True) if y.requires_grad else [None] * len(free)
        )
        for python in [False, True] if atom.parameters or atom.variadic else [False]:
            site = Site(shapes=((),) * len(xs), numbers=numbers, python=(python,) * len(xs))
            texts = atom.derivatives(site)
            assert len(texts) == len(free)
            env = {n: t.detach() for n, t in zip(atom.names(len(xs)), tensors, strict=True)} | {
                "y": y.detach()
            }
            for text, target in zip(texts, expected, strict=True):
                target = torch.zeros_like(y) if target is None else target
                assert close(formula(text, env).expand(target.shape), target, 1e-9), text


@named(ALL.values())
def test_derivatives_are_in_the_language(atom):
    count = 3 if atom.variadic else len(atom.arguments)
    shapes = array_shapes(np.random.default_rng(0), atom) if isinstance(atom, ArrayAtom) else ((),) * count
    for exponent in (-2.0, -1.0, 0.5, 2.0, 2.5, None):
        numbers = tuple(exponent if atom.name == "pow" and k else None for k in range(count))
        for text in atom.derivatives(Site(shapes=shapes, numbers=numbers, python=(False,) * count)):
            parse(Source(text=f"model m; minimize {text};"))
            tree = list(ast.walk(ast.parse(text.replace("^", "**"))))
            called = {node.func.id for node in tree if isinstance(node, ast.Call)}
            named = {node.id for node in tree if isinstance(node, ast.Name)} - called
            assert named <= {*atom.names(count), "y", "dy", "pi"} and called <= set(ALL), text


def test_ties_go_to_the_first():
    for name in ("max", "min"):
        atom = atoms.get(name)
        for ties in ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 1.0, 2.0]):
            xs = [torch.tensor([v if name == "max" else -v], dtype=torch.float64) for v in ties]
            y = torch_value(atom, xs)
            texts = atom.derivatives(atom.site(("a", "b", "c")))
            weights = [
                float(formula(t, {f"u{k + 1}": x for k, x in enumerate(xs)} | {"y": y}))
                for k, t in enumerate(texts)
            ]
            assert weights == [1.0 if k == int(np.argmax(ties)) else 0.0 for k in range(3)]


# --------------------------------------------------------------------------------------- properties
def chord(f, start, stop, varying):
    """f at both ends and in the middle of a chord that moves the varying arguments alone."""
    stop = [b if v else a for a, b, v in zip(start, stop, varying, strict=True)]
    return f(*start), f(*[(a + b) / 2 for a, b in zip(start, stop, strict=True)]), f(*stop), start, stop


def bends(kind, left, middle, right):
    """The chord's midpoint lies where a function of this curvature must have it."""
    with np.errstate(invalid="ignore"):
        gap = (left + right) / 2 - middle
    slack = 1e-9 * (1 + np.abs(left) + np.abs(right))
    return {
        "convex": np.all(gap >= -slack),
        "concave": np.all(gap <= slack),
        "affine": np.all(np.abs(gap) <= slack),
        "constant": np.all(np.abs(left - right) <= slack),
        "none": True,
    }[kind]


def moves_so(way, rise, slack):
    """How the value changed when an argument grew."""
    falls, rises = np.any(rise < -slack), np.any(rise > slack)
    return {
        "increasing": not falls,
        "decreasing": not rises,
        "constant": not falls and not rises,
        "none": True,
    }[way]


@BOOK.checks("curvature", "weak_convexity", "monotone", "range", "domain", "nonzero", "lipschitz")
@named(REAL)
def test_properties_of_scalar_atoms(atom, rng):
    for _ in range(ROUNDS * 3):
        where = scalar_place(rng, atom)
        count = len(where)
        names = atom.names(count)
        start, stop = draw(rng, atom, where, 60), draw(rng, atom, where, 60)
        for k, name in enumerate(names):
            if name in atom.parameters:
                start[k] = stop[k] = (
                    points(rng, where[k], 60) if not where[k].is_point else np.full(60, where[k].lo)
                )
        y = atom.value(*start)
        span = atom.range(*where)
        assert np.all(np.isfinite(y)), (where, "not finite in its domain")
        assert np.all((y >= span.lo - 1e-9 * (1 + np.abs(y))) & (y <= span.hi + 1e-9 * (1 + np.abs(y)))), (
            where,
            span,
        )
        for varying in varying_choices(atom, count):
            moves = varying or tuple(name not in atom.parameters for name in names)
            left, middle, right, a, b = chord(atom.value, start, stop, moves)
            kind = atom.curvature(*where, varying=varying)
            crosses = any(where[k].lo < 0 < where[k].hi for k in atom.poles(*where) if moves[k])
            if not crosses:
                assert bends(kind, left, middle, right), (where, kind, varying)
                rho = atom.weak_convexity(*where, varying=varying)
                if rho < math.inf:
                    square = sum(((q - p) / 2) ** 2 for p, q in zip(a, b, strict=True)) * rho / 2
                    slack = 1e-9 * (1 + np.abs(left) + np.abs(right))
                    assert np.all((left + right) / 2 - middle + square >= -slack), (where, rho)
            else:
                assert kind in ("none", "affine")
        for k in range(free_count(atom, count)):
            moved = [stop[j] if j == k else x for j, x in enumerate(start)]
            rise = atom.value(*moved) - y
            slack = 1e-9 * (1 + np.abs(y) + np.abs(rise))
            way = atom.monotone(*where, argument=k)
            signed = rise * np.sign(moved[k] - start[k])
            assert moves_so(way, signed, slack), (where, way, k)
            bound = atom.lipschitz(*where, argument=k)
            if bound < math.inf:
                assert np.all(np.abs(rise) <= bound * np.abs(moved[k] - start[k]) * (1 + 1e-9) + slack), (
                    where,
                    bound,
                    k,
                )


@BOOK.checks("gradient_lipschitz")
@named(REAL)
def test_gradients_lipschitz_constant(atom, rng):
    for _ in range(ROUNDS * 2):
        where = fixed(atom, scalar_place(rng, atom))
        names = atom.names(len(where))
        for varying in varying_choices(atom, len(where)):
            bound = atom.gradient_lipschitz(*where, varying=varying)
            if bound is None or bound == math.inf:
                continue
            moves = varying or tuple(name not in atom.parameters for name in names)
            start = draw(rng, atom, where, 60)
            stop = [b if v else a for a, b, v in zip(start, draw(rng, atom, where, 60), moves, strict=True)]
            grads = []
            for xs in (start, stop):
                tensors = [torch.tensor(x, requires_grad=True) for x in xs]
                numbers = tuple(float(x[0]) if atom.name == "pow" and k else None for k, x in enumerate(xs))
                y = torch_value(atom, tensors, numbers=numbers)
                found = (
                    torch.autograd.grad(y.sum(), tensors, allow_unused=True)
                    if y.requires_grad
                    else [None] * len(tensors)
                )
                grads.append([torch.zeros(60) if g is None else g for g in found])
            apart = sum(((p - q) ** 2).numpy() for p, q, v in zip(*grads, moves, strict=True) if v) ** 0.5
            step = sum((q - p) ** 2 for p, q in zip(start, stop, strict=True)) ** 0.5
            inner = np.ones(60, dtype=bool)
            for kink in atom.kinks(*where):
                inner &= (np.abs(start[0] - kink.lo) > 1e-9) & (np.abs(stop[0] - kink.lo) > 1e-9)
            if atom.name in ("max", "min"):
                continue
            assert np.all((apart <= bound * step * (1 + 1e-7) + 1e-7 * (1 + step)) | ~inner), (
                where,
                bound,
                varying,
            )


def breakpoints(expression, u):
    """Where some case distinction of a formula may turn."""
    found = set()
    for node in expression.atoms(sympy.Abs, sympy.sign):
        found |= set(sympy.solve(node.args[0], u))
    for node in expression.atoms(sympy.Max, sympy.Min):
        flat = [
            inner
            for arg in node.args
            for inner in (arg.args if isinstance(arg, sympy.Max | sympy.Min) else [arg])
        ]
        for a, b in itertools.combinations(flat, 2):
            if (a - b).has(u):
                found |= {
                    s
                    for sign in (1, -1)
                    for s in sympy.solve((a - b).replace(sympy.Abs, lambda x, s=sign: s * x), u)
                }
    for node in expression.atoms(sympy.core.relational.Relational):
        if node.has(u):
            body = node.lhs - node.rhs
            found |= {
                s
                for sign in (1, -1)
                for s in sympy.solve(body.replace(sympy.Abs, lambda x, s=sign: s * x), u)
            }
    return sorted({float(x) for x in found if x.is_real})


@BOOK.checks("breaks")
@named([a for a in REAL if free_count(a, len(a.arguments)) == 1 and not a.variadic])
def test_kinks_are_those_of_the_formula(atom, rng):
    for _ in range(3):
        values = [parameter(rng, atom, name) for name in atom.parameters]
        u = sympy.Symbol("u", real=True)
        known = {sympy.Symbol(n, real=True): v for n, v in zip(atom.parameters, values, strict=True)}
        expression = symbolic(atom.formula).subs(known)
        kinks = []
        for x in breakpoints(expression, u):
            h = 1e-6
            left, middle, right = (float(atom.value(x + d, *values)) for d in (-h, 0.0, h))
            if (
                all(map(math.isfinite, (left, middle, right)))
                and abs((right - middle) - (middle - left)) > 1e-3 * h
            ):
                kinks.append(x)
        declared = sorted(k.lo for k in atom.kinks(Interval(), *(Interval.point(v) for v in values)))
        assert np.allclose(kinks, declared), (atom.name, kinks, declared)
        for kink in declared:
            around = (Interval(kink - 0.5, kink + 0.5), *(Interval.point(v) for v in values))
            assert atom.gradient_lipschitz(*around) is None


@BOOK.checks("graph", "conjugate", "slopes")
@named([a for a in SCALAR if a.graph is not None or a.conjugate])
def test_conjugates(atom, rng):
    """Fenchel-Young: f(u) + f*(s) >= u s, with equality at s = f'(u)."""
    from fccomodel.library.piecewise import of_atom

    for _ in range(5):
        values = [parameter(rng, atom, name) for name in atom.parameters]
        u = rng.normal(0, 2, 200)
        f = atom.value(u, *[np.full(200, v) for v in values])
        if atom.graph is not None:
            graph = of_atom(atom, values)
            assert close(graph.value(u), f), "the graph integrates to the function"
            assert atom.slopes == Interval(), "the graph gives them"
            low, high = graph.slopes
        else:
            low, high = atom.slopes.lo, atom.slopes.hi
        if not atom.conjugate:
            continue
        s = rng.uniform(max(low, -4), min(high, 4), 200)
        known = {
            n: torch.tensor(v, dtype=torch.float64) for n, v in zip(atom.parameters, values, strict=True)
        }
        env = {"s": torch.tensor(s)} | known
        dual = (formula(atom.conjugate, env) + torch.zeros(200)).numpy()
        assert np.all(f[:, None] + dual[None, :] >= u[:, None] * s[None, :] - 1e-9)
        tensors = [
            torch.tensor(u, requires_grad=True),
            *(torch.full((200,), v, dtype=torch.float64) for v in values),
        ]
        slope = torch.autograd.grad(torch_value(atom, tensors).sum(), tensors[0])[0]
        at = (formula(atom.conjugate, env | {"s": slope}) + torch.zeros(200)).numpy()
        assert close(f + at, u * slope.numpy(), 1e-9)
        if atom.graph is not None:
            assert close(graph.conjugate().value(s), dual)


@BOOK.checks("steady", "near")
@named([a for a in SCALAR if a.near or a.steady < math.inf])
def test_curvature_near_a_point(atom, rng):
    """Of two points within r of each other."""

    def curvature(value, *tensors):
        tensors = [tensors[0].requires_grad_(), *tensors[1:]]
        (slope,) = torch.autograd.grad(value(tensors).sum(), tensors[0], create_graph=True)
        return torch.autograd.grad(slope.sum(), tensors[0])[0].numpy()

    assert bool(atom.near) == (atom.steady == math.inf)
    for r in (0.01, 0.3):
        where = scalar_place(rng, atom)
        parameters = [torch.full((200,), max(w.lo, 2 * r), dtype=torch.float64) for w in where[1:]]
        low = r + 0.01 if atom.domains(*where)[0] is not None else -4.0
        u = rng.uniform(low, 4, 200)
        near = u + rng.uniform(-r, r, 200)
        least = np.exp(-atom.steady * r) * curvature(
            lambda args: torch_value(atom, args), torch.tensor(u), *parameters
        )
        if atom.near:
            names = dict(zip(atom.parameters, parameters, strict=True)) | {
                "r": torch.tensor(r, dtype=torch.float64)
            }
            least = curvature(
                lambda args, names=names: formula(atom.near, names | {"u": args[0]}), torch.tensor(u)
            )
        there = curvature(lambda args: torch_value(atom, args), torch.tensor(near), *parameters)
        assert (np.abs(least) <= np.abs(there) * (1 + 1e-9) + 1e-12).all() and (least * there >= 0).all()
        assert np.abs(least).max() > 0


#: values of all arguments at which an atom's conic form is asked for: its variables' and its parameters'
PLACES = {
    "pow": [((1.3,), (exponent,)) for exponent in (2.0, 0.3, -1.5, 3.0, 1.5, 4.0)],
    "div": [((0.7,), ())],
    "kl": [(([0.2, 0.8, 0.5], [0.4, 0.3, 1.1]), ())],
    "chi2": [(([0.2, -0.8, 0.5], [0.4, 0.3, 1.1]), ())],
    "logaddexp": [((0.4, -1.2), ())],
    "logsumexp": [(([0.4, -1.2, 3.0],), ())],
    "sumsq": [(([0.4, -1.2, 3.0],), ())],
    **{name: [(([[2.0, 0.3], [0.5, 1.2]],), ())] for name in ("logdet", "trace_inv")},
    "matrix_frac": [(([0.4, -1.2], [[2.0, 0.3], [0.5, 1.2]]), ())],
}


@BOOK.checks("cone")
@named([a for a in ALL.values() if a.cone is not None])
def test_the_value_as_a_conic_program(atom):
    """Where its arguments are held, the estimate is as tight as the value."""
    at = (
        (-1.4, 0.3, 1.7)
        if atom.curvature(*atom.everywhere) != "none" and atom.inside[0].lo < -2
        else (0.3, 1.7)
    )
    for values, parameters in PLACES.get(atom.name, [((u,), ()) for u in at]):
        k = Cones()
        args = [k.variable(np.shape(value)) for value in values]
        for u, value in zip(args, values, strict=True):
            k.zero(u - torch.tensor(value, dtype=torch.float64))
        first = [torch.tensor(1.7)] if atom.name == "div" else []
        estimate = atom.cone(k, *first, *args, *parameters).sum()
        sign = 1.0 if estimate.kind[0] > 0 else -1.0
        program = assembled(k, estimate * sign)
        least = float(conic.minimised(program).obj_val) + program.constant
        expected = atom.value(*([1.7] if first else []), *map(np.asarray, values), *parameters)
        assert sign * least == pytest.approx(float(expected), abs=1e-6)


@BOOK.checks("complement")
@named([a for a in ALL.values() if a.complement])
def test_complements(atom, rng):
    u = torch.tensor(rng.normal(0, 2, 100))
    assert close((formula(atom.complement, {"u": u}) + torch_value(atom, [u])).numpy(), np.ones(100))


@BOOK.checks("properties")
@pytest.mark.parametrize(
    ("name", "where", "curvature", "monotone", "lipschitz", "gradient"),
    [
        ("exp", (Interval(),), "convex", "increasing", math.inf, math.inf),
        ("exp", (Interval(-math.inf, 0),), "convex", "increasing", 1.0, 1.0),
        ("log", (Interval(0, math.inf, lo_open=True),), "concave", "increasing", math.inf, math.inf),
        ("log", (Interval(0.5, 2),), "concave", "increasing", 2.0, 4.0),
        ("sqrt", (Interval(0, 4),), "concave", "increasing", math.inf, None),
        ("abs", (Interval(),), "convex", "none", 1.0, None),
        ("abs", (Interval(0, 3),), "affine", "increasing", 1.0, 0.0),
        ("pos", (Interval(),), "convex", "increasing", 1.0, None),
        ("sqhinge", (Interval(),), "convex", "increasing", math.inf, 2.0),
        ("sigmoid", (Interval(),), "none", "increasing", 0.25, 1 / (6 * math.sqrt(3))),
        ("sigmoid", (Interval(-math.inf, 0),), "convex", "increasing", 0.25, 1 / (6 * math.sqrt(3))),
        ("log1pexp", (Interval(),), "convex", "increasing", 1.0, 0.25),
        ("inv", (Interval(0, math.inf, lo_open=True),), "convex", "decreasing", math.inf, math.inf),
        ("pow", (Interval(), Interval.point(4)), "convex", "none", math.inf, math.inf),
        ("pow", (Interval(), Interval.point(3)), "none", "increasing", math.inf, math.inf),
        ("pow", (Interval(0, math.inf), Interval.point(3)), "convex", "increasing", math.inf, math.inf),
        ("pow", (Interval(), Interval.point(2)), "convex", "none", math.inf, 2.0),
        ("pow", (Interval(0, math.inf), Interval.point(0.5)), "concave", "increasing", math.inf, None),
        ("pow", (Interval(0.1, math.inf), Interval.point(-1)), "convex", "decreasing", pytest.approx(100), pytest.approx(2000)),
        ("huber", (Interval(), Interval.point(0.5)), "convex", "none", 0.5, 1.0),
        ("scad", (Interval(), Interval.point(3), Interval.point(1)), "none", "none", 1.0, None),
        ("scad", (Interval(0, math.inf), Interval.point(3), Interval.point(1)), "concave", "increasing", 1.0, 0.5),
        ("elu", (Interval(),), "convex", "increasing", 1.0, 1.0),
        ("tanh", (Interval(),), "none", "increasing", 1.0, pytest.approx(0.7698, abs=1e-4)),
        ("step", (Interval(),), "none", "increasing", math.inf, None),
        ("mul", (Interval(0, 2), Interval(1, 3)), "none", "increasing", 3.0, 1.0),
        ("max", (Interval(), Interval()), "convex", "increasing", 1.0, None),
        ("norm2", (Interval(),), "convex", "none", 1.0, None),
        ("sumsq", (Interval(),), "convex", "none", math.inf, 2.0),
        ("logsumexp", (Interval(),), "convex", "increasing", 1.0, 0.5),
        ("softmax", (Interval(),), "none", "none", 0.5, 1.0),
        ("dot", (Interval(), Interval()), "none", "none", math.inf, 1.0),
        ("kl", (Interval(0, 1), Interval(0.1, 1)), "convex", "none", math.inf, None),
    ],
)  # fmt: skip
def test_known_properties(name, where, curvature, monotone, lipschitz, gradient):
    """Declared properties are not only true but sharp enough, where the truth is known."""
    atom = atoms.get(name)
    assert atom.curvature(*where) == curvature
    assert atom.monotone(*where) == monotone
    assert atom.lipschitz(*where) == lipschitz
    assert atom.gradient_lipschitz(*where) == gradient


def test_lgamma_beyond_double_precision():
    assert atoms.get("lgamma").range(Interval(1e306, 1e307)).hi == math.inf


def test_known_weak_convexity():
    assert atoms.get("mcp").weak_convexity(Interval(), Interval.point(2.5), Interval.point(1)) == 0.4
    assert atoms.get("scad").weak_convexity(Interval(), Interval.point(3), Interval.point(1)) == 0.5
    assert atoms.get("sigmoid").weak_convexity(Interval()) == 1 / (6 * math.sqrt(3))
    assert atoms.get("abs").weak_convexity(Interval()) == 0
    assert atoms.get("log").weak_convexity(Interval(0, 1, lo_open=True)) == math.inf
    assert atoms.get("mul").curvature(Interval(), Interval(), varying=(True, False)) == "affine"
    assert atoms.get("div").curvature(Interval(0, 1), Interval(1, 2), varying=(False, True)) == "convex"


def usual_domain(atom: Atom) -> tuple[Interval | None, list[float]]:
    """Where the first argument must lie, at usual values of the parameters, and these."""
    values = [float(np.mean(PARAMETERS.get(name, (0.5, 0.5)))) for name in atom.parameters]
    return atom.domains(Interval(), *map(Interval.point, values))[0], values


@named([a for a in REAL if a.domain and usual_domain(a)[0] is not None])
def test_outside_the_domain_there_is_no_value(atom):
    """Where an argument that varies leaves its domain, torch gives nothing finite; parameters' domains
    are for messages."""
    domain, values = usual_domain(atom)
    outside = torch.tensor([domain.lo - 1.5], dtype=torch.float64)
    assert not torch.isfinite(torch_value(atom, [outside, *values], numbers=(None, *values))).any()


# ------------------------------------------------------------------------------------------- arrays
def array_shapes(rng, atom: ArrayAtom) -> tuple:
    """Fitting shapes for the arguments."""
    n, m, k = (int(x) for x in rng.integers(2, 5, 3))
    if atom.name in ("norm_fro", "norm_nuc", "norm_spec", "polar", "leading", "transpose"):
        return ((m, n),)
    if atom.name in ("diagonal_of", "lambda_max", "eigenprojection", "symmetric_inverse") or atom.regular:
        return ((n,), (n, n)) if atom.name == "matrix_frac" else ((n, n),)
    if atom.name == "matmul":
        return [((n,), (n,)), ((m, n), (n,)), ((m,), (m, n)), ((m, n), (n, k))][int(rng.integers(4))]
    if atom.name == "outer":
        return ((m,), (n,))
    if atom.name == "concat":
        return ((m,), (), (n,))
    if atom.name in ("group_norm", "group_direction"):
        return ((6,), ())
    if atom.name == "part":
        return ((6,), (), ())
    if atom.name in ("sum", "mean", "norm1", "sumsq") and rng.random() < 0.4:
        return ((m, n),)
    return ((n,),) * len(atom.arguments)


def array_numbers(rng, atom: ArrayAtom, count: int) -> tuple:
    values = {"size": int(rng.choice([1, 2, 3])), "start": 1, "stop": 4}
    return tuple(values[name] if name in atom.parameters else None for name in atom.names(count))


def regular(rng, atom, args):
    """The arguments with positive definite or invertible matrices where the atom needs them."""
    for k, kind in atom.regular.items():
        size = args[k].shape[-1]
        if "definite" in kind.name:
            root, turn = rng.normal(size=(2, size, size))
            args[k] = root @ root.T + 0.5 * np.eye(size) + (turn - turn.T) / 4
        else:
            args[k] = rng.normal(size=(size, size)) + 3 * size * np.eye(size)
    return args


def array_args(rng, atom, shapes, numbers, where):
    args = [
        float(number)
        if number is not None
        else points(rng, interval, shape)
        if shape
        else float(points(rng, interval, 1)[0])
        for shape, number, interval in zip(shapes, numbers, where, strict=True)
    ]
    return regular(rng, atom, args)


def array_place(rng, atom, count):
    found = []
    for k, name in enumerate(atom.names(count)):
        domain = atom.domains(*(Interval(),) * count)[k]
        found.append(Interval.point(2) if name in atom.parameters else place(rng, domain))
    return tuple(found)


@BOOK.checks("reference", "rule")
@named(ARRAY)
def test_arrays_torch_against_numpy_alone_and_in_batches(atom, rng):
    for _ in range(ROUNDS // 2):
        shapes = array_shapes(rng, atom)
        numbers = array_numbers(rng, atom, len(shapes))
        where = array_place(rng, atom, len(shapes))
        args = array_args(rng, atom, shapes, numbers, where)
        expected = atom.value(*args)
        found = torch_value(atom, [torch.as_tensor(a, dtype=torch.float64) for a in args], shapes, numbers)
        assert close(found, expected)
        if atom.name != "part":
            assert tuple(np.shape(expected)) == atom.shape(shapes)
        batches = [array_args(rng, atom, shapes, numbers, where) for _ in range(3)]
        stacked = [torch.tensor(np.stack(xs), dtype=torch.float64) for xs in zip(*batches, strict=True)]
        found = torch_value(atom, stacked, shapes, numbers)
        assert close(found, np.stack([atom.value(*b) for b in batches]))


@named([a for a in ARRAY if a.derivative != ()])
def test_adjoints_of_array_atoms(atom, rng):
    for _ in range(ROUNDS):
        shapes = array_shapes(rng, atom)
        numbers = array_numbers(rng, atom, len(shapes))
        args = array_args(rng, atom, shapes, numbers, array_place(rng, atom, len(shapes)))
        args = [
            a * rng.uniform(0.999, 1, np.shape(a)) if n is None else a
            for a, n in zip(args, numbers, strict=True)
        ]  # no ties
        tensors = [
            torch.tensor(a, dtype=torch.float64, requires_grad=n is None)
            for a, n in zip(args, numbers, strict=True)
        ]
        y = torch_value(atom, tensors, shapes, numbers)
        dy = torch.tensor(rng.normal(size=y.shape))
        free = [t for t, n in zip(tensors, numbers, strict=True) if n is None]
        expected = torch.autograd.grad((y * dy).sum(), free)
        known = tuple(None if n is None else float(n) for n in numbers)
        site = Site(shapes=shapes, numbers=known, python=tuple(n is not None for n in numbers))
        texts = atom.derivatives(site)
        assert len(texts) == len(free)
        env = {n: t.detach() for n, t in zip(atom.names(len(args)), tensors, strict=True)} | {
            "y": y.detach(),
            "dy": dy,
        }
        for text, target in zip(texts, expected, strict=True):
            smooth = torch.isfinite(target)
            assert close(formula(text, env).expand(target.shape)[smooth], target[smooth], 1e-8), text


@pytest.mark.parametrize(
    ("name", "extra"), [("norm2", ()), ("norm1", ()), ("norminf", ()), ("group_norm", (2,)), ("norm_fro", ())]
)
def test_norms_have_a_subgradient_at_zero(name, extra):
    atom = atoms.get(name)
    u = torch.zeros((2, 2) if name == "norm_fro" else 4)
    shapes, numbers = (tuple(u.shape), *((),) * len(extra)), (None, *extra)
    y = torch_value(atom, [u, *extra], shapes, numbers)
    site = Site(shapes=shapes, numbers=numbers, python=(False, *(True,) * len(extra)))
    env = {"u": u, "y": y, "dy": torch.tensor(1.0)} | dict(
        zip(["size"], map(torch.tensor, extra), strict=False)
    )
    assert bool((formula(atom.derivatives(site)[0], env) == 0).all())


@named([a for a in ARRAY if not a.internal])
def test_properties_of_array_atoms(atom, rng):
    for _ in range(ROUNDS * 2):
        shapes = array_shapes(rng, atom)
        numbers = array_numbers(rng, atom, len(shapes))
        where = tuple(
            Interval.point(n) if n is not None else w
            for n, w in zip(numbers, array_place(rng, atom, len(shapes)), strict=True)
        )
        count = len(shapes)
        start, stop = (array_args(rng, atom, shapes, numbers, where) for _ in range(2))
        y = np.asarray(atom.value(*start))
        span = atom.range(*where)
        slack = 1e-9 * (1 + np.abs(y))
        assert np.all((y >= span.lo - slack) & (y <= span.hi + slack)), (where, span, y)
        for varying in varying_choices(atom, count):
            moves = varying or tuple(n is None for n in numbers)
            left, middle, right, a, b = chord(atom.value, start, stop, moves)
            kind = atom.curvature(*where, varying=varying)
            assert bends(kind, left, middle, right), (where, kind, varying)
            bound = atom.gradient_lipschitz(*where, varying=varying)
            if bound is not None and bound < math.inf and kind != "affine":
                grads = []
                for args in (a, b):
                    tensors = [
                        torch.tensor(x, dtype=torch.float64, requires_grad=m)
                        for x, m in zip(args, moves, strict=True)
                    ]
                    weights = torch.tensor(np.random.default_rng(1).normal(size=y.shape))
                    weights = weights / weights.norm()
                    total = (torch_value(atom, tensors, shapes, numbers) * weights).sum()
                    found = torch.autograd.grad(total, [t for t, m in zip(tensors, moves, strict=True) if m])
                    grads.append(torch.cat([g.flatten() for g in found]))
                step = math.sqrt(
                    sum(
                        float(np.sum((np.asarray(q) - np.asarray(p)) ** 2)) for p, q in zip(a, b, strict=True)
                    )
                )
                assert float((grads[0] - grads[1]).norm()) <= bound * step * (1 + 1e-9) + 1e-9, (where, bound)
        for k in range(free_count(atom, count)):
            moved = [stop[j] if j == k else x for j, x in enumerate(start)]
            rise = np.asarray(atom.value(*moved)) - y
            size = float(np.size(start[k]))
            bound = atom.lipschitz(*where, argument=k, size=size)
            step = float(np.linalg.norm(np.asarray(moved[k]) - np.asarray(start[k])))
            most = bound * step if step else 0.0
            assert float(np.linalg.norm(rise)) <= most * (1 + 1e-9) + 1e-9 * (1 + np.abs(y).max()), (
                where,
                bound,
                k,
            )
            way = atom.monotone(*where, argument=k)
            up = np.maximum(start[k], stop[k])
            rise = np.asarray(atom.value(*[up if j == k else x for j, x in enumerate(start)])) - y
            slack = 1e-9 * (1 + np.abs(y) + np.abs(rise))
            assert moves_so(way, rise, slack), (where, way, k)


# ------------------------------------------------------------------------------------------- shapes
@pytest.mark.parametrize(
    ("name", "shapes", "result"),
    [
        ("add", (("d",), ()), ("d",)),
        ("max", ((), ("d",), ("d",)), ("d",)),
        ("dot", (("d",), ("d",)), ()),
        ("matmul", ((3, "d"), ("d",)), (3,)),
        ("matmul", (("m", "n"), ("n", "k")), ("m", "k")),
        ("outer", (("m",), ("n",)), ("m", "n")),
        ("transpose", (("m", "n"),), ("n", "m")),
        ("concat", ((3,), (), (2,)), (6,)),
        ("concat", (("d",), ()), ("d + 1",)),
        ("softmax", ((4,),), (4,)),
        ("sum", ((2, 3),), ()),
        ("group_norm", ((6,), ()), ()),
    ],
)
def test_shapes(name, shapes, result):
    assert atoms.get(name).shape(shapes) == result


@pytest.mark.parametrize(
    ("name", "shapes", "reason"),
    [
        ("add", (("d",), (3,)), "entry by entry"),
        ("dot", (("d",), ("e",)), "one length"),
        ("dot", ((), ("d",)), "two vectors"),
        ("matmul", ((2, 3), (2,)), "inner sizes"),
        ("matmul", ((), (2,)), "multiplies"),
        ("sumsq", ((),), r"square\(u\)"),
        ("norm2", (("k", "d"),), "norm_fro"),
        ("norm_nuc", (("d",),), "matrix"),
        ("transpose", (("d",),), "matrix"),
        ("outer", ((2, 2), (2,)), "two vectors"),
        ("concat", ((2, 2),), "vectors and scalars"),
        ("softmax", ((),), "vector"),
        ("group_norm", (("d",), (2,)), "number"),
        ("kl", ((3,), (4,)), "one length"),
    ],
)
def test_shapes_that_do_not_fit(name, shapes, reason):
    with pytest.raises(ShapeError, match=reason):
        atoms.get(name).shape(shapes)


def test_interval():
    open_low = Interval(0, 1, lo_open=True)
    assert open_low.positive and not Interval(0, 1).positive and Interval(-1, 0, hi_open=True).negative
    assert open_low.inside(Interval(0, 1)) and not Interval(0, 1).inside(open_low)
    assert open_low.disjoint(Interval(-1, 0)) and not Interval(0, 1).disjoint(Interval(-1, 0))
    assert str(open_low) == "(0, 1]" and str(Interval()) == "(-inf, inf)"
    assert Interval(-2, 1).mag == 2 and Interval(-2, 1).mig == 0 and Interval(-2, -1).mig == 1
    assert open_low.has(1) and not open_low.has(0)


# --------------------------------------------------------------- symbols, logarithms, balls, pieces
MODEL = "model m; data D : table(x: real, y: real, a: real[2, 2], b: real[2]); var u; var v >= 1; var w[2];"
CONNECTED = {"and", "or", "not"}


def checked(text):
    source = Source(text=text)
    return check(parse(source), source)


@BOOK.checks("symbol")
@named([atom for atom in ALL.values() if atom.symbol])
def test_symbols_are_those_of_the_language(atom):
    if atom.boolean:
        left, right = ("z.x > 0", "z.y > 0") if atom.name in CONNECTED else ("z.x", "z.y")
        condition = f"{atom.symbol} ({left})" if len(atom.arguments) == 1 else f"{left} {atom.symbol} {right}"
        problem = checked(f"{MODEL} minimize E[z ~ D | {condition}] u * z.x;")
        found = problem.objective.expr.condition
    else:
        text = {"matmul": "sum(z.a @ w)", "neg": "-u", "pow": "u^2"}.get(atom.name, f"u {atom.symbol} v")
        problem = checked(f"{MODEL} minimize E[z ~ D] ({text});")
        found = problem.objective.expr.body
        found = found.args[0] if atom.name == "matmul" else found
    assert found.op == atom.name


@BOOK.checks("logarithm")
@named([atom for atom in ALL.values() if atom.logarithm])
def test_logarithms(atom, rng):
    for _ in range(ROUNDS):
        xs = [torch.tensor(x) for x in draw(rng, atom, fixed(atom, scalar_place(rng, atom)), 20)]
        found = formula(atom.logarithm, dict(zip(atom.names(len(xs)), xs, strict=True)))
        value = atom.value(*(x.numpy() for x in xs))
        apart = value > 1e-3
        assert close(found[apart], np.log(value[apart]), 1e-8)


@BOOK.checks("squared")
@named([atom for atom in ALL.values() if atom.squared])
def test_squares(atom, rng):
    square = atoms.get(atom.squared)
    shape = array_shapes(rng, atom)[0] if isinstance(atom, ArrayAtom) else (50,)
    for _ in range(ROUNDS):
        u = rng.normal(size=shape)
        assert close(np.square(atom.value(u)), square.value(u))


@BOOK.checks("homogeneous", "even")
@named([a for a in ALL.values() if not (a.internal or a.boolean or a.flat or a.bilinear)])
def test_constants_and_signs_come_out(atom, rng):
    """f(c u) = c^p f(u) and f(-u) = f(u) are declared where they hold, unless the atom is linear."""
    if atom.linear([name not in atom.parameters for name in atom.names(atom.min_count)]):
        return
    degrees, even = {1, 2}, True
    for _ in range(ROUNDS):
        shapes = array_shapes(rng, atom) if isinstance(atom, ArrayAtom) else ((8,),) * atom.min_count
        moves = [name not in atom.parameters for name in atom.names(len(shapes))]
        u = [rng.normal(size=shape) for shape in shapes]
        u = [
            x if limit is None else np.abs(x) + 0.1
            for x, limit in zip(u, atom.domains(*(Interval(),) * len(u)), strict=True)
        ]
        if isinstance(atom, ArrayAtom):
            u = [
                x if number is None else number
                for x, number in zip(u, array_numbers(rng, atom, len(u)), strict=True)
            ]
            u = regular(rng, atom, u)
        else:
            u = [
                x if move else parameter(rng, atom, n)
                for x, move, n in zip(u, moves, atom.names(len(u)), strict=True)
            ]
        with np.errstate(all="ignore"):
            value, doubled, turned = (
                atom.value(*(c * x if move else x for x, move in zip(u, moves, strict=True)))
                for c in (1, 2, -1)
            )
        degrees = {p for p in degrees if close(doubled, 2**p * value)}
        even = even and bool(np.isfinite(turned).all()) and close(turned, value)
    assert {atom.homogeneous} - {None} == degrees and atom.even == even


@BOOK.checks("symmetric")
@named([a for a in ARRAY if not a.internal])
def test_rows_that_may_change_places(atom, rng):
    same = len(atom.names(atom.min_count)) == 1
    for _ in range(ROUNDS if same else 0):
        u = rng.normal(size=array_shapes(rng, atom)[0])
        value, turned = atom.value(u), atom.value(np.roll(u, 1, axis=0))
        same = same and not np.ndim(value) and close(value, turned)
    assert atom.symmetric == same


@BOOK.checks("instead")
@named([atom for atom in ALL.values() if atom.instead])
def test_what_to_write_instead(atom):
    assert set(atom.instead) <= {"smooth", "convex", "concave", "unsmooth"}
    assert ("smooth" in atom.instead) <= atom.kinked
    for text in atom.instead.values():
        for name in re.findall(r"([a-z]\w*)\(", text):
            assert atoms.get(name) is not None, (text, name)


@BOOK.checks("pieces", "whole")
@named([atom for atom in ARRAY if atom.pieces is not None])
def test_pieces_are_polynomials(atom, rng):
    """Along a line, differences of the next order vanish: everywhere, or but where pieces meet."""
    for _ in range(ROUNDS):
        (shape,) = array_shapes(rng, atom)
        start, step = rng.normal(size=shape), rng.normal(size=shape)
        values = np.array([float(atom.value(start + t * step)) for t in np.linspace(-3, 3, 301)])
        bends = np.abs(np.diff(values, atom.pieces + 1)) > 1e-9 * np.abs(values).max()
        assert bends.sum() <= (0 if atom.whole else (atom.pieces + 2) * 2 * start.size)
        rises = np.abs(np.diff(values, atom.pieces)) > 1e-9 * np.abs(values).max()
        assert rises.any(), "and the degree is no less"


@BOOK.checks("ball", "in_groups", "matrices", "regular")
@named([atom for atom in ARRAY if atom.ball is not None])
def test_norms_are_the_largest_products_with_their_balls(atom, rng):
    ball = atom.ball
    assert ball.words and ball.kind in ("box", "ball", "cross", "spectral", "nuclear", "spectraplex")
    for _ in range(ROUNDS):
        shape = array_shapes(rng, atom)[0]
        size = 2 if atom.in_groups else 0
        u = rng.normal(size=shape)
        dims = -1 if atom.in_groups or len(shape) == 1 else (-2, -1)

        def measured(text, x, size=size, dims=dims):
            x = x.unflatten(-1, (-1, size)) if size else x
            return run(text, u="x", dims=dims, x=x)

        value = float(measured(ball.norm, torch.tensor(u)).sum())
        assert close(value, atom.value(u, *([size] if size else [])))
        far = torch.tensor(1e7 * u)
        q = run(ball.project, x="x", dims=dims, **{"x_": far.unflatten(-1, (-1, size)) if size else far})
        dual = run(ball.dual, u="x", dims=dims, **{"x_": q})
        assert bool((dual <= 1 + 1e-9).all()), "in the ball"
        assert close(float((q.reshape(-1) * torch.tensor(u).reshape(-1)).sum()), value, 1e-5), (
            "and the best of it"
        )
        inside = q / 2 if ball.kind != "spectraplex" else q / 2 + torch.eye(len(q)) / (2 * len(q))
        assert close(run(ball.project, x="x", dims=dims, **{"x_": inside}), inside, 1e-8), (
            "and itself where it is inside"
        )
        groups = q.shape if not size else q.shape[-1:]
        assert float(q.square().sum() if not size else q[0].square().sum()) ** 0.5 <= ball.length(groups) * (
            1 + 1e-9
        )


def run(text, *, dims, **names):
    """A text of a ball on a tensor."""
    from fccomodel.library.proximal import maps

    value = names.pop("x_", None)
    value = names.pop("x") if value is None else value
    place = {key: "x" for key in ("x", "u")}
    return eval(text.format(**place, dims=dims), {**vars(maps), "torch": torch, "x": value})


@BOOK.checks("generator")
@named([atom for atom in ARRAY if atom.generator])
def test_divergences_are_sums_of_their_generators(atom, rng):
    for _ in range(ROUNDS):
        q, p = (rng.dirichlet(np.ones(5)) for _ in range(2))
        phi = formula(atom.generator, {"t": torch.tensor(q / p)}).numpy()
        assert close(atom.value(q, p), np.sum(p * phi)) and close(
            formula(atom.generator, {"t": torch.ones(1)}), 0.0
        )


def test_every_declared_field_is_checked():
    assert BOOK.missing == set()
