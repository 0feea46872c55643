"""A model as Python code that builds it."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from fccomodel.language import rewriting, syntax
from fccomodel.language.check import names_of
from fccomodel.language.notation import words
from fccomodel.language.notation.statements import Entry
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


def program(name: str | None, doc: str, entries: Sequence[Entry], own: Collection[str]) -> str:
    """Code that ends in a model ``m``; ``own`` are the attributes that ``Model`` has itself."""
    writer = _Writer(entries, own)
    body = list(writer.statements())
    given = ([repr(name)] if name is not None else []) + ([f"doc={doc!r}"] if doc else [])
    if writer.imported:
        imported = f"from fccomodel import {', '.join(sorted(writer.imported))}\n"
    else:
        imported = ""
    head = (
        f"import fccomodel as {writer.package}\n{imported}\n{writer.model} = "
        f"{writer.package}.Model({', '.join(given)})\n"
    )
    return head + "".join(f"{line}\n" for line in body)


class _Writer:
    """The names that the code may use: of the model and the package, of the words, of elements and
    parameters."""

    def __init__(self, entries: Sequence[Entry], own: Collection[str]):
        self.entries = entries
        self.own = own
        self.imported: set[str] = set()
        self.kinds = {name: entry.statement for entry in entries for name in names_of(entry.statement)}
        self.taken = {name for entry in entries for name in _locals(entry.statement)}
        self.model = next(name for name in ("m", "model", "the_model") if name not in self.taken)
        self.package = next(name for name in ("fc", "fccomodel", "the_package") if name not in self.taken)
        self.local: list[str] = []

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
        if name not in self.kinds and name in words.names():
            return self.word(name)
        if name in self.kinds:
            split = None
        else:
            split = self.subscripts(name)
        if split is None:
            return self.own_name(name)
        base, indices = split
        parts = ", ".join(map(self.name, indices))
        if isinstance(self.kinds[base], syntax.DefDecl):
            return f"{self.own_name(base)}[{parts}]"
        return f"{self.fc('subscript')}({self.own_name(base)}, {parts})"

    def subscripts(self, name: str) -> tuple[str, list[str]] | None:
        """``h_k`` as ``h`` and ``k``, where these are names."""
        parts = name.split("_")
        for cut in range(len(parts) - 1, 0, -1):
            base, rest = "_".join(parts[:cut]), parts[cut:]
            if base in self.kinds and all(part in self.kinds or part in self.local for part in rest):
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
                return f"{self.symbolic(node.obj)}[{self._list(node.items)}]", ATOM
            case syntax.Call():
                return self._call(node), ATOM
            case syntax.SetLiteral():
                return f"{self.fc('values')}({self._list(node.items)})", ATOM
            case syntax.SetComprehension():
                return self.comprehension(node, "subset"), ATOM
            case syntax.Reduce():
                return self._reduce(node), ATOM
        raise TypeError(node)

    def _list(self, items: Iterable[syntax.Expr]) -> str:
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
            return f"{self.fc('between')}({self._list(node.operands)})", ATOM
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
        if node.func in self.kinds:
            split = None
        else:
            split = self.subscripts(node.func)
        if (
            node.func in self.kinds
            or node.func in self.local
            or node.func in words.names()
            or split is not None
        ):
            return f"{self.name(node.func)}({', '.join(parts)})"
        return f"{self.fc('sampler')}({', '.join([repr(node.func), *parts])})"

    def _keywords(self, keywords: Iterable[syntax.Keyword]) -> list[str]:
        return [_keyword(item.name, self.formula(item.value)) for item in keywords]

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
        dim = isinstance(binder.domain, syntax.Name) and isinstance(
            self.kinds.get(binder.domain.id), syntax.DimDecl
        )
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
            or isinstance(self.kinds.get(domain.id), syntax.DimDecl)
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
                text = f"{{{self._list(node.values.items)}}}"
            else:
                text = self.formula(node.values)
        else:
            name = str(node.name)
            text = {"real": self.fc("real"), "int": self.fc("integer")}.get(name) or self.name(name)
        return text + (f"[{self._list(node.shape)}]" if node.shape else "")

    # ----------------------------------------------------------------------------------- statements
    def statements(self) -> Iterator[str]:
        """Each statement's lines."""
        for k, entry in enumerate(self.entries):
            if isinstance(entry.statement, syntax.SubjectTo):
                if k + 1 < len(self.entries):
                    following = self.entries[k + 1].statement
                else:
                    following = None
                first = not any(isinstance(e.statement, syntax.SubjectTo) for e in self.entries[:k])
                if entry.doc or not first or not isinstance(following, syntax.Constraint):
                    yield f"{self.model}.subject_to({_doc(entry.doc)})"
            else:
                yield self.statement(entry.statement, entry.doc)

    def statement(self, node: syntax.Statement, doc: str) -> str:
        match node:
            case syntax.DimDecl(names=(name,)):
                return self._assigned(name, self.fc("dim"), [], doc)
            case syntax.DimDecl():
                return self._method("dim", [repr(name) for name in node.names], doc)
            case syntax.SetDecl(value=None):
                return self._assigned(node.name, self.fc("labels"), [], doc)
            case syntax.SetDecl():
                return self._named(
                    "set", node.name, self.family(node.family, lambda: self._set(node.value)), doc
                )
            case syntax.IndexDecl(binders=(binder,)):
                return self._assigned(binder.name, self.fc("index"), [self._indexed(binder)], doc)
            case syntax.IndexDecl():
                return self._method("index", [_keyword(b.name, self._indexed(b)) for b in node.binders], doc)
            case syntax.DataDecl():
                return (
                    f"{self.own_name(node.name)} = {self.family(node.family, lambda: self._data(node, doc))}"
                )
            case syntax.ParamDecl():
                if node.default is None:
                    default = []
                else:
                    default = [f"default={self.formula(node.default)}"]
                return self._assigned(node.name, self.fc("param"), [*self._bounded(node), *default], doc)
            case syntax.ConstDecl():
                return self._assigned(node.name, self.fc("const"), [self.formula(node.value)], doc)
            case syntax.NetDecl():
                assume = f"assume={{{', '.join(map(self._assumption, node.assume))}}}"
                ends = [self.type(node.input), self.type(node.output)]
                return self._assigned(
                    node.name, self.fc("net"), [*ends, *([assume] if node.assume else [])], doc
                )
            case syntax.VarDecl(value=syntax.Call(func="params", args=(of,))):
                return self._assigned(node.name, self.fc("params"), [self.formula(of)], doc)
            case syntax.VarDecl():
                return self._assigned(node.name, self.fc("var"), self._bounded(node), doc)
            case syntax.DefDecl():
                return self._def(node, doc)
            case syntax.LetDecl():
                return self._named(
                    "let",
                    node.name,
                    self.family(node.family, lambda: self.symbolic(node.value, COMPARED)),
                    doc,
                )
            case syntax.Objective():
                return self._method(node.sense, [_labelled(node.label, self.formula(node.body))], doc)
            case syntax.Constraint():
                return self._constraint(node, doc)
            case syntax.Options():
                return self._method("options", [self._mapping(node.items)], doc)
        raise TypeError(node)

    def _method(self, method: str, arguments: list[str], doc: str) -> str:
        return f"{self.model}.{method}({', '.join([*arguments, *([_doc(doc)] if doc else [])])})"

    def _assigned(self, name: str, function: str, arguments: list[str], doc: str) -> str:
        return f"{self.own_name(name)} = {function}({', '.join([*arguments, *([_doc(doc)] if doc else [])])})"

    def _named(self, method: str, name: str, value: str, doc: str) -> str:
        """``m.let(name=value)``; an assignment where that is as plain."""
        if method == "let" and name != "doc" or doc:
            return self._method(method, [_keyword(name, value)], doc)
        return f"{self.own_name(name)} = {value}"

    def _set(self, node: syntax.Expr | None) -> str:
        assert node is not None
        if isinstance(node, syntax.SetComprehension):
            return self.comprehension(node, "where")
        return self.formula(node)

    def _indexed(self, binder: syntax.Binder) -> str:
        domain = self.formula(binder.domain)
        if binder.kind == "in":
            return domain
        return f"{self.fc('draw')}({domain})"

    def _data(self, node: syntax.DataDecl, doc: str) -> str:
        if doc:
            more = [_doc(doc)]
        else:
            more = []
        if node.fields is None:
            assert node.type is not None
            real = node.type.name == "real"
            if real:
                parts = [self.formula(size) for size in node.type.shape]
            else:
                parts = [self.type(node.type)]
            return f"{self.fc('array')}({', '.join([*parts, *more])})"
        columns = [(field.name, self.type(field.type)) for field in node.fields]
        if all(_is_keyword(name) and name != "doc" for name, _ in columns):
            return f"{self.fc('table')}({', '.join([*(f'{name}={kind}' for name, kind in columns), *more])})"
        listed = ", ".join(f"{name!r}: {kind}" for name, kind in columns)
        return f"{self.fc('table')}({', '.join([f'{{{listed}}}', *more])})"

    def _bounded(self, node: syntax.ParamDecl | syntax.VarDecl) -> list[str]:
        """Shape and bounds; several of a kind as a list."""
        bounds: dict[str, list[str]] = {}
        for bound in node.bounds:
            bounds.setdefault(_BOUNDS[bound.op], []).append(self.formula(bound.value))
        shape = [self.formula(size) for size in node.shape]
        return shape + [
            f"{op}={v[0] if len(v) == 1 else '[' + ', '.join(v) + ']'}" for op, v in bounds.items()
        ]

    def _assumption(self, node: syntax.Expr) -> str:
        if isinstance(node, syntax.Call):
            if len(node.args) == 1:
                args = self._list(node.args)
            else:
                args = f"({self._list(node.args)})"
            return f"{node.func!r}: {args}"
        if isinstance(node, syntax.Name):
            return f"{node.id!r}: True"
        return ""

    def _def(self, node: syntax.DefDecl, doc: str) -> str:
        self.local += node.params
        text = self.symbolic(node.body, COMPARED)
        del self.local[len(self.local) - len(node.params) :]
        if doc:
            lines = [f"    {line}".rstrip() for line in f'"""{doc}"""'.splitlines()]
        else:
            lines = []
        if any(c in doc for c in '"\\'):
            quoted = [f"    {doc!r}"]
        else:
            quoted = lines
        return "\n".join(
            [
                f"\n@{self.model}.define",
                f"def {node.name}({', '.join(node.params)}):",
                *quoted,
                f"    return {text}",
                "",
            ]
        )

    def _constraint(self, node: syntax.Constraint, doc: str) -> str:
        relation = self.family(node.family, lambda: self.formula(node.relation))
        if node.options:
            using = [f"using={self._mapping(node.options)}"]
        else:
            using = []
        return self._method("subject_to", [_labelled(node.label, relation), *using], doc)

    def _mapping(self, items: Iterable[syntax.Keyword]) -> str:
        """Options: words as texts."""
        shown = []
        for item in items:
            word = isinstance(item.value, syntax.Name) and item.value.id not in self.kinds
            shown.append(f"{item.name!r}: {repr(item.value.id) if word else self.symbolic(item.value)}")  # type: ignore[attr-defined]
        return f"{{{', '.join(shown)}}}"


def _locals(statement: syntax.Statement) -> set[str]:
    """The names that only a statement knows: its elements and its parameters."""
    binders = {node.name for node in rewriting.walk(statement) if isinstance(node, syntax.Binder)}
    return binders | set(getattr(statement, "params", ()))


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


def _doc(doc: str) -> str:
    if doc:
        return f"doc={doc!r}"
    return ""


def _is_keyword(name: str) -> bool:
    return not keyword.iskeyword(name)


def _keyword(name: str, value: str) -> str:
    if _is_keyword(name):
        return f"{name}={value}"
    return f"**{{{name!r}: {value}}}"


def _labelled(label: str | None, value: str) -> str:
    if label is None:
        return value
    return _keyword(label, value)
