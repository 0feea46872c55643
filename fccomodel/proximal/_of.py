"""Which rule gives the prox of an expression: recognition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isclose

from fccomodel import ir
from fccomodel.atoms._base import REALS, Interval
from fccomodel.piecewise import PiecewiseLQ, downward_kink, of_expression
from fccomodel.proximal._affine import Affine, affine, flat_terms, quadratic
from fccomodel.proximal._base import Proximal
from fccomodel.proximal.balls import BALLS, Norm
from fccomodel.proximal.largest import Largest
from fccomodel.proximal.logsumexp import LogSumExp
from fccomodel.proximal.maxaffine import MaxAffine
from fccomodel.proximal.operations import Blocks, Composed, Mapped, Perturbed, Scaled, Separable, Tilted
from fccomodel.proximal.piecewise import Piecewise
from fccomodel.proximal.radial import Radial
from fccomodel.proximal.smooth import Smooth
from fccomodel.rewrite import apply as make
from fccomodel.rewrite import const, with_children

Constants = Callable[[ir.Expr], float | None]
NORMS = tuple(name for name in BALLS if name != "spectral")


class NoProx(Exception):
    """Why a function has no computable prox here."""


def literals(node: ir.Expr) -> float | None:
    """The value of a number written down."""
    return node.value if isinstance(node, ir.Const) and not node.shape else None


def of(expr: ir.Expr, arguments: Sequence[ir.Expr], constants: Constants = literals, where: Interval = REALS) -> Proximal | str:
    """The expression as a function of ``arguments`` (nodes of it) with its prox, or the reason why none is known.

    ``constants`` gives the number of a subexpression without arguments (None: unknown). Several scalar arguments are the
    entries of one vector; a single array argument is taken whole; a reduction over the argument takes its elements as one.
    A single number may be known to lie in ``where``: the function is restricted to it, if only that makes it convex.
    """
    try:
        if isinstance(expr, ir.Reduce) and len(arguments) == 1 and expr.body is arguments[0]:
            return reduction(expr, constants)
        closed, holes = close(expr, arguments, constants)
        if all(not hole.shape for hole in holes):
            return scalar(closed, holes[0], where) if len(holes) == 1 else several(closed, holes)
        if len(holes) == 1:
            return entries(closed, holes[0]) if closed.shape else whole(closed, holes[0])
    except NoProx as reason:
        return str(reason)
    return "a function of several arrays together"


def close(expr: ir.Expr, arguments: Sequence[ir.Expr], constants: Constants) -> tuple[ir.Expr, tuple[ir.Hole, ...]]:
    """The expression over holes u1, u2, ... for its arguments, all else numbers."""
    holes = tuple(ir.Hole(name=f"u{k}", shape=a.shape, span=a.span) for k, a in enumerate(arguments, 1))
    made: dict[int, ir.Expr] = {id(a): h for a, h in zip(arguments, holes, strict=True)}
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in made:
            stack.pop()
            continue
        value = constants(node)
        if value is not None:
            made[id(node)] = ir.Const(value=value, span=node.span)
        elif not isinstance(node, ir.Apply):
            raise NoProx("it depends on more than its arguments and numbers")
        elif missing := [c for c in node.children if id(c) not in made]:
            stack += missing
            continue
        else:
            made[id(node)] = with_children(node, tuple(made[id(c)] for c in node.children))
        stack.pop()
    return made[id(expr)], holes


# ------------------------------------------------------------------------------------------------------ one number
def scalar(expr: ir.Expr, hole: ir.Hole, where: Interval = REALS) -> Proximal:
    """A function of one number: piecewise linear-quadratic and exact, else by Newton's method."""
    graph = of_expression(expr, hole, literals)
    if graph is not None:
        return Piecewise.of(graph)
    kink = downward_kink(expr, hole, literals)
    if kink is not None:
        raise NoProx(f"its kink at {kink:g} points downward: not weakly convex, so no lambda makes the prox one point")
    found = Smooth.of(expr, hole)
    if isinstance(found, str) and where != REALS:
        found = Smooth.of(expr, hole, where)
    if isinstance(found, str):
        raise NoProx(found)
    return found


def entries(expr: ir.Expr, hole: ir.Hole) -> Proximal:
    """An array of values, one function of one number in each entry."""
    number = ir.Hole(name=hole.name, span=hole.span)
    return scalar(_entrywise(expr, hole, number), number)


def _entrywise(expr: ir.Expr, hole: ir.Hole, number: ir.Hole) -> ir.Expr:
    made: dict[int, ir.Expr] = {id(hole): number}
    for node in ir.walk(expr):
        if isinstance(node, ir.Apply):
            made[id(node)] = ir.Apply(op=node.op, args=tuple(made[id(a)] for a in node.args), span=node.span)
        else:
            made.setdefault(id(node), node)
    return made[id(expr)]


# -------------------------------------------------------------------------------------------------- several numbers
def several(expr: ir.Expr, holes: tuple[ir.Hole, ...]) -> Proximal:
    """A function of several numbers, the entries of a vector: terms that share no argument are blocks of it."""
    index = {id(h): k for k, h in enumerate(holes)}
    tilt, constant = [0.0] * len(holes), 0.0
    terms: list[tuple[float, ir.Expr, frozenset[int]]] = []
    for factor, term in flat_terms(expr):
        form = affine(term, holes)
        if form is not None:
            tilt = [a + factor * c for a, c in zip(tilt, form.coefficients, strict=True)]
            constant += factor * form.constant
        else:
            used = frozenset(index[id(n)] for n in ir.walk(term) if id(n) in index)
            terms.append((factor, term, used))
    parts: list[tuple[tuple[int, ...], Proximal]] = []
    for group in _components(terms):
        own = tuple(sorted(frozenset().union(*(u for _, _, u in group))))
        parts.append((own, _together([(f, t) for f, t, _ in group], tuple(holes[k] for k in own))))
    left = [k for k in range(len(holes)) if not any(k in used for used, _ in parts)]
    parts += [((k,), scalar(ir.Const(value=0.0), holes[k])) for k in left]
    found = parts[0][1] if len(parts) == 1 and parts[0][1].rank == 1 and len(parts[0][0]) == len(holes) else Blocks.of(parts)
    if any(tilt):
        found = Tilted.of(found, tuple(tilt))
    return Scaled.of(found, 1.0, constant) if constant else found


def _components(terms: list[tuple[float, ir.Expr, frozenset[int]]]) -> list[list[tuple[float, ir.Expr, frozenset[int]]]]:
    """Terms joined by common arguments."""
    groups: list[list[tuple[float, ir.Expr, frozenset[int]]]] = []
    for term in terms:
        touching = [g for g in groups if any(term[2] & other[2] for other in g)]
        groups = [g for g in groups if g not in touching] + [[*(t for g in touching for t in g), term]]
    return groups


def _sum(terms: Sequence[tuple[float, ir.Expr]]) -> ir.Expr:
    total: ir.Expr | None = None
    for factor, term in terms:
        part = term if factor == 1 else ir.Apply(op="mul", args=(ir.Const(value=factor), term), span=term.span)
        total = part if total is None else ir.Apply(op="add", args=(total, part), span=term.span)
    assert total is not None
    return total


def _together(terms: list[tuple[float, ir.Expr]], holes: tuple[ir.Hole, ...]) -> Proximal:
    """Terms that share arguments: of one linear form, or a maximum of affine pieces, perhaps with q/2 |u|^2."""
    if len(holes) == 1:
        return scalar(_sum(terms), holes[0])
    line = _line(_sum(terms), holes)
    if line is not None:
        (expr, hole), coefficients = line
        return _mapped(scalar(expr, hole), [coefficients], [0.0])
    squares = [quadratic(term, holes) for _, term in terms]
    if any(squares) and not all(squares):
        pairs = list(zip(terms, squares, strict=True))
        q = [sum(f * s[k] for (f, _), s in pairs if s) for k in range(len(holes))]
        if any(not isclose(q[0], other) for other in q):
            raise NoProx("the squares added to it have different factors")
        return Perturbed.of(_together([t for t, s in pairs if not s], holes), q[0])
    if len(terms) > 1:
        raise NoProx("functions of the same arguments are added, and no rule adds them")
    ((factor, term),) = terms
    if factor <= 0:
        raise NoProx("a function of several arguments is subtracted: not known to be weakly convex")
    return _scaled(_atom(term, holes), factor)


def _scaled(found: Proximal, factor: float) -> Proximal:
    return found if factor == 1 else Scaled.of(found, factor)


def _mapped(inner: Proximal, rows: Sequence[Sequence[float]], b: Sequence[float]) -> Proximal:
    found = Mapped.of(inner, rows, b)
    if isinstance(found, str):
        raise NoProx(found)
    return found


def line(expr: ir.Expr, arguments: Sequence[ir.Expr], constants: Constants = literals) -> tuple[ir.Expr, Proximal] | str:
    """For an expression that depends on its arguments by one linear form a.u alone: that form, and the function of it."""
    try:
        found = _line(*close(expr, arguments, constants))
        if found is None:
            return "it depends on more than one linear form of its arguments"
        (part, hole), coefficients = found
        function = scalar(part, hole)
    except NoProx as reason:
        return str(reason)
    form: ir.Expr | None = None
    for c, argument in zip(coefficients, arguments, strict=True):
        term = argument if abs(c) == 1 else make("mul", const(abs(c)), argument, span=argument.span)
        if form is None:
            form = term if c > 0 else make("neg", term, span=argument.span)
        elif c:
            form = make("add" if c > 0 else "sub", form, term, span=expr.span)
    assert form is not None
    return form, function


def _line(expr: ir.Expr, holes: tuple[ir.Hole, ...]) -> tuple[tuple[ir.Expr, ir.Hole], tuple[float, ...]] | None:
    """The expression as one of a single number s = a.u, and a; None where it depends on more than one linear form."""
    number, direction = ir.Hole(name="s", span=expr.span), None
    made: dict[int, ir.Expr] = {}
    stack = [expr]
    while stack:
        node = stack[-1]
        if id(node) in made:
            stack.pop()
            continue
        form = affine(node, holes)
        if form is None:
            if missing := [c for c in node.children if id(c) not in made]:
                stack += missing
                continue
            made[id(node)] = with_children(node, tuple(made[id(c)] for c in node.children))
        elif not any(form.coefficients):
            made[id(node)] = ir.Const(value=form.constant, span=node.span)
        else:
            direction = direction or form.coefficients
            factor = _multiple(form.coefficients, direction)
            if factor is None:
                return None
            made[id(node)] = _affine_expr(number, factor, form.constant)
        stack.pop()
    return None if direction is None else ((made[id(expr)], number), direction)


def _multiple(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The factor c with a = c b."""
    k = max(range(len(b)), key=lambda j: abs(b[j]))
    factor = a[k] / b[k]
    return factor if all(isclose(p, factor * q, rel_tol=1e-12, abs_tol=1e-300) for p, q in zip(a, b, strict=True)) else None


def _affine_expr(hole: ir.Hole, factor: float, constant: float) -> ir.Expr:
    scaled: ir.Expr = hole if factor == 1 else ir.Apply(op="mul", args=(ir.Const(value=factor), hole), span=hole.span)
    return scaled if constant == 0 else ir.Apply(op="add", args=(scaled, ir.Const(value=constant)), span=hole.span)


def _atom(term: ir.Expr, holes: tuple[ir.Hole, ...]) -> Proximal:
    """A maximum of affine pieces."""
    if isinstance(term, ir.Apply) and term.op == "max":
        forms = [affine(arg, holes) for arg in term.args]
        if all(forms):
            rows = [f.coefficients for f in forms if f]
            b = [f.constant for f in forms if f]
            unit = [tuple(float(j == k) for j in range(len(holes))) for k in range(len(holes))]
            if not any(b) and sorted(rows, reverse=True) == unit:
                return Largest.of()
            found: Proximal | str = Mapped.of(Largest.of(), rows, b)
            found = MaxAffine.of(rows, b) if isinstance(found, str) else found
            if isinstance(found, str):
                raise NoProx(found)
            return found
        raise NoProx("a maximum of pieces that are not affine in its arguments")
    name = term.op if isinstance(term, ir.Apply) else type(term).__name__
    raise NoProx(f"`{name}` of several arguments: no rule for it")


# ---------------------------------------------------------------------------------------------------- whole arrays
def whole(expr: ir.Expr, hole: ir.Hole) -> Proximal:
    """A scalar function of an array: a norm, a sum over its entries, ... of an affine argument, scaled, tilted, perturbed."""
    rank, size = len(hole.shape), _size(hole.shape)
    tilt = constant = q = 0.0
    rest: list[tuple[float, ir.Expr]] = []
    for factor, term in flat_terms(expr):
        if isinstance(term, ir.Const):
            constant += factor * term.value
            continue
        form = affine(term.args[0], (hole,)) if isinstance(term, ir.Apply) and term.op in ("sum", "mean", "sumsq") else None
        assert not isinstance(term, ir.Hole)
        if form is not None and isinstance(term, ir.Apply):
            a, b = form.coefficients[0], form.constant
            times = factor / size if term.op == "mean" else factor
            if term.op == "sumsq":
                q, tilt = q + 2 * times * a * a, tilt + 2 * times * a * b
                constant += times * b * b * size if b else 0.0
            else:
                tilt, constant = tilt + times * a, constant + (times * b * size if b else 0.0)
        else:
            rest.append((factor, term))
    if abs(constant) == inf:
        raise NoProx("a constant that the size of the argument decides")
    if not rest:
        square = PiecewiseLQ(points=((0.0, 0.0),), left=q, right=q)
        found: Proximal = Separable.of(Piecewise.of(square), size, rank)
    else:
        found = _norms(rest, hole, rank, size)
        found = Perturbed.of(found, q) if q else found
    if tilt:
        found = Tilted.of(found, tilt)
    return Scaled.of(found, 1.0, constant) if constant else found


def _norms(terms: list[tuple[float, ir.Expr]], hole: ir.Hole, rank: int, size: float) -> Proximal:
    """Positive multiples of one function; sums over entries are one function."""
    summed = [(f, t) for f, t in terms if isinstance(t, ir.Apply) and t.op in ("sum", "mean")]
    if summed:
        if len(summed) < len(terms):
            raise NoProx("a sum over entries plus another function of the same array: no rule adds them")
        number = ir.Hole(name=hole.name, span=hole.span)
        parts = [
            (f / size if t.op == "mean" else f, _entrywise(t.args[0], hole, number)) for f, t in summed if isinstance(t, ir.Apply)
        ]
        if any(f == 0 for f, _ in parts):
            raise NoProx("a mean over a number of entries that is not known")
        return Separable.of(scalar(_sum(parts), number), size, rank)
    (factor, term), *others = terms
    if isinstance(term, ir.Apply) and factor > 0 and not others and (found := _named(term, hole)) is not None:
        return _scaled(found, factor)
    return _radial(_sum(terms), hole, rank)


def _named(term: ir.Apply, hole: ir.Hole) -> Proximal | None:
    """A norm, the log-sum-exp, ... of an affine argument; None for anything else."""
    form = affine(term.args[0], (hole,))
    if form is None or not form.coefficients[0]:
        return None
    inner: Proximal | None = None
    if term.op in NORMS:
        inner = Norm.of(term.op, hole.shape)
    elif term.op == "group_norm":
        size = literals(term.args[1])
        inner = None if size is None else Norm.of("norm2", hole.shape, int(size))
    elif term.op == "logsumexp":
        inner = LogSumExp.of()
    if inner is None:
        return None
    return inner if form == Affine(coefficients=(1.0,), constant=0.0) else Composed.of(inner, form.coefficients[0], form.constant)


def _radial(expr: ir.Expr, hole: ir.Hole, rank: int) -> Proximal:
    """phi(|u|), phi(|.|) convex or weakly convex on the reals."""
    number = ir.Hole(name=hole.name, span=hole.span)
    length: ir.Expr = ir.Apply(op="abs", args=(number,), span=hole.span)
    made: dict[int, ir.Expr] = {}
    for node in ir.walk(expr):
        if isinstance(node, ir.Apply) and node.op in ("norm2", "norm_fro", "sumsq") and node.args[0] is hole:
            made[id(node)] = length if node.op != "sumsq" else ir.Apply(op="square", args=(number,), span=node.span)
        elif isinstance(node, ir.Apply) and not node.shape:
            if any(id(a) not in made for a in node.args):
                raise NoProx(f"`{node.op}` of this array: no rule for it")
            made[id(node)] = ir.Apply(op=node.op, args=tuple(made[id(a)] for a in node.args), span=node.span)
        elif isinstance(node, ir.Const):
            made[id(node)] = node
    if id(expr) not in made:
        raise NoProx("no rule for this function of an array")
    return Radial.of(scalar(made[id(expr)], number), rank)


def _size(shape: ir.Shape) -> float:
    total = 1.0
    for n in shape:
        total *= n if isinstance(n, int) else inf
    return total


def reduction(node: ir.Reduce, constants: Constants) -> Proximal:
    """A maximum or tail mean over the elements of a set, all of them together."""
    rank = len(node.binders)
    if node.kind == "max":
        return Largest.of("max", rank=rank)
    if node.kind in ("cvar", "topk"):
        level = constants(next(iter(node.options.values())))
        if level is None:
            raise NoProx("its tail is not a number here")
        return Largest.of(node.kind, level, rank)
    raise NoProx(f"`{node.kind}` over a set: no rule for it")
