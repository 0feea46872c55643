"""Declarations in Python, which become statements under the names that they are assigned to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import comprehensions, places
from fccomodel.language.notation.sets import Set, SymbolicIterator
from fccomodel.language.notation.terms import (
    CompoundFormula,
    Declaration,
    Formula,
    PythonSyntax,
    bound_of,
    fail,
    made,
    node_of,
)
from fccomodel.language.notation.words import Word, call
from fccomodel.language.statements.const import ConstDecl
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.dim import DimDecl
from fccomodel.language.statements.indices import IndexDecl
from fccomodel.language.statements.net import NetDecl
from fccomodel.language.statements.param import ParamDecl
from fccomodel.language.statements.sets import SetDecl
from fccomodel.language.statements.var import VarDecl

#: From a name and the place of its assignment to the statement.
Make = Callable[[str, Span], syntax.Statement]
#: The signs of bounds, by the names of their arguments.
_COMPARISONS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "domain": "in"}


class Number(Formula):
    """A number or an array of the model: a param, a variable, data, a constant, a ``let``, an index.

    A member of a family is ``rate[t]``.
    """

    __slots__ = ()

    def __init__(self, kind: str, make: Make | None = None, doc: str = "", uses: Iterable[Any] = ()):
        super().__init__(None, declaration=Declaration(kind=kind, make=make, doc=doc, uses=tuple(uses)))

    def _has_columns(self) -> bool:
        return self._kind == "index"

    def __iter__(self) -> Any:
        if self._kind != "const":
            return super().__iter__()
        at = places.here()
        return SymbolicIterator(Set(node_of(self, at), self._owner), at)


class Dim(Formula):
    """A size that the data decide; ``for i in m.d`` goes over 1, 2, ..., d."""

    __slots__ = ()

    def __init__(self, make: Make | None = None, doc: str = ""):
        super().__init__(None, declaration=Declaration(kind="dim", make=make, doc=doc))

    def _has_columns(self) -> bool:
        return False

    def __iter__(self) -> Any:
        at = places.here()
        return SymbolicIterator(Set(node_of(self, at), self._owner), at)

    def where(self, condition: Callable[[CompoundFormula], Any]) -> Set:
        """The places under a condition: ``(c[i] <= c[i + 1] for i in m.d.where(lambda i: i < m.d))``."""
        return self._set().where(condition)

    def by(self, weight: Callable[[CompoundFormula], Any]) -> Set:
        """The places, to be drawn by weight: ``E(c[k] for k in m.d.by(lambda k: p[k]))``."""
        return self._set().by(weight)

    def _set(self) -> Set:
        """The places as a set."""
        return Set(node_of(self, places.here()), self._owner)


class NamedSet(Set):
    """A named set: labels, a table, numbers, rows; a member of a family is ``N[i]``."""

    __slots__ = ()

    def __init__(self, kind: str, make: Make | None = None, doc: str = "", uses: Iterable[Any] = ()):
        super().__init__(None)
        self._declaration = Declaration(kind=kind, make=make, doc=doc, uses=tuple(uses))


class Net(PythonSyntax):
    """A torch module: ``s(w, z.x)`` is its value for the parameters w. A frozen net is called as
    ``t(z.x)``.
    """

    __slots__ = ("_frozen",)

    def __init__(
        self, make: Make | None = None, doc: str = "", uses: Iterable[Any] = (), *, frozen: bool = False
    ):
        super().__init__(None, declaration=Declaration(kind="net", make=make, doc=doc, uses=tuple(uses)))
        self._frozen = frozen

    def __call__(self, *args: Any, **keywords: Any) -> CompoundFormula:
        at = places.here()
        node = node_of(self, at)
        assert isinstance(node, syntax.Name)
        apart = len(args) > 1 and not self._frozen
        term = call(node.id, args, keywords, at, semicolon=1 if apart else None)
        term._owner = term._owner or self._owner
        return term


class Function(Formula):
    """A function of the model, a ``def``; ``h[k](w)`` gives the declared index k as a subscript."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, declaration=Declaration(kind="define"))

    def _has_columns(self) -> bool:
        return False

    def __call__(self, *args: Any, **keywords: Any) -> CompoundFormula:
        at = places.here()
        node = node_of(self, at)
        assert isinstance(node, syntax.Name)
        term = call(node.id, args, keywords, at)
        term._owner = term._owner or self._owner
        return term

    def __getitem__(self, items: Any) -> Function:  # type: ignore[override]
        at = places.here()
        if isinstance(items, tuple):
            parts = items
        else:
            parts = (items,)
        nodes = [node_of(part, at) for part in (self, *parts)]
        names = [node.id for node in nodes if isinstance(node, syntax.Name)]
        if len(names) < len(nodes):
            reason = "A function's subscripts are declared indices."
            fail(errors.argument("h[k]", reason, "give it as an argument: `h(w, k)`"), at)
        subscripted = Function()
        subscripted._call("_".join(names), self._owner)
        return subscripted


# -------------------------------------------------------------------------------------------- types
class Type(PythonSyntax):
    """``real`` or ``integer`` (the language's ``int``), with a shape by square brackets: ``real[m.d]``."""

    __slots__ = ("_limits", "_name", "_shape", "_span")
    _sort = "type"

    def __init__(
        self,
        name: str,
        shape: tuple[Any, ...] = (),
        span: Span = NOWHERE,
        limits: tuple[syntax.Bound, ...] = (),
    ):
        super().__init__(None)
        self._name, self._shape, self._span, self._limits = name, shape, span, limits

    def __getitem__(self, shape: Any) -> Type:
        return Type(self._name, shape if isinstance(shape, tuple) else (shape,), places.here())

    def __call__(self, **bounds: Any) -> Type:
        """The type with bounds: ``real(ge=0)``, ``real[m.d](ge=0, le=1)``, ``real[m.n, m.n](domain=psd)``."""
        at = places.here()
        return Type(self._name, self._shape, at, _bounds("real", bounds, at))

    def _limit(self, at: Span) -> syntax.Bound | None:
        """The bounds as one, as ``in [low, high]`` where they are two."""
        if not self._limits:
            return None
        if [limit.op for limit in self._limits] == [">=", "<="]:
            ends = syntax.Vector(items=tuple(limit.value for limit in self._limits), span=at)
            return syntax.Bound(op="in", value=ends, span=at)
        if len(self._limits) > 1:
            reason = "Numbers have one bound, or the ends `ge` and `le` of an interval."
            fail(errors.argument("real(...)", reason, "write `real(ge=0, le=1)`"), at)
        (limit,) = self._limits
        if isinstance(limit.value, syntax.Call) and not limit.value.args:
            named = syntax.Name(id=limit.value.func, span=limit.value.span)
            return syntax.Bound(op=limit.op, value=named, span=limit.span)
        return limit

    def __repr__(self) -> str:
        return self._name


#: The type of numbers.
real = Type("real")
#: The type of whole numbers.
integer = Type("int")


def type_of(value: Any, at: Span) -> syntax.TypeExpr:
    """The type of a column, of an array, or of an end of a net."""
    if isinstance(value, Type):
        span = at if value._span is NOWHERE else value._span
        sizes = tuple(node_of(part, at) for part in value._shape)
        return syntax.TypeExpr(name=value._name, shape=sizes, limit=value._limit(span), span=span)
    if value is int:
        return syntax.TypeExpr(name="int", span=at)
    if value is float:
        return syntax.TypeExpr(name="real", span=at)
    if isinstance(value, PythonSyntax | set | frozenset):
        node = node_of(value, at)
        shape: tuple[syntax.Expr, ...] = ()
        if isinstance(node, syntax.Index):
            shape, node = node.items, node.obj
        if isinstance(node, syntax.Name):
            return syntax.TypeExpr(name=node.id, shape=shape, span=at)
        if isinstance(node, syntax.SetLiteral):
            return syntax.TypeExpr(values=node, shape=shape, span=at)
    reason = "A column is `real`, `integer`, `real[m.d]`, a set of labels, or listed values."
    fail(errors.argument("a column", reason, "write `x=real[m.d]`, `y={0, 1}`, `g=m.G`"), at)


# ------------------------------------------------------------------------------------- declarations
def dim(*, doc: str = "") -> Dim:
    """A size that the data decide: ``m.d = dim()``. ``for i in m.d`` goes over 1, ..., d."""
    return Dim(lambda name, at: DimDecl(names=(name,), span=at), doc)


def labels(*, doc: str = "") -> NamedSet:
    """A set of labels that come with the data: ``m.G = labels()``."""
    return NamedSet("labels", lambda name, at: SetDecl(name=name, span=at), doc)


def grid(low: Any, high: Any, *, by: Any = None) -> Set:
    """The numbers low, low + by, ..., high, both ends included: ``grid(-3, 3, by=0.5)``.

    by  the step, 1 by default
    """
    if by is None:
        term = made(lambda first, last, at: syntax.Range(low=first, high=last, span=at), low, high)
    else:
        term = made(
            lambda first, last, step, at: syntax.Range(low=first, high=last, step=step, span=at),
            low,
            high,
            by,
        )
    return Set(term._node, term._owner, size=term._size)


def values(*members: Any) -> Set:
    """The set of these numbers, or of these labels, in this order: ``m.K = values("low", "high")``."""
    if not members:
        fix = "write `labels()` for labels that come with the data"
        fail(errors.argument("values", "A set has members.", fix))
    term = made(lambda *n: syntax.SetLiteral(items=n[:-1], span=n[-1]), *members)
    return Set(term._node, term._owner, size=term._size)


def table(columns: Mapping[str, Any] | None = None, /, *, doc: str = "", **more: Any) -> NamedSet:
    """Rows of data, which ``bind`` brings: ``m.D = table(x=real[m.d], y={0, 1}, g=m.G)``.

    columns  the columns as a mapping, for names that Python cannot write as keywords
    more     the type of each column: ``real``, ``integer``, ``real[m.d]``, a set of labels, or listed
             values
    doc      the comment above the statement
    """
    at = places.here()
    types = {**(columns or {}), **more}
    if not types:
        fail(errors.argument("table", "A table has columns.", "write `table(x=real[m.d], y={0, 1})`"), at)
    fields = tuple(
        syntax.FieldDecl(name=name, type=type_of(kind, at), span=at) for name, kind in types.items()
    )
    uses = _mentioned(types.values())
    return NamedSet("table", lambda name, at: DataDecl(name=name, fields=fields, span=at), doc, uses)


def _mentioned(parts: Iterable[Any]) -> list[Any]:
    """The parts of the model in arguments, including those inside types."""
    return [
        inner
        for part in parts
        for inner in (part._shape if isinstance(part, Type) else (part,))
        if isinstance(inner, PythonSyntax)
    ]


def array(*shape: Any, doc: str = "") -> Number:
    """Numbers that are data: ``m.c = array(m.G)`` has one for each label, ``array()`` is one number.

    ``array(integer[m.d])`` gives the type, which is ``real`` otherwise.
    """
    at = places.here()
    if len(shape) == 1 and isinstance(shape[0], Type | set | frozenset | type):
        kind = type_of(shape[0], at)
    elif shape:
        kind = type_of(real[shape], at)
    else:
        kind = type_of(real, at)
    return Number("array", lambda name, at: DataDecl(name=name, type=kind, span=at), doc, _mentioned(shape))


def param(*shape: Any, default: Any = None, doc: str = "", **bounds: Any) -> Number:
    """A number that may change from solve to solve: ``m.mu = param(ge=0, default=0.01)``.

    shape    the sizes of a vector or a matrix
    default  its value if ``bind`` gives none
    doc      the comment above the statement
    bounds   ``ge``, ``gt``, ``le``, ``lt`` for >=, >, <=, <; several of a kind as a list
    """
    at = places.here()
    sizes, limits = _sizes(shape, at), _bounds("param", bounds, at)
    if default is None:
        first = None
    else:
        first = node_of(default, at)
    return Number(
        "param",
        lambda name, at: ParamDecl(name=name, shape=sizes, bounds=limits, default=first, span=at),
        doc,
        _mentioned((*shape, *bounds.values(), default)),
    )


def _entries(value: Any, at: Span) -> syntax.Expr:
    """A formula, or a list or array of them as an array written out."""
    if not isinstance(value, PythonSyntax) and hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return syntax.Vector(items=tuple(_entries(entry, at) for entry in value), span=at)
    return node_of(value, at)


def const(value: Any, *, doc: str = "") -> Number:
    """A number that is baked in: ``m.p = const(4)``; ``for i in m.p`` goes over 1, ..., 4.

    value   a number, a formula of constants, or a list or array of numbers
    """
    node = _entries(value, places.here())
    return Number(
        "const", lambda name, at: ConstDecl(name=name, value=node, span=at), doc, _mentioned((value,))
    )


def var(*shape: Any, doc: str = "", start: Any = None, **bounds: Any) -> Number:
    """Decision variables: ``m.w = var(m.d)``, ``m.x = var(m.A, domain=simplex(m.A))``.

    shape   dims, sets, whole numbers; without any it is a single number
    doc     the comment above the statement
    start   where runs begin: numbers, an array of the model, or a distribution, ``normal(0, 1)``
    bounds  ``ge`` and ``le``, numbers or arrays; ``domain``, a simple set or a list of them, onto
            which solvers project
    """
    at = places.here()
    sizes, limits = _sizes(shape, at), _bounds("var", bounds, at)
    begins = None if start is None else _entries(start, at)
    return Number(
        "var",
        lambda name, at: VarDecl(name=name, shape=sizes, bounds=limits, start=begins, span=at),
        doc,
        _mentioned((*shape, *bounds.values(), start)),
    )


def net(
    input: Any,
    output: Any,
    *,
    frozen: bool = False,
    assume: Mapping[str, Any] | Iterable[str] = (),
    doc: str = "",
) -> Net:
    """A torch module, which ``bind`` brings: ``m.s = net(real[m.d], real)``.

    input   the type of its argument, or a tuple of the types of several
    output  the type of its value
    frozen  whether its weights stay as they are: it has no variable, and is called ``m.t(z.x)``
    assume  assumptions that you vouch for: names, or a mapping to constants such as
            ``{"smooth": True, "lipschitz": 2}``
    doc     the comment above the statement
    """
    at = places.here()
    shapes = input if isinstance(input, tuple) else (input,)
    inputs, gives = tuple(type_of(one, at) for one in shapes), type_of(output, at)
    claims = assume.items() if isinstance(assume, Mapping) else ((name, True) for name in assume)
    assumed = tuple(_assumption(name, constant, at) for name, constant in claims)
    return Net(
        lambda name, at: NetDecl(
            name=name, inputs=inputs, output=gives, frozen=frozen, assume=assumed, span=at
        ),
        doc,
        _mentioned((*shapes, output)),
        frozen=frozen,
    )


def _assumption(name: str, constant: Any, at: Span) -> syntax.Expr:
    if constant is True:
        return syntax.Name(id=name, span=at)
    if isinstance(constant, tuple):
        constants = constant
    else:
        constants = (constant,)
    return syntax.Call(func=name, args=tuple(node_of(part, at) for part in constants), span=at)


def params(of: Net, *, doc: str = "") -> Number:
    """The parameters of a net as variables: ``m.w = params(m.s)``."""
    at = places.here()
    value = syntax.Call(func="params", args=(node_of(of, at),), span=at)
    return Number("params", lambda name, at: VarDecl(name=name, value=value, span=at), doc, (of,))


def index(over: Any, *, doc: str = "") -> Number:
    """A declared index: ``m.i = index(m.P)``, ``m.j = index(draw(m.N))``.

    Then ``mean[m.i](f(E[m.j](g(w, i, j))))`` is written ``mean_i f(E_j g(w, i, j))``.
    """
    at = places.here()
    kind, domain = indexed_by(over, at)

    def make(name: str, at: Span) -> IndexDecl:
        """The statement."""
        return IndexDecl(binders=(syntax.Binder(name=name, kind=kind, domain=domain, span=at),), span=at)

    return Number("index", make, doc, (over,))


def indexed_by(over: Any, at: Span) -> tuple[str, syntax.Expr]:
    """The kind of a declared index, ``in`` or ``~``, and its set."""
    if isinstance(over, Set):
        return over._draw or "in", over._to_declare(at)
    return "in", node_of(over, at)


def sampler(name: str, *args: Any, **keywords: Any) -> Set:
    """A distribution of your own: ``E(f(w, z) for z in sampler("demand", m.rate))``.

    Give ``bind(samplers={"demand": function})``, where ``function(rng, n, *parameters)`` returns n draws
    as an array (n, *shape), made with a NumPy generator. Steps choose among 100,000 draws, a report
    takes 20,000 others.
    """
    term = call(name, args, keywords, places.here())
    return Set(term._node, term._owner, size=term._size)


def _sizes(shape: tuple[Any, ...], at: Span) -> tuple[syntax.Expr, ...]:
    return tuple(node_of(part, at) for part in shape)


def _bounds(kind: str, bounds: Mapping[str, Any], at: Span) -> tuple[syntax.Bound, ...]:
    """Bounds as syntax, by the names of their arguments."""
    limits = []
    for name, value in bounds.items():
        if name not in _COMPARISONS:
            allowed = ", ".join(f"`{key}`" for key in _COMPARISONS)
            fix = "write `ge=0` for `>= 0`, `domain=simplex(m.A)` for a set"
            fail(errors.argument(f"{kind}(..., {name}=...)", f"Bounds are {allowed}.", fix), at)
        for part in value if isinstance(value, list | tuple) else (value,):
            limits.append(syntax.Bound(op=_COMPARISONS[name], value=bound_of(part, at), span=at))
    return tuple(limits)


__all__ = [
    "Dim",
    "Function",
    "NamedSet",
    "Net",
    "Number",
    "Type",
    "Word",
    "array",
    "comprehensions",
    "const",
    "dim",
    "grid",
    "index",
    "indexed_by",
    "integer",
    "labels",
    "net",
    "param",
    "params",
    "real",
    "sampler",
    "table",
    "type_of",
    "values",
    "var",
]
