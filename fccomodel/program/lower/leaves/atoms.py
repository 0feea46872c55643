"""Lowers calls of atoms: each becomes an operation of the program on the lowered arguments.

Labels become numbers, and quotients take the form that does not overflow.
"""

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
    """Lowers atoms, with regard to the way in which arguments enter the expectation around them."""

    def __init__(self, state: State, scores: Scores, rows: Rows, lower: Lower):
        self.state, self.scores, self.rows, self.lower = state, scores, rows, lower

    def value(self, node: ir.Apply, env: Env, linear: Linear) -> Val:
        """The value of an atom; a product of a row and variables is a score."""
        if node.op in ("dot", "matmul") and len(node.args) == 2:
            product = self.scores.product(node, env)
            if product is not None:
                return product
        if node.op == "sumsq":
            distances = self.rows.distances(node, env)
            if distances is not None:
                return distances
        atom = atoms.of(node)
        if self.state.coupled and atom is not None and atom.extreme > 0 and random(node):
            self.state.refuse(errors.maximum_of_a_list(node.span))
        nodes = node.args
        if node.op in ("eq", "ne") and any(isinstance(arg, ir.Label) for arg in nodes):
            nodes = tuple(self.label(arg, nodes[1 - k]) for k, arg in enumerate(nodes))
        linear_in_args = linear_of_arguments(node, linear)
        args = [self.lower(arg, env, linear_in_args) for arg in nodes]
        if atom is None:
            self.state.refuse(errors.no_atom(node.op, node.span))
        if node.op == "indicator":
            return self.state.graph.make(number, args)
        if not isinstance(atom, atoms.ScalarAtom):
            return self.state.graph.array(node.op, args)
        value = self.state.graph.apply(node.op, *args)
        event = broadcast(arg.event for arg in args)
        if value.event == event:
            return value
        return self.state.graph.make(fill, [value], event=event)

    def quotient(self, form: ir.Apply, env: Env) -> Val:
        """exp of a difference of logarithms, at most e^30.

        A larger quotient only says that the two estimates are from different samples.
        """
        g = self.state.graph
        exponent = self.lower(form.args[0], env, False)
        return g.apply("exp", g.apply("min", exponent, g.const(30.0)))

    def label(self, arg: ir.Expr, other: ir.Expr) -> ir.Expr:
        """A label in quotes as its position in the other side's set, -1 if it is not in the set."""
        if not isinstance(arg, ir.Label):
            return arg
        domain = elements.labels_of(self.state.bound, other)
        labels = () if domain is None else elements.labels(self.state.bound, domain)
        if arg.text in labels:
            return ir.Const(value=float(labels.index(arg.text)))
        return ir.Const(value=-1.0)


def linear_of_arguments(node: ir.Apply, linear: Linear) -> Linear:
    """The way in which an atom's arguments enter the expectation around it, if the atom enters ``linear``.

    The logarithm of a linear value may be a logarithm of a sum, or a sum or difference of logarithms in
    which a single term is random.
    """
    if not linear:
        return False
    is_random = [random(arg) for arg in node.args]
    if linear == "log":
        if node.op == "logaddexp":
            return "log"
        if node.op == "add" and sum(is_random) <= 1:
            return "log"
        if node.op == "sub" and not is_random[1]:
            return "log"
        return False
    atom = atoms.of(node)
    return atom is not None and atom.linear(is_random)


def random(node: ir.Expr) -> bool:
    """Whether an expression contains a reduction, so that its minibatch value is random."""
    return "Reduce" in ir.contents(node)
