"""The analyser computes the facts of every node from those of its children, each node once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.estimates.spectrum import DECLARED_DEFINITE, Spectrum, spectrum
from fccomodel.structure.facts import (
    INCREASING,
    INSIDE_DOMAIN,
    KINDS,
    NEITHER,
    Fact,
    Facts,
    Standing,
    combine,
    make,
)
from fccomodel.structure.rules import arithmetic, nets, products, whole
from fccomodel.structure.rules.averaged import averaged
from fccomodel.structure.rules.compose import compose, spread
from fccomodel.structure.rules.pieces import pieces
from fccomodel.structure.rules.reduce import reduce

MAX_EIGENVALUE_ROWS = 3000  # rows of the largest matrix whose eigenvalues are computed


class Analyser:
    """Facts of expressions under one set of declarations.

    declared         the declarations, with data or without
    base             an analyser that knows less (the text without the data); its proofs are kept
    left_to_binding  conditions on arguments that are checked when data are bound
    """

    def __init__(self, declared: Declarations, base: Analyser | None = None):
        self.declared = declared
        self.base = base
        self.memo: dict[int, tuple[ir.Expr, Facts]] = {}
        self.keys: dict[int, tuple[ir.Expr, int]] = {}
        self.numbers: dict[tuple, int] = {}
        self.scalars: set[str] = set()  # variables and holes that are single numbers
        self.left_to_binding: dict[ir.Expr, str] = {}
        self._wide: Analyser | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state without the caches that are keyed by object identity."""
        return vars(self) | {"memo": {}, "keys": {}, "numbers": {}, "_wide": None}

    # -------------------------------------------------------------------------------------- walking
    def __call__(self, expr: ir.Expr) -> Facts:
        """The facts of an expression."""
        if id(expr) not in self.memo:
            for node in ir.walk(expr, known=self.memo):
                if id(node) not in self.memo:
                    self.memo[id(node)] = node, self._all_facts(node)
        _, facts = self.memo[id(expr)]
        return facts

    def recognise(self, rewritten: Iterable[ir.Expr], known: Iterable[ir.Expr]) -> None:
        """Give expressions that were rewritten the facts of equal ones that are known.

        Reductions are equal if they are over the same binders: a rewriting that keeps one keeps its draw.
        """
        numbers: dict[tuple, int] = {}
        number_of: dict[int, int] = {}
        facts_of: dict[int, Facts] = {}
        for nodes, are_known in ((known, True), (rewritten, False)):
            for node in ir.walk(*nodes, known=number_of):
                children = tuple(number_of[id(child)] for child in node.children)
                identity = (*_identity_with_draws(node), node.shape, children)
                number = numbers.setdefault(identity, len(numbers))
                number_of[id(node)] = number
                if are_known and id(node) in self.memo:
                    facts_of.setdefault(number, self.memo[id(node)][1])
                elif number in facts_of and id(node) not in self.memo:
                    self.memo[id(node)] = node, replace(facts_of[number], expr=node)

    def _all_facts(self, node: ir.Expr) -> Facts:
        """The facts of a node by rules, by data, by assumptions and by the text alone."""
        if self.base is not None and isinstance(node, ir.Const):
            return self.base(node)
        facts = self._pieces(node, self._measured(self._node(node)))
        if node in self.declared.within:
            assumed = self.declared.within[node]
            inside = make("interval", assumed, node, INSIDE_DOMAIN, standing=Standing.ASSUMED)
            facts = replace(facts, interval=inside)
        if self.base is None or any(domains.by_data(fact.subject) for fact in facts.domain):
            return facts
        stronger = _text_and_data(self.base(node), facts)
        return replace(stronger, domain=facts.domain)

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
        """The facts with a positive lower bound from the bound data, if there is one and it is new."""
        if self.declared.bound is None or facts.constant:
            return facts
        if facts.interval.value.positive or facts.interval.standing == Standing.ASSUMED:
            return facts
        # imported here: it needs torch, which the facts of a text do not
        from fccomodel.structure.estimates.least import least

        low = least(facts, self.declared, self)
        if low is None:
            return facts
        where = facts.interval.value.meet(interval(low.value))
        reason = f"its least value on the data is at least {low.value:.3g}"
        uses = [facts.below]
        fact = make("interval", where, facts.expr, "least value", reason, uses, standing=low.standing)
        restricted = facts.restricted or not self.declared.free
        return replace(facts, interval=fact, restricted=restricted)

    def _measured(self, facts: Facts) -> Facts:
        """The facts with the measured range, for an expression of the data whose sign is not known yet."""
        node = facts.expr
        where = facts.interval.value
        several = isinstance(node, ir.Apply) and len(node.args) > 1
        sign_known = not where.lo < 0 < where.hi
        if self.declared.bound is None or not several or not facts.constant or sign_known:
            return facts
        # imported here: it needs torch, which the facts of a text do not
        from fccomodel.structure.estimates.measured import measured

        range_of_data = measured(node, self.declared.bound)
        if range_of_data is None:
            return facts
        narrower = where.meet(range_of_data)
        fact = make("interval", narrower, node, "data range", "", [], standing=Standing.BOUNDED)
        return replace(facts, interval=fact)

    def key(self, expr: ir.Expr) -> int:
        """A number of the expression. Expressions with the same number have the same value."""
        if id(expr) in self.keys:
            return self.keys[id(expr)][1]
        for node in ir.walk(expr, lets=False, known=self.keys):
            if id(node) not in self.keys:
                children = tuple(self.keys[id(child)][1] for child in node.children)
                identity = (*_identity(node), children)
                number = self.numbers.setdefault(identity, len(self.numbers))
                self.keys[id(node)] = node, number
        _, number = self.keys[id(expr)]
        return number

    def _pieces(self, node: ir.Expr, facts: Facts) -> Facts:
        """The facts with the degree of the node as a polynomial, and of its polynomial pieces."""
        if facts.constant:
            return replace(facts, pieces=0, degree=0)
        if isinstance(node, ir.Var | ir.Hole):
            return replace(facts, pieces=1, degree=1)
        children = node.children
        if isinstance(node, ir.LetRef):
            children = (node.let.body,)
        inner = [self(child) for child in children]
        scalar = len(facts.leaves) == 1 and all(name in self.scalars for name in facts.leaves)
        degree: int | None = 1
        if not facts.affine:
            degree = pieces(node, tuple(child.degree for child in inner), scalar=scalar, whole=True)
        of_pieces = pieces(node, tuple(child.pieces for child in inner), scalar=scalar)
        return replace(facts, pieces=of_pieces, degree=degree)

    # -------------------------------------------------------------------------------------- domains
    def _unproved(self, use: Use, args: Sequence[Facts]) -> list[Fact]:
        """The conditions on constant arguments that are neither proved nor checked when data are bound."""
        ranges = [opened(facts.interval.value) for facts in args]
        unproved = []
        for fault in use.asks.doubts(ranges, use.names):
            k = fault.argument
            facts = args[k]
            if facts.constant and not self._checked(use, fault):
                reason = f"{use.titles[k]} needs {fault.needs}, and is only known to lie in {ranges[k]}"
                doubt = make("domain", False, use.args[k], "no rule", reason, [facts.interval])
                unproved.append(doubt)
        return unproved

    def _checked(self, use: Use, fault: atoms.Fault) -> bool:
        """Whether binding has checked a condition or will; without data the condition is noted."""
        argument = use.args[fault.argument]
        if not domains.by_data(argument):
            return False
        if self.declared.bound is not None:
            return verified(self.declared.bound, use, fault.argument)
        self.left_to_binding[argument] = f"{use.titles[fault.argument]} needs {fault.needs}"
        return True

    def _undefined(self, node: ir.Expr, args: tuple[Facts, ...], conditions: Sequence[Fact]) -> Facts:
        """Facts of a node that may be undefined for all values of the variables: nothing is known."""
        draft = FactsDraft(expr=node, args=args, domain=tuple(conditions), leaves=_of_unknown_sign(args))
        if draft.leaves:
            reason = conditions[0].reason
            draft.both(NONE, "no rule", reason)
            draft.propose("differentiable", False, "no rule", reason)
        return draft.finish()

    # ---------------------------------------------------------------------------------------- nodes
    def _node(self, node: ir.Expr) -> Facts:
        """The facts of one node, whose children have been analysed."""
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
                return self._net(node)
            case ir.Reduce():
                return self._reduce(node)
            case ir.Apply():
                return self._apply(node)
        args = tuple(self(child) for child in node.children)
        return FactsDraft(expr=node, args=args, leaves=_of_unknown_sign(args)).finish()

    def _constant(self, node: ir.Expr) -> Facts:
        """The facts of a leaf without variables: a number, a size, data."""
        match node:
            case ir.Const(value=value):
                leaf = Leaf(interval=atoms.Interval.point(value), size=amount(value))
            case ir.Size(dim=dim):
                leaf = self._size(dim)
            case ir.Param():
                leaf = self.declared.param(node)
            case ir.Column():
                leaf = self.declared.column(node)
            case ir.Element(binder=binder):
                leaf = self.declared.element(binder)
            case _:
                leaf = Leaf()
        return self._leaf(node, leaf).finish()

    def _size(self, dim: ir.Dim) -> Leaf:
        """The value of a size: a number if the dim is known."""
        n = self.declared.dim(dim)
        if n == inf:
            nonnegative = atoms.Interval(0.0, inf, False, True)
            return Leaf(interval=nonnegative, size=SOME, standing=Standing.PROVED)
        standing = Standing.BOUNDED if isinstance(dim, str) else Standing.PROVED
        return Leaf(interval=atoms.Interval.point(n), size=amount(n), standing=standing)

    def _leaf(self, node: ir.Expr, leaf: Leaf) -> FactsDraft:
        """A draft with the range and the norm of a leaf."""
        entries = self.declared.entries(node.shape)
        draft = FactsDraft(expr=node, entries=entries, random=leaf.random, compact=not leaf.random)
        rule = "declared range"
        if leaf.standing == Standing.BOUNDED:
            rule = "data range"
        if leaf.interval != REALS:
            draft.propose("interval", leaf.interval, rule, standing=leaf.standing)
        if leaf.size.finite:
            if rule == "declared range" and not leaf.size.known:
                rule = "finite data"
            draft.propose("size", leaf.size, rule, standing=leaf.standing)
        return draft

    def _net(self, node: ir.NetCall) -> Facts:
        """A frozen net of data is data; another net is a function of its weights."""
        args = tuple(self(child) for child in node.children)
        if node.params is None and all(facts.constant for facts in args):
            random = any(facts.random for facts in args)
            return self._leaf(node, Leaf(random=random)).finish()
        return nets.call(node, args, self.declared)

    def _variable(self, node: ir.Var | ir.Hole) -> Facts:
        """The facts of a variable, or of a hole that stands for an argument."""
        if not node.shape:
            self.scalars.add(node.name)
        leaf = self.declared.variable(node.name)
        draft = self._leaf(node, leaf)
        draft.compact = leaf.size.finite
        draft.restricted = leaf.interval != REALS or leaf.size.finite
        draft.leaves = {node.name: INCREASING}
        draft.parts = {node.name: Amount(1.0)}
        rule = "argument" if isinstance(node, ir.Hole) else "variable"
        draft.both(ZERO, rule)
        draft.propose("lipschitz", Amount(1.0), rule)
        draft.propose("differentiable", True, rule)
        draft.propose("gradient", ZERO, rule)
        return draft.finish()

    def _item(self, node: ir.Item) -> Facts:
        """The facts of an entry of an array: those of all entries."""
        base = self(node.base)
        if not base.interval.holds and not base.size.value.finite:
            return replace(base, expr=node)
        draft = FactsDraft(expr=node, args=(base,), leaves=base.leaves, parts=base.parts)
        for kind in ("interval", "size", "below", "above", "lipschitz", "gradient", "differentiable"):
            fact = getattr(base, kind)
            draft.propose(kind, fact.value, fact.rule, fact.reason, [fact], lacks=fact.lacks, fix=fact.fix)
        return draft.finish()

    def _reduce(self, node: ir.Reduce) -> Facts:
        """The facts of a reduction; nothing is known if its options or elements may be undefined."""
        doubts = []
        for use in domains.uses(node):
            doubts += self._unproved(use, [self(arg) for arg in use.args])
        body = self(node.body)
        if doubts:
            return self._undefined(node, (body,), doubts)
        return averaged(node, body, self, reduce(node, body, self.declared, self))

    # ---------------------------------------------------------------------------------------- atoms
    def _apply(self, node: ir.Apply) -> Facts:
        """The facts of an operation; nothing is known if its arguments may be outside its domain."""
        atom = atoms.of(node)
        args = tuple(self(arg) for arg in node.args)
        if atom is None or not atom.accepts(len(args)):
            return self._unknown_operation(node, args)
        if not node.shape:
            steep = atom.steep_at_0(*(facts.interval.value for facts in args))
            args = tuple(self.raised(facts) if k in steep else facts for k, facts in enumerate(args))
        if atom.limited:
            doubts = self._unproved(domains.of_atom(atom, node.args), args)
            if doubts:
                return self._undefined(node, args, doubts)
        entries = self.declared.entries(node.shape)
        if isinstance(atom, atoms.ScalarAtom) and node.shape:
            pairs = zip(args, node.args, strict=True)
            args = tuple(facts if child.shape else spread(facts, entries) for facts, child in pairs)
        return self._structure(node, args, self._operation(node, atom, args, entries))

    def _unknown_operation(self, node: ir.Apply, args: tuple[Facts, ...]) -> Facts:
        """Facts of an operation that no atom describes."""
        draft = FactsDraft(expr=node, args=args, leaves=_of_unknown_sign(args))
        if draft.leaves:
            draft.both(NONE, "no rule", f"nothing is known of {node.op}")
        elif all(facts.size.value.finite for facts in args):
            draft.propose("size", SOME, "finite data", uses=[facts.size for facts in args])
        return draft.finish()

    def _operation(self, node: ir.Apply, atom: atoms.Atom, args: tuple[Facts, ...], entries: float) -> Facts:
        """The facts of an atom's value by arithmetic where a rule of arithmetic fits, else by composition."""
        if isinstance(atom, atoms.ScalarAtom):
            sizes = (entries,) * len(args)
        else:
            sizes = tuple(self.declared.entries(arg.shape) for arg in node.args)
        varying = [facts for facts in args if not facts.constant]
        if atom.name == "sub":
            return self._difference(node, args, entries)
        if atom.signs is not None:
            return arithmetic.add(node, args, atom.signs, entries)
        if atom.bilinear and varying:
            return self._bilinear(node, atom.name, args, sizes, entries)
        if atom.name == "div" and varying:
            numerator, divisor = args
            facts = arithmetic.quotient(node, numerator, divisor, entries, self.everywhere)
            if node.shape or divisor.constant:
                return facts
            return whole.perspective(node, numerator, divisor, facts)
        if atom.name == "pow" and varying:
            base, exponent = args
            return arithmetic.power(node, base, exponent, entries, self.everywhere)
        return compose(node, atom, args, sizes, entries, self.everywhere)

    def _difference(self, node: ir.Apply, args: tuple[Facts, ...], entries: float) -> Facts:
        """The facts of a difference, which may be a variance or the complement of a function."""
        facts = arithmetic.add(node, args, (1, -1), entries)
        as_variance = self._variance(node)
        if as_variance is not None:
            return combine(as_variance, facts)
        complement = self._complement(node)
        if complement is not None:
            return replace(combine(complement, facts), expr=node)
        return facts

    def _bilinear(
        self, node: ir.Apply, op: str, args: tuple[Facts, ...], sizes: tuple[float, ...], entries: float
    ) -> Facts:
        """The facts of a product with at least one varying factor; ``sizes`` count the factors' entries."""
        left, right = args
        if left.constant:
            return arithmetic.scale(node, left, right, entries, op, arithmetic.spread_to(sizes[1]))
        if right.constant:
            return arithmetic.scale(node, right, left, entries, op, arithmetic.spread_to(sizes[0]))
        return self._square(node, op, args, sizes, entries) or self._shared(node, op, args, entries)

    def _square(
        self, node: ir.Apply, op: str, args: tuple[Facts, ...], sizes: tuple[float, ...], entries: float
    ) -> Facts | None:
        """A product of an expression with itself or with a multiple of it, or x' A x; otherwise None."""
        left, right = node.args
        of_numbers = op == "mul"
        of_vectors = len(left.shape) == len(right.shape) == 1
        name = "square" if of_numbers else "sumsq"
        if of_numbers or len(left.shape) == 1:
            if products.alike(left, right, self.key):
                atom = atoms.get(name)
                assert atom is not None
                facts = compose(node, atom, args[:1], sizes[:1], entries, self.everywhere)
                powers = (2.0, atoms.Interval(0.0, 0.0)) if args[0].affine else None
                return replace(arithmetic.renamed(facts, "square"), powers=powers)
            multiple = multiples(left, right)
            if multiple is not None:
                square = ir.Apply(op=name, args=(multiple.core,), shape=node.shape, span=node.span)
                facts = self(replace(multiple, core=square).expr)
                return arithmetic.renamed(whole.credited(facts, node), "square")
        if op not in ("dot", "matmul") or not of_vectors:
            return None
        for x, image in ((left, right), (right, left)):
            matrix = self._matrix_of(x, image)
            if matrix is not None:
                plain = self._product(node, op, args, entries)
                eigenvalues = self._spectrum(matrix)
                return whole.quadratic_form(node, self(x), self(matrix), eigenvalues, plain, Standing.BOUNDED)
        return None

    def _matrix_of(self, x: ir.Expr, image: ir.Expr) -> ir.Expr | None:
        """The constant matrix A if an expression is A x or x A, or None."""
        if not isinstance(image, ir.Apply) or image.op != "matmul":
            return None
        for matrix, vector in (image.args, image.args[::-1]):
            if self.key(vector) == self.key(x) and len(matrix.shape) == 2 and self(matrix).constant:
                return matrix
        return None

    def _shared(self, node: ir.Apply, op: str, args: tuple[Facts, ...], entries: float) -> Facts:
        """A product of two factors that both vary; shared parts of the factors are used."""
        left, right = args
        facts = self._product(node, op, args, entries)
        if op == "dot" and any(products.is_logarithm(factor) for factor in node.args):
            by_entry = ir.Apply(op="mul", args=node.args, shape=node.args[0].shape, span=node.span)
            total = ir.Apply(op="sum", args=(by_entry,), shape=node.shape, span=node.span)
            return replace(combine(self(total), facts), expr=node)
        if op != "mul":
            return facts
        if not node.shape:
            return products.product_of(node, (left, right), self, self.key, facts)
        if node.args[0].shape == node.args[1].shape:
            return products.entropy(node, (left, right), self, self.key, facts, entries)
        return facts

    def _product(self, node: ir.Apply, op: str, args: tuple[Facts, ...], entries: float) -> Facts:
        """A product of two factors that both vary, by the product rule alone."""
        terms = 1.0
        if op in ("dot", "matmul"):
            terms = self.declared.dim(node.args[0].shape[-1])
        return arithmetic.product(node, args[0], args[1], entries, op, arithmetic.spread_to(terms))

    def _variance(self, node: ir.Apply) -> Facts | None:
        """Facts of ``E e^2 - (E e)^2`` over one set as a variance, or None if the node has another form."""
        first = node.args[0]
        second = _base_of_square(node.args[1], self.key)
        if not isinstance(first, ir.Reduce) or not isinstance(second, ir.Reduce):
            return None
        if not reductions.of(first).average:
            return None
        inner = _base_of_square(first.body, self.key)
        if inner is None or self(inner).constant:
            return None
        if not products.alike(replace(first, body=inner), second, self.key):
            return None
        variance = ir.Reduce(
            kind=VARIANCE.name,
            binders=first.binders,
            condition=first.condition,
            body=inner,
            span=node.span,
        )
        return replace(reduce(variance, self(inner), self.declared, self), expr=node)

    def _complement(self, node: ir.Apply) -> Facts | None:
        """Facts of ``1 - f(u)`` by the complement that f declares, such as sigmoid(-u), or None."""
        minuend, other = node.args
        atom = atoms.of(other)
        if atom is None or not atom.complement or not isinstance(other, ir.Apply):
            return None
        if node.shape or self(other).constant:
            return None
        if self(minuend).interval.value != atoms.Interval.point(1.0):
            return None
        arguments = dict(zip(atom.arguments, other.args, strict=True))
        return whole.credited(self(atoms.expression(atom.complement, arguments)), node)

    def _spectrum(self, matrix: ir.Expr) -> Spectrum | None:
        """The spectrum of the symmetric part of a matrix, bound or declared; None if it is not known."""
        if isinstance(matrix, ir.Apply) and matrix.op == "transpose":
            matrix = matrix.args[0]
        if not isinstance(matrix, ir.Param):
            return None
        value = self.declared.value(matrix.name)
        shape = np.shape(value)
        arrays = {} if self.declared.problem is None else self.declared.problem.arrays
        declared = None
        if matrix.name in arrays and arrays[matrix.name].type.definite:
            declared = DECLARED_DEFINITE
        if value is None or len(shape) != 2 or shape[0] != shape[1]:
            return declared
        if len(value) > MAX_EIGENVALUE_ROWS:
            return declared
        return spectrum(np.asarray(value, float))

    # ------------------------------------------------------------------- properties of the whole node
    def _structure(self, node: ir.Apply, args: tuple[Facts, ...], facts: Facts) -> Facts:
        """The facts with the properties that only the whole expression has (see ``rules.whole``)."""
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
        inner = args[0] if atom.squared else self._hinge(node, args)
        facts = replace(facts, powers=powers, inner=inner)
        if node.shape:
            return facts
        negated = _negated(node)
        if negated is not None and op == "neg":  # - -u is u
            of_u = replace(self(negated), expr=node)
            return combine(facts, whole.credited(of_u, node))
        if negated is not None:  # a - -b is a + b
            node = replace(node, op="add", args=(node.args[0], negated))
            args = (args[0], self(negated))
        return whole.attach_log(facts, whole.apply_log(node, args, facts))

    def _hinge(self, node: ir.Apply, args: tuple[Facts, ...]) -> Facts | None:
        """Facts of u if the node is ``max(0, u)``, or None."""
        atom = atoms.of(node)
        if atom is None or atom.extreme <= 0 or len(args) != 2:
            return None
        zero = [a.constant and a.interval.value == atoms.Interval.point(0.0) for a in args]
        if zero[0]:
            return args[1]
        if zero[1]:
            return args[0]
        return None


def _of_unknown_sign(args: Sequence[Facts]) -> dict[str, int]:
    """The variables that some arguments depend on, each with a dependence of no known sign."""
    return {name: NEITHER for facts in args for name in facts.leaves}


def _base_of_square(node: ir.Expr, key: Callable[[ir.Expr], int]) -> ir.Expr | None:
    """The expression e if the node is ``square(e)``, ``e^2`` or ``e * e``, or None."""
    match node:
        case ir.Apply(op="mul", args=(e, again)) if key(e) == key(again):
            return e
    return atoms.squared(node)


def _text_and_data(text: Facts, data: Facts) -> Facts:
    """The stronger facts of the text alone and of the data.

    If neither has a property, the reason with the data is kept.
    """
    both = combine(text, data)
    missing = [kind for kind in KINDS if not getattr(both, kind).holds]
    return both.with_facts({kind: getattr(data, kind) for kind in missing})


def _negated(node: ir.Apply) -> ir.Expr | None:
    """u if the node is ``-(-u)`` or ``a - (-u)``, or None."""
    if node.op not in ("neg", "sub"):
        return None
    last = products.opened(node.args[-1])
    if isinstance(last, ir.Apply) and last.op == "neg":
        return last.args[0]
    return None


def _identity_with_draws(node: ir.Expr) -> tuple:
    """A key of the node's own fields, where a reduction is the same as one over the same binders."""
    if isinstance(node, ir.Reduce):
        binders = tuple(id(binder) for binder in node.binders)
        return ("reduce", node.kind, binders, node.condition is None, *node.options)
    return _identity(node)


def _identity(node: ir.Expr) -> tuple:
    """A key of the node's own fields, for nodes with equal children."""
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
