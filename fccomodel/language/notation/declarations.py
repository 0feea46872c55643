"""Declarations: what becomes a statement of a model under the name of the attribute that it is
assigned to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import comprehensions, places
from fccomodel.language.notation.sets import Once, Set, iterate
from fccomodel.language.notation.terms import Declaration, Formula, Part, Term, fail, made, node_of
from fccomodel.language.notation.words import Word, call
from fccomodel.language.statements.const import ConstDecl
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.dim import DimDecl
from fccomodel.language.statements.indices import IndexDecl
from fccomodel.language.statements.net import NetDecl
from fccomodel.language.statements.param import ParamDecl
from fccomodel.language.statements.sets import SetDecl
from fccomodel.language.statements.var import VarDecl

#: From a name and the place of the assignment to the statement.
Make = Callable[[str, Span], syntax.Statement]
_COMPARISONS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "domain": "in"}


class Number(Formula):
    """A number or an array of the model: a param, a variable, data, a constant, a ``let``, an index;
    families by ``rate[t]``."""

    __slots__ = ()

    def __init__(self, kind: str, make: Make | None = None, doc: str = "", uses: Iterable[Any] = ()):
        super().__init__(None, declaration=Declaration(kind=kind, make=make, doc=doc, uses=tuple(uses)))


class Dim(Formula):
    """A size, which data decide; ``for i in m.d`` goes over 1, 2, ..., d."""

    __slots__ = ()

    def __init__(self, make: Make | None = None, doc: str = ""):
        super().__init__(None, declaration=Declaration(kind="dim", make=make, doc=doc))

    def __iter__(self) -> Any:
        at = places.here()
        return Once(Set(node_of(self, at), self._owner), at)

    def where(self, condition: Callable[[Term], Any]) -> Set:
        """The places under a condition: ``(c[i] <= c[i + 1] for i in m.d.where(lambda i: i < m.d))``."""
        return iterate(self).where(condition)


class NamedSet(Set):
    """A set under a name: labels, a table, numbers, rows; a family of them by ``N[i]``."""

    __slots__ = ()

    def __init__(self, kind: str, make: Make | None = None, doc: str = "", uses: Iterable[Any] = ()):
        super().__init__(None)
        self._declaration = Declaration(kind=kind, make=make, doc=doc, uses=tuple(uses))


class Net(Part):
    """A torch module: ``s(w, z.x)`` is its value for the parameters w."""

    __slots__ = ()

    def __init__(self, make: Make | None = None, doc: str = "", uses: Iterable[Any] = ()):
        super().__init__(None, declaration=Declaration(kind="net", make=make, doc=doc, uses=tuple(uses)))

    def __call__(self, *args: Any, **keywords: Any) -> Term:
        at = places.here()
        node = node_of(self, at)
        assert isinstance(node, syntax.Name)
        term = call(node.id, args, keywords, at, semicolon=1 if len(args) > 1 else None)
        term._owner = term._owner or self._owner
        return term


class Function(Formula):
    """A function of the model, kept as ``def``; ``h[k](w)`` gives the declared index k by a subscript."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, declaration=Declaration(kind="define"))

    def __call__(self, *args: Any, **keywords: Any) -> Term:
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
        nodes = [node_of(self, at), *(node_of(part, at) for part in parts)]
        if not all(isinstance(node, syntax.Name) for node in nodes):
            fail(
                errors.argument(
                    "h[k]",
                    "A function's subscripts are declared indices.",
                    "give it as an argument: `h(w, k)`",
                ),
                at,
            )
        subscripted = Function()
        subscripted._call("_".join(node.id for node in nodes if isinstance(node, syntax.Name)), self._owner)
        return subscripted


# -------------------------------------------------------------------------------------------- types
class Type(Part):
    """``real`` or ``integer`` (the language's ``int``), with a shape by square brackets: ``real[m.d]``."""

    __slots__ = ("_name", "_shape", "_span")
    _sort = "type"

    def __init__(self, name: str, shape: tuple[Any, ...] = (), span: Span = NOWHERE):
        super().__init__(None)
        self._name, self._shape, self._span = name, shape, span

    def __getitem__(self, shape: Any) -> Type:
        return Type(self._name, shape if isinstance(shape, tuple) else (shape,), places.here())

    def __repr__(self) -> str:
        return self._name


real = Type("real")
integer = Type("int")


def type_of(value: Any, at: Span) -> syntax.TypeExpr:
    """The type that stands for a column, an array, or an end of a net."""
    if isinstance(value, Type):
        span = at if value._span is NOWHERE else value._span
        return syntax.TypeExpr(
            name=value._name, shape=tuple(node_of(part, at) for part in value._shape), span=span
        )
    if value is int or value is float:
        return syntax.TypeExpr(name="int" if value is int else "real", span=at)
    if isinstance(value, Part | set | frozenset):
        node = node_of(value, at)
        shape: tuple[syntax.Expr, ...] = ()
        if isinstance(node, syntax.Index):
            shape, node = node.items, node.obj
        if isinstance(node, syntax.Name):
            return syntax.TypeExpr(name=node.id, shape=shape, span=at)
        if isinstance(node, syntax.SetLiteral):
            return syntax.TypeExpr(values=node, shape=shape, span=at)
    fail(
        errors.argument(
            "a column",
            "A column is `real`, `integer`, `real[m.d]`, a set of labels, or listed values.",
            "write `x=real[m.d]`, `y={0, 1}`, `g=m.G`",
        ),
        at,
    )


# ------------------------------------------------------------------------------------- declarations
def dim(*, doc: str = "") -> Dim:
    """A size that the data decide: ``m.d = dim()``. ``for i in m.d`` goes over 1, ..., d."""
    return Dim(lambda name, at: DimDecl(names=(name,), span=at), doc)


def labels(*, doc: str = "") -> NamedSet:
    """A set of labels that come with the data: ``m.G = labels()``."""
    return NamedSet("labels", lambda name, at: SetDecl(name=name, span=at), doc)


def grid(low: Any, high: Any, *, by: Any = None) -> Set:
    """The numbers low, low + by, ..., high, both ends included, ``by`` being 1 where it is left out:
    ``grid(-3, 3, by=0.5)``."""
    ends = (low, high) if by is None else (low, high, by)
    term = made(
        lambda *n: syntax.Range(low=n[0], high=n[1], step=n[2] if len(n) > 3 else None, span=n[-1]), *ends
    )
    return Set(term._node, term._owner, size=term._size)


def values(*members: Any) -> Set:
    """The set of these numbers, or of these labels, in this order: ``m.K = values("low", "high")``."""
    if not members:
        fail(
            errors.argument(
                "values", "A set has members.", "write `labels()` for labels that come with the data"
            )
        )
    term = made(lambda *n: syntax.SetLiteral(items=n[:-1], span=n[-1]), *members)
    return Set(term._node, term._owner, size=term._size)


def table(columns: Mapping[str, Any] | None = None, /, *, doc: str = "", **more: Any) -> NamedSet:
    """Rows of data: ``m.D = table(x=real[m.d], y={0, 1}, g=m.G)``, without the data, which ``bind``
    brings.

    columns  by name: ``real``, ``integer``, ``real[m.d]``, a set of labels, listed values; as a
             mapping where Python cannot write
             a name as a keyword
    """
    at = places.here()
    given = {**(columns or {}), **more}
    if not given:
        fail(errors.argument("table", "A table has columns.", "write `table(x=real[m.d], y={0, 1})`"), at)
    fields = tuple(
        syntax.FieldDecl(name=name, type=type_of(kind, at), span=at) for name, kind in given.items()
    )
    return NamedSet(
        "table",
        lambda name, at: DataDecl(name=name, fields=fields, span=at),
        doc,
        _mentioned(given.values()),
    )


def _mentioned(parts: Iterable[Any]) -> list[Any]:
    """The parts of the model in arguments, those inside types too."""
    return [
        inner
        for part in parts
        for inner in (part._shape if isinstance(part, Type) else (part,))
        if isinstance(inner, Part)
    ]


def array(*shape: Any, doc: str = "") -> Number:
    """Numbers that are data: ``m.c = array(m.G)`` has one for each label, ``array()`` is one number;
    ``array(integer[m.d])`` gives a type."""
    at = places.here()
    typed = len(shape) == 1 and isinstance(shape[0], Type | set | frozenset | type)
    kind = type_of(shape[0] if typed else real[shape] if shape else real, at)
    return Number("array", lambda name, at: DataDecl(name=name, type=kind, span=at), doc, _mentioned(shape))


def param(*shape: Any, default: Any = None, doc: str = "", **bounds: Any) -> Number:
    """A number that may change from solve to solve: ``m.mu = param(ge=0, default=0.01)``.

    shape    sizes of a vector or a matrix        default  its value where ``bind`` gives none
    bounds   ``ge``, ``gt``, ``le``, ``lt``: >=, >, <=, <; several of a kind as a list
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


def const(value: Any, *, doc: str = "") -> Number:
    """A number that is baked in: ``m.p = const(4)``."""
    node = node_of(value, places.here())
    return Number(
        "const", lambda name, at: ConstDecl(name=name, value=node, span=at), doc, _mentioned((value,))
    )


def var(*shape: Any, doc: str = "", **bounds: Any) -> Number:
    """Decision variables: ``m.w = var(m.d)``, ``m.x = var(m.A, domain=simplex(m.A))``, ``m.t =
    var(ge=0)``.

    shape   dims, sets, whole numbers; none: a single number
    bounds  ``ge``, ``le``: numbers or arrays; ``domain``: a simple set, or a list of them, on which
            it is projected
    """
    at = places.here()
    sizes, limits = _sizes(shape, at), _bounds("var", bounds, at)
    return Number(
        "var",
        lambda name, at: VarDecl(name=name, shape=sizes, bounds=limits, span=at),
        doc,
        _mentioned((*shape, *bounds.values())),
    )


def net(input: Any, output: Any, *, assume: Mapping[str, Any] | Iterable[str] = (), doc: str = "") -> Net:
    """A torch module from ``input`` to ``output``: ``m.s = net(real[m.d], real)``; ``bind`` brings the
    module.

    assume  what its user vouches for: names, or a mapping to constants: ``{"smooth": True, "lipschitz": 2}``
    """
    at = places.here()
    ends = type_of(input, at), type_of(output, at)
    claims = assume.items() if isinstance(assume, Mapping) else ((name, True) for name in assume)
    assumed = tuple(_assumption(name, constant, at) for name, constant in claims)
    return Net(
        lambda name, at: NetDecl(name=name, input=ends[0], output=ends[1], assume=assumed, span=at),
        doc,
        _mentioned((input, output)),
    )


def _assumption(name: str, constant: Any, at: Span) -> syntax.Expr:
    if constant is True:
        return syntax.Name(id=name, span=at)
    if isinstance(constant, tuple):
        parts = constant
    else:
        parts = (constant,)
    return syntax.Call(func=name, args=tuple(node_of(part, at) for part in parts), span=at)


def params(of: Net, *, doc: str = "") -> Number:
    """The parameters of a net as variables: ``m.w = params(m.s)``."""
    at = places.here()
    value = syntax.Call(func="params", args=(node_of(of, at),), span=at)
    return Number("params", lambda name, at: VarDecl(name=name, value=value, span=at), doc, (of,))


def index(over: Any, *, doc: str = "") -> Number:
    """A declared index: after ``m.i = index(m.P)`` and ``m.j = index(draw(m.N))``,
    ``mean[m.i](f(E[m.j](g(w, i, j))))`` is written ``mean_i f(E_j g(w, i, j))``."""
    at = places.here()
    kind, domain = indexed_by(over, at)

    def make(name: str, at: Span) -> IndexDecl:
        return IndexDecl(binders=(syntax.Binder(name=name, kind=kind, domain=domain, span=at),), span=at)

    return Number("index", make, doc, (over,))


def indexed_by(over: Any, at: Span) -> tuple[str, syntax.Expr]:
    """``in`` or ``~``, and the set of a declared index."""
    node = node_of(over, at)
    return (over._draw or "in") if isinstance(over, Set) else "in", node


def sampler(name: str, *args: Any, **keywords: Any) -> Set:
    """A distribution of your own: ``E(f(w, z) for z in sampler("demand", m.rate))``, and
    ``bind(samplers={"demand": function})`` where ``function(rng, n, *parameters)`` returns n draws,
    (n, *shape), by a NumPy generator. Steps choose among 100,000 of them, a report takes 20,000
    others."""
    term = call(name, args, keywords, places.here())
    return Set(term._node, term._owner, size=term._size)


def _sizes(shape: tuple[Any, ...], at: Span) -> tuple[syntax.Expr, ...]:
    return tuple(node_of(part, at) for part in shape)


def _bounds(kind: str, bounds: Mapping[str, Any], at: Span) -> tuple[syntax.Bound, ...]:
    found = []
    for name, value in bounds.items():
        if name not in _COMPARISONS:
            allowed = ", ".join(f"`{key}`" for key in _COMPARISONS)
            fail(
                errors.argument(
                    f"{kind}(..., {name}=...)",
                    f"Bounds are {allowed}.",
                    "write `ge=0` for `>= 0`, `domain=simplex(m.A)` for a set",
                ),
                at,
            )
        for part in value if isinstance(value, list | tuple) else (value,):
            found.append(syntax.Bound(op=_COMPARISONS[name], value=node_of(part, at), span=at))
    return tuple(found)


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
