"""Non-smooth outer functions and their Moreau envelopes, found in an expression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from fccomodel import atoms, ir
from fccomodel.piecewise import PiecewiseLQ, of_expression
from fccomodel.rewrite import with_children

#: operations through which a piecewise linear-quadratic function of one argument is composed
COMPOSED = {
    "add",
    "sub",
    "neg",
    "mul",
    "div",
    "pos",
    "abs",
    "max",
    "min",
    "sqhinge",
    "huber",
    "pinball",
    "eps_insensitive",
    "smooth_hinge",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothed(ir.Expr):
    """A non-smooth ``original`` replaced by its Moreau envelope in ``arg``.

    argument  the scalar of which ``original`` is a piecewise linear-quadratic function (None for a maximum)
    name    of its centre: the point of the dual domain that the smoothing is centred at
    graph   the piecewise linear-quadratic outer function of the scalar ``arg``; None for the maximum of the entries of ``args``
    bound   name of the hyper-parameter that scales the function (``rho`` for a penalty), or None
    inner   True inside a sampled expectation: no centre, smoothing parameter ``lam_g``
    """

    name: str
    args: tuple[ir.Expr, ...]
    original: ir.Expr
    argument: ir.Expr | None = None
    graph: PiecewiseLQ | None = None
    bound: str | None = None
    inner: bool = False

    @property
    def children(self) -> tuple[ir.Expr, ...]:
        return self.args


@dataclass(eq=False)
class Smoother:
    """Replaces the non-smooth parts of an expression, the largest first.

    constant  the value of a subexpression that no variable and no row enters
    found     the envelopes made, in order
    kept      non-smooth parts left as they are, each with whether it is inside a sampled expectation
    """

    constant: Callable[[ir.Expr], float | None]
    found: list[Smoothed]
    kept: list[tuple[ir.Expr, bool]]

    def __post_init__(self) -> None:
        self.memo: dict[tuple[int, bool], tuple[ir.Expr, ir.Expr]] = {}

    def __call__(self, node: ir.Expr, *, inner: bool = False) -> ir.Expr:
        """The expression with envelopes; ``inner`` is True below a sampled expectation."""
        key = (id(node), inner)
        if key not in self.memo:
            self.memo[key] = (node, self._smooth(node, inner))
        return self.memo[key][1]

    def _smooth(self, node: ir.Expr, inner: bool) -> ir.Expr:
        if not ir.variables_of(node):
            return node
        if kinked(node):
            envelope = self.envelope(node, inner)
            if envelope is not None:
                return envelope
            self.kept.append((node, inner))
        if isinstance(node, ir.Reduce):
            inner = inner or (node.kind in ("E", "mean", "sum") and not _blocks_inside(node.body))
        if isinstance(node, ir.LetRef):
            body = self(node.let.body, inner=inner)
            return node if body is node.let.body else self._let(node, body)
        children = tuple(self(child, inner=inner) for child in node.children)
        if all(a is b for a, b in zip(children, node.children, strict=True)):
            return node
        return with_children(node, children)

    def _let(self, node: ir.LetRef, body: ir.Expr) -> ir.LetRef:
        import dataclasses

        key = (id(node.let), False)
        made = self.memo.get(key)
        if made is None or made[1].body is not body:  # type: ignore[attr-defined]
            made = (node.let, dataclasses.replace(node.let, body=body))  # type: ignore[assignment]
            self.memo[key] = made
        return dataclasses.replace(node, let=made[1])  # type: ignore[arg-type]

    def envelope(self, node: ir.Expr, inner: bool, bound: str | None = None) -> Smoothed | None:
        """The Moreau envelope of ``node``, or None where none is known."""
        name = f"y{len(self.found) + 1}"
        argument = sole_argument(node, self.constant)
        if argument is not None:
            graph = of_expression(node, argument, self.constant)
            if graph is not None:
                return self._add(name, node, (self(argument, inner=inner),), argument, graph, bound, inner)
        if isinstance(node, ir.Apply) and node.op == "max" and not node.shape and not inner:
            return self._add(name, node, tuple(self(a) for a in node.args), None, None, bound, inner)
        if isinstance(node, ir.Reduce) and node.kind == "max" and not node.shape and not inner:
            return self._add(name, node, (with_children(node, (self(node.body), *node.children[1:])),), None, None, bound, inner)
        return None

    def _add(
        self,
        name: str,
        node: ir.Expr,
        args: tuple[ir.Expr, ...],
        argument: ir.Expr | None,
        graph: PiecewiseLQ | None,
        bound: str | None,
        inner: bool,
    ) -> Smoothed:
        made = Smoothed(
            name=name,
            args=args,
            original=node,
            argument=argument,
            graph=graph,
            bound=bound,
            inner=inner,
            shape=node.shape,
            span=node.span,
        )
        self.found.append(made)
        return made


def kinked(node: ir.Expr) -> bool:
    """An operation that has no gradient somewhere."""
    if isinstance(node, ir.Reduce):
        return node.kind in ("max", "min")
    if not isinstance(node, ir.Apply):
        return False
    atom = atoms.get(node.op)
    if atom is None or node.op in ("add", "sub", "mul", "div", "neg", "pow", "matmul", "dot"):
        return False
    everywhere = tuple(atoms.Interval(-inf, inf) for _ in node.args)
    if isinstance(atom, atoms.ScalarAtom):
        return bool(atom.kinks(*everywhere))
    return atom.gradient_lipschitz(*everywhere) is None


def _blocks_inside(body: ir.Expr) -> bool:
    """Another reduction over rows below this one."""
    return any(isinstance(n, ir.Reduce) for n in ir.walk(body))


def sole_argument(node: ir.Expr, constant: Callable[[ir.Expr], float | None]) -> ir.Expr | None:
    """The one scalar expression of which ``node`` is composed by piecewise linear-quadratic operations."""
    if not isinstance(node, ir.Apply) or node.op not in COMPOSED:
        return None
    leaves: dict[int, ir.Expr] = {}
    stack: list[ir.Expr] = [node]
    while stack:
        part = stack.pop()
        if constant(part) is not None:
            continue
        if isinstance(part, ir.Apply) and part.op in COMPOSED and (part is node or _composed(part)):
            stack.extend(part.args)
        else:
            leaves[id(part)] = part
    return next(iter(leaves.values())) if len(leaves) == 1 else None


def _composed(part: ir.Expr) -> bool:
    """A kink further down, by operations of piecewise linear-quadratic functions alone."""
    stack = [part]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Apply) and node.op in COMPOSED:
            if node.op not in ("add", "sub", "neg", "mul", "div"):
                return True
            stack.extend(node.args)
    return False
