"""Expectations of exponentials by their logarithms, which do not overflow at any temperature or score.

    log E exp(a)              = logmeanexp a                        log(sum exp(a)) = logsumexp a
    E[q exp(a)] / E exp(b)    = exp(logmeanexp(a + log q) - logmeanexp b)      for q >= 0
    (E e^p)^(1/p)             = exp(logmeanexp(p log e) / p)                   for e >= 0

The logarithm goes through products, quotients, powers, sums and further expectations of nonnegative
expressions. It is used if the plain expectation stands under a logarithm, under a root, or in a
denominator. The interpreter and solvers ask for an expression's ``stable`` form; solvers then track
log u instead of u.
"""

from __future__ import annotations

import dataclasses
import math
import weakref

import numpy as np

from fccomodel.core import ir
from fccomodel.core.rewrite import apply as make
from fccomodel.core.rewrite import const, operands
from fccomodel.data.bound import Bound
from fccomodel.data.drawn import drawn
from fccomodel.evaluation import memory
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms, reductions
from fccomodel.library.atoms import Interval
from fccomodel.library.ranges import Ranges

#: Least value of a factor that may vanish, so that its logarithm has a derivative.
LEAST_FACTOR = 1e-30
#: Largest power whose mean does not need logarithms.
LOW_POWER = 2
REALS = Interval()


@dataclasses.dataclass(frozen=True)
class _Seen:
    """Facts about a node.

    steep  whether it contains products of exponentials or high powers
    mean   whether these are in an expectation
    """

    steep: bool = False
    mean: bool = False


def of(bound: Bound) -> StableForms:
    """The stable forms of a bound problem, remembered with it."""
    return memory.remember(bound, "logarithms", lambda: StableForms(bound))


class StableForms(memory.Owned):
    """The stable forms of one bound problem's expressions; a node's form is made once."""

    def __init__(self, bound: Bound):
        self.owner = weakref.ref(bound)
        self.nodes: dict[int, tuple[ir.Expr, _Seen]] = {}
        self.logs: dict[int, tuple[ir.Expr, ir.Expr | None]] = {}
        self.lets: dict[int, ir.Let] = {}
        self.forms: dict[int, tuple[ir.Expr, ir.Expr | None]] = {}
        self.columns: dict[tuple[str, str], Interval] = {}
        self.ranges = Ranges(self._leaf_range)

    # ------------------------------------------------------------------------------------ the forms
    def stable(self, node: ir.Expr) -> ir.Expr | None:
        """An expression of the same value without large exponentials, or None if ``node`` has none."""
        if not isinstance(node, ir.Apply | ir.Reduce):
            return None
        if id(node) not in self.forms:
            self.forms[id(node)] = (node, self._stable(node))
        return self.forms[id(node)][1]

    def _stable(self, node: ir.Expr) -> ir.Expr | None:
        match node:
            case ir.Reduce():
                return reductions.of(node).stable(node, self.log)
            case ir.Apply(op="log" | "log1p" as op, args=(x,)) if self.see(x).mean:
                log = self.log(x)
                if log is None or op == "log":
                    return log
                return make("log1pexp", log, span=node.span)
        if not self._by_logarithm(node):
            return None
        log = self.log(node)
        if log is None:
            return None
        return make("exp", log, span=node.span)

    def _by_logarithm(self, node: ir.Expr) -> bool:
        """Whether the node is to be computed as the exponential of its logarithm."""
        match node:
            case ir.Apply(op="div" | "inv", args=(*_, y)):
                return self.see(y).mean
            case ir.Apply(op="mul", args=(x, y)):
                return self.see(x).mean and self.see(y).mean
            case ir.Apply(op="sqrt", args=(x,)):
                return self.see(x).mean
            case ir.Apply(op="pow", args=(x, ir.Const(value=p))) if p >= 1:
                return False
            case ir.Apply(op="pow", args=(x, _)):
                return self.see(x).mean
        return False

    def scan(self, root: ir.Expr) -> None:
        """Make the stable forms of all nodes, so that ``logged`` knows them."""
        for node in ir.walk(root):
            self.stable(node)

    def logged(self, node: ir.Reduce) -> ir.Reduce | None:
        """The reduction whose value is the logarithm of this one's, or None if no stable form has it."""
        if not self.see(node).mean:
            return None
        log = self.logs.get(id(node), (node, None))[1]
        if isinstance(log, ir.Reduce):
            return log
        return None

    # -------------------------------------------------------------------------------- the logarithm
    def log(self, node: ir.Expr) -> ir.Expr | None:
        """The logarithm of a nonnegative expression, or None if it is not known to be nonnegative."""
        if id(node) not in self.logs:
            self.logs[id(node)] = (node, self._log(node))
        return self.logs[id(node)][1]

    def _log(self, node: ir.Expr) -> ir.Expr | None:
        if not self.see(node).steep:
            return self.leaf(node)
        match node:
            case ir.Apply(op="exp", args=(a,)):
                return a
            case ir.Apply(op="mul" | "div" as op, args=(x, y)):
                first, second = self.log(x), self.log(y)
                if first is None or second is None:
                    return None
                of_logarithms = {"mul": "add", "div": "sub"}[op]
                return make(of_logarithms, first, second, span=node.span)
            case ir.Apply(op="add"):
                logs = [self.log(x) for x in operands(node, "add")]
                terms = [a for a in logs if a is not None]
                if len(terms) == len(logs):
                    return _tree(terms)
                return None
            case ir.Apply() if (power := atoms.as_power(node)) is not None:
                return self._times(power[1], self.log(power[0]))
            case ir.Reduce() if (kind := reductions.logarithm(reductions.of(node))) is not None:
                body = self.log(node.body)
                if body is None:
                    return None
                return kind.over(node, body)
            case ir.LetRef():
                return self._let(node)
        return self.leaf(node)

    def _times(self, p: ir.Expr, log: ir.Expr | None) -> ir.Expr | None:
        if log is None:
            return None
        return make("mul", p, log)

    def _let(self, node: ir.LetRef) -> ir.LetRef | None:
        """A use of a ``let`` whose body is the logarithm, or None."""
        let = node.let
        body = self.log(let.body)
        if body is None:
            return None
        log_let = self.lets.setdefault(id(let), dataclasses.replace(let, body=body))
        return dataclasses.replace(node, let=log_let)

    def leaf(self, node: ir.Expr) -> ir.Expr | None:
        """The plain logarithm of a factor, or None if it may be negative."""
        if self.ranges(node).lo < 0:
            return None
        if isinstance(node, ir.Const):
            if node.value > 0:
                return const(math.log(node.value))
            return const(-math.inf)
        if ir.variables_of(node):
            positive = make("max", node, const(LEAST_FACTOR))
        else:
            positive = node
        return make("log", positive, span=node.span)

    # ------------------------------------------------------------------------ properties of the nodes
    def see(self, node: ir.Expr) -> _Seen:
        """Whether a node is steep, and in a mean; computed for all nodes below it at once."""
        if id(node) not in self.nodes:
            for part in ir.walk(node):
                if id(part) not in self.nodes:
                    self.nodes[id(part)] = (part, self._see(part))
        return self.nodes[id(node)][1]

    def _see(self, node: ir.Expr) -> _Seen:
        match node:
            case ir.Apply(op="exp"):
                return _Seen(steep=True)
            case ir.Apply(op="mul" | "div" | "add", args=args):
                arguments = [self.nodes[id(a)][1] for a in args]
                return _Seen(any(s.steep for s in arguments), any(s.mean for s in arguments))
            case ir.Apply() if (power := atoms.as_power(node)) is not None:
                base, p = power
                base_seen = self.nodes[id(base)][1]
                high = node.op == "pow" and self.ranges(base).lo >= 0 and not _low(p)
                return _Seen(base_seen.steep or high, base_seen.mean)
            case ir.Reduce():
                _, body = self.nodes[id(node.body)]
                steep = reductions.of(node).additive and body.steep
                over_vectors = any(isinstance(b.domain, ir.VectorSet) for b in node.binders)
                steep = steep and not over_vectors
                return _Seen(steep, steep)
            case ir.LetRef():
                return self.nodes[id(node.let.body)][1]
        return _Seen()

    def _leaf_range(self, node: ir.Expr) -> Interval:
        bound = self.bound
        match node:
            case ir.Param(name=name):
                if name in bound.params:
                    return _ends(bound.params[name])
                return _ends(bound.arrays[name])
            case ir.Column(binder=binder, name=str() as name) if isinstance(binder.domain, ir.RowSet):
                table = binder.domain.table
                key = table, name
                if drawn(bound.tables[table].columns[name]):
                    return REALS
                if key not in self.columns:
                    self.columns[key] = _ends(bound.tables[table].columns[name])
                return self.columns[key]
            case ir.Element(binder=binder) if isinstance(binder.domain, ir.ValueSet):
                return _ends(elements.values(bound, binder.domain))
            case ir.Var(name=name):
                variable = bound.problem.variables.get(name)
                if variable is None:
                    return REALS
                low, high = -math.inf, math.inf
                for domain in variable.sets:
                    simple, args = elements.Pointwise(bound).simple_set(domain)
                    entries = simple.entries(*args)
                    low, high = max(low, entries.lo), min(high, entries.hi)
                return Interval(low, high)
        return REALS


def _low(p: ir.Expr) -> bool:
    """Whether the mean of a power with this exponent does not need logarithms."""
    return isinstance(p, ir.Const) and p.value <= LOW_POWER


def _ends(values: object) -> Interval:
    """The range of the numbers, or the whole line if there are none."""
    numbers = np.asarray(values)
    if numbers.size and numbers.dtype.kind in "fiub":
        return Interval(float(numbers.min()), float(numbers.max()))
    return REALS


def _tree(logs: list[ir.Expr]) -> ir.Expr:
    """The logarithm of a sum from the logarithms of its terms, as a tree of logarithmic depth."""
    while len(logs) > 1:
        firsts = range(0, len(logs) - 1, 2)
        sums = [make("logaddexp", *logs[k : k + 2]) for k in firsts]
        if len(logs) % 2:
            sums.append(logs[-1])
        logs = sums
    return logs[0]
