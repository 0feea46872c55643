"""Random abstract syntax, and its text: what `parse` must give back."""

from __future__ import annotations

from random import Random

from fccomodel.core.source import Span
from fccomodel.language import syntax as s
from fccomodel.language.statements.const import ConstDecl
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.dim import DimDecl
from fccomodel.language.statements.heading import SubjectTo
from fccomodel.language.statements.include import Include
from fccomodel.language.statements.indices import IndexDecl
from fccomodel.language.statements.let import LetDecl
from fccomodel.language.statements.model import ModelDecl
from fccomodel.language.statements.net import NetDecl
from fccomodel.language.statements.objective import Objective
from fccomodel.language.statements.options import Options
from fccomodel.language.statements.param import ParamDecl
from fccomodel.language.statements.sets import SetDecl
from fccomodel.language.statements.var import VarDecl

AT = Span(start=0, end=0)
NAMES = ("w", "x", "alpha", "score", "z_1", "mean_of", "E1", "index_", "st")
INDICES = ("i", "j", "my_k")
# Binding strength of each kind of expression; `REDUCED` ends in a reduction's body, so that nothing
# can follow it.
OR, AND, NOT, COMPARED, RANGED, SUM, REDUCED, PRODUCT, SIGNED, POWER, ATOM = range(11)


class Generator:
    """Expressions and statements drawn from a seed."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def some(self, make, low: int, high: int) -> tuple:
        return tuple(make() for _ in range(self.random.randint(low, high)))

    def maybe(self, make):
        return make() if self.random.random() < 0.5 else None

    def name(self) -> str:
        return self.random.choice(NAMES)

    def expr(self, depth: int) -> s.Expr:
        r = self.random
        if depth == 0:
            leaf = r.randrange(3)
            if leaf == 0:
                text = r.choice(("0", "1", "2.5", "1e-4", "3E+2", "007"))
                return s.Number(value=float(text), text=text, span=AT)
            return (
                s.Name(id=self.name(), span=AT)
                if leaf == 1
                else s.String(value=r.choice(("a", "", "a;b]#")), span=AT)
            )

        def inner() -> s.Expr:
            return self.expr(r.randrange(depth))

        kind = r.randrange(13)
        if kind <= 2:
            op = r.choice(("+", "-", "*", "/", "@", "^", "and", "or"))
            return s.Binary(op=op, left=inner(), right=inner(), span=AT)
        if kind == 3:
            return s.Unary(op=r.choice(("-", "+", "not")), arg=inner(), span=AT)
        if kind == 4:
            operands = self.some(inner, 2, 3)
            ops = tuple(r.choice(("<=", ">=", "==", "!=", "<", ">")) for _ in operands[1:])
            return s.Compare(operands=operands, ops=ops, span=AT)
        if kind == 5:
            return s.Range(low=inner(), high=inner(), step=self.maybe(inner), span=AT)
        if kind == 6:
            return s.Field(obj=inner(), name=r.choice((*NAMES, "data", "mean", "in")), span=AT)
        if kind == 7:
            return s.Index(obj=inner(), items=self.some(inner, 1, 3), span=AT)
        if kind == 8:
            return self.call(inner)
        if kind == 9:
            return s.SetLiteral(items=self.some(inner, 1, 3), span=AT)
        if kind == 10:
            return s.SetComprehension(indexing=self.indexing(depth), span=AT)
        return self.reduction(depth, inner)

    def call(self, inner) -> s.Call:
        r = self.random
        args = self.some(inner, 0, 3)
        keywords = tuple(
            s.Keyword(name=name, value=inner(), span=AT) for name in r.sample(NAMES, r.randrange(3))
        )
        many = len(args) + len(keywords)
        semicolon = r.randint(1, len(args)) if args and many > 1 and r.random() < 0.3 else None
        if semicolon == many:
            semicolon = None
        func = r.choice((*NAMES, "max", "min", "sum", "mean"))
        return s.Call(func=func, args=args, keywords=keywords, semicolon=semicolon, span=AT)

    def reduction(self, depth: int, inner) -> s.Reduce:
        r = self.random
        form = r.randrange(4)
        if form == 0:
            return s.Reduce(kind=r.choice(("E", "variance", "prob")), body=inner(), span=AT)
        kind = r.choice(
            ("E", "mean", "sum", "prod", "max", "min", "variance", "prob", "cvar", "topk", "logmeanexp")
        )
        if form == 1:
            return s.Reduce(kind=kind, body=inner(), subscript=r.choice(INDICES), span=AT)
        keywords = tuple(
            s.Keyword(name=name, value=inner(), span=AT) for name in r.sample(NAMES, r.randrange(3))
        )
        return s.Reduce(kind=kind, body=inner(), indexing=self.indexing(depth), keywords=keywords, span=AT)

    def binder(self, depth: int) -> s.Binder:
        return s.Binder(
            name=self.name(),
            kind=self.random.choice(("in", "~")),
            domain=self.expr(self.random.randrange(depth)),
            span=AT,
        )

    def indexing(self, depth: int = 2) -> s.Indexing:
        condition = self.maybe(lambda: self.expr(self.random.randrange(depth)))
        return s.Indexing(binders=self.some(lambda: self.binder(depth), 1, 2), condition=condition, span=AT)

    def bound(self) -> s.Bound:
        return s.Bound(op=self.random.choice(("<=", ">=", "<", ">", "in")), value=self.expr(1), span=AT)

    def type(self) -> s.TypeExpr:
        shape = self.some(lambda: self.expr(1), 0, 2)
        if self.random.random() < 0.5:
            return s.TypeExpr(name=self.random.choice(("real", "int", "G")), shape=shape, span=AT)
        return s.TypeExpr(
            values=s.SetLiteral(items=self.some(lambda: self.expr(1), 1, 3), span=AT), shape=shape, span=AT
        )

    def field(self) -> s.FieldDecl:
        return s.FieldDecl(
            name=self.random.choice((*NAMES, "default", "E", "set")), type=self.type(), span=AT
        )

    def declaration(self) -> s.Statement:
        r, name = self.random, self.name()
        kind = r.randrange(12)
        if kind == 0:
            return DimDecl(names=self.some(self.name, 1, 3), span=AT)
        if kind == 1:
            return SetDecl(
                name=name, family=self.maybe(self.indexing), value=self.maybe(lambda: self.expr(3)), span=AT
            )
        if kind == 2:
            return DataDecl(
                name=name, family=self.maybe(self.indexing), fields=self.some(self.field, 1, 3), span=AT
            )
        if kind == 3:
            return DataDecl(name=name, family=self.maybe(self.indexing), type=self.type(), span=AT)
        if kind == 4:
            shape, bounds = self.some(lambda: self.expr(1), 0, 2), self.some(self.bound, 0, 2)
            return ParamDecl(
                name=name, shape=shape, bounds=bounds, default=self.maybe(lambda: self.expr(2)), span=AT
            )
        if kind == 5:
            return ConstDecl(name=name, value=self.expr(2), span=AT)
        if kind == 6:
            assume = self.some(
                lambda: r.choice((s.Name(id="smooth", span=AT), self.call(lambda: self.expr(1)))), 0, 2
            )
            assume = tuple(a for a in assume if isinstance(a, s.Name) or a.func in NAMES)
            frozen = r.random() < 0.2
            return NetDecl(
                name=name,
                inputs=tuple(self.some(self.type, 1, 2)),
                output=self.type(),
                frozen=frozen,
                assume=() if frozen else assume,
                span=AT,
            )
        if kind == 7:
            shape, bounds = self.some(lambda: self.expr(1), 0, 2), self.some(self.bound, 0, 2)
            return VarDecl(
                name=name, shape=shape, bounds=bounds, value=self.maybe(lambda: self.expr(2)), span=AT
            )
        if kind == 8:
            return DefDecl(name=name, params=self.some(self.name, 1, 3), body=self.expr(4), span=AT)
        if kind == 9:
            return Include(path="other file.fcco", span=AT)
        return LetDecl(name=name, value=self.expr(5), family=self.maybe(self.indexing), span=AT)

    def constraint(self) -> Constraint:
        r = self.random
        op = r.choice(("<=", ">=", "=="))
        count = 2 if op != "==" and r.random() < 0.3 else 1
        operands = tuple(self.expr(3) for _ in range(count + 1))
        relation = s.Compare(operands=operands, ops=(op,) * count, span=AT)
        label = self.maybe(self.name)
        family = self.maybe(self.indexing) if label else None
        return Constraint(relation=relation, label=label, family=family, options=self.options(0), span=AT)

    def options(self, low: int) -> tuple[s.Keyword, ...]:
        names = self.random.sample(("seed", "sonex.step", "a.b.c"), self.random.randint(low, 2))
        return tuple(s.Keyword(name=name, value=self.expr(1), span=AT) for name in names)

    def model(self) -> s.Model:
        index = IndexDecl(
            binders=tuple(
                s.Binder(name=i, kind="in", domain=s.Name(id="I", span=AT), span=AT) for i in INDICES
            ),
            span=AT,
        )
        objective = Objective(
            sense=self.random.choice(("minimize", "maximize")),
            body=self.expr(5),
            label=self.maybe(self.name),
            span=AT,
        )
        statements = [ModelDecl(name="m", span=AT), index, *self.some(self.declaration, 1, 6), objective]
        if self.random.random() < 0.7:
            statements += [
                SubjectTo(span=AT),
                *self.some(self.constraint, 1, 3),
                *self.some(self.declaration, 0, 2),
            ]
        if self.random.random() < 0.5:
            statements.append(Options(items=self.options(0), span=AT))
        return s.Model(statements=tuple(statements), span=AT)


# --------------------------------------------------------------------------------------------- text
def text(e: s.Expr, level: int = OR) -> str:
    """An expression's text, in brackets where its place binds more tightly than ``level``."""
    shown, own = _text(e)
    return f"({shown})" if own < level else shown


def _text(e: s.Expr) -> tuple[str, int]:
    match e:
        case s.Number():
            return e.text, ATOM
        case s.String():
            return f'"{e.value}"', ATOM
        case s.Name():
            return e.id, ATOM
        case s.Unary(op="not"):
            return f"not {text(e.arg, NOT)}", NOT
        case s.Unary():
            return (
                (e.op + text(e.arg, REDUCED), REDUCED)
                if _reduces(e.arg)
                else (e.op + text(e.arg, SIGNED), SIGNED)
            )
        case s.Binary(op="or"):
            return f"{text(e.left, OR)} or {text(e.right, AND)}", OR
        case s.Binary(op="and"):
            return f"{text(e.left, AND)} and {text(e.right, NOT)}", AND
        case s.Binary(op="+" | "-"):
            return f"{text(e.left, SUM)}{e.op}{text(e.right, REDUCED)}", SUM
        case s.Binary(op="^"):
            return f"{text(e.left, ATOM)}^{text(e.right, SIGNED)}", POWER
        case s.Binary():
            if _reduces(e.right):
                return f"{text(e.left, PRODUCT)} {e.op} {text(e.right, REDUCED)}", REDUCED
            return f"{text(e.left, PRODUCT)}{e.op}{text(e.right, SIGNED)}", PRODUCT
        case s.Compare():
            shown = text(e.operands[0], RANGED)
            for op, operand in zip(e.ops, e.operands[1:], strict=True):
                shown += f" {op} {text(operand, RANGED)}"
            return shown, COMPARED
        case s.Range():
            step = "" if e.step is None else f" by {text(e.step, SUM)}"
            return f"{text(e.low, SUM)} .. {text(e.high, SUM)}{step}", RANGED
        case s.Field():
            return f"{text(e.obj, ATOM)}.{e.name}", ATOM
        case s.Index():
            whole = isinstance(e.obj, s.Call) and e.obj.func not in NAMES
            return f"{'(' * whole}{text(e.obj, ATOM)}{')' * whole}[{_list(e.items)}]", ATOM
        case s.Call():
            return f"{e.func}({_arguments(e)})", ATOM
        case s.SetLiteral():
            return "{" + _list(e.items) + "}", ATOM
        case s.SetComprehension():
            return "{" + _indexing(e.indexing) + "}", ATOM
        case s.Reduce(subscript=None, indexing=None):
            return f"{e.kind}[{text(e.body)}]", ATOM
        case s.Reduce(indexing=None):
            return f"{e.kind}_{e.subscript} {text(e.body, REDUCED)}", REDUCED
        case s.Reduce():
            options = f"({', '.join(map(_keyword, e.keywords))})" if e.keywords else ""
            return f"{e.kind}{options}[{_indexing(e.indexing)}] {text(e.body, REDUCED)}", REDUCED
    raise TypeError(e)


def _reduces(e: s.Expr) -> bool:
    """Whether an expression is a reduction with a body behind it, or the negative of one."""
    if isinstance(e, s.Unary) and e.op != "not":
        return _reduces(e.arg)
    return isinstance(e, s.Reduce) and (e.indexing is not None or e.subscript is not None)


def _list(items: tuple[s.Expr, ...]) -> str:
    return ",".join(text(item) for item in items)


def _keyword(k: s.Keyword) -> str:
    return f"{k.name}={text(k.value)}"


def _arguments(call: s.Call) -> str:
    parts = [text(a) for a in call.args] + [_keyword(k) for k in call.keywords]
    cut = call.semicolon or 0
    return ", ".join(parts[:cut]) + (";" if cut else "") + ",".join(parts[cut:])


def _indexing(x: s.Indexing) -> str:
    binders = ", ".join(f"{b.name} {b.kind} {text(b.domain, RANGED)}" for b in x.binders)
    return binders + ("" if x.condition is None else f" | {text(x.condition)}")


def _family(x: s.Indexing | None) -> str:
    return "" if x is None else f"[{_indexing(x)}]"


def _shape(shape: tuple[s.Expr, ...]) -> str:
    return f"[{_list(shape)}]" if shape else ""


def _type(t: s.TypeExpr) -> str:
    return (t.name or text(t.values)) + _shape(t.shape)


def _bounds(bounds: tuple[s.Bound, ...]) -> str:
    return ", ".join(f" {b.op} {text(b.value, RANGED)}" for b in bounds)


def _after(word: str, e: s.Expr | None) -> str:
    return "" if e is None else f" {word} {text(e)}"


def statement(x: s.Statement) -> str:
    """A statement's text with its end."""
    match x:
        case SubjectTo():
            return "subject to"
        case Options():
            return "options {" + "".join(_keyword(k) + "; " for k in x.items) + "}"
    return _statement(x) + ";"


def _statement(x: s.Statement) -> str:
    match x:
        case ModelDecl():
            return f"model {x.name}"
        case Include():
            return f'include "{x.path}"'
        case DimDecl():
            return "dim " + ",".join(x.names)
        case SetDecl():
            return f"set {x.name}{_family(x.family)}{_after('=', x.value)}"
        case IndexDecl():
            return "index " + ", ".join(f"{b.name} {b.kind} {text(b.domain, RANGED)}" for b in x.binders)
        case DataDecl():
            fields = ", ".join(f"{f.name}:{_type(f.type)}" for f in x.fields or ())
            return f"data {x.name}{_family(x.family)}: " + (f"table({fields})" if x.fields else _type(x.type))
        case ParamDecl():
            return f"param {x.name}{_shape(x.shape)}{_bounds(x.bounds)}{_after('default', x.default)}"
        case ConstDecl():
            return f"const {x.name}={text(x.value)}"
        case NetDecl():
            assume = " assume " + ", ".join(map(text, x.assume)) if x.assume else ""
            inputs, frozen = ", ".join(map(_type, x.inputs)), " frozen" if x.frozen else ""
            return f"net {x.name}: {inputs} -> {_type(x.output)}{frozen}{assume}"
        case VarDecl():
            return f"var {x.name}{_shape(x.shape)}{_bounds(x.bounds)}{_after('=', x.value)}"
        case DefDecl():
            return f"def {x.name}({','.join(x.params)}) = {text(x.body)}"
        case LetDecl():
            return f"let {x.name}{_family(x.family)} = {text(x.value)}"
        case Objective():
            return f"{x.sense} {x.label + ': ' if x.label else ''}{text(x.body)}"
        case Constraint():
            options = " with " + ", ".join(map(_keyword, x.options)) if x.options else ""
            return f"{x.label + _family(x.family) + ': ' if x.label else ''}{text(x.relation)}{options}"
    raise TypeError(x)


def model_text(model: s.Model, seed: int) -> str:
    """A model's text with comments, line ends and spaces strewn in."""
    random = Random(seed)
    gaps = ("\n", "\n\n\n", "  # a note; with ] things\n", "\n# own line\n", " ", "\n  \n\t# far\n\n# near\n")
    return "".join(statement(x) + random.choice(gaps) for x in model.statements)
