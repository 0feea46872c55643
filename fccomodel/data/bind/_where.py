"""``where``: a condition on a table's rows, which can read the table's columns and nothing else.

The syntax is that of ``pandas.DataFrame.query``: names of columns (in backquotes if they are no
identifiers), numbers, text in quotes, ``== != < <= > >= in``, ``and or not`` (also ``& | ~``), ``+
- * / // % **``, ``column.isna()``, ``column.notna()``. The condition is evaluated here and not by
Python, so it cannot name a variable, call a function or reach an attribute.
"""

from __future__ import annotations

import ast
import io
import operator
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fccomodel.core.diagnostics import refuse
from fccomodel.data.bind import errors
from fccomodel.data.bind.errors.words import shortened
from fccomodel.data.sources import RawColumn, RawTable

#: Largest number of characters of a condition.
LONGEST = 20_000
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
#: The comparison with its sides exchanged.
MIRROR = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}


@dataclass(frozen=True)
class _Text:
    """A text column.

    codes        for each row, the position of its text in ``categories``; -1 for a missing text
    categories   the distinct texts
    name         name of the column
    """

    codes: np.ndarray
    categories: tuple[str, ...]
    name: str

    def test(self, accept: Callable[[str], bool], missing: bool) -> np.ndarray:
        """The mask of a condition on texts; rows without a text get ``missing``."""
        return np.array([*map(accept, self.categories), missing], bool)[self.codes]


def rows(text: str, table: RawTable) -> np.ndarray:
    """The numbers of the rows that satisfy a condition, int64.

    F0509 if the text is not a condition on the table's columns.
    """
    parsed, quoted = _parse(text)
    try:
        value = _Evaluator(text, table, quoted).condition(parsed)
    except RecursionError as error:
        refuse(errors.where.not_parsed(text, error))
    mask = np.broadcast_to(value, (table.n,))
    return np.flatnonzero(mask)


def _parse(text: str) -> tuple[ast.expr, dict[str, str]]:
    """The syntax tree of a condition, and the columns in backquotes by their names in the tree."""
    if len(text) > LONGEST:
        refuse(errors.where.too_long(len(text), LONGEST))
    quoted: dict[str, str] = {}
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        refuse(errors.where.backquote(text))
    for k in range(1, len(pieces), 2):
        key = f"_column_{k}"
        quoted[key], pieces[k] = pieces[k], f" {key} "
    try:
        return ast.parse(_words("".join(pieces)).strip(), mode="eval").body, quoted
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError) as error:
        refuse(errors.where.not_parsed(text, error))


def _words(text: str) -> str:
    """The text with ``and`` and ``or`` in place of ``&`` and ``|``, which bind as weakly, as in pandas."""
    parts = []
    end = (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(text.replace("\n", " ")).readline):
        if token.start[0] == end[0]:
            parts.append(" " * (token.start[1] - end[1]))
        parts.append({"&": " and ", "|": " or "}.get(token.string, token.string))
        end = token.end
    return "".join(parts)


def _as_float(value: float) -> float:
    """A number as a Python float, which takes the precision of the column that it is compared with."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


class _Evaluator:
    """Evaluates a condition on the columns of a table."""

    def __init__(self, text: str, table: RawTable, quoted: dict[str, str]):
        self.text, self.table, self.quoted = text, table, quoted

    def condition(self, node: ast.expr) -> np.ndarray:
        """The mask of a condition; refuses a part that is none."""
        value = self.value(node)
        is_array = isinstance(value, np.ndarray)
        if isinstance(value, bool | np.bool_) or is_array and value.dtype.kind == "b":
            return np.asarray(value)
        refuse(errors.where.not_a_condition(self.text, self.source(node), column=is_array))

    def source(self, node: ast.expr) -> str:
        """The text of a part, with the columns' own names."""
        text = ast.unparse(node)
        for key, name in self.quoted.items():
            text = text.replace(key, f"`{name}`")
        return shortened(text)

    def value(self, node: ast.expr) -> Any:
        """The value of a part: numbers and masks as arrays or scalars, text as ``_Text`` or str, or lists."""
        match node:
            case ast.Constant(value=bool() | str() as value):
                return value
            case ast.Constant(value=int() | float() as value):
                return _as_float(value)
            case ast.Name(id=name):
                return self.column(self.quoted.get(name, name))
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self.value(item) for item in items]
            case ast.BoolOp(op=op, values=parts):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                result = self.condition(parts[0])
                for part in parts[1:]:
                    result = join(result, self.condition(part))
                return result
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return np.logical_not(self.condition(operand))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.number(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand)
            case ast.BinOp(op=op, left=left, right=right) if type(op) in ARITHMETIC:
                with np.errstate(all="ignore"):
                    return ARITHMETIC[type(op)](self.number(left), self.number(right))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                links = zip(ops, [left, *rights], rights, strict=False)
                return np.logical_and.reduce([self.compare(link, a, b) for link, a, b in links])
        return self.call(node)

    def call(self, node: ast.expr) -> np.ndarray:
        """The mask of a call of a column's method; refuses every other part."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=column, attr="isna" | "isnull" | "notna" | "notnull" as method),
                args=[],
                keywords=[],
            ):
                return self.missing(column) ^ (method in ("notna", "notnull"))
            case ast.Call(func=ast.Attribute(value=column, attr="isin"), args=[items], keywords=[]):
                return self.compare(ast.In(), column, items)
        kinds: dict[type, str] = {
            ast.Call: "a call",
            ast.Attribute: "an attribute",
            ast.Subscript: "a subscript",
        }
        refuse(errors.where.not_allowed(self.text, kinds.get(type(node), self.source(node))))

    def column(self, name: str) -> Any:
        """The values of a column; refuses a column with neither numbers nor texts."""
        if name not in self.table.numeric:
            refuse(errors.where.not_a_column(self.text, name, self.table))
        raw: RawColumn = self.table.load(name)
        if raw.unusable or raw.values.ndim != 1:
            refuse(errors.where.not_comparable(self.text, name, raw.unusable))
        if raw.categories is None:
            return raw.values
        return _Text(raw.values, raw.categories, name)

    def number(self, node: ast.expr) -> Any:
        """The numbers of a part of the condition; refuses text."""
        value = self.value(node)
        if isinstance(value, bool | float):
            return np.float64(value)
        if isinstance(value, np.floating | np.ndarray | np.integer):
            if value.dtype.kind in "bui":
                return value.astype(np.float64)
            return value
        refuse(errors.where.not_a_number(self.text, self.source(node)))

    def missing(self, node: ast.expr) -> np.ndarray:
        """Mask of the rows without a value."""
        value = self.value(node)
        if isinstance(value, _Text):
            return value.codes < 0
        if isinstance(value, str | list):
            refuse(errors.where.not_a_number(self.text, self.source(node)))
        return np.isnan(np.broadcast_to(np.asarray(value, float), (self.table.n,)))

    def compare(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> np.ndarray:
        """Mask of the rows that satisfy a comparison."""
        a, b = self.value(left), self.value(right)
        # In pandas ``== [..]`` means ``in``.
        if isinstance(op, ast.Eq) and isinstance(b, list):
            op = ast.In()
        elif isinstance(op, ast.NotEq) and isinstance(b, list):
            op = ast.NotIn()
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(b, list):
                refuse(errors.where.not_a_list(self.text, self.source(right)))
            mask = np.zeros(self.table.n, bool)
            for item in b:
                mask |= self.pair(ast.Eq(), a, item, left, right)
            return mask ^ isinstance(op, ast.NotIn)
        if type(op) not in COMPARE:
            refuse(errors.where.is_not_allowed(self.text))
        return self.pair(op, a, b, left, right)

    def pair(self, op: ast.cmpop, a: Any, b: Any, left: ast.expr, right: ast.expr) -> Any:
        """The mask of a comparison of texts with texts, or of numbers with numbers."""
        test = COMPARE[type(op)]
        if isinstance(a, str) and isinstance(b, _Text):
            return self.pair(MIRROR[type(op)](), b, a, right, left)
        if isinstance(a, _Text) and isinstance(b, str):
            return a.test(lambda text: bool(test(text, b)), isinstance(op, ast.NotEq))
        if isinstance(a, _Text) and isinstance(b, _Text):
            left_texts = np.array([*a.categories, ""], object)[a.codes]
            right_texts = np.array([*b.categories, ""], object)[b.codes]
            present = (a.codes >= 0) & (b.codes >= 0)
            return np.where(present, test(left_texts, right_texts).astype(bool), isinstance(op, ast.NotEq))
        if isinstance(a, str) and isinstance(b, str):
            return np.bool_(test(a, b))
        if isinstance(a, str | _Text | list) or isinstance(b, str | _Text | list):
            text, number = left, right
            if not isinstance(a, str | _Text):
                text, number = right, left
            refuse(errors.where.text_and_number(self.text, self.source(text), self.source(number)))
        with np.errstate(all="ignore"):
            return np.asarray(test(a, b))
