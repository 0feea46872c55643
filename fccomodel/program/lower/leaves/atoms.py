"""Atoms of the language."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.evaluation.sets import elements
from fccomodel.library import atoms
from fccomodel.program import errors
from fccomodel.program.lower.leaves.rows import Rows
from fccomodel.program.lower.leaves.scores import Scores
from fccomodel.program.lower.state import Env, Linear, Lower, State
from fccomodel.program.operations import Val
from fccomodel.program.operations.entrywise import broadcast, fill, number


class Atoms:
    """Atoms at values, and how their arguments enter the expectation around them."""

    def __init__(self, state: State, scores: Scores, rows: Rows, lower: Lower):
        self.state, self.scores, self.rows, self.lower = state, scores, rows, lower

    def value(self, node: ir.Apply, env: Env, linear: Linear) -> Val:
        """An atom; a product of a row and variables as a score."""
        if (
            node.op in ("dot", "matmul")
            and len(node.args) == 2
            and (product := self.scores.product(node, env)) is not None
        ):
            return product
        if node.op == "sumsq" and (distances := self.rows.distances(node, env)) is not None:
            return distances
        nodes, atom = node.args, atoms.of(node)
        if (
            self.state.coupled
            and atom is not None
            and atom.extreme > 0
            and any(isinstance(n, ir.Reduce) for n in ir.walk(node))
        ):
            self.state.refuse(errors.maximum_of_a_list(node.span))
        if node.op in ("eq", "ne") and any(isinstance(a, ir.Label) for a in nodes):
            nodes = tuple(self.label(a, nodes[1 - k]) for k, a in enumerate(nodes))
        keep = kept(node, linear)
        args = [self.lower(a, env, keep) for a in nodes]
        if atom is None:
            self.state.refuse(errors.no_atom(node.op, node.span))
        if node.op == "indicator":
            return self.state.graph.make(number, args)
        if not isinstance(atom, atoms.ScalarAtom):
            return self.state.graph.array(node.op, args)
        value, event = self.state.graph.apply(node.op, *args), broadcast(a.event for a in args)
        if value.event == event:
            return value
        return self.state.graph.make(fill, [value], event=event)

    def quotient(self, form: ir.Apply, env: Env) -> Val:
        """exp of a difference of logarithms. Beyond e^30 it says that two estimates have seen
        different samples, and no more."""
        g = self.state.graph
        return g.apply("exp", g.apply("min", self.lower(form.args[0], env, False), g.const(30.0)))

    def label(self, arg: ir.Expr, other: ir.Expr) -> ir.Expr:
        """A label in quotes as its position in the other side's set (-1 where it is not there)."""
        if not isinstance(arg, ir.Label):
            return arg
        domain = elements.labels_of(self.state.bound, other)
        labels = () if domain is None else elements.labels(self.state.bound, domain)
        return ir.Const(value=float(labels.index(arg.text)) if arg.text in labels else -1.0)


def kept(node: ir.Apply, linear: Linear) -> Linear:
    """How an atom's arguments enter the expectation around it."""
    if linear == "log":  # a product, or a quotient by what is not estimated
        sampled = [random(a) for a in node.args]
        once = (
            node.op == "logaddexp"
            or node.op == "add"
            and sum(sampled) <= 1
            or node.op == "sub"
            and not sampled[1]
        )
        if once:
            return "log"
        return False
    atom = atoms.of(node)
    return linear and atom is not None and atom.linear([random(a) for a in node.args])


def random(node: ir.Expr) -> bool:
    """A reduction over rows stands below: its minibatch value is random."""
    return any(isinstance(n, ir.Reduce) for n in ir.walk(node))
