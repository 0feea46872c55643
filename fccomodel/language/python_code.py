"""Formulas of a model as Python code, with the names under which the code finds things."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import NamedTuple

from fccomodel.language import rewriting, syntax, vocabulary
from fccomodel.library import reductions


class Precedence(IntEnum):
    """How tightly Python's operators bind."""

    COMPARED = 0
    OR = 1
    AND = 2
    SUM = 3
    PRODUCT = 4
    UNARY = 5
    POWER = 6
    ATOM = 7


class Operator(NamedTuple):
    """An operator in Python: its sign, how tightly its operands must bind, and how tightly it binds."""

    sign: str
    left: Precedence
    right: Precedence
    own: Precedence


_OPERATORS = {
    "or": Operator("|", Precedence.OR, Precedence.AND, Precedence.OR),
    "and": Operator("&", Precedence.AND, Precedence.SUM, Precedence.AND),
    "+": Operator("+", Precedence.SUM, Precedence.PRODUCT, Precedence.SUM),
    "-": Operator("-", Precedence.SUM, Precedence.PRODUCT, Precedence.SUM),
    "*": Operator("*", Precedence.PRODUCT, Precedence.UNARY, Precedence.PRODUCT),
    "/": Operator("/", Precedence.PRODUCT, Precedence.UNARY, Precedence.PRODUCT),
    "@": Operator("@", Precedence.PRODUCT, Precedence.UNARY, Precedence.PRODUCT),
    "^": Operator("**", Precedence.ATOM, Precedence.UNARY, Precedence.POWER),
}
#: The arguments of ``var`` and ``param`` that give bounds, by the language's signs.
_BOUNDS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt", "in": "domain"}
#: Words of the language that Python uses itself; the code writes the package's name before them.
_SHADOWED = frozenset({"sum", "max", "min", "abs"})
#: The types of the language under their names in the package.
_TYPES = {"real": "real", "int": "integer", "integer": "integer"}
#: Digits of a whole number that a float holds exactly.
EXACT_DIGITS = 15


class PythonWriter:
    """Writes formulas as Python code, and keeps the names that the code uses.

    sorts     what each name of the model stands for: ``number``, ``dim``, ``set``, ``table``, ``net``
              or ``define``
    taken     the names of elements and parameters anywhere in the model
    own       the attributes that ``Model`` has itself
    imported  the words that the code has to import
    model     the name of the model in the code
    package   the name of the package in the code
    """

    def __init__(self, sorts: Mapping[str, str], taken: Collection[str], own: Collection[str]):
        self.sorts, self.taken, self.own = sorts, taken, own
        self.imported: set[str] = set()
        self.model = next(name for name in ("m", "model", "the_model") if name not in taken)
        self.package = next(name for name in ("fc", "fccomodel", "the_package") if name not in taken)
        self.local: list[str] = []

    @contextmanager
    def locals(self, names: Sequence[str]) -> Iterator[None]:
        """Names that mean themselves inside this context: elements and parameters."""
        self.local += names
        yield
        del self.local[len(self.local) - len(names) :]

    # ---------------------------------------------------------------------------------------- names
    def fc(self, name: str) -> str:
        """A name of the package: ``fc.var``."""
        return f"{self.package}.{name}"

    def word(self, name: str) -> str:
        """A word of the language, imported by its name unless that means something else."""
        if name in _SHADOWED or name in self.taken:
            return self.fc(name)
        self.imported.add(name)
        return name

    def own_name(self, name: str) -> str:
        """A name of the model: ``m.w``."""
        if name not in self.own and not name.startswith("_") and not keyword.iskeyword(name):
            return f"{self.model}.{name}"
        return f"{self.model}[{name!r}]"

    def name(self, name: str) -> str:
        """A name in a formula."""
        if name in self.local:
            return name
        if name in self.sorts:
            return self.own_name(name)
        if name in vocabulary.names():
            return self.word(name)
        split = self.subscripts(name)
        if split is None and name == "inf":
            return "float('inf')"
        if split is None:
            return self.own_name(name)
        base, indices = split
        parts = ", ".join(map(self.name, indices))
        if self.sorts[base] == "define":
            return f"{self.own_name(base)}[{parts}]"
        return f"{self.fc('subscript')}({self.own_name(base)}, {parts})"

    def subscripts(self, name: str) -> tuple[str, list[str]] | None:
        """``h_k`` as ``h`` and ``k`` if these are names here, else None."""
        parts = name.split("_")
        for cut in range(len(parts) - 1, 0, -1):
            base, rest = "_".join(parts[:cut]), parts[cut:]
            if base in self.sorts and all(part in self.sorts or part in self.local for part in rest):
                return base, rest
        return None

    # ------------------------------------------------------------------------------------- formulas
    def formula(self, node: syntax.Expr, level: Precedence = Precedence.COMPARED) -> str:
        """A formula, in brackets if its place binds more tightly.

        In Python its value may be a plain number.
        """
        text, own = self._formula(node)
        if own < level:
            return f"({text})"
        return text

    def symbolic(self, node: syntax.Expr, level: Precedence = Precedence.ATOM) -> str:
        """A formula whose value in Python is no plain number or text."""
        if _plain(node):
            return f"{self.fc('literal')}({self.formula(node)})"
        return self.formula(node, level)

    def _formula(self, node: syntax.Expr) -> tuple[str, Precedence]:
        """A formula without brackets around it, and how tightly it binds."""
        match node:
            case syntax.Unary():
                return self._unary(node), Precedence.UNARY
            case syntax.Binary():
                return self._binary(node), _OPERATORS[node.op].own
            case syntax.Compare() if len(node.ops) == 1:
                left, right = (
                    self.symbolic(node.operands[0], Precedence.OR),
                    self.formula(node.operands[1], Precedence.OR),
                )
                return f"{left} {node.ops[0]} {right}", Precedence.COMPARED
        return self._atom(node), Precedence.ATOM

    def _atom(self, node: syntax.Expr) -> str:
        """A formula that needs no brackets anywhere."""
        match node:
            case syntax.Number() | syntax.String() | syntax.Name():
                return self._word(node)
            case syntax.Compare():
                return self._chain(node)
            case syntax.Choice():
                return f"{self.fc('if_else')}({self.listed((node.condition, node.yes, node.no))})"
            case syntax.Range():
                return self._range(node)
            case syntax.Field():
                return self._field(node)
            case syntax.Index():
                return f"{self.symbolic(node.obj)}[{self.listed(node.items)}]"
            case syntax.Call():
                return self._call(node)
            case syntax.SetLiteral():
                return f"{self.fc('values')}({self.listed(node.items)})"
            case syntax.SetComprehension():
                return self.comprehension(node, "subset")
            case syntax.Reduce():
                return self._reduce(node)
            case syntax.Whole() | syntax.Vector() | syntax.Comprehension():
                return self._array(node)
        raise TypeError(node)

    def _array(self, node: syntax.Whole | syntax.Vector | syntax.Comprehension) -> str:
        """An array written out or by formula; ``..`` is a colon in Python."""
        match node:
            case syntax.Vector():
                return f"{self.fc('vector')}({self.listed(node.items)})"
            case syntax.Comprehension():
                over = self.over(node.indexing, "in", lambda: self.formula(node.body))
                return f"{self.fc('vector')}({over})"
        return ":"

    def _word(self, node: syntax.Number | syntax.String | syntax.Name) -> str:
        match node:
            case syntax.Number():
                return _number(node)
            case syntax.String():
                return repr(node.value)
        return self.name(node.id)

    def _unary(self, node: syntax.Unary) -> str:
        if node.op == "not":
            return f"~{self.symbolic(node.arg, Precedence.UNARY)}"
        if node.op == "-" and isinstance(node.arg, syntax.Number):
            return f"-{self.formula(node.arg)}"
        return f"{node.op}{self.symbolic(node.arg, Precedence.UNARY)}"

    def _range(self, node: syntax.Range) -> str:
        arguments = [self.formula(node.low), self.formula(node.high)]
        if node.step is not None:
            arguments.append(f"by={self.formula(node.step)}")
        return f"{self.fc('grid')}({', '.join(arguments)})"

    def _field(self, node: syntax.Field) -> str:
        row = self.symbolic(node.obj)
        if node.name.startswith("_") or keyword.iskeyword(node.name):
            return f"{self.fc('column')}({row}, {node.name!r})"
        return f"{row}.{node.name}"

    def listed(self, items: Iterable[syntax.Expr]) -> str:
        """Formulas with commas between them."""
        return ", ".join(self.formula(item) for item in items)

    def _binary(self, node: syntax.Binary) -> str:
        """An operation; a chain is followed to the left without recursion."""
        chain = [node]
        while isinstance(chain[-1].left, syntax.Binary):
            if _OPERATORS[chain[-1].left.op].own < _OPERATORS[chain[-1].op].left:
                break
            chain.append(chain[-1].left)
        first, innermost = chain[-1].left, chain[-1]
        level = _OPERATORS[innermost.op].left
        if _plain(first) and _computed_by_python(innermost):
            text = self.symbolic(first, level)
        else:
            text = self.formula(first, level)
        for link in reversed(chain):
            operator = _OPERATORS[link.op]
            text += f" {operator.sign} {self.formula(link.right, operator.right)}"
        return text

    def _chain(self, node: syntax.Compare) -> str:
        """Several comparisons, which Python cannot chain."""
        if node.ops == ("<=", "<="):
            return f"{self.fc('between')}({self.listed(node.operands)})"
        parts = [self.formula(node.operands[0])]
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            parts += [repr(op), self.formula(operand)]
        return f"{self.fc('chain')}({', '.join(parts)})"

    def _call(self, node: syntax.Call) -> str:
        parts = [self.formula(arg) for arg in node.args] + self._keywords(node.keywords)
        if node.func == "abs" and "abs" not in self.taken and len(parts) == len(node.args) == 1:
            if not _plain(node.args[0]):
                return f"abs({parts[0]})"
        known = {*self.sorts, *self.local, *vocabulary.names()}
        if node.func in known or self.subscripts(node.func) is not None:
            return f"{self.name(node.func)}({', '.join(parts)})"
        return f"{self.fc('sampler')}({', '.join([repr(node.func), *parts])})"

    def _keywords(self, keywords: Iterable[syntax.Keyword]) -> list[str]:
        return [keyword_argument(item.name, self._option(item)) for item in keywords]

    def _option(self, item: syntax.Keyword) -> str:
        """The value of a named argument; the word after ``empty`` is a text in Python."""
        if item.name == "empty" and isinstance(item.value, syntax.Name):
            return repr(item.value.id)
        return self.formula(item.value)

    # ------------------------------------------------------------------------------- comprehensions
    def _reduce(self, node: syntax.Reduce) -> str:
        if node.indexing is None:
            if node.subscript is not None:
                index = f"[{self.name(node.subscript)}]"
            else:
                index = ""
            return f"{self.word(node.kind)}{index}({self.formula(node.body)})"
        kind = "~" if reductions.words()[node.kind].drawn else "in"
        over = self.over(node.indexing, kind, lambda: self.formula(node.body))
        keywords = self._keywords(node.keywords)
        if keywords:
            over = ", ".join([f"({over})", *keywords])
        return f"{self.word(node.kind)}({over})"

    def over(self, indexing: syntax.Indexing, kind: str, body: Callable[[], str]) -> str:
        """``body for i in I for z in D.where(condition)``.

        Binders that are not of this kind are written with ``draw`` or ``iterate``.
        """
        loops = []
        outside = len(self.local)
        for k, binder in enumerate(indexing.binders):
            last = k == len(indexing.binders) - 1
            domain = self.domain(binder, indexing.condition if last else None)
            if binder.kind != kind:
                domain = f"{self.fc('draw' if binder.kind == '~' else 'iterate')}({domain})"
            loops.append(f" for {binder.name} in {domain}")
            self.local.append(binder.name)
        text = body() + "".join(loops)
        del self.local[outside:]
        return text

    def domain(self, binder: syntax.Binder, condition: syntax.Expr | None, how: str = "where") -> str:
        """The set that a binder ranges over, under a condition on it: ``D.where(...)``."""
        domain = self.formula(binder.domain, Precedence.ATOM)
        if binder.weight is None and condition is None:
            return domain
        if self._is_number(binder.domain) or (self._is_dim(binder.domain) and how != "where"):
            domain = f"{self.fc('draw' if binder.kind == '~' else 'iterate')}({domain})"
        if binder.weight is not None:
            domain = self.chosen(domain, binder, binder.weight, "by")
        if condition is None:
            return domain
        return self.chosen(domain, binder, condition, how)

    def chosen(self, domain: str, binder: syntax.Binder, formula: syntax.Expr, how: str) -> str:
        """``D.where(D.y == 1)``, or with a function of the element where columns do not say it."""
        columns = self._of_columns(binder, formula)
        if columns is not None:
            return f"{domain}.{how}({self.formula(columns)})"
        with self.locals([binder.name]):
            return f"{domain}.{how}(lambda {binder.name}: {self.formula(formula)})"

    def _is_dim(self, node: syntax.Expr) -> bool:
        return isinstance(node, syntax.Name) and self.sorts.get(node.id) == "dim"

    def _is_number(self, node: syntax.Expr) -> bool:
        """Whether a set is written as a constant, whose places it has."""
        return isinstance(node, syntax.Name) and self.sorts.get(node.id) in ("number", "index")

    def _of_columns(self, binder: syntax.Binder, condition: syntax.Expr) -> syntax.Expr | None:
        """A condition on a row with the set's columns in place of the row's.

        None if the condition uses the row other than by its columns, or a column with a method's name.
        """
        domain = binder.domain
        if not isinstance(domain, syntax.Name) or domain.id in self.local:
            return None
        if self._is_dim(domain) or self._is_number(domain):
            return None

        def is_row(node: syntax.Node) -> bool:
            """Whether a node is the row."""
            return isinstance(node, syntax.Name) and node.id == binder.name

        nodes = list(rewriting.walk(condition))
        columns = [node.name for node in nodes if isinstance(node, syntax.Field) and is_row(node.obj)]
        if not columns or len(columns) != sum(map(is_row, nodes)):
            return None
        if any(name in vocabulary.SET_METHODS for name in columns):
            return None
        return rewriting.replaced(condition, lambda node: domain if is_row(node) else None)

    def comprehension(self, node: syntax.SetComprehension, how: str) -> str:
        """``D.where(...)``, or ``D.subset(...)`` for a set of its own (``how``)."""
        binder, condition = node.indexing.binders[0], node.indexing.condition
        if binder.name == "z":
            return self.domain(binder, condition, how)
        with self.locals([binder.name]):
            domain = self.formula(binder.domain, Precedence.ATOM)
            if condition is None:
                return domain
            return f"{domain}.{how}(lambda {binder.name}: {self.formula(condition)})"

    def family(self, indexing: syntax.Indexing | None, body: Callable[[], str]) -> str:
        """``(body for k in K)``, or the body alone without a family."""
        if indexing is None:
            return body()
        return f"({self.over(indexing, 'in', body)})"

    def type(self, node: syntax.TypeExpr) -> str:
        """The type of a column."""
        if node.shape:
            shape = f"[{self.listed(node.shape)}]"
        else:
            shape = ""
        if node.values is not None:
            if _ascending(node.values.items) and not node.shape:
                return f"{{{self.listed(node.values.items)}}}"
            return self.formula(node.values) + shape
        name = str(node.name)
        if name in _TYPES:
            return self.fc(_TYPES[name]) + shape + self._limit(node.limit)
        return self.name(name) + shape

    def _limit(self, limit: syntax.Bound | None) -> str:
        """The bound of a type as the arguments of a call: ``(ge=0)``, ``(ge=0, le=1)``, ``(domain=psd)``."""
        if limit is None:
            return ""
        if isinstance(limit.value, syntax.Vector):
            low, high = limit.value.items
            return f"(ge={self.formula(low)}, le={self.formula(high)})"
        return f"({_BOUNDS[limit.op]}={self.formula(limit.value)})"

    # --------------------------------------------------------------------- what statements share
    def bounded(self, shape: Sequence[syntax.Expr], bounds: Sequence[syntax.Bound]) -> list[str]:
        """Shape and bounds as arguments; several bounds of a kind as a list."""
        values: dict[str, list[str]] = {}
        for bound in bounds:
            values.setdefault(_BOUNDS[bound.op], []).append(self.formula(bound.value))
        arguments = [self.formula(size) for size in shape]
        for name, limits in values.items():
            if len(limits) == 1:
                arguments.append(f"{name}={limits[0]}")
            else:
                arguments.append(f"{name}=[{', '.join(limits)}]")
        return arguments

    def mapping(self, items: Iterable[syntax.Keyword]) -> str:
        """Options as a dictionary; words are texts in it."""
        entries = []
        for item in items:
            if isinstance(item.value, syntax.Name) and item.value.id not in self.sorts:
                entries.append(f"{item.name!r}: {item.value.id!r}")
            else:
                entries.append(f"{item.name!r}: {self.symbolic(item.value)}")
        return f"{{{', '.join(entries)}}}"

    def method(self, method: str, arguments: list[str], doc: str) -> str:
        """A call of a method of the model, with the statement's comment."""
        return f"{self.model}.{method}({', '.join(arguments + doc_argument(doc))})"

    def assigned(self, name: str, function: str, arguments: list[str], doc: str) -> str:
        """An assignment of a declaration to a name of the model, with the statement's comment."""
        return f"{self.own_name(name)} = {function}({', '.join(arguments + doc_argument(doc))})"

    def named(self, method: str, name: str, value: str, doc: str) -> str:
        """``m.let(name=value)``, or an assignment where that says the same."""
        if method == "let" and name != "doc" or doc:
            return self.method(method, [keyword_argument(name, value)], doc)
        return f"{self.own_name(name)} = {value}"


def _plain(node: syntax.Expr) -> bool:
    """Whether the value of a formula is a plain number or text in Python."""
    if isinstance(node, syntax.Unary) and node.op == "-":
        return isinstance(node.arg, syntax.Number)
    return isinstance(node, syntax.Number | syntax.String)


def _computed_by_python(node: syntax.Binary) -> bool:
    """Whether Python would compute an operation on a plain left operand itself, or drop the operand."""
    adds_to_zero = node.op == "+" and isinstance(node.left, syntax.Number) and node.left.value == 0
    return adds_to_zero or _plain(node.right) or node.op in ("and", "or")


def _number(node: syntax.Number) -> str:
    if node.text.isdigit() and len(node.text) <= EXACT_DIGITS:
        return str(int(node.text))
    return repr(node.value)


def _ascending(items: Sequence[syntax.Expr]) -> bool:
    """Whether the members stand in ascending order, so that a set in Python can write them."""
    signed = [(-1, item.arg) if isinstance(item, syntax.Unary) else (1, item) for item in items]
    numbers = [sign * number.value for sign, number in signed if isinstance(number, syntax.Number)]
    texts = [item.value for item in items if isinstance(item, syntax.String)]
    if len(numbers) == len(items):
        return numbers == sorted(set(numbers))
    return len(texts) == len(items) and texts == sorted(set(texts))


def doc_argument(doc: str) -> list[str]:
    """``doc=...``, or nothing."""
    if doc:
        return [f"doc={doc!r}"]
    return []


def is_keyword(name: str) -> bool:
    """Whether Python takes a name as the name of an argument."""
    return not keyword.iskeyword(name)


def keyword_argument(name: str, value: str) -> str:
    """``name=value``, under any name."""
    if is_keyword(name):
        return f"{name}={value}"
    return f"**{{{name!r}: {value}}}"


def labelled(label: str | None, value: str) -> str:
    """An argument under a label, or without one."""
    if label is None:
        return value
    return keyword_argument(label, value)
