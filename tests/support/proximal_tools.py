"""Functions with a prox, and their prox, envelope and conjugate by brute force in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from math import inf

import numpy as np

from fccomodel.core import ir
from fccomodel.library import atoms
from fccomodel.library.proximal import Proximal, of
from fccomodel.structure import facts_of

T = ir.Hole(name="t")
#: constants for the parameters of atoms
PARAMETERS = {
    "huber": (0.7,), "pinball": (0.3,), "eps_insensitive": (0.4,), "smooth_hinge": (0.5,), "scad": (3.7, 0.8), "mcp": (2.0, 0.9),
    "pow": (3.0,), "clip": (-1.0, 1.0),
}  # fmt: skip
LAMBDAS = (0.05, 0.6, 2.5)


def expr(value: object) -> ir.Expr:
    return value if isinstance(value, ir.Expr) else ir.Const(value=float(value))  # type: ignore[arg-type]


def call(op: str, *args: object, shape: tuple = ()) -> ir.Apply:
    return ir.Apply(op=op, args=tuple(expr(a) for a in args), shape=shape)


def show(node: ir.Expr) -> str:
    """An expression as a formula of atoms' names."""
    match node:
        case ir.Const(value=value):
            return f"{value:g}"
        case ir.Hole(name=name):
            return name
    return f"{node.op}({', '.join(map(show, node.children))})"  # type: ignore[attr-defined]


def evaluate(node: ir.Expr, hole: ir.Expr, u: np.ndarray) -> np.ndarray:
    """A scalar expression by the atoms' definitions, inf outside their domains."""
    values: dict[int, np.ndarray] = {id(hole): u}
    outside = np.zeros(np.shape(u), dtype=bool)
    with np.errstate(all="ignore"):
        for part in ir.walk(node):
            if isinstance(part, ir.Const):
                values[id(part)] = np.full(np.shape(u), part.value)
            elif isinstance(part, ir.Apply):
                atom = atoms.get(part.op)
                assert isinstance(atom, atoms.ScalarAtom)
                args = [values[id(a)] for a in part.args]
                spans = [
                    atoms.Interval.point(a.value) if isinstance(a, ir.Const) else atoms.Interval()
                    for a in part.args
                ]
                for limit, arg in zip(atom.domains(*spans), args, strict=False):
                    if limit is not None:
                        outside |= (arg < limit.lo) | (arg > limit.hi) | (limit.lo_open & (arg == limit.lo))
                values[id(part)] = np.asarray(atom.value(*args), dtype=float)
    return np.where(outside | np.isnan(values[id(node)]), inf, values[id(node)])


def least(phi: Callable[[np.ndarray], np.ndarray], around: float, reach: float) -> tuple[float, float]:
    """The minimum of phi and where it is: a grid, refined about its best point, then golden sections
    of what is left."""
    low, high = around - reach, around + reach
    for _ in range(6):
        v = np.linspace(low, high, 2001)
        k = int(np.argmin(phi(v)))
        low, high = v[max(k - 1, 0)], v[min(k + 1, 2000)]
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if phi(np.array([a]))[0] < phi(np.array([b]))[0] else (a, high)
    v = np.array([low, (low + high) / 2, high])
    values = phi(v)
    return float(values.min()), float(v[int(np.argmin(values))])


# -------------------------------------------------------------------------- random scalar functions
def random_scalar(rng: np.random.Generator, depth: int = 3) -> ir.Expr:
    """A composition of scalar atoms of one number; not every one has a prox."""
    if depth == 0:
        return T
    inner = random_scalar(rng, depth - 1)
    number = lambda low, high: round(float(rng.uniform(low, high)), 3)  # noqa: E731
    match rng.integers(14):
        case 0 | 1:
            return call("add", call("mul", number(-2, 2), inner), number(-1, 1))
        case 2 | 3:
            return call(str(rng.choice(["abs", "pos", "square", "sqhinge"])), inner)
        case 4:
            return call("huber", inner, number(0.2, 1.5))
        case 5:
            return call("pinball", inner, number(0.1, 0.9))
        case 6:
            return call("eps_insensitive", inner, number(0.1, 0.8))
        case 7:
            return call("max", inner, call("add", call("mul", number(-2, 2), T), number(-1, 1)))
        case 8 | 9:
            return call("add", call("mul", number(0.2, 2), inner), random_scalar(rng, depth - 1))
        case 10 | 11:
            return call(str(rng.choice(["exp", "log1pexp", "elu", "silu", "sigmoid", "log1p"])), inner)
        case 12:
            return call("neg", call(str(rng.choice(["log", "sqrt", "entr", "logsigmoid"])), inner))
    return call(
        *[("scad", inner, 3.7, number(0.2, 1)), ("mcp", inner, 2.5, number(0.2, 1))][int(rng.integers(2))]
    )


def scalars(rng: np.random.Generator, count: int) -> Iterator[tuple[ir.Expr, Proximal]]:
    """Random compositions that have a prox, with it."""
    while count:
        made = random_scalar(rng, int(rng.integers(1, 5)))
        found = made if isinstance(made, ir.Hole) else of(made, (T,), facts_of)
        if not isinstance(found, str | ir.Hole):
            count -= 1
            yield made, found


def atoms_of_one_number() -> dict[str, ir.Expr]:
    """Every scalar atom as a function of its first argument, and the negatives of those that are not
    convex; also of powers."""
    found: dict[str, ir.Expr] = {}
    for name, atom in atoms.all().items():
        free = [a for a in atom.arguments if a not in atom.parameters]
        if (
            not isinstance(atom, atoms.ScalarAtom)
            or atom.internal
            or atom.boolean
            or len(free) != 1
            or atom.variadic
        ):
            continue
        made = call(name, T, *PARAMETERS.get(name, (0.5,) * len(atom.parameters)))
        found |= {name: made, f"-{name}": call("neg", made)}
    found |= {f"u^{p:g}": call("pow", T, p) for p in (1.5, 2, 3, 4, -1, -2)}
    found |= {
        "u log u": call("neg", call("entr", T)),
        "1/u": call("div", 1, T),
        "max(u, 0.5)": call("max", T, 0.5),
    }
    return found


def scalar_errors(node: ir.Expr, f: Proximal, points: np.ndarray) -> dict[str, float]:
    """Largest errors of prox (excess of its objective over the least), envelope and conjugate,
    relative to 1 + |value|; and of what must hold of any prox: Moreau's identity, Fenchel-Young."""
    import torch

    low, high = getattr(f, "low", -inf), getattr(f, "high", inf)
    value = lambda v: np.where((v < low) | (v > high), inf, evaluate(node, T, v))  # noqa: E731
    x = torch.tensor(points)
    errors = {"prox": 0.0, "envelope": 0.0}
    for lam in LAMBDAS:
        if lam * f.weak >= 0.95:
            continue
        prox, envelope = f.prox(x, lam), f.envelope(x, lam)
        for at, p, e in zip(points, prox.tolist(), envelope.tolist(), strict=True):

            def phi(v, at=at, lam=lam):
                return value(v) + (v - at) ** 2 / (2 * lam)

            best, _ = least(phi, at, 40.0)
            errors["prox"] = max(errors["prox"], (float(phi(np.array([p]))[0]) - best) / (1 + abs(best)))
            errors["envelope"] = max(errors["envelope"], abs(e - best) / (1 + abs(best)))
        y = f.slope(x, lam)
        dual = f.conjugate(y)
        if dual is not None:
            fenchel = f.value(prox) + dual - prox * y
            errors["fenchel"] = max(
                errors.get("fenchel", 0.0), float((fenchel.abs() / (1 + dual.abs() + (prox * y).abs())).max())
            )
            for slope, d in zip(y.tolist()[::2], dual.tolist()[::2], strict=True):
                best, at = least(lambda v, slope=slope: value(v) - slope * v, 0.0, 60.0)
                if abs(at) < 59:
                    errors["conjugate"] = max(errors.get("conjugate", 0.0), abs(d + best) / (1 + abs(best)))
    return errors


# -------------------------------------------------------------------------- random vector functions
def random_vector(rng: np.random.Generator) -> tuple[ir.Expr, tuple[ir.Hole, ...], Callable]:
    """A function of a vector: its expression, its holes (one array, or several numbers), and the same
    in CVXPY."""
    import cvxpy as cp

    number = lambda low, high: round(float(rng.uniform(low, high)), 3)  # noqa: E731
    if rng.random() < 0.5:
        n = int(rng.integers(2, 7))
        u = ir.Hole(name="u", shape=(n,))
        a, b, c = number(-2, 2) or 1.0, number(-1, 1), number(0.2, 2)
        inner = call("add", call("mul", a, u, shape=(n,)), b, shape=(n,))
        plain, made = [(u, lambda v: v), (inner, lambda v: a * v + b)][int(rng.integers(2))]
        kinds = {
            "norm1": cp.norm1, "norm2": cp.norm2, "norminf": cp.norm_inf, "logsumexp": cp.log_sum_exp,
            "abs": lambda v: cp.sum(cp.abs(v)), "huber": lambda v: cp.sum(cp.huber(v, 0.6) / 2),
            "exp": lambda v: cp.sum(cp.exp(v)),
            "pos norm": lambda v: cp.pos(cp.norm2(v) - 0.7), "square norm": lambda v: cp.square(cp.norm2(v)),
            "group": lambda v: cp.sum([cp.norm2(v[k : k + 2]) for k in range(0, n, 2)]),
        }  # fmt: skip
        names = [k for k in kinds if (k != "group" or n % 2 == 0)]
        name = str(rng.choice(names))
        if name in ("pos norm", "square norm"):
            plain, made = u, lambda v: v
        node = {
            "abs": lambda: call("sum", call("abs", plain, shape=(n,))),
            "huber": lambda: call("sum", call("huber", plain, 0.6, shape=(n,))),
            "exp": lambda: call("sum", call("exp", plain, shape=(n,))),
            "pos norm": lambda: call("pos", call("sub", call("norm2", plain), 0.7)),
            "square norm": lambda: call("square", call("norm2", plain)),
            "group": lambda: call("group_norm", plain, 2),
        }.get(name, lambda: call(name, plain))()
        node, twin = call("mul", c, node), lambda v: c * kinds[name](made(v))
        if rng.random() < 0.4:
            tilt = number(-1, 1)
            node, before = call("add", node, call("mul", tilt, call("sum", u))), twin
            twin = lambda v: before(v) + tilt * cp.sum(v)  # noqa: E731
        if rng.random() < 0.4:
            q = number(0.1, 2)
            node, last = call("add", node, call("mul", q, call("sumsq", u))), twin
            return node, (u,), lambda v: last(v) + q * cp.sum_squares(v)
        return node, (u,), twin
    n = int(rng.integers(2, 5))
    holes = tuple(ir.Hole(name=f"u{k}") for k in range(n))

    def form() -> tuple[ir.Expr, Callable]:
        coefficients, constant = [number(-2, 2) for _ in holes], number(-1, 1)
        node: ir.Expr = expr(constant)
        for c, hole in zip(coefficients, holes, strict=True):
            node = call("add", node, call("mul", c, hole))
        return node, lambda v: sum(c * v[k] for k, c in enumerate(coefficients)) + constant

    match rng.integers(6):
        case 0:
            kappa = number(0.1, 1)
            node = call("pos", call("sub", call("abs", call("sub", holes[0], holes[1])), kappa))
            return node, holes, lambda v: cp.pos(cp.abs(v[0] - v[1]) - kappa)
        case 1:
            return call("max", *holes), holes, cp.max
        case 2:
            forms = [form() for _ in range(int(rng.integers(2, 5)))]
            return call("max", *(f for f, _ in forms)), holes, lambda v: cp.maximum(*(g(v) for _, g in forms))
        case 3:
            (f, g), (a, b) = form(), form()
            return call("add", call("exp", f), a), holes, lambda v: cp.exp(g(v)) + b(v)
        case 4:
            node = call("add", call("abs", holes[0]), call("huber", call("sub", holes[1], 1), 0.5))
            return node, holes, lambda v: cp.abs(v[0]) + cp.huber(v[1] - 1, 0.5) / 2
        case _:
            f, g = form()
            return call("log1pexp", f), holes, lambda v: cp.logistic(g(v))


def vector_errors(
    f: Proximal, twin: Callable, n: int, rng: np.random.Generator, lams: tuple[float, ...] = LAMBDAS
) -> dict[str, float]:
    """As ``scalar_errors``, against CVXPY; the prox by its objective's excess, which may be negative
    where CVXPY is worse."""
    import cvxpy as cp
    import torch

    errors = {"value": 0.0, "prox": 0.0, "envelope": 0.0}
    for lam in lams:
        x = rng.normal(0, 1.5, n)
        v = cp.Variable(n)
        problem = cp.Problem(cp.Minimize(twin(v) + cp.sum_squares(v - x) / (2 * lam)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tolerances below are out of its reach now and then
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        best, t = float(problem.value), torch.tensor(x)
        p = f.prox(t, lam)
        mine = float(f.value(p)) + float((p - t).square().sum()) / (2 * lam)
        errors["value"] = max(
            errors["value"], abs(float(f.value(t)) - float(twin(cp.Constant(x)).value)) / (1 + abs(best))
        )
        errors["prox"] = max(errors["prox"], (mine - best) / (1 + abs(best)))
        errors["envelope"] = max(errors["envelope"], abs(float(f.envelope(t, lam)) - mine) / (1 + abs(best)))
        y = f.slope(t, lam)
        dual = f.conjugate(y)
        if dual is not None:
            fenchel = float(f.value(p)) + float(dual) - float((p * y).sum())
            errors["fenchel"] = max(errors.get("fenchel", 0.0), abs(fenchel) / (1 + abs(best)))
    return errors
