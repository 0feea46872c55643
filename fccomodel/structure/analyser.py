"""The walk: facts of every node from those of its children, children first, each node once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation.checks.domains import verified
from fccomodel.library import atoms, domains, reductions
from fccomodel.library.amounts import NONE, SOME, ZERO, Amount, amount
from fccomodel.library.domains import Use
from fccomodel.library.identities import multiples
from fccomodel.library.reductions.variance import VARIANCE
from fccomodel.structure.declarations import REALS, Declarations, Leaf, interval, opened
from fccomodel.structure.draft import Draft
from fccomodel.structure.estimates.spectrum import Spectrum, spectrum
from fccomodel.structure.facts import INCREASING, KINDS, NEITHER, Fact, Facts, Standing, combine, make
from fccomodel.structure.rules import arithmetic, nets, products, whole
from fccomodel.structure.rules.averaged import averaged
from fccomodel.structure.rules.compose import compose, spread
from fccomodel.structure.rules.pieces import pieces
from fccomodel.structure.rules.reduce import reduce

LARGEST = 3000  # rows of a matrix whose eigenvalues are computed


class Analyser:
    """Facts under one context. ``base`` is an analyser that knows less (the text without the data):
    what it proves is kept."""

    def __init__(self, declared: Declarations, base: Analyser | None = None):
        self.declared = declared
        self.base = base
        self.memo: dict[int, tuple[ir.Expr, Facts]] = {}
        self.keys: dict[int, tuple[ir.Expr, int]] = {}
        self.numbers: dict[tuple, int] = {}
        self.scalars: set[str] = set()  # variables and holes that are single numbers
        self.left_to_binding: dict[
            ir.Expr, str
        ] = {}  # what is asked of arguments, to be checked when data are bound
        self._wide: Analyser | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what it remembers of nodes by where they lie in this process's memory."""
        return vars(self) | {"memo": {}, "keys": {}, "numbers": {}, "_wide": None}

    # -------------------------------------------------------------------------------------- walking
    def __call__(self, expr: ir.Expr) -> Facts:
        """The facts of an expression."""
        if id(expr) not in self.memo:
            for node in ir.walk(expr):
                if id(node) not in self.memo:
                    facts = self._pieces(node, self._measured(self._node(node)))
                    if node in self.declared.within:
                        inside = replace(
                            facts.interval, value=self.declared.within[node], standing=Standing.ASSUMED
                        )
                        facts = replace(facts, interval=inside)
                    if self.base is not None and not any(domains.by_data(f.subject) for f in facts.domain):
                        facts = replace(_and(self.base(node), facts), domain=facts.domain)
                    self.memo[id(node)] = node, facts
        return self.memo[id(expr)][1]

    def everywhere(self, facts: Facts) -> Facts:
        """The facts of the same expression with its variables ranging over all reals."""
        if not facts.restricted:
            return facts
        if self._wide is None:
            if self.declared.free:
                self._wide = self
            else:
                self._wide = Analyser(replace(self.declared, free=True))
        return self._wide(facts.expr)

    def raised(self, facts: Facts) -> Facts:
        """The same with the least value that the bound data allow, where it is above 0 and was not
        known to be."""
        settled = (
            facts.constant or facts.interval.value.positive or facts.interval.standing == Standing.ASSUMED
        )
        if self.declared.bound is None or settled:
            return facts
        from fccomodel.structure.estimates.least import least  # needs torch, which the facts of a text do not

        low = least(facts, self.declared, self)
        if low is None:
            return facts
        where = facts.interval.value.meet(interval(low.value))
        reason = f"its least value on the data is at least {low.value:.3g}"
        fact = make(
            "interval", where, facts.expr, "least value", reason, [facts.below], standing=low.standing
        )
        return replace(facts, interval=fact, restricted=facts.restricted or not self.declared.free)

    def _measured(self, facts: Facts) -> Facts:
        """A number of the data whose sign its parts leave open, with the range of its values."""
        node, where = facts.expr, facts.interval.value
        several = isinstance(node, ir.Apply) and len(node.args) > 1
        if self.declared.bound is None or not several or not facts.constant or not where.lo < 0 < where.hi:
            return facts
        from fccomodel.structure.estimates.measured import (
            measured,
        )  # needs torch, which the facts of a text do not

        found = measured(node, self.declared.bound)
        if found is None:
            return facts
        fact = make("interval", where.meet(found), node, "data range", "", [], standing=Standing.BOUNDED)
        return replace(facts, interval=fact)

    def key(self, expr: ir.Expr) -> int:
        """A number that two expressions share only if they have the same value."""
        for node in ir.walk(expr, lets=False):
            if id(node) not in self.keys:
                parts = tuple(self.keys[id(c)][1] for c in node.children)
                self.keys[id(node)] = (
                    node,
                    self.numbers.setdefault((*_identity(node), parts), len(self.numbers)),
                )
        return self.keys[id(expr)][1]

    def _pieces(self, node: ir.Expr, facts: Facts) -> Facts:
        if facts.constant or isinstance(node, ir.Var | ir.Hole):
            only = 0 if facts.constant else 1
            return replace(facts, pieces=only, degree=only)
        inner = [self(c) for c in ((node.let.body,) if isinstance(node, ir.LetRef) else node.children)]
        scalar = len(facts.leaves) == 1 and all(n in self.scalars for n in facts.leaves)
        degree = (
            1 if facts.affine else pieces(node, tuple(f.degree for f in inner), scalar=scalar, whole=True)
        )
        return replace(
            facts, pieces=pieces(node, tuple(f.pieces for f in inner), scalar=scalar), degree=degree
        )

    # -------------------------------------------------------------------------------------- domains
    def _open(self, use: Use, args: Sequence[Facts]) -> list[Fact]:
        """What is asked of arguments that no variable decides, and is neither proved nor checked when
        data are bound."""
        found = []
        for fault in use.asks.doubts([opened(f.interval.value) for f in args], use.names):
            facts, argument = args[fault.argument], use.args[fault.argument]
            title = use.titles[fault.argument]
            if facts.constant and not self._checked(use, fault):
                reason = (
                    f"{title} needs {fault.needs}, and is only known to lie in {opened(facts.interval.value)}"
                )
                found.append(make("domain", False, argument, "no rule", reason, [facts.interval]))
        return found

    def _checked(self, use: Use, fault: atoms.Fault) -> bool:
        """Binding has checked it, or will: what a text leaves to binding is noted."""
        argument = use.args[fault.argument]
        if not domains.by_data(argument):
            return False
        if self.declared.bound is not None:
            return verified(self.declared.bound, use, fault.argument)
        self.left_to_binding[argument] = f"{use.titles[fault.argument]} needs {fault.needs}"
        return True

    def _undefined(self, node: ir.Expr, args: tuple[Facts, ...], conditions: Sequence[Fact]) -> Facts:
        """Nothing is known of what is perhaps not defined, whatever the variables are."""
        draft = Draft(expr=node, args=args, domain=tuple(conditions))
        draft.leaves = {name: NEITHER for a in args for name in a.leaves}
        if draft.leaves:
            draft.both(NONE, "no rule", conditions[0].reason)
            draft.propose("differentiable", False, "no rule", conditions[0].reason)
        return draft.finish()

    # ---------------------------------------------------------------------------------------- nodes
    def _node(self, node: ir.Expr) -> Facts:
        match node:
            case ir.Const() | ir.Label() | ir.Size() | ir.Param() | ir.Column() | ir.Element():
                return self._constant(node)
            case ir.Var() | ir.Hole():
                return self._variable(node)
            case ir.Item():
                return self._item(node)
            case ir.LetRef():
                return self(node.let.body)
            case ir.NetCall():
                return nets.call(node, (self(node.params), self(node.arg)), self.declared)
            case ir.Reduce():
                return self._reduce(node)
            case ir.Apply():
                return self._apply(node)
        args = tuple(self(c) for c in node.children)
        draft = Draft(expr=node, args=args, leaves={name: NEITHER for a in args for name in a.leaves})
        return draft.finish()

    def _constant(self, node: ir.Expr) -> Facts:
        match node:
            case ir.Const(value=value):
                leaf = Leaf(interval=atoms.Interval.point(value), size=amount(value))
            case ir.Size(dim=dim):
                n = self.declared.dim(dim)
                if n < inf:
                    where = atoms.Interval.point(n)
                else:
                    where = atoms.Interval(0.0, inf, False, True)
                leaf = Leaf(
                    interval=where,
                    size=amount(n) if n < inf else SOME,
                    standing=Standing.BOUNDED if isinstance(dim, str) and n < inf else Standing.PROVED,
                )
            case ir.Param():
                leaf = self.declared.param(node)
            case ir.Column():
                leaf = self.declared.column(node)
            case ir.Element(binder=binder):
                leaf = self.declared.element(binder)
            case _:
                leaf = Leaf()
        return self._leaf(node, leaf).finish()

    def _leaf(self, node: ir.Expr, leaf: Leaf) -> Draft:
        draft = Draft(
            expr=node, entries=self.declared.entries(node.shape), random=leaf.random, compact=not leaf.random
        )
        measured = leaf.standing == Standing.BOUNDED
        if leaf.interval != REALS:
            draft.propose(
                "interval",
                leaf.interval,
                "data range" if measured else "declared range",
                standing=leaf.standing,
            )
        if leaf.size.finite:
            if measured:
                rule = "data range"
            elif not leaf.size.known:
                rule = "finite data"
            else:
                rule = "declared range"
            draft.propose("size", leaf.size, rule, standing=leaf.standing)
        return draft

    def _variable(self, node: ir.Var | ir.Hole) -> Facts:
        if not node.shape:
            self.scalars.add(node.name)
        leaf = self.declared.variable(node.name)
        draft = self._leaf(node, leaf)
        draft.compact = leaf.size.finite
        draft.restricted = leaf.interval != REALS or leaf.size.finite
        draft.leaves, draft.parts = {node.name: INCREASING}, {node.name: Amount(1.0)}
        rule = "argument" if isinstance(node, ir.Hole) else "variable"
        draft.both(ZERO, rule)
        draft.propose("lipschitz", Amount(1.0), rule)
        draft.propose("differentiable", True, rule)
        draft.propose("gradient", ZERO, rule)
        return draft.finish()

    def _item(self, node: ir.Item) -> Facts:
        base = self(node.base)
        if not base.interval.holds and not base.size.value.finite:
            return replace(base, expr=node)
        draft = Draft(expr=node, args=(base,), leaves=base.leaves, parts=base.parts)
        for kind in ("interval", "size", "below", "above", "lipschitz", "gradient", "differentiable"):
            fact = getattr(base, kind)
            draft.propose(kind, fact.value, fact.rule, fact.reason, [fact], lacks=fact.lacks, fix=fact.fix)
        return draft.finish()

    def _reduce(self, node: ir.Reduce) -> Facts:
        asked = [(use, [self(arg) for arg in use.args]) for use in domains.uses(node)]
        if doubts := [fact for use, args in asked for fact in self._open(use, args)]:
            return self._undefined(node, (self(node.body),), doubts)
        body = self(node.body)
        return averaged(node, body, self, reduce(node, body, self.declared, self))

    # ---------------------------------------------------------------------------------------- atoms
    def _apply(self, node: ir.Apply) -> Facts:
        atom = atoms.of(node)
        args = tuple(self(a) for a in node.args)
        if atom is None or not atom.accepts(len(args)):
            draft = Draft(expr=node, args=args, leaves={name: NEITHER for a in args for name in a.leaves})
            if draft.leaves:
                draft.both(NONE, "no rule", f"nothing is known of {node.op}")
            elif all(a.size.value.finite for a in args):
                draft.propose("size", SOME, "finite data", uses=[a.size for a in args])
            return draft.finish()
        steep = () if node.shape else atom.steep_at_0(*(a.interval.value for a in args))
        args = tuple(self.raised(a) if k in steep else a for k, a in enumerate(args))
        if atom.limited and (doubts := self._open(domains.of_atom(atom, node.args), args)):
            return self._undefined(node, args, doubts)
        entries = self.declared.entries(node.shape)
        if isinstance(atom, atoms.ScalarAtom) and node.shape:
            args = tuple(
                spread(a, entries) if not child.shape else a for a, child in zip(args, node.args, strict=True)
            )
        return self._structure(node, args, self._operation(node, atom, args, entries))

    def _operation(self, node: ir.Apply, atom: atoms.Atom, args: tuple[Facts, ...], entries: float) -> Facts:
        if not isinstance(atom, atoms.ScalarAtom):
            sizes = tuple(self.declared.entries(a.shape) for a in node.args)
        else:
            sizes = (entries,) * len(args)
        op, moving = atom.name, [a for a in args if not a.constant]
        match op:
            case "sub" if (spread_out := self._variance(node)) is not None:
                return combine(spread_out, arithmetic.add(node, args, (1, -1), entries))
            case "sub" if (turned := self._complement(node)) is not None:
                return replace(combine(turned, arithmetic.add(node, args, (1, -1), entries)), expr=node)
            case _ if atom.signs is not None:
                return arithmetic.add(node, args, atom.signs, entries)
            case _ if atom.bilinear and len(moving) == 1:
                if args[0].constant:
                    factor, varying = (args[0], args[1])
                else:
                    factor, varying = (args[1], args[0])
                if factor is args[1]:
                    count = sizes[0]
                else:
                    count = sizes[1]
                return arithmetic.scale(node, factor, varying, entries, op, arithmetic.spread_to(count))
            case _ if atom.bilinear and len(moving) == 2:
                return self._square(node, op, args, sizes, entries) or self._shared(node, op, args, entries)
            case "div" if moving:
                facts = arithmetic.quotient(node, args[0], args[1], entries, self.everywhere)
                if node.shape or args[1].constant:
                    return facts
                return whole.perspective(node, args[0], args[1], facts)
            case "pow" if moving:
                return arithmetic.power(node, args[0], args[1], entries, self.everywhere)
        return compose(node, atom, args, sizes, entries, self.everywhere)

    def _square(
        self, node: ir.Apply, op: str, args: tuple[Facts, ...], sizes: tuple[float, ...], entries: float
    ) -> Facts | None:
        """A product of an expression with itself or a multiple of it, or x' A x."""
        left, right = node.args
        name = "square" if op == "mul" else "sumsq"
        if products.alike(left, right, self.key) and (op == "mul" or len(left.shape) == 1):
            atom = atoms.get(name)
            assert atom is not None
            facts = compose(node, atom, args[:1], sizes[:1], entries, self.everywhere)
            p = 2.0 if args[0].affine else None
            return replace(
                arithmetic.renamed(facts, "square"),
                powers=None if p is None else (p, atoms.Interval(0.0, 0.0)),
            )
        if (op == "mul" or len(left.shape) == 1) and (twice := multiples(left, right)) is not None:
            of = ir.Apply(op=name, args=(twice.core,), shape=node.shape, span=node.span)
            return arithmetic.renamed(whole.credited(self(replace(twice, core=of).expr), node), "square")
        if op not in ("dot", "matmul") or not len(left.shape) == len(right.shape) == 1:
            return None
        for x, image in ((left, right), (right, left)):
            if isinstance(image, ir.Apply) and image.op == "matmul":
                factors = image.args
            else:
                factors = ()
            for matrix, vector in (factors, factors[::-1]) if factors else ():
                if self.key(vector) == self.key(x) and len(matrix.shape) == 2 and self(matrix).constant:
                    plain = self._product(node, op, args, entries)
                    return whole.quadratic_form(
                        node, self(x), self(matrix), self._spectrum(matrix), plain, Standing.BOUNDED
                    )
        return None

    def _shared(self, node: ir.Apply, op: str, args: tuple[Facts, ...], entries: float) -> Facts:
        """A product of two factors that both vary, and may share what they are made of."""
        left, right = args
        if op != "mul" or node.shape:
            return self._product(node, op, args, entries)
        return products.product_of(
            node, (left, right), self, self.key, self._product(node, op, args, entries)
        )

    def _product(self, node: ir.Apply, op: str, args: tuple[Facts, ...], entries: float) -> Facts:
        """A product of two factors that both vary."""
        if op in ("dot", "matmul"):
            terms = self.declared.dim(node.args[0].shape[-1])
        else:
            terms = 1.0
        return arithmetic.product(node, args[0], args[1], entries, op, arithmetic.spread_to(terms))

    def _variance(self, node: ir.Apply) -> Facts | None:
        """``E e^2 - (E e)^2`` over one set is a variance, whatever the two draws are called."""
        first, second = node.args[0], _base_of_square(node.args[1], self.key)
        if (
            not isinstance(first, ir.Reduce)
            or not isinstance(second, ir.Reduce)
            or not reductions.of(first).average
        ):
            return None
        inner = _base_of_square(first.body, self.key)
        if (
            inner is None
            or not products.alike(replace(first, body=inner), second, self.key)
            or self(inner).constant
        ):
            return None
        spread_out = ir.Reduce(
            kind=VARIANCE.name, binders=first.binders, condition=first.condition, body=inner, span=node.span
        )
        return replace(reduce(spread_out, self(inner), self.declared, self), expr=node)

    def _complement(self, node: ir.Apply) -> Facts | None:
        """``1 - f(u)`` where that is f of something else."""
        one, other = node.args
        atom = atoms.of(other)
        if (
            atom is None
            or not atom.complement
            or not isinstance(other, ir.Apply)
            or node.shape
            or self(other).constant
        ):
            return None
        if self(one).interval.value != atoms.Interval.point(1.0):
            return None
        return whole.credited(
            self(atoms.expression(atom.complement, dict(zip(atom.arguments, other.args, strict=True)))), node
        )

    def _spectrum(self, matrix: ir.Expr) -> Spectrum | None:
        """The spectrum of the symmetric part of a bound matrix; None where it is not known."""
        turned = isinstance(matrix, ir.Apply) and matrix.op == "transpose"
        if turned and isinstance(matrix, ir.Apply):
            inner = matrix.args[0]
        else:
            inner = matrix
        if isinstance(inner, ir.Param):
            value = self.declared.value(inner.name)
        else:
            value = None
        if (
            value is None
            or np.ndim(value) != 2
            or np.shape(value)[0] != np.shape(value)[1]
            or len(value) > LARGEST
        ):
            return None
        return spectrum(np.asarray(value, float))

    # --------------------------------------------------------------------------- what the whole has
    def _structure(self, node: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts:
        if facts.constant:
            return facts
        atom = atoms.get(node.op)
        assert atom is not None
        op = atom.name
        if op in ("log", "log1p") and not node.shape:
            facts = whole.log_of(node, args[0], facts)
        p = whole.exponent(node, args)
        if p and not node.shape:
            facts = whole.root_of_powers(node, args, facts)
        if p == 2:
            facts = whole.squared_part(node, args[0], self.declared.entries, facts, self.everywhere)
        if not node.shape:
            facts = whole.radial(node, atom, args, facts)
        if not node.shape and (op == "mul" or p):
            facts = products.geometric_mean(node, facts, self, self.key, self.declared.count)
        powers = whole.powers_of(node, args) or facts.powers
        facts = replace(facts, powers=powers, inner=args[0] if atom.squared else self._hinge(node, args))
        if node.shape:
            return facts
        if (
            op == "neg"
            and isinstance(turned := products.opened(node.args[0]), ir.Apply)
            and turned.op == "neg"
        ):  # - -u is u
            return combine(facts, whole.credited(replace(self(turned.args[0]), expr=node), node))
        if (
            op == "sub" and isinstance(less := products.opened(node.args[1]), ir.Apply) and less.op == "neg"
        ):  # a - -b is a + b
            node, args = (
                replace(node, op="add", args=(node.args[0], less.args[0])),
                (args[0], self(less.args[0])),
            )
        return whole.attach_log(facts, whole.apply_log(node, args, facts))

    def _hinge(self, node: ir.Apply, args: tuple[Facts, ...]) -> Facts | None:
        """u of ``max(0, u)``."""
        atom = atoms.of(node)
        if atom is None or atom.extreme <= 0 or len(args) != 2:
            return None
        zero = [a.constant and a.interval.value == atoms.Interval.point(0.0) for a in args]
        if zero[0]:
            return args[1]
        if zero[1]:
            return args[0]
        return None


def _base_of_square(node: ir.Expr, key: Callable[[ir.Expr], int]) -> ir.Expr | None:
    """e of ``square(e)``, ``e^2`` or ``e * e``."""
    match node:
        case ir.Apply(op="mul", args=(e, again)) if key(e) == key(again):
            return e
    return atoms.squared(node)


def _and(text: Facts, data: Facts) -> Facts:
    """What the text alone proves and what the data do; where neither has a property, why it is not
    there with the data."""
    both = combine(text, data)
    return both.with_facts({kind: getattr(data, kind) for kind in KINDS if not getattr(both, kind).holds})


def _identity(node: ir.Expr) -> tuple:
    """What tells a node apart besides its children."""
    match node:
        case ir.Const(value=value):
            return ("const", value)
        case ir.Size(dim=dim):
            return ("size", dim)
        case ir.Param(name=name) | ir.Var(name=name):
            return (type(node).__name__, name)
        case ir.Column(binder=binder, name=name):
            return ("column", id(binder), name)
        case ir.Element(binder=binder):
            return ("element", id(binder))
        case ir.Item() | ir.NetCall():
            return (type(node).__name__, getattr(node, "net", ""))
        case ir.Apply(op=op):
            return ("apply", op)
        case ir.LetRef(let=let):
            return ("let", id(let))
        case ir.Hole(name=name):
            return ("hole", name)
    return ("node", id(node))
