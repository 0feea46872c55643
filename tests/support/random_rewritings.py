"""Random rewritings of a model that keep its meaning: another text for the same mathematics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from fccomodel.core.source import Source
from fccomodel.language import syntax as s
from fccomodel.language.parse import parse
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.let import LetDecl
from fccomodel.language.statements.objective import Objective
from fccomodel.language.statements.sets import SetDecl
from fccomodel.language.statements.var import VarDecl
from support.random_models import AT, statement, text

LINEAR = ("E", "mean", "sum")
NORMS = {
    "norm1": 1,
    "norm2": 1,
    "norminf": 1,
    "norm_fro": 1,
    "norm_nuc": 1,
    "group_norm": 1,
    "abs": 1,
    "pos": 1,
    "sumsq": 2,
}


# ------------------------------------------------------------------------------------- small pieces
def number(value: float) -> s.Number:
    return s.Number(value=value, text=f"{value:g}", span=AT)


def name(word: str) -> s.Name:
    return s.Name(id=word, span=AT)


def binary(op: str, left: s.Expr, right: s.Expr) -> s.Binary:
    return s.Binary(op=op, left=left, right=right, span=AT)


def negative(e: s.Expr) -> s.Unary:
    return s.Unary(op="-", arg=e, span=AT)


def call(func: str, *args: s.Expr) -> s.Call:
    return s.Call(func=func, args=args, span=AT)


def sum_over(binders: list[tuple[str, str]], body: s.Expr, kind: str = "sum") -> s.Reduce:
    listed = tuple(s.Binder(name=n, kind="in", domain=name(d), span=AT) for n, d in binders)
    return s.Reduce(kind=kind, indexing=s.Indexing(binders=listed, span=AT), body=body, span=AT)


def names_in(node: Any) -> set[str]:
    """Every name that is used or bound in a piece of syntax."""
    if isinstance(node, tuple):
        return set().union(*map(names_in, node)) if node else set()
    if not isinstance(node, s.Node):
        return set()
    own = {node.id} if isinstance(node, s.Name) else {node.func} if isinstance(node, s.Call) else set()
    own |= {node.name} if isinstance(node, s.Binder) else set()
    return own.union(*(names_in(getattr(node, f.name)) for f in dataclasses.fields(node) if f.name != "span"))


# ---------------------------------------------------------------------------------------- the model
class Rewriting:
    """One model, rewritten step by step.

    shapes   the axes of each variable, as texts         sizes  the numbers that dims stand for
    """

    def __init__(self, model: str, seed: int, sizes: dict[str, int] | None = None):
        self.random = Random(seed)
        self.statements = list(parse(Source(text=model)).statements)
        self.sizes = sizes or {}
        self.shapes = {
            v.name: tuple(text(n) for n in v.shape) for v in self.statements if isinstance(v, VarDecl)
        }
        self.fresh = 0
        self.steps: list[str] = []

    @property
    def text(self) -> str:
        """The model as it stands."""
        return "".join(f"{statement(x).rstrip()}\n" for x in self.statements)

    def run(self, steps: int) -> str:
        """The text after so many rewritings."""
        tries = 0
        while len(self.steps) < steps and tries < 60 * steps:
            tries += 1
            self.step()
        return self.text

    def step(self) -> None:
        """One rewriting at a random place, if there is a place for the one drawn."""
        rewrite = self.random.choice(RULES)
        if rewrite in WHOLE:
            done = rewrite(self)
        else:
            done = self.somewhere(rewrite)
        if done:
            self.steps.append(rewrite.__name__)

    def new_name(self, stem: str) -> str:
        self.fresh += 1
        return f"{stem}{self.fresh}"

    def somewhere(self, rewrite: Callable[[Rewriting, s.Expr], s.Expr | None]) -> bool:
        """The rewriting at one of the places where it applies."""
        places = [(k, path) for k, x in enumerate(self.statements) for path in values(x)]
        self.random.shuffle(places)
        for k, path in places:
            new = rewrite(self, at(self.statements[k], path))
            if new is not None:
                self.statements[k] = put(self.statements[k], path, new)
                return True
        return False

    @property
    def objective(self) -> int:
        return next(k for k, x in enumerate(self.statements) if isinstance(x, Objective))


Path = tuple[str | int, ...]


def values(x: s.Statement) -> Iterator[Path]:
    """Where a statement's numbers and arrays stand: no conditions, sets, places in arrays or options."""
    match x:
        case Objective():
            yield from below(x.body, ("body",))
        case Constraint(relation=s.Compare(operands=operands)):
            for k, side in enumerate(operands):
                yield from below(side, ("relation", "operands", k))
        case LetDecl():
            yield from below(x.value, ("value",))
        case DefDecl():
            yield from below(x.body, ("body",))


def below(e: s.Expr, path: Path) -> Iterator[Path]:
    yield path
    match e:
        case s.Unary(op="-"):
            yield from below(e.arg, (*path, "arg"))
        case s.Binary(op="^"):
            yield from below(e.left, (*path, "left"))
        case s.Binary(op="+" | "-" | "*" | "/" | "@"):
            yield from below(e.left, (*path, "left"))
            yield from below(e.right, (*path, "right"))
        case s.Call():
            for k, arg in enumerate(e.args):
                if not isinstance(arg, s.Number):
                    yield from below(arg, (*path, "args", k))
        case s.Reduce():
            yield from below(e.body, (*path, "body"))


def at(node: Any, path: Path) -> Any:
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def put(node: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    if isinstance(first, int):
        return tuple(put(x, tuple(rest), new) if k == first else x for k, x in enumerate(node))
    return dataclasses.replace(node, **{first: put(getattr(node, first), tuple(rest), new)})


# ---------------------------------------------------------------------------- sums, products, signs
def commuted(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a + b = b + a, a b = b a"""
    return binary(e.op, e.right, e.left) if isinstance(e, s.Binary) and e.op in ("+", "*") else None


def regrouped(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """(a + b) + c = a + (b + c)"""
    match e:
        case s.Binary(op="+", left=s.Binary(op="+", left=a, right=b), right=c):
            return binary("+", a, binary("+", b, c))
        case s.Binary(op="-", left=s.Binary(op="+", left=a, right=b), right=c):
            return binary("+", a, binary("-", b, c))
    return None


def difference(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a - b = a + (-b) = -(b - a)"""
    match e:
        case s.Binary(op="-", left=a, right=b):
            return binary("+", a, negative(b)) if r.random.random() < 0.5 else negative(binary("-", b, a))
    return None


def subtracted_negative(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a + b = a - (-b)"""
    return binary("-", e.left, negative(e.right)) if isinstance(e, s.Binary) and e.op == "+" else None


def twice_negative(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a = -(-a)"""
    return negative(negative(e)) if isinstance(e, s.Binary | s.Call | s.Reduce) else None


def distributed(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """k (a + b) = k a + k b"""
    match e:
        case s.Binary(
            op="*", left=s.Number() | s.Name() as k, right=s.Binary(op="+" | "-" as op, left=a, right=b)
        ):
            return binary(op, binary("*", k, a), binary("*", k, b))
    return None


def factored(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """k a + k b = k (a + b);  a + b = 2 (a / 2 + b / 2)"""
    match e:
        case s.Binary(
            op="+" | "-" as op,
            left=s.Binary(op="*", left=k, right=a),
            right=s.Binary(op="*", left=same, right=b),
        ) if k == same:
            return binary("*", k, binary(op, a, b))
        case s.Binary(op="+" | "-" as op, left=a, right=b):
            return binary("*", number(2), binary(op, binary("/", a, number(2)), binary("/", b, number(2))))
    return None


def scaled(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a = 2 (a / 2) = (4 a) / 4"""
    if not isinstance(e, s.Call | s.Reduce):
        return None
    c = number(r.random.choice((2, 4, 0.5)))
    return binary("*", c, binary("/", e, c)) if r.random.random() < 0.5 else binary("/", binary("*", c, e), c)


def divided(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a / 4 = 0.25 a, 0.5 a = a / 2"""
    match e:
        case s.Binary(op="/", left=a, right=s.Number(value=c)) if c:
            return binary("*", number(1 / c), a) if float(f"{1 / c:g}") == 1 / c else None
        case s.Binary(op="*", left=s.Number(value=c), right=a) if c and float(f"{1 / c:g}") == 1 / c:
            return binary("/", a, number(1 / c))
    return None


def neutral(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """a = a + 0 = 1 a"""
    if not isinstance(e, s.Call | s.Reduce) or isinstance(e, s.Call) and e.func not in NORMS:
        return None
    return binary("+", e, number(0)) if r.random.random() < 0.5 else binary("*", number(1), e)


# ---------------------------------------------------------------------------- functions and squares
def homogeneous(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """norm(u) = norm(2 u) / 2, sumsq(u) = sumsq(2 u) / 4, max(a, b) = max(2 a, 2 b) / 2, E[z] a =
    (E[z] 2 a) / 2"""
    c = number(2)
    match e:
        case s.Call(func=func, args=(u, *rest)) if func in NORMS:
            return binary("/", call(func, binary("*", c, u), *rest), number(2 ** NORMS[func]))
        case s.Call(func="max" | "min" as func, args=args):
            return binary("/", call(func, *(binary("*", c, a) for a in args)), c)
        case s.Reduce(kind="E" | "mean" | "sum" | "max", indexing=s.Indexing(), body=body):
            return binary("/", dataclasses.replace(e, body=binary("*", c, body)), c)
    return None


def turned(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """norm(a - b) = norm(b - a), abs(u) = abs(-u)"""
    match e:
        case s.Call(func=func, args=(s.Binary(op="-", left=a, right=b), *rest)) if (
            func in NORMS and func != "pos"
        ):
            return call(func, binary("-", b, a), *rest)
        case s.Call(func=func, args=(u, *rest)) if func in NORMS and func != "pos":
            return call(func, negative(u), *rest)
    return None


def square(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """u^2 = u u = square(u)"""
    match e:
        case s.Binary(op="^", left=u, right=s.Number(value=2.0)):
            return binary("*", u, u) if r.random.random() < 0.5 else call("square", u)
        case s.Call(func="square", args=(u,)):
            return binary("^", u, number(2)) if r.random.random() < 0.5 else binary("*", u, u)
    return None


def norm_of_variable(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """sumsq(w) = dot(w, w) = norm2(w)^2 = sum(w^2) = sum[i in d] w[i]^2 = w[1]^2 + ... + w[d]^2, and
    norms alike"""
    match e:
        case s.Call(func="sumsq" | "norm1" | "norminf" as func, args=(s.Name(id=w),)) if (
            len(r.shapes.get(w, ())) == 1
        ):
            return r.random.choice(list(_ways(r, func, w)))
        case s.Call(func="norm2", args=(u,)):
            return call("sqrt", call("sumsq", u))
        case s.Call(func="norm_fro", args=(u,)):
            return call("sqrt", call("sum", binary("^", u, number(2))))
        case s.Call(func="sumsq", args=(u,)):
            return call("sum", binary("^", u, number(2)))
    return None


def _ways(r: Rewriting, func: str, w: str) -> Iterator[s.Expr]:
    u, (dim,) = name(w), r.shapes[w]
    i = r.new_name("i")
    entry = s.Index(obj=u, items=(name(i),), span=AT)
    places = [s.Index(obj=u, items=(number(k),), span=AT) for k in range(1, r.sizes.get(dim, 0) + 1)]
    if func == "sumsq":
        yield call("dot", u, u)
        yield binary("^", call("norm2", u), number(2))
        yield call("sum", binary("^", u, number(2)))
        yield sum_over([(i, dim)], binary("^", entry, number(2)))
        yield sum_over([(i, dim)], binary("*", entry, entry))
    if func == "norm1":
        yield call("sum", call("abs", u))
        yield sum_over([(i, dim)], call("abs", entry))
    if func == "norminf":
        yield sum_over([(i, dim)], call("abs", entry), "max")
    elif len(places) > 1:
        each = [call("abs", p) if func == "norm1" else binary("^", p, number(2)) for p in places]
        r.random.shuffle(each)
        total = each[0]
        for term in each[1:]:
            total = binary("+", total, term)
        yield total


def largest(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """max(a, b, c) = max(a, max(b, c)) = max(c, b, a), and min alike"""
    match e:
        case s.Call(func="max" | "min" as func, args=(a, *rest)) if rest:
            if len(rest) > 1 and r.random.random() < 0.5:
                return call(func, a, call(func, *rest))
            return call(func, *reversed(e.args))
    return None


# ----------------------------------------------------------------------------------- sums over sets
def nested(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """R[i, j] a = R[i] R[j] a, of sums and means and the largest"""
    match e:
        case s.Reduce(
            kind="E" | "mean" | "sum" | "max",
            keywords=(),
            indexing=s.Indexing(binders=(first, *rest), condition=None),
            body=body,
        ) if rest:
            inner = dataclasses.replace(e, indexing=s.Indexing(binders=tuple(rest), span=AT))
            return dataclasses.replace(e, indexing=s.Indexing(binders=(first,), span=AT), body=inner)
        case s.Reduce(
            kind=kind, keywords=(), indexing=s.Indexing(binders=outer, condition=None),
            body=s.Reduce(kind=same, keywords=(), indexing=s.Indexing(binders=inner_binders, condition=None), body=body),
        ) if kind == same and kind in ("E", "mean", "sum", "max"):  # fmt: skip
            return dataclasses.replace(
                e, indexing=s.Indexing(binders=(*outer, *inner_binders), span=AT), body=body
            )
    return None


def split(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """E[z] (a + b) = E[z] a + E[z] b"""
    match e:
        case s.Reduce(
            kind=kind, keywords=(), indexing=s.Indexing(), body=s.Binary(op="+" | "-" as op, left=a, right=b)
        ):
            if kind in LINEAR:
                return binary(op, dataclasses.replace(e, body=a), dataclasses.replace(e, body=b))
    return None


def joined(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """E[z] a + E[z] b = E[z] (a + b);  E[z] a + b = E[z] (a + b)"""
    match e:
        case s.Binary(
            op="+" | "-" as op,
            left=s.Reduce(kind=kind, keywords=(), indexing=s.Indexing() as one, body=a),
            right=b,
        ):
            if (
                isinstance(b, s.Reduce)
                and b.kind == kind
                and b.indexing == one
                and not b.keywords
                and kind in LINEAR
            ):
                return dataclasses.replace(e.left, body=binary(op, a, b.body))
            if kind in ("E", "mean") and names_in(b).isdisjoint(x.name for x in one.binders):
                return dataclasses.replace(e.left, body=binary(op, a, b))
    return None


def drawn_or_listed(r: Rewriting, e: s.Expr) -> s.Expr | None:
    """E[z ~ D] a = mean[z in D] a, over tables"""
    tables = {x.name for x in r.statements if isinstance(x, DataDecl) and x.fields is not None}
    tables |= {
        x.name for x in r.statements if isinstance(x, SetDecl) and isinstance(x.value, s.SetComprehension)
    }
    match e:
        case s.Reduce(kind="E" | "mean" as kind, keywords=(), indexing=s.Indexing(binders=binders)):
            if all(isinstance(b.domain, s.Name) and b.domain.id in tables for b in binders):
                other = ("mean", "in") if kind == "E" else ("E", "~")
                moved = tuple(dataclasses.replace(b, kind=other[1]) for b in binders)
                return dataclasses.replace(
                    e, kind=other[0], indexing=dataclasses.replace(e.indexing, binders=moved)
                )
    return None


# --------------------------------------------------------------------------------- whole statements
def named_part(r: Rewriting) -> bool:
    """A part of the objective that binds all it uses gets a name."""
    k = r.objective
    objective = r.statements[k]
    inside = [
        p for p in below(objective.body, ("body",)) if not isinstance(at(objective, p), s.Number | s.Name)
    ]
    r.random.shuffle(inside)
    for path in inside:
        part = at(objective, path)
        bound = {b for q in range(len(path)) for b in _bound(at(objective, path[:q]))}
        if names_in(part).isdisjoint(bound):
            word = r.new_name("part")
            r.statements[k] = put(objective, path, name(word))
            r.statements.insert(k, LetDecl(name=word, value=part, span=AT))
            return True
    return False


def _bound(node: Any) -> set[str]:
    return (
        {b.name for b in node.indexing.binders}
        if isinstance(node, s.Reduce) and node.indexing is not None
        else set()
    )


def function_of_part(r: Rewriting) -> bool:
    """A part becomes a function's value: f(a), f(u) = u."""
    word = r.new_name("same")
    done = r.somewhere(
        lambda r, e: call(word, e) if isinstance(e, s.Call | s.Reduce) and not _calls(e, "same") else None
    )
    if done:
        first = next(k for k, x in enumerate(r.statements) if isinstance(x, LetDecl | DefDecl | Objective))
        r.statements.insert(first, DefDecl(name=word, params=("u",), body=name("u"), span=AT))
    return done


def _calls(e: s.Expr, stem: str) -> bool:
    return isinstance(e, s.Call) and e.func.startswith(stem)


def inlined(r: Rewriting) -> bool:
    """A quantity that has a name, where it is used."""
    lets = [x for x in r.statements if isinstance(x, LetDecl) and x.family is None]
    if not lets:
        return False
    let = r.random.choice(lets)

    def replaced(_: Rewriting, e: s.Expr) -> s.Expr | None:
        return let.value if isinstance(e, s.Name) and e.id == let.name else None

    return r.somewhere(replaced)


def opposite_sense(r: Rewriting) -> bool:
    """minimize f = maximize -f"""
    k = r.objective
    objective = r.statements[k]
    sense = "maximize" if objective.sense == "minimize" else "minimize"
    r.statements[k] = dataclasses.replace(objective, sense=sense, body=negative(objective.body))
    return True


def constraint_otherwise(r: Rewriting) -> bool:
    """a <= b as a - b <= 0, b >= a, 2 a <= 2 b, -a >= -b"""
    places = [
        k for k, x in enumerate(r.statements) if isinstance(x, Constraint) and len(x.relation.operands) == 2
    ]
    if not places:
        return False
    k = r.random.choice(places)
    relation = r.statements[k].relation
    (a, b), (op,) = relation.operands, relation.ops
    other = {"<=": ">=", ">=": "<=", "==": "=="}[op]
    way = r.random.randrange(4)
    if way == 0:
        new = dataclasses.replace(relation, operands=(binary("-", a, b), number(0)))
    elif way == 1:
        new = dataclasses.replace(relation, operands=(b, a), ops=(other,))
    elif way == 2:
        c = number(r.random.choice((2, 0.5)))
        new = dataclasses.replace(relation, operands=(binary("*", c, a), binary("*", c, b)))
    else:
        new = dataclasses.replace(relation, operands=(negative(a), negative(b)), ops=(other,))
    r.statements[k] = dataclasses.replace(r.statements[k], relation=new)
    return True


def reordered(r: Rewriting) -> bool:
    """Two statements of one kind that do not need each other change places."""
    pairs = [
        k for k in range(len(r.statements) - 1)
        if type(r.statements[k]) is type(r.statements[k + 1]) and getattr(r.statements[k], "name", None) is not None
        and r.statements[k].name not in names_in(r.statements[k + 1])
        or isinstance(r.statements[k], Constraint) and isinstance(r.statements[k + 1], Constraint)
    ]  # fmt: skip
    if not pairs:
        return False
    k = r.random.choice(pairs)
    r.statements[k], r.statements[k + 1] = r.statements[k + 1], r.statements[k]
    return True


WHOLE = (named_part, function_of_part, inlined, opposite_sense, constraint_otherwise, reordered)
RULES = (
    commuted, regrouped, difference, subtracted_negative, twice_negative, distributed, factored, scaled, divided, neutral,
    homogeneous, turned, square, norm_of_variable, largest, nested, split, joined, drawn_or_listed, *WHOLE,
)  # fmt: skip
