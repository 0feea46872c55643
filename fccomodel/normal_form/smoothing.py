"""Moreau envelopes of the non-smooth parts of an expression."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fccomodel.core import ir
from fccomodel.core.rewrite import Rewriter, with_children
from fccomodel.core.rewrite import apply as make
from fccomodel.library import atoms, reductions
from fccomodel.library.kinks import kinked
from fccomodel.library.piecewise import of_expression
from fccomodel.library.proximal import Entropic, Largest, Piecewise, Proximal, line, of
from fccomodel.normal_form.outer_functions import arguments, leaves, outer_function
from fccomodel.normal_form.penalty import Penalty, zeros
from fccomodel.normal_form.terms import affine_part, curved, nonlinear_below
from fccomodel.structure import facts_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothed(ir.Expr):
    """The Moreau envelope of a non-smooth ``original``.

    name      name of its centre, the point of the dual domain around which it is smoothed
    args      the arguments, with envelopes inside
    original  the exact expression
    stated    ``original`` as the model states it
    function  the outer function: of each entry of one argument, of one array, of several numbers,
              or of the elements of a set
    argument  the exact argument of ``function``; None: the arguments of ``original``, or of a set
    bound     name of the hyper-parameter that scales the function (``rho`` for a penalty), or None
    penalty   the constraint's penalty that it smooths, or None
    units     factors that turn its slopes into multipliers, for a penalty
    inner     whether it is inside a sampled expectation: it has no centre, and its smoothing
              parameter is ``lam_g``
    """

    name: str
    args: tuple[ir.Expr, ...]
    original: ir.Expr
    stated: ir.Expr
    function: Proximal
    argument: ir.Expr | None = None
    bound: str | None = None
    penalty: Penalty | None = None
    units: tuple[float, float] = (1.0, 1.0)
    inner: bool = False

    @property
    def children(self) -> tuple[ir.Expr, ...]:
        """The arguments, with envelopes inside."""
        return self.args

    @property
    def over(self) -> ir.Reduce | None:
        """The reduction of a smoothed maximum over a set, or None."""
        if not isinstance(self.function, Largest) or len(self.args) != 1:
            return None
        (first,) = self.args
        if isinstance(first, ir.Reduce) and reductions.of(first) is self.function.kind:
            return first
        return None

    @property
    def ends(self) -> tuple[float, float] | None:
        """(low, high) of an inequality low <= argument <= high in the Lagrangian form, or None."""
        lagrangian = self.penalty is not None and self.penalty.kind == "le" and self.bound is None
        if lagrangian and isinstance(self.function, Piecewise):
            return zeros(self.function.graph)
        return None


@dataclass(eq=False)
class Smoother:
    """Replaces the non-smooth parts of an expression by envelopes, the largest parts first.

    constant  gives the value of a subexpression without variables and rows
    outer     whether outer functions are replaced; otherwise a subgradient is used
    inside    whether functions inside a sampled expectation are replaced
    entropy   whether outer maxima are smoothed by entropy instead of half squares
    curves    whether smooth convex functions of expectations are replaced by their conjugate form
    first     the number of envelopes made before
    made      the envelopes made, in order
    kept      non-smooth parts left as they are, each with whether it is inside a sampled expectation
    bent      with ``curves``: smooth functions of expectations left as they are, each with the reason
    """

    constant: Callable[[ir.Expr], float | None]
    outer: bool = True
    inside: bool = True
    entropy: bool = False
    curves: bool = False
    first: int = 0

    def __post_init__(self) -> None:
        self.made: list[Smoothed] = []
        self.kept: list[tuple[ir.Expr, bool]] = []
        self.bent: list[tuple[ir.Expr, str]] = []
        self.memo: dict[tuple[int, bool], tuple[ir.Expr, ir.Expr]] = {}
        self.lets: dict[tuple[int, int], tuple[ir.Let, ir.Let]] = {}
        self.stated: ir.Expr | None = None  # the part of the model that is being smoothed in another form

    def __call__(self, node: ir.Expr, *, inner: bool = False) -> ir.Expr:
        """The expression with envelopes; ``inner`` says that it is below a sampled expectation."""
        key = (id(node), inner)
        if key not in self.memo:
            self.memo[key] = (node, self._smooth(node, inner))
        return self.memo[key][1]

    def _smooth(self, node: ir.Expr, inner: bool) -> ir.Expr:
        if not ir.variables_of(node):
            return node
        if isinstance(node, Penalty):
            return self.below_penalty(node)
        if isinstance(node, Smoothed) and node.over is not None:
            over = with_children(node.over, (self(node.over.body, inner=inner), *node.over.children[1:]))
            return with_children(node, (over,))
        if self.curves and not inner and not kinked(node) and curved(node):
            form = self.conjugate_form(node)
            if isinstance(form, Smoothed):
                return form
            self.bent.append((node, form))
        if (argument := self.smooth_in(node)) is not None:
            return Rewriter(lambda part: self(argument, inner=inner) if part is argument else None)(node)
        if kinked(node):
            replaced = self._replaced(node, inner)
            if replaced is not None:
                return replaced
            self.kept.append((node, inner))
        if isinstance(node, ir.Reduce):
            inner = inner or (reductions.of(node).additive and not _blocks_inside(node.body))
        return self._below(node, inner)

    def _replaced(self, node: ir.Expr, inner: bool) -> ir.Expr | None:
        """The envelope of a node with kinks, or of the same node in another form; or None."""
        wanted = self.inside if inner else self.outer
        if not wanted:
            return None
        envelope = self.envelope(node, inner)
        if envelope is not None:
            return envelope
        rewritten = self.opposite(node) or self.entrywise(node) or self.between(node)
        if rewritten is None:
            return None
        outside, self.stated = self.stated, node
        smoothed = self(rewritten, inner=inner)
        self.stated = outside
        return smoothed

    def _below(self, node: ir.Expr, inner: bool) -> ir.Expr:
        """The node with envelopes inside its children."""
        if isinstance(node, ir.LetRef):
            body = self(node.let.body, inner=inner)
            if body is node.let.body:
                return node
            return self._let(node, body)
        children = tuple(self(child, inner=inner) for child in node.children)
        if all(a is b for a, b in zip(children, node.children, strict=True)):
            return node
        return with_children(node, children)

    def _let(self, node: ir.LetRef, body: ir.Expr) -> ir.LetRef:
        key = (id(node.let), id(body))
        if key not in self.lets:
            self.lets[key] = (node.let, dataclasses.replace(node.let, body=body))
        return dataclasses.replace(node, let=self.lets[key][1])

    def penalty(self, node: Penalty) -> Smoothed:
        """The envelope of a penalty, without envelopes inside its argument."""
        function = node.function
        for argument in [*(self.alone(function) if node.kind == "le" else ()), *node.args]:
            graph = of_expression(function, argument, self.constant)
            if graph is not None and not graph.weak:
                return self._add(
                    function,
                    (argument,),
                    argument,
                    Piecewise.of(node.graph(graph)),
                    False,
                    bound=node.scale,
                    penalty=node,
                    units=node.units(graph),
                )
        raise AssertionError("a penalty is piecewise linear-quadratic in the constraint's value")

    def alone(self, function: ir.Expr) -> list[ir.Expr]:
        """Candidates for the only argument of a penalty."""
        candidates = arguments(function, self.constant)
        below = leaves(function, self.constant, deep=True)
        if len(below) > 1 and not any(p.shape for p in below):
            form = line(function, below, facts_of, self.constant)
            if not isinstance(form, str):
                return [form[0], *candidates]
        return candidates

    def below_penalty(self, node: Penalty) -> ir.Expr:
        """The penalty with its argument smoothed.

        If the penalty is a smooth function of a deeper argument, only that one is smoothed.
        """
        function = node.function
        for argument in arguments(function, self.constant):
            graph = of_expression(function, argument, self.constant)
            if graph is not None and graph.smoothness is not None:
                return with_children(node, (self.below(node.args[0], argument),))
        if kinked(function):
            self.kept.append((function, False))
        return with_children(node, (self(node.args[0]),))

    def smooth_in(self, node: ir.Expr) -> ir.Expr | None:
        """The argument in which the node is smooth although it contains a kink, or None.

        The node is a power p >= 2 of a function whose kinks are zeros of it, such as max(0, u)^2.
        """
        base, exponent = atoms.as_power(node) or (None, None)
        if base is None or exponent is None or not kinked(base):
            return None
        power = self.constant(exponent)
        for argument in arguments(base, self.constant):
            graph = of_expression(base, argument, self.constant)
            if (
                graph is not None
                and power is not None
                and power >= 2
                and not any(map(graph.value, graph.kinks))
            ):
                return argument
        return None

    def below(self, node: ir.Expr, argument: ir.Expr) -> ir.Expr:
        """``node`` with ``argument`` inside it smoothed."""
        return Rewriter(lambda part: self(argument) if part is argument else None)(node)

    def envelope(self, node: ir.Expr, inner: bool) -> Smoothed | None:
        """The Moreau envelope of ``node``, or None if none is known."""
        form = outer_function(node, self.constant)
        if isinstance(form, str):
            return None
        function, argument, over = form
        args: tuple[ir.Expr, ...]
        if over is not None:
            args = (with_children(over, (self(over.body, inner=inner), *over.children[1:])),)
        elif argument is not None:
            args = (self(argument, inner=inner),)
        else:
            args = tuple(self(child, inner=inner) for child in node.children)
        return self._add(node, args, argument, function, inner)

    def conjugate_form(self, node: ir.Expr) -> Smoothed | str:
        """A smooth convex function of expectations as max_y y.u - f*(y), u affine in them.

        If it has no such form, the reason is returned.
        """
        argument = affine_part(node)
        if argument is None:
            return "a function of several expectations together"
        function = of(node, (argument,), facts_of, self.constant)
        if isinstance(function, str):
            return function
        if function.weak:
            return "it is not convex"
        return self._add(node, (argument,), argument, function, False)

    def opposite(self, node: ir.Expr) -> ir.Expr | None:
        """``min e`` as ``-max(-e)``, or None for anything else."""
        if node.shape:
            return None
        negated: ir.Expr
        if isinstance(node, ir.Apply) and _extreme(node) < 0:
            args = tuple(make("neg", a, span=a.span) for a in node.args)
            negated = dataclasses.replace(node, op="max", args=args)
        elif isinstance(node, ir.Reduce) and reductions.of(node).sign < 0 and reductions.of(node).opposite:
            body = make("neg", node.body, span=node.body.span)
            negated = dataclasses.replace(node, kind=reductions.of(node).opposite, body=body)
        else:
            return None
        return make("neg", negated, span=node.span)

    def entrywise(self, node: ir.Expr) -> ir.Expr | None:
        """A maximum or minimum of arrays by ``pos``, or None for anything else.

        ``max(u, v)`` is ``v + pos(u - v)``, ``min(u, v)`` is ``u - pos(u - v)``.
        """
        if not (isinstance(node, ir.Apply) and _extreme(node) and node.shape):
            return None
        u, *rest = node.args
        for v in rest:
            apart = make("pos", make("sub", u, v, span=node.span), span=node.span)
            if _extreme(node) > 0:
                u = make("add", v, apart, span=node.span)
            else:
                u = make("sub", u, apart, span=node.span)
        return u

    def between(self, node: ir.Expr) -> ir.Expr | None:
        """``clip(u, lo, hi)`` as ``lo + pos(u - lo) - pos(u - hi)``, or None for anything else."""
        if not (isinstance(node, ir.Apply) and node.op == "clip"):
            return None
        u, low, high = node.args
        above_low = make("pos", make("sub", u, low, span=node.span), span=node.span)
        above_high = make("pos", make("sub", u, high, span=node.span), span=node.span)
        return make("sub", make("add", low, above_low, span=node.span), above_high, span=node.span)

    def _add(
        self,
        node: ir.Expr,
        args: tuple[ir.Expr, ...],
        argument: ir.Expr | None,
        function: Proximal,
        inner: bool,
        **more: Any,
    ) -> Smoothed:
        """A new envelope, which is added to ``made``; ``more`` are its other fields."""
        if self.entropy and not inner and isinstance(function, Largest) and function.kind.extreme:
            function = Entropic.smoothing(function)
        envelope = Smoothed(
            name=f"y{self.first + len(self.made) + 1}",
            args=args,
            original=node,
            argument=argument,
            function=function,
            inner=inner,
            stated=node if self.stated is None else self.stated,
            shape=node.shape,
            span=node.span,
            **more,
        )
        self.made.append(envelope)
        return envelope


def envelopes(*roots: ir.Expr) -> list[Smoothed]:
    """The envelopes in the expressions, in the order in which they were made."""
    return sorted((n for n in ir.walk(*roots) if isinstance(n, Smoothed)), key=lambda s: int(s.name[1:]))


def _extreme(node: ir.Expr) -> int:
    """1 for a maximum of arguments, -1 for a minimum, 0 for anything else."""
    atom = atoms.of(node)
    if atom is None:
        return 0
    return atom.extreme


def _blocks_inside(body: ir.Expr) -> bool:
    """Whether another reduction stands inside the body."""
    return any(isinstance(n, ir.Reduce) for n in ir.walk(body))


def entry_of_vector(node: ir.Reduce) -> bool:
    """Whether the node is an entry of the vector F of a form phi(F(w)).

    It is an expectation that depends on variables, with neither a composition nor an outer envelope
    below it.
    """
    if not reductions.of(node).linear or nonlinear_below(node.body):
        return False
    if any(isinstance(n, Smoothed) and not n.inner for n in ir.walk(node.body)):
        return False
    return bool(ir.variables_of(node))
