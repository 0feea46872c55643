"""Formulas of a model as Python code, with the names under which the code finds things."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from fccomodel.language import rewriting, syntax, vocabulary
from fccomodel.library import reductions

#: How tightly Python's operators bind.
COMPARED, OR, AND, SUM, PRODUCT, UNARY, POWER, ATOM = range(8)
_BINARY = {
    "or": ("|", OR, AND, OR),
    "and": ("&", AND, SUM, AND),
    "+": ("+", SUM, PRODUCT, SUM),
    "-": ("-", SUM, PRODUCT, SUM),
    "*": ("*", PRODUCT, UNARY, PRODUCT),
    "/": ("/", PRODUCT, UNARY, PRODUCT),
    "@": ("@", PRODUCT, UNARY, PRODUCT),
    "^": ("**", ATOM, UNARY, POWER),
}
_BOUNDS = {">=": "ge", ">": "gt", "<=": "le", "<": "lt", "in": "domain"}
#: Words that Python uses itself; the package's have its name before them.
_SHADOWED = frozenset({"sum", "max", "min", "abs"})


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

    COMPARED = COMPARED

    def __init__(self, sorts: Mapping[str, str], taken: Collection[str], own: Collection[str]):
        self.sorts, self.taken, self.own = sorts, taken, own
        self.imported: set[str] = set()
        self.model = next(name for name in ("m", "model", "the_model") if name not in taken)
        self.package = next(name for name in ("fc", "fccomodel", "the_package") if name not in taken)
        self.local: list[str] = []

    @contextmanager
    def locals(self, names: Sequence[str]) -> Iterator[None]:
        """Names that stand for themselves inside: elements and parameters."""
        self.local += names
        yield
        del self.local[len(self.local) - len(names) :]

    # ---------------------------------------------------------------------------------------- names
    def fc(self, name: str) -> str:
        return f"{self.package}.{name}"

    def word(self, name: str) -> str:
        """A word of the language: imported by its name, unless that is another's."""
        if name in _SHADOWED or name in self.taken:
            return self.fc(name)
        self.imported.add(name)
        return name

    def own_name(self, name: str) -> str:
        """A name of the model: ``m.w``."""
        plain = name not in self.own and not name.startswith("_") and not keyword.iskeyword(name)
        if plain:
            return f"{self.model}.{name}"
        return f"{self.model}[{name!r}]"

    def name(self, name: str) -> str:
        """A name in a formula."""
        if name in self.local:
            return name
        if name not in self.sorts and name in vocabulary.names():
            return self.word(name)
        if name in self.sorts:
            split = None
        else:
            split = self.subscripts(name)
        if split is None:
            return self.own_name(name)
        base, indices = split
        parts = ", ".join(map(self.name, indices))
        if self.sorts[base] == "define":
            return f"{self.own_name(base)}[{parts}]"
        return f"{self.fc('subscript')}({self.own_name(base)}, {parts})"

    def subscripts(self, name: str) -> tuple[str, list[str]] | None:
        """``h_k`` as ``h`` and ``k``, where these are names."""
        parts = name.split("_")
        for cut in range(len(parts) - 1, 0, -1):
            base, rest = "_".join(parts[:cut]), parts[cut:]
            if base in self.sorts and all(part in self.sorts or part in self.local for part in rest):
                return base, rest
        return None

    # ------------------------------------------------------------------------------------- formulas
    def formula(self, node: syntax.Expr, level: int = COMPARED) -> str:
        """A formula, in brackets where its place binds more tightly; its value may be a plain number
        of Python."""
        text, own = self._formula(node)
        if own < level:
            return f"({text})"
        return text

    def symbolic(self, node: syntax.Expr, level: int = ATOM) -> str:
        """A formula that Python's operators cannot compute away."""
        if _plain(node):
            return f"{self.fc('literal')}({self.formula(node)})"
        return self.formula(node, level)

    def _formula(self, node: syntax.Expr) -> tuple[str, int]:
        match node:
            case syntax.Number():
                return _number(node), ATOM
            case syntax.String():
                return repr(node.value), ATOM
            case syntax.Name():
                return self.name(node.id), ATOM
            case syntax.Unary(op="not"):
                return f"~{self.symbolic(node.arg, UNARY)}", UNARY
            case syntax.Unary():
                plain = node.op == "-" and isinstance(node.arg, syntax.Number)
                return node.op + (self.formula(node.arg) if plain else self.symbolic(node.arg, UNARY)), UNARY
            case syntax.Binary():
                return self._binary(node)
            case syntax.Compare():
                return self._compare(node)
            case syntax.Range():
                ends = [self.formula(node.low), self.formula(node.high)]
                if node.step is None:
                    ends += []
                else:
                    ends += [f"by={self.formula(node.step)}"]
                return f"{self.fc('grid')}({', '.join(ends)})", ATOM
            case syntax.Field():
                named = node.name.startswith("_") or keyword.iskeyword(node.name)
                obj = self.symbolic(node.obj)
                return (f"{self.fc('column')}({obj}, {node.name!r})" if named else f"{obj}.{node.name}"), ATOM
            case syntax.Index():
                return f"{self.symbolic(node.obj)}[{self.listed(node.items)}]", ATOM
            case syntax.Call():
                return self._call(node), ATOM
            case syntax.SetLiteral():
                return f"{self.fc('values')}({self.listed(node.items)})", ATOM
            case syntax.SetComprehension():
                return self.comprehension(node, "subset"), ATOM
            case syntax.Reduce():
                return self._reduce(node), ATOM
        raise TypeError(node)

    def listed(self, items: Iterable[syntax.Expr]) -> str:
        """Formulas with commas between them."""
        return ", ".join(self.formula(item) for item in items)

    def _binary(self, node: syntax.Binary) -> tuple[str, int]:
        chain = [node]
        while (
            isinstance(chain[-1].left, syntax.Binary)
            and _BINARY[chain[-1].left.op][3] >= _BINARY[chain[-1].op][1]
        ):
            chain.append(chain[-1].left)
        first, innermost = chain[-1].left, chain[-1]
        zero = innermost.op == "+" and isinstance(first, syntax.Number) and first.value == 0
        alone = _plain(first) and (zero or _plain(innermost.right) or innermost.op in ("and", "or"))
        level = _BINARY[innermost.op][1]
        if alone:
            text = self.symbolic(first, level)
        else:
            text = self.formula(first, level)
        for link in reversed(chain):
            sign, _, right, _ = _BINARY[link.op]
            text += f" {sign} {self.formula(link.right, right)}"
        return text, _BINARY[node.op][3]

    def _compare(self, node: syntax.Compare) -> tuple[str, int]:
        if len(node.ops) == 1:
            return (
                f"{self.symbolic(node.operands[0], OR)} {node.ops[0]} {self.formula(node.operands[1], OR)}",
                COMPARED,
            )
        if node.ops == ("<=", "<="):
            return f"{self.fc('between')}({self.listed(node.operands)})", ATOM
        parts = [self.formula(node.operands[0])]
        for op, operand in zip(node.ops, node.operands[1:], strict=True):
            parts += [repr(op), self.formula(operand)]
        return f"{self.fc('chain')}({', '.join(parts)})", ATOM

    def _call(self, node: syntax.Call) -> str:
        parts = [self.formula(arg) for arg in node.args] + self._keywords(node.keywords)
        if (
            node.func == "abs"
            and "abs" not in self.taken
            and len(parts) == 1
            and node.args
            and not _plain(node.args[0])
        ):
            return f"abs({parts[0]})"
        if node.func in self.sorts:
            split = None
        else:
            split = self.subscripts(node.func)
        if (
            node.func in self.sorts
            or node.func in self.local
            or node.func in vocabulary.names()
            or split is not None
        ):
            return f"{self.name(node.func)}({', '.join(parts)})"
        return f"{self.fc('sampler')}({', '.join([repr(node.func), *parts])})"

    def _keywords(self, keywords: Iterable[syntax.Keyword]) -> list[str]:
        return [keyword_argument(item.name, self.formula(item.value)) for item in keywords]

    # ------------------------------------------------------------------------------- comprehensions
    def _reduce(self, node: syntax.Reduce) -> str:
        if node.indexing is None:
            if node.subscript is None:
                index = ""
            else:
                index = f"[{self.name(node.subscript)}]"
            return f"{self.word(node.kind)}{index}({self.formula(node.body)})"
        kind = "~" if reductions.all()[node.kind].drawn else "in"
        over = self.over(node.indexing, kind, lambda: self.formula(node.body))
        keywords = self._keywords(node.keywords)
        return f"{self.word(node.kind)}({', '.join([f'({over})', *keywords]) if keywords else over})"

    def over(self, indexing: syntax.Indexing, kind: str, body: Callable[[], str]) -> str:
        """``body for i in I for z in D.where(condition)``."""
        loops = []
        outside = len(self.local)
        for k, binder in enumerate(indexing.binders):
            last = k == len(indexing.binders) - 1
            domain = self.domain(binder, indexing.condition if last else None)
            if binder.kind == kind:
                domain = domain
            else:
                domain = f"{self.fc('draw' if binder.kind == '~' else 'iterate')}({domain})"
            loops.append(f" for {binder.name} in {domain}")
            self.local.append(binder.name)
        text = body() + "".join(loops)
        del self.local[outside:]
        return text

    def domain(self, binder: syntax.Binder, condition: syntax.Expr | None, how: str = "where") -> str:
        """What a binder ranges over, under a condition on it."""
        domain = self.formula(binder.domain, ATOM)
        if condition is None:
            return domain
        columns = self._of_columns(binder, condition)
        if columns is not None:
            return f"{domain}.{how}({self.formula(columns)})"
        dim = isinstance(binder.domain, syntax.Name) and self.sorts.get(binder.domain.id) == "dim"
        if dim and how != "where":
            domain = f"{self.fc('iterate')}({domain})"
        self.local.append(binder.name)
        text = f"{domain}.{how}(lambda {binder.name}: {self.formula(condition)})"
        self.local.pop()
        return text

    def _of_columns(self, binder: syntax.Binder, condition: syntax.Expr) -> syntax.Expr | None:
        """A condition on a row with the set's columns in place of the row's; None where it says more
        of the row."""
        domain = binder.domain
        if (
            not isinstance(domain, syntax.Name)
            or domain.id in self.local
            or self.sorts.get(domain.id) == "dim"
        ):
            return None
        fields = sum(
            isinstance(n, syntax.Field) and n.obj == syntax.Name(id=binder.name, span=n.span)
            for n in rewriting.walk(condition)
        )
        rows = sum(isinstance(n, syntax.Name) and n.id == binder.name for n in rewriting.walk(condition))
        if fields != rows or not fields:
            return None

        def change(node: syntax.Node) -> syntax.Node | None:
            return domain if isinstance(node, syntax.Name) and node.id == binder.name else None

        return rewriting.replaced(condition, change)

    def comprehension(self, node: syntax.SetComprehension, how: str) -> str:
        """``D.where(...)``, as a set of its own by ``subset``."""
        binder = node.indexing.binders[0]
        if binder.name == "z":
            return self.domain(binder, node.indexing.condition, how)
        self.local.append(binder.name)
        domain, condition = self.formula(binder.domain, ATOM), node.indexing.condition
        if condition is None:
            text = domain
        else:
            text = f"{domain}.{how}(lambda {binder.name}: {self.formula(condition)})"
        self.local.pop()
        return text

    def family(self, indexing: syntax.Indexing | None, body: Callable[[], str]) -> str:
        if indexing is None:
            return body()
        return f"({self.over(indexing, 'in', body)})"

    def type(self, node: syntax.TypeExpr) -> str:
        """The type of a column."""
        if node.values is not None:
            ascending = _ascending(node.values.items)
            if ascending and not node.shape:
                text = f"{{{self.listed(node.values.items)}}}"
            else:
                text = self.formula(node.values)
        else:
            name = str(node.name)
            text = {"real": self.fc("real"), "int": self.fc("integer")}.get(name) or self.name(name)
        return text + (f"[{self.listed(node.shape)}]" if node.shape else "")

    # --------------------------------------------------------------------- what statements share
    def bounded(self, shape: Sequence[syntax.Expr], bounds: Sequence[syntax.Bound]) -> list[str]:
        """Shape and bounds; several of a kind as a list."""
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
        """Options: words as texts."""
        shown = []
        for item in items:
            word = isinstance(item.value, syntax.Name) and item.value.id not in self.sorts
            shown.append(f"{item.name!r}: {repr(item.value.id) if word else self.symbolic(item.value)}")  # type: ignore[attr-defined]
        return f"{{{', '.join(shown)}}}"

    def method(self, method: str, arguments: list[str], doc: str) -> str:
        """A call of a method of the model, with the statement's comment."""
        return f"{self.model}.{method}({', '.join(arguments + doc_argument(doc))})"

    def assigned(self, name: str, function: str, arguments: list[str], doc: str) -> str:
        """An assignment of a declaration to a name of the model, with the statement's comment."""
        return f"{self.own_name(name)} = {function}({', '.join(arguments + doc_argument(doc))})"

    def named(self, method: str, name: str, value: str, doc: str) -> str:
        """``m.let(name=value)``; an assignment where that is as plain."""
        if method == "let" and name != "doc" or doc:
            return self.method(method, [keyword_argument(name, value)], doc)
        return f"{self.own_name(name)} = {value}"


def _plain(node: syntax.Expr) -> bool:
    """Whether Python computes with it by itself."""
    number = node.arg if isinstance(node, syntax.Unary) and node.op == "-" else node
    return isinstance(number, syntax.Number) or isinstance(node, syntax.String)


def _number(node: syntax.Number) -> str:
    whole = node.text.isdigit() and len(node.text) < 16
    if whole:
        return str(int(node.text))
    return repr(node.value)


def _ascending(items: Sequence[syntax.Expr]) -> bool:
    """Whether Python's set of these members keeps their order."""
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
