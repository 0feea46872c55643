"""From typed expressions to a graph of values with named axes: a minibatch of the problem, or a full pass over it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fccomodel.core import ir
from fccomodel.evaluation import elements, selections
from fccomodel.evaluation.axes import along, new_axis
from fccomodel.evaluation.axes import spread as spread_over
from fccomodel.library import atoms
from fccomodel.normal.penalty import Penalty
from fccomodel.normal.separation import PiecewiseMean
from fccomodel.normal.smoothing import Smoothed
from fccomodel.solver import errors
from fccomodel.solver.lower._met import taken
from fccomodel.solver.lower._records import Slot
from fccomodel.solver.lower._smooth import Smoothing
from fccomodel.solver.lower._state import Env, Linear
from fccomodel.solver.operations import Val, in_order
from fccomodel.solver.operations.entrywise import broadcast, fill, spread
from fccomodel.solver.operations.indexing import entry, pick, take_val
from fccomodel.solver.operations.scores import net, score, table_net, table_score
from fccomodel.solver.operations.sources import array_data, hyper, param, variable

__all__ = ["Lowering", "Slot"]

#: a let family with at most so many members is evaluated whole, once a step
WHOLE_LET = 4096


@dataclass(eq=False)
class Lowering(Smoothing):
    """Expressions node by node."""

    def expr(self, node: ir.Expr, env: Env, linear: Linear = True) -> Val:
        """The value of an expression where the binders stand for ``env``. Long sums are gone through without recursion."""
        chain = [node]
        while isinstance(chain[-1], ir.Apply) and chain[-1].op in ("add", "sub", "neg"):
            chain.append(chain[-1].args[0])
        for part in reversed(chain if len(chain) > 32 else chain[:1]):
            value = self.once(part, env, linear)
        return value

    def once(self, node: ir.Expr, env: Env, linear: Linear) -> Val:
        """The value of a node, computed the first time it is asked for with these elements."""
        free = tuple((id(b), env[b].ids.id) for b in self.free(node) if b in env)
        key = (id(node), free, linear, self.again)
        if key not in self.memo:
            self.memo[key] = self.node(node, env, linear)
            self.alive.append(node)
            self.spans.setdefault(self.memo[key].id, node)
        return self.memo[key]

    def node(self, node: ir.Expr, env: Env, linear: Linear) -> Val:
        g = self.graph
        if self.stable and (form := self.logarithms.stable(node)) is not None:
            if isinstance(form, ir.Apply) and getattr(node, "op", "") in ("div", "inv") and not self.full:
                return self.quotient(form, env)
            return self.expr(form, env, linear)
        match node:
            case ir.Const(value=value):
                if not node.shape:
                    return g.const(value)
                shape = self.shape(node.shape)
                return g.make(array_data, key=self.ship("constant", np.full(shape, value)), event=shape)
            case ir.Size(dim=dim):
                return g.const(self.size(dim))
            case ir.Param(name=name):
                return self.parameter(name)
            case ir.Var(name=name):
                return g.make(variable, name=name, event=self.variable_shape(node))
            case ir.Column(binder=binder, name=name):
                slot = env[binder]
                if slot.draw is not None or name is None:
                    return slot.ids
                return self.take(self.column_key(binder, name), slot.ids, self.column(binder, name).shape[1:])
            case ir.Element(binder=binder):
                slot = env[binder]
                if slot.draw is None and isinstance(binder.domain, ir.ValueSet):
                    values = elements.values(self.bound, binder.domain)
                    return self.take(self.ship(self.set_key(binder.domain) + "_values", values), slot.ids, ())
                return slot.ids
            case ir.Item():
                return self.item(node, env, linear)
            case ir.Apply():
                return self.atom(node, env, linear)
            case ir.NetCall():
                return self.net(node, env)
            case ir.LetRef():
                return self.let(node, env, linear)
            case Smoothed():
                return self.smoothed(node, env)
            case Penalty(scale=str(scale)):
                return g.apply("mul", g.make(hyper, name=scale), self.expr(node.function, env, linear))
            case ir.Reduce():
                return self.reduce(node, env, linear)
            case ir.Exists():
                return self.exists(node, env)
            case PiecewiseMean():
                return self.piecewise_mean(node, env)
        self.refuse(errors.no_value(self.bound.problem, node))

    def quotient(self, form: ir.Apply, env: Env) -> Val:
        """exp of a difference of logarithms. Beyond e^30 it says that two estimates have seen different samples, and no more."""
        return self.graph.apply("exp", self.graph.apply("min", self.expr(form.args[0], env, False), self.graph.const(30.0)))

    # ----------------------------------------------------------------------------------------------------- leaves, data
    def parameter(self, name: str) -> Val:
        array = np.asarray(self.bound.params[name] if name in self.bound.params else self.bound.arrays[name])
        if array.ndim == 0 and name in self.bound.params:
            return self.graph.make(param, name=name, value=float(array))
        if array.ndim == 0:
            return self.graph.const(float(array))
        return self.graph.make(array_data, key=self.ship(name, array), event=array.shape)

    def variable_shape(self, node: ir.Var) -> tuple[int, ...]:
        net = next((n for n in self.bound.nets if node.shape == (f"params({n})",)), None)
        if net is not None:
            return (sum(p.numel() for p in self.bound.nets[net].parameters()),)
        return self.shape(node.shape)

    def column(self, binder: ir.Binder, name: str) -> np.ndarray:
        assert isinstance(binder.domain, ir.RowSet)
        return self.bound.tables[binder.domain.table].columns[name]

    def column_key(self, binder: ir.Binder, name: str) -> str:
        assert isinstance(binder.domain, ir.RowSet)
        return self.ship(f"{binder.domain.table}_{name.strip('_')}", self.column(binder, name))

    def exists(self, node: ir.Exists, env: Env) -> Val:
        """Where a range has elements: known of the data alone, for every combination of the ids around it."""
        around = self.free(node)
        sizes = [self.total(b) for b in around]
        at = {b: along(np.arange(n), new_axis()) for b, n in zip(around, sizes, strict=True)}
        found = selections.Conditions(self.bound).value(node, at)
        table = spread_over(found, tuple(a.axes[0] for a in at.values())).expand(sizes).numpy()
        number = self.cells(self.unique(f"{node.binder.name}_exists"), table, [env[b].ids for b in around])
        return self.graph.apply("gt", number, self.graph.const(0.0))

    # ------------------------------------------------------------------------------------------------------ atoms, items
    def atom(self, node: ir.Apply, env: Env, linear: Linear) -> Val:
        if node.op in ("dot", "matmul") and len(node.args) == 2:
            for a, b in (node.args, node.args[::-1]):
                rows = isinstance(a, ir.Column) and len(a.shape) == 1 and a.binder in env and env[a.binder].draw is None
                if rows and len(b.shape) == 1 and ir.variables_of(b):
                    weights = self.expr(b, env, False)
                    if not weights.axes:
                        return self.score(a, weights, env)  # type: ignore[arg-type]
                if rows and node.op == "matmul" and len(b.shape) == 2 and ir.variables_of(b):
                    matrix = self.expr(b, env, False)
                    if not matrix.axes and (image := self.image(a, matrix, a is node.args[1], env)) is not None:  # type: ignore[arg-type]
                        return image
        nodes = node.args
        if self.coupled and node.op == "max" and any(isinstance(n, ir.Reduce) for n in ir.walk(node)):
            self.refuse(errors.maximum_of_a_list(node.span))
        if node.op in ("eq", "ne") and any(isinstance(a, ir.Label) for a in nodes):
            nodes = tuple(self.label(a, nodes[1 - k]) for k, a in enumerate(nodes))
        keep = self.kept(node, linear)
        args = [self.expr(a, env, keep) for a in nodes]
        atom = atoms.get(node.op)
        if atom is None:
            self.refuse(errors.no_atom(node.op, node.span))
        if not isinstance(atom, atoms.ScalarAtom):
            return self.graph.array(node.op, args)
        value, event = self.graph.apply(node.op, *args), broadcast(a.event for a in args)
        return value if value.event == event else self.graph.make(fill, [value], event=event)

    def kept(self, node: ir.Apply, linear: Linear) -> Linear:
        """How an atom's arguments enter the expectation around it."""
        if linear == "log":  # a product, or a quotient by what is not estimated
            sampled = [self.random(a) for a in node.args]
            once = node.op == "logaddexp" or node.op == "add" and sum(sampled) <= 1 or node.op == "sub" and not sampled[1]
            return "log" if once else False
        if linear and node.op in ("mul", "div"):
            sampled = [self.random(a) for a in node.args]
            return sum(sampled) <= 1 and not (node.op == "div" and sampled[1])
        return linear and node.op in ("add", "sub", "neg", "sum", "transpose", "concat")

    def label(self, arg: ir.Expr, other: ir.Expr) -> ir.Expr:
        """A label in quotes as its position in the other side's set (-1 where it is not there)."""
        if not isinstance(arg, ir.Label):
            return arg
        domain = elements.labels_of(self.bound, other)
        known = () if domain is None else elements.labels(self.bound, domain)
        return ir.Const(value=float(known.index(arg.text)) if arg.text in known else -1.0)

    def random(self, node: ir.Expr) -> bool:
        """A reduction over rows stands below: its minibatch value is random."""
        return any(isinstance(n, ir.Reduce) for n in ir.walk(node))

    def score(self, column: ir.Column, weights: Val, env: Env) -> Val:
        """``X[rows] @ w``, or ``(X @ w)[rows]`` where that touches fewer rows."""
        slot = env[column.binder]
        assert column.name is not None
        key = self.column_key(column.binder, column.name)
        sampled = math.prod(a.size for a in slot.ids.axes)
        if not weights.axes and (self.full or 2 * sampled >= len(self.data[key])):
            whole = self.graph.make(table_score, [weights], key=key, event=(len(self.data[key]),))
            return self.graph.make(take_val, [whole, slot.ids])
        rows = self.take(key, slot.ids, self.column(column.binder, column.name).shape[1:])
        return self.graph.make(score, [rows, weights])

    def image(self, column: ir.Column, matrix: Val, right: bool, env: Env) -> Val | None:
        """Rows of ``X @ Aᵀ`` (of ``X @ A`` where the matrix stands right), for the whole table where that touches fewer rows."""
        slot = env[column.binder]
        assert column.name is not None
        key = self.column_key(column.binder, column.name)
        sampled = math.prod(a.size for a in slot.ids.axes)
        if not self.full and 2 * sampled < len(self.data[key]):
            return None
        table = self.graph.make(array_data, key=key, event=self.data[key].shape)
        whole = self.graph.array("matmul", [table, self.graph.array("transpose", [matrix]) if right else matrix])
        return self.graph.make(take_val, [whole, slot.ids])

    def item(self, node: ir.Item, env: Env, linear: Linear) -> Val:
        base = self.expr(node.base, env, linear)
        fixed: list[int | None] = []
        moving: list[Val] = []
        for k, index in enumerate(node.indices):
            if isinstance(index, ir.Const):
                fixed.append(int(index.value))
            else:
                fixed.append(None)
                moving.append(self.position(index, node.base.shape[k], env))
        return self.graph.make(entry, [base, *moving], fixed=tuple(fixed))

    def position(self, index: ir.Expr, dim: ir.Dim, env: Env) -> Val:
        """Where a binder's element, or the label of a row, stands along a dimension of an array."""
        assert isinstance(index, ir.Element | ir.Column)
        ids = env[index.binder].ids
        if isinstance(index, ir.Column):
            return self.take(self.ship(f"{index.name}_in_{dim}", elements.row_positions(self.bound, index, dim)), ids, ())
        place = elements.positions(self.bound, index.binder.domain, dim)
        return ids if place is None else self.take(self.ship(f"place_in_{dim}", place), ids, ())

    def net(self, node: ir.NetCall, env: Env) -> Val:
        weights = self.expr(node.params, env, False)
        event = self.shape(node.shape)
        if self.full and isinstance(node.arg, ir.Column) and node.arg.name is not None and env[node.arg.binder].draw is None:
            key = self.column_key(node.arg.binder, node.arg.name)
            whole = self.graph.make(
                table_net, [weights], net=node.net, variable=node.params.name, key=key, event=(len(self.data[key]), *event)
            )  # fmt: skip
            return self.graph.make(take_val, [whole, env[node.arg.binder].ids])
        arg = self.expr(node.arg, env, False)
        return self.graph.make(net, [weights, arg], net=node.net, variable=node.params.name, event=event)

    # ------------------------------------------------------------------------------------------------------------- lets
    def let(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        let = node.let
        if not let.binders:
            return self.expr(let.body, env, linear)
        sizes = [len(elements.ids(self.bound, b.domain)) for b in let.binders]
        rows = any(isinstance(b.domain, ir.RowSet) for b in let.binders)
        if not rows and let.condition is None and math.prod(sizes) <= WHOLE_LET:
            return self.member(node, env, linear)
        inner = dict(env)
        for binder, arg in zip(let.binders, node.args, strict=True):
            if isinstance(arg, ir.Const):
                ids = self.graph.const(int(arg.value))
                inner[binder] = Slot(binder=binder, ids=ids, pos=ids, n=self.total(binder), members=np.array([int(arg.value)]))
                continue
            assert isinstance(arg, ir.Element)
            place = elements.matching(self.bound, arg.binder.domain, binder.domain)
            slot = env[arg.binder]
            if place is not None:
                ids = self.take(self.ship(f"same_in_{self.set_key(binder.domain)}", place), slot.ids, ())
                slot = replace(slot, ids=ids, pos=ids, n=self.total(binder), members=place[taken(self.bound, arg.binder, env)])
            inner[binder] = slot
        return self.expr(let.body, inner, linear)

    def member(self, node: ir.LetRef, env: Env, linear: Linear) -> Val:
        """Members of a small family, picked from all of them."""
        inner = dict(env)
        for binder in node.let.binders:
            inner[binder] = self.everything(binder)
        whole = self.expr(node.let.body, inner, linear)
        axes = [inner[b].ids.axes[0] for b in node.let.binders]
        moving: list[Val] = []
        fixed: list[int | None] = []
        for binder, arg in zip(node.let.binders, node.args, strict=True):
            fixed.append(int(arg.value) if isinstance(arg, ir.Const) else None)
            if isinstance(arg, ir.Element):
                place = elements.matching(self.bound, arg.binder.domain, binder.domain)
                ids = env[arg.binder].ids
                moving.append(
                    ids if place is None else self.take(self.ship(f"same_in_{self.set_key(binder.domain)}", place), ids, ())
                )
        if missing := [a for a in axes if a not in whole.axes]:
            whole = self.graph.make(spread, [whole], axes=in_order((*whole.axes, *missing)))
        return self.graph.make(pick, [whole, *moving], over=tuple(axes), fixed=tuple(fixed))
