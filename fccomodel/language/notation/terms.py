"""Formulas in Python: operators make abstract syntax, each node with the place of its operator."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import printing, syntax, vocabulary
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import places

#: Parts of a formula written out.
MAX_PARTS = 50_000
#: How the name of an element begins until its statement is complete.
TOKEN = "\0"
#: Characters of a formula in a message.
SHOWN_LENGTH = 60
#: Words of the language for functions of Python, by their names there; empty where there is none.
_INSTEAD = {"fabs": "abs", "fsum": "sum", "pow": "", "round": "", "float": "", "int": "", "complex": ""}
#: Operators of the language for functions of numpy.
_NUMPY_OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "^",
    "matmul": "@",
}
#: Comparisons of the language for functions of numpy.
_NUMPY_COMPARISONS = {
    "less_equal": "<=",
    "less": "<",
    "greater_equal": ">=",
    "greater": ">",
    "equal": "==",
    "not_equal": "!=",
}
#: Reductions of numpy over an array, by the function that is reduced.
_NUMPY_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}
#: Words of the language for functions of numpy under other names.
_NUMPY_FUNCTIONS = {"absolute": "abs", "maximum": "max", "minimum": "min"}
_COUNT = itertools.count(1)


def token() -> str:
    """A name that no other element has."""
    return f"{TOKEN}{next(_COUNT)}"


def fail(diagnostic: Diagnostic, at: Span | None = None) -> NoReturn:
    """Raise a diagnostic about the caller's code."""
    raise places.refusal(at or places.here(), diagnostic) from None


class NoName(FccoError, AttributeError):
    """A name that a model or a formula does not have; ``hasattr`` and ``getattr`` understand the error."""


def absent(diagnostic: Diagnostic, at: Span | None = None) -> NoReturn:
    """Raise the error of a name that a model or a formula does not have."""
    error = places.refusal(at or places.here(), diagnostic)
    raise NoName(error.diagnostics, error.source) from None


def shown(node: syntax.Expr, at: Span | None = None) -> str:
    """A formula for a message: the Python code at a place, or else the text in the language."""
    text = ""
    if at is not None:
        text = " ".join(places.text(at).split())
    if not text:
        text = re.sub(rf"{TOKEN}\d+({TOKEN}\w+)?", "z", printing.expression(node))
    return _shortened(text)


def _shortened(text: str) -> str:
    """A text cut off to the length of a message."""
    if len(text) <= SHOWN_LENGTH:
        return text
    return text[: SHOWN_LENGTH - len("...")] + "..."


# ----------------------------------------------------------------------------------------- operands
def number(value: Any, at: Span) -> syntax.Expr:
    """A Python or numpy number as a literal."""
    if hasattr(value, "item"):
        value = value.item()
    if not math.isfinite(value):
        fail(errors.unfinished(str(value)), at)
    if isinstance(value, int):
        text = str(abs(value))
    else:
        text = re.sub(r"e([+-])0*", r"e\1", repr(abs(float(value)))).replace("e+", "e")
    literal = syntax.Number(value=float(abs(value)), text=text, span=at)
    if value < 0 or str(value)[0] == "-":
        return syntax.Unary(op="-", arg=literal, span=at)
    return literal


def bound_of(value: Any, at: Span) -> syntax.Expr:
    """The syntax of a bound, which may be infinite."""
    if isinstance(value, PythonSyntax) or not is_number(value) or not math.isinf(value):
        return node_of(value, at)
    endless = syntax.Name(id="inf", span=at)
    if value > 0:
        return endless
    return syntax.Unary(op="-", arg=endless, span=at)


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or numpy; truth values are not."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    return isinstance(value, int | float) and not isinstance(value, bool)


def node_of(value: Any, at: Span) -> syntax.Expr:
    """The syntax of a formula, a set, a number, a text, or a Python set of numbers or texts."""
    node = getattr(value, "_node", None)
    if isinstance(node, syntax.Expr) and isinstance(value, PythonSyntax):
        return value._syntax()
    if isinstance(value, PythonSyntax):
        fail(errors.without_name(value._kind), at)
    if is_number(value):
        return number(value, at)
    if isinstance(value, str):
        if '"' in value or "\n" in value or "\r" in value:
            fail(errors.not_an_operand("a text with a quote or a line break"), at)
        return syntax.String(value=value, span=at)
    if isinstance(value, set | frozenset):
        return members(value, at)
    if isinstance(value, slice) and value == slice(None):
        return syntax.Whole(span=at)
    fail(errors.not_an_operand(described(value)), at)


def members(value: Iterable[Any], at: Span) -> syntax.SetLiteral:
    """A Python set as ``{a, b}``, in ascending order."""
    try:
        ordered = sorted(value)
    except TypeError:
        reason = "A set of Python has no order, so that its members are numbers, or texts."
        fail(errors.argument("{...}", reason, "write `values(a, b)`"), at)
    if not ordered:
        fail(errors.argument("set()", "A set has members.", "write `{0, 1}`"), at)
    return syntax.SetLiteral(items=tuple(node_of(item, at) for item in ordered), span=at)


def described(value: Any) -> str:
    """The type of a Python value, for a message."""
    kind = type(value)
    if value is None:
        return "`None`"
    if kind.__module__ == "builtins":
        return f"a `{kind.__name__}`"
    return f"a `{kind.__module__.partition('.')[0]}.{kind.__name__}`"


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A statement without its name, which an assignment gives.

    kind  the function that made it: ``param``, ``var``, ...
    make  from the name and the place of the assignment to the statement
    doc   the comment above it
    uses  the parts of the model that it mentions
    """

    kind: str
    make: Callable[[str, Span], syntax.Statement] | None = None
    doc: str = ""
    uses: tuple[Any, ...] = ()


class PythonSyntax:
    """Syntax in Python. It has no public attributes of its own, since attributes are columns.

    _node         the syntax, or None before it has a name
    _owner        the model whose names are in it, or None without names
    _size         the number of its parts
    _declaration  the statement that waits for a name, if it is one
    """

    __slots__ = ("_node", "_owner", "_size", "_declaration", "__weakref__")
    _sort = "part"

    def __init__(
        self,
        node: syntax.Expr | None,
        owner: Any = None,
        size: int = 1,
        declaration: Declaration | None = None,
    ):
        self._node = node
        self._owner = owner
        self._size = size
        self._declaration = declaration

    @property
    def _kind(self) -> str:
        if self._declaration is None:
            return self._sort
        return self._declaration.kind

    def _call(self, name: str, model: Any) -> None:
        """Take a name in a model."""
        self._node, self._owner = syntax.Name(id=name, span=NOWHERE), model

    def _syntax(self) -> syntax.Expr:
        """The syntax of the part in a formula."""
        assert self._node is not None
        return self._node

    def _column(self, name: str, row: syntax.Expr) -> CompoundFormula:
        if name.startswith("_"):
            raise AttributeError(name)
        return CompoundFormula(
            syntax.Field(obj=row, name=name, span=places.here()), self._owner, self._size + 1
        )

    def __repr__(self) -> str:
        if self._node is None:
            return f"<{self._kind}>"
        return shown(self._syntax())

    def __call__(self, *_: Any, **__: Any) -> Any:
        fail(errors.no_function(repr(self), vocabulary.SET_METHODS))

    def __copy__(self) -> PythonSyntax:
        return self

    def __deepcopy__(self, memo: Any) -> PythonSyntax:
        return self


def made(build: Any, *parts: Any, at: Span | None = None) -> CompoundFormula:
    """A formula made of parts; ``build`` makes its node from their nodes and the place."""
    at = at or places.here()
    nodes = [node_of(part, at) for part in parts]
    return CompoundFormula(build(*nodes, at), owner(parts, at), size_of(parts, at))


def size_of(parts: Iterable[Any], at: Span) -> int:
    """The number of parts of a formula made of these; raises FccoError if there are too many."""
    size = 1 + sum(part._size if isinstance(part, PythonSyntax) else 1 for part in parts)
    if size > MAX_PARTS:
        fail(errors.too_large(MAX_PARTS), at)
    return size


def owner(parts: Iterable[Any], at: Span) -> Any:
    """The model that has the names in all parts, or None without names; raises FccoError if none has."""
    models: list[Any] = []
    for part in parts:
        model = part._owner if isinstance(part, PythonSyntax) else None
        if model is not None and all(model is not known for known in models):
            models.append(model)
    for model in models:
        if all(model._has_names_of(other) for other in models):
            return model
    if models:
        fail(errors.another_model(*(m._title for m in models[:2])), at)
    return None


def _binary(op: str, left: Any, right: Any) -> CompoundFormula:
    return made(lambda a, b, at: syntax.Binary(op=op, left=a, right=b, span=at), left, right)


def compared(*parts: Any) -> CompoundFormula:
    """``a < b <= c`` of operands and operators in turn."""
    ops = tuple(parts[1::2])
    return made(lambda *nodes: syntax.Compare(operands=nodes[:-1], ops=ops, span=nodes[-1]), *parts[::2])


class Formula(PythonSyntax):
    """A formula of the model: a number, a condition, or an element, whose attributes are its columns.

    No class of operands derives from another class of operands: Python would ask the derived one
    first, and turn ``a <= b`` round.
    """

    __slots__ = ()
    _sort = "formula"

    def __getattr__(self, name: str) -> CompoundFormula:
        if name.startswith("_"):
            raise AttributeError(name)
        node = node_of(self, places.here())
        if not self._has_columns():
            absent(errors.no_attribute(repr(self), name, self._kind))
        return self._column(name, node)

    def _has_columns(self) -> bool:
        """Whether the formula may be an element of a set: it is a name alone."""
        return isinstance(self._node, syntax.Name)

    def __getitem__(self, items: Any) -> CompoundFormula:
        if isinstance(items, tuple):
            parts = items
        else:
            parts = (items,)
        if any(isinstance(part, slice) and part != slice(None) for part in parts):
            fail(
                errors.no_operator("[a:b]", "write the entries from a to b, which count, as `v[grid(a, b)]`")
            )
        return made(lambda obj, *rest: syntax.Index(obj=obj, items=rest[:-1], span=rest[-1]), self, *parts)

    # ----------------------------------------------------------------------------------- arithmetic
    def __add__(self, other: Any) -> CompoundFormula:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Formula:
        if isinstance(other, int) and other == 0:
            return self
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> CompoundFormula:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> CompoundFormula:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> CompoundFormula:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> CompoundFormula:
        return _binary("*", other, self)

    def __truediv__(self, other: Any) -> CompoundFormula:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Any) -> CompoundFormula:
        return _binary("/", other, self)

    def __matmul__(self, other: Any) -> CompoundFormula:
        return _binary("@", self, other)

    def __rmatmul__(self, other: Any) -> CompoundFormula:
        return _binary("@", other, self)

    def __pow__(self, other: Any) -> CompoundFormula:
        return _binary("^", self, other)

    def __rpow__(self, other: Any) -> CompoundFormula:
        return _binary("^", other, self)

    def __neg__(self) -> CompoundFormula:
        return made(lambda a, at: syntax.Unary(op="-", arg=a, span=at), self)

    def __pos__(self) -> CompoundFormula:
        return made(lambda a, at: syntax.Unary(op="+", arg=a, span=at), self)

    def __abs__(self) -> CompoundFormula:
        return made(lambda a, at: syntax.Call(func="abs", args=(a,), span=at), self)

    # ----------------------------------------------------------------------------------- conditions
    def __le__(self, other: Any) -> CompoundFormula:
        return compared(self, "<=", other)

    def __lt__(self, other: Any) -> CompoundFormula:
        return compared(self, "<", other)

    def __ge__(self, other: Any) -> CompoundFormula:
        return compared(self, ">=", other)

    def __lshift__(self, other: Any) -> CompoundFormula:
        return compared(self, "<<", other)

    def __rlshift__(self, other: Any) -> CompoundFormula:
        return compared(other, "<<", self)

    def __rshift__(self, other: Any) -> CompoundFormula:
        return compared(self, ">>", other)

    def __rrshift__(self, other: Any) -> CompoundFormula:
        return compared(other, ">>", self)

    def __gt__(self, other: Any) -> CompoundFormula:
        return compared(self, ">", other)

    def __eq__(self, other: Any) -> CompoundFormula:  # type: ignore[override]
        return compared(self, "==", other)

    def __ne__(self, other: Any) -> CompoundFormula:  # type: ignore[override]
        return compared(self, "!=", other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> CompoundFormula:
        return _binary("and", self, other)

    def __rand__(self, other: Any) -> CompoundFormula:
        return _binary("and", other, self)

    def __or__(self, other: Any) -> CompoundFormula:
        return _binary("or", self, other)

    def __ror__(self, other: Any) -> CompoundFormula:
        return _binary("or", other, self)

    def __invert__(self) -> CompoundFormula:
        return made(lambda a, at: syntax.Unary(op="not", arg=a, span=at), self)

    # -------------------------------------------------------------- operations that formulas lack
    def __bool__(self) -> bool:
        at = places.here()
        node = places.construct(at)
        if node is None:
            kind = ""
        else:
            kind = type(getattr(node, "op", node)).__name__
        fail(errors.truth_value(kind, shown(self._syntax(), at)), at)

    def __contains__(self, item: Any) -> bool:
        fail(errors.truth_value("In", shown(self._syntax())))

    def __iter__(self) -> Any:
        fail(errors.unpacked(shown(self._syntax())))

    def __len__(self) -> int:
        fix = "the size of a set is `sum(1 for k in K)`, that of a dim its name"
        fail(errors.no_number("length", shown(self._syntax()), fix))

    def _not_a_number(self, *_: Any) -> Any:
        at = places.here()
        called = re.match(r"[\w.]+(?=\()", places.text(at))
        if called:
            function = called[0]
        else:
            function = "a function of Python"
        word = function.rpartition(".")[2]
        if word in _INSTEAD:
            word = _INSTEAD[word]
        elif word not in vocabulary.names():
            word = ""
        fail(errors.foreign_function(function, word, shown(self._syntax())), at)

    __float__ = __int__ = __complex__ = __index__ = __round__ = __trunc__ = __floor__ = __ceil__ = (
        _not_a_number
    )

    def _no_operator(self, other: Any, *_: Any) -> Any:
        text = places.text(places.here())
        op = next((op for op in ("^", "//", "%", "<<", ">>") if op in text), "this operator")
        if op == "^":
            fix = "write a power as `u ** 2`"
        else:
            fix = "write it with the others"
        fail(errors.no_operator(op, fix))

    __xor__ = __rxor__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __divmod__ = _no_operator

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **_: Any) -> Any:
        """numpy's numbers take part in formulas; its arrays and functions do not."""
        name = ufunc.__name__
        if method == "__call__" and len(inputs) == 2:
            if name in _NUMPY_OPERATORS:
                return _binary(_NUMPY_OPERATORS[name], *inputs)
            if name in _NUMPY_COMPARISONS:
                return compared(inputs[0], _NUMPY_COMPARISONS[name], inputs[1])
        word = _NUMPY_FUNCTIONS.get(name, name)
        if method == "reduce":
            name = word = _NUMPY_REDUCTIONS.get(name, name)
        if word not in vocabulary.names():
            word = ""
        fail(errors.foreign_function(f"numpy.{name}", word, shown(self._syntax())))

    __array__ = _not_a_number


class CompoundFormula(Formula):
    """A formula made of others."""

    __slots__ = ()


def literal(value: float | str) -> CompoundFormula:
    """A number or a text as a formula: ``literal(2) * 3`` is written ``2 * 3``, but ``2 * 3`` is 6 in Python.

    >>> literal(0.5) <= w  # doctest: +SKIP
    """
    return made(lambda a, at: a, value)


def between(low: Any, value: Any, high: Any) -> CompoundFormula:
    """``low <= value <= high``, as a constraint or a condition: Python cannot chain comparisons of formulas.

    >>> m.subject_to(band=between(0, E(score(z.x) for z in D), 1))  # doctest: +SKIP
    """
    return compared(low, "<=", value, "<=", high)


def if_else(condition: Any, yes: Any, no: Any) -> CompoundFormula:
    """``if condition then yes else no``: a choice by data and indices, not by variables.

    >>> m.minimize(E(if_else(z.y == 1, 5 * loss(z), loss(z)) for z in D))  # doctest: +SKIP
    """
    return made(lambda c, a, b, at: syntax.Choice(condition=c, yes=a, no=b, span=at), condition, yes, no)


#: The signs of comparisons; ``<<`` and ``>>`` are those of symmetric matrices.
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">", "<<", ">>")


def chain(first: Any, *rest: Any) -> CompoundFormula:
    """Comparisons one after the other, operands and operators in turn: ``chain(0, "<", i, "<=", m.d)``."""
    signs = all(isinstance(op, str) and op in COMPARISONS for op in rest[::2])
    if not rest or len(rest) % 2 or not signs:
        reason = "It takes operands and comparison signs in turn."
        fail(errors.argument("chain", reason, "write `chain(a, '<', b, '<=', c)`"))
    return compared(first, *rest)


def column(row: CompoundFormula, name: str) -> CompoundFormula:
    """``row.name`` of a column whose name Python cannot write as an attribute: ``column(z, "class")``."""
    return made(lambda obj, at: syntax.Field(obj=obj, name=name, span=at), row)


def subscript(base: PythonSyntax, *indices: PythonSyntax) -> CompoundFormula:
    """``base_i`` of a name and declared indices, as on paper: ``subscript(x, m.i)`` is written ``x_i``."""
    at = places.here()
    nodes = [node_of(part, at) for part in (base, *indices)]
    names = [node.id for node in nodes if isinstance(node, syntax.Name)]
    if len(names) < len(nodes):
        reason = "It takes a name of the model and declared indices."
        fail(errors.argument("subscript", reason, "write `x[i]` for other entries"), at)
    return CompoundFormula(syntax.Name(id="_".join(names), span=NOWHERE), owner((base, *indices), at))
