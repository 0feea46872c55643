"""A model built statement by statement in Python."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fccomodel.core.source import NOWHERE, Source, Span
from fccomodel.language import lexer, statements, syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import (
    comprehensions,
    declarations,
    entries,
    naming,
    places,
    reading,
    writing,
)
from fccomodel.language.notation.comprehensions import is_comprehension
from fccomodel.language.notation.declarations import Dim, Function, NamedSet, Net, Number
from fccomodel.language.notation.entries import StatementEntry
from fccomodel.language.notation.sets import Set
from fccomodel.language.notation.source import ComposedText, Said, composed
from fccomodel.language.notation.terms import (
    CompoundFormula,
    Declaration,
    Formula,
    PythonSyntax,
    absent,
    described,
    fail,
    node_of,
    owner,
)
from fccomodel.language.notation.words import Word
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.define import DefDecl
from fccomodel.language.statements.dim import DimDecl
from fccomodel.language.statements.heading import SubjectTo
from fccomodel.language.statements.indices import IndexDecl
from fccomodel.language.statements.let import LetDecl
from fccomodel.language.statements.model import ModelDecl
from fccomodel.language.statements.objective import Objective
from fccomodel.language.statements.options import Options
from fccomodel.language.statements.sets import SetDecl
from fccomodel.library import reductions

#: The names of the language.
NAME = r"[A-Za-z_][A-Za-z0-9_]*"


class Notation:
    """The statements of a model, each written as an assignment or a call; ``str`` gives the model file.

    >>> m = Model("mean")  # doctest: +SKIP
    >>> m.D = table(y=real)  # doctest: +SKIP
    >>> m.t = var()  # doctest: +SKIP
    >>> m.minimize(spread=E((z.y - m.t) ** 2 for z in m.D))  # doctest: +SKIP
    """

    def __init__(self, name: str | None = None, *, doc: str = ""):
        """A model without statements; ``doc`` is the comment at the top of its file."""
        self._name = name
        self._doc = doc
        self._at: Span = places.here()
        self._entries: list[StatementEntry] = []
        self._symbols: dict[str, PythonSyntax] = {}
        self._removed: dict[str, Span] = {}
        self._included: list[Notation] = []
        self._composed: ComposedText | None = None

    # ---------------------------------------------------------------------------------------- texts
    @classmethod
    def read(cls, text: Source) -> Any:
        """The model that a text states, with its comments; raises FccoError with every syntax error."""
        model = cls()
        model._name, model._doc, model._entries = reading.read(text)
        model._at = places.Written(start=0, end=0, source=text)
        for entry in model._entries:
            model._take_names(entry)
        return model

    @property
    def source(self) -> Source:
        """The model file with places in Python; raises FccoError if it does not parse."""
        if self._composed is None:
            self._composed = self._compose()
        return self._composed

    def _compose(self) -> ComposedText:
        """The text of the statements with their places."""
        statements = [Said(statement=entry.statement, doc=entry.doc) for entry in self._in_order()]
        if self._name is not None:
            statements.insert(0, Said(statement=ModelDecl(name=self._name, span=self._at)))
        located = [places.place(entry.at) for entry in self._entries]
        files = {source.name for source, _ in filter(None, located)}
        if len(files) == 1:
            name = files.pop()
        else:
            name = "<model>"
        return composed(statements, doc=self._doc, name=name, whole=self._at)

    def _in_order(self) -> list[StatementEntry]:
        """The statements in the order of the file, with names for their elements."""
        self._refuse_removed({*self._names("name")})
        ordered = entries.ordered(self._entries)
        if not any(isinstance(entry.statement, Constraint) for entry in ordered):
            ordered = [entry for entry in ordered if not _is_own_heading(entry)]
        return entries.named(ordered, {})

    def _refuse_removed(self, declared: builtins.set[str]) -> None:
        """Raise FccoError for a statement that uses a name whose statement was removed."""
        gone = {name: at for name, at in self._removed.items() if name not in declared}
        if not gone:
            return
        for entry in self._entries:
            for name in sorted(naming.uses(entry.statement) & {*gone}):
                fail(errors.removed(name, places.row(gone[name])), entries.place_of(entry, name))

    def __str__(self) -> str:
        return self.source.text

    def __repr__(self) -> str:
        return f"<Model {self._name or 'without name'}: {len(self._entries)} statements>"

    @property
    def _title(self) -> str:
        """The model in messages."""
        if self._name:
            return f"`{self._name}`"
        return "one without name"

    def _has_names_of(self, other: Notation) -> bool:
        """Whether the names of another model are names of this one."""
        return other is self or any(part._has_names_of(other) for part in self._included)

    # ----------------------------------------------------------------------------------- attributes
    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        if hasattr(type(self), name):
            reason = "`Model` has an attribute of this name itself."
            fail(errors.not_a_name(name, reason, f'write `m["{name}"] = ...` and `m["{name}"]`'))
        self._declare(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        self._declare(name, value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str) -> Any:
        if name in self._symbols:
            return self._symbols[name]
        at = places.here()
        if name in self._removed:
            absent(errors.removed(name, places.row(self._removed[name])), at)
        methods = [method for method in dir(type(self)) if not method.startswith("_")]
        absent(errors.no_statement("name", name, self._symbols, methods), at)

    def __contains__(self, name: object) -> bool:
        return name in self._symbols

    def __delattr__(self, name: str) -> None:
        self._remove("name", name)

    def __delitem__(self, name: str) -> None:
        self._remove("name", name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._symbols})

    def _remove(self, kind: str, name: str) -> None:
        """Remove a statement by its name or its label."""
        gone = entries.remove(self._entries, (kind, name))
        if gone is None:
            fail(errors.no_statement(kind, name, self._names(kind)))
        if kind == "name":
            del self._symbols[name]
            self._removed[name] = places.here()
        self._changed()

    def _names(self, kind: str) -> list[str]:
        """The names, or the labels, of the statements."""
        return [name for entry in self._entries for known, name in sorted(entry.keys) if known == kind]

    def _changed(self) -> None:
        """Forget the composed text, since the statements changed."""
        self._composed = None

    # ----------------------------------------------------------------------------------- statements
    def _put(self, statement: syntax.Statement, parts: Any, doc: str, at: Span) -> None:
        """Add a statement whose formulas are made of ``parts``."""
        model = owner(parts, at)
        if model is not None and not self._has_names_of(model):
            fail(errors.another_model(self._title, model._title), at)
        naming.named(
            statement, (), naming.elements(*(part for part in parts if isinstance(part, PythonSyntax)))
        )
        entry = StatementEntry(statement=statement, at=at, doc=inspect.cleandoc(doc))
        entries.put(self._entries, entry)
        self._changed()

    def _declare(self, name: str, value: Any, doc: str = "") -> Any:
        """Give a name to a declaration, a set, a formula or a family; returns the symbol of the name."""
        at = places.here()
        self._check_name(name, at)
        if inspect.isfunction(value):
            value = _of_itself(value, name, at)
        value, family, parts = _read_family(value, name, at)
        statement: syntax.Statement
        symbol: Any
        declaration = self._waiting(name, value)
        if declaration is not None:
            assert declaration.make is not None
            statement, symbol = declaration.make(name, at), value
            doc, parts = doc or declaration.doc, (*parts[:-1], *declaration.uses)
            if family is not None:
                statement, symbol = self._family(statement, family, at), NamedSet("table")
        elif isinstance(value, Set):
            statement = SetDecl(name=name, family=family, value=value._to_declare(at), span=at)
            symbol = NamedSet("set")
        elif isinstance(value, Formula) and value._node is not None:
            statement = LetDecl(name=name, family=family, value=node_of(value, at), span=at)
            symbol = Number("let")
        else:
            fail(errors.not_a_statement(_shown(value)), at)
        self._put(statement, parts, doc, at)
        return self._name_symbol(name, symbol)

    def _waiting(self, name: str, value: Any) -> Declaration | None:
        """The declaration of a value that waits for its name, or that has this name already, else None."""
        declaration = value._declaration if isinstance(value, PythonSyntax) else None
        if declaration is None or declaration.make is None:
            return None
        if value._node is not None and value is not self._symbols.get(name):
            return None
        return declaration

    def _family(self, statement: syntax.Statement, family: syntax.Indexing, at: Span) -> syntax.Statement:
        """A family of tables; raises FccoError for other declarations."""
        if not isinstance(statement, DataDecl):
            reason = "There are families of tables, of sets, of `let`s and of constraints."
            fix = "give the set as the shape: `m.v = fc.var(m.K)`"
            fail(errors.argument("a comprehension", reason, fix), at)
        return replace(statement, family=family)

    def _name_symbol(self, name: str, symbol: Any) -> Any:
        """Let a name stand for a symbol."""
        symbol._call(name, self)
        if isinstance(symbol, Set):
            symbol._rows = self._bases(name)
        self._symbols[name] = symbol
        self._removed.pop(name, None)
        return symbol

    def _bases(self, name: str) -> tuple[syntax.Expr, ...]:
        """The names with the columns of a set's rows: of the set that it is part of, and its names."""
        entry = next((entry for entry in self._entries if ("name", name) in entry.keys), None)
        if entry is None:
            return ()
        value = getattr(entry.statement, "value", None)
        while isinstance(value, syntax.SetComprehension | syntax.Index):
            if isinstance(value, syntax.Index):
                value = value.obj
            else:
                value = value.indexing.binders[0].domain
        if not isinstance(value, syntax.Name) or value.id == name or value.id not in self._symbols:
            return ()
        return (value, *getattr(self._symbols[value.id], "_rows", ()))

    def _check_name(self, name: str, at: Span) -> None:
        """Raise FccoError if the language does not allow a name."""
        if not re.fullmatch(NAME, name):
            reason = "Names have letters of ASCII, digits and `_`."
            fail(errors.not_a_name(name, reason, "choose such a name"), at)
        if name in lexer.grammar().words:
            reason = "The language uses this word itself."
            fail(errors.not_a_name(name, reason, f"choose another name, as `{name}_1`"), at)

    def _take_names(self, entry: StatementEntry) -> None:
        """Make symbols for the names of a statement that was read from a text."""
        for kind, name in entry.keys:
            if kind == "name":
                self._name_symbol(name, _symbol(entry.statement))

    def let(self, *, doc: str = "", **named: Any) -> Any:
        """``let``: quantities under names, families by comprehensions: ``m.let(risk=(E(...) for k in G))``.

        A recursion is a function of its own members:
        ``m.let(x=lambda x: (if_else(t == 1, m.a, m.b * x[t - 1]) for t in m.T))``.
        Returns the quantity, or a tuple of several. ``doc`` is the comment above the statements.
        """
        return self._each(named, lambda name, value: self._declare(name, value, doc))

    def _each(self, named: Mapping[str, Any], declare: Callable[[str, Any], Any]) -> Any:
        """Declare each value under its name."""
        if not named:
            fail(errors.argument("m.let()", "A `let` has a name.", "write `m.let(name=formula)`"))
        return _one_or_all(declare(name, value) for name, value in named.items())

    def set(self, *, doc: str = "", **named: Any) -> Any:
        """``set``: sets under names, families by comprehensions: ``m.set(T=grid(0, 1, by=0.1))``.

        Returns the set, or a tuple of several. ``doc`` is the comment above the statements.
        """
        return self._each(named, lambda name, value: self._declare(name, value, doc))

    def define(self, function: Callable[..., Any]) -> Function:
        """``def``: a function of the model, as a decorator; its docstring is the comment above it."""
        at = places.here()
        name = function.__name__
        self._check_name(name, at)
        code = function.__code__
        unnamed = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
        if unnamed or not code.co_argcount or code.co_kwonlyargcount:
            reason = "A `def` of the language has named arguments, one at least."
            fix = "write `def score(x): ...`; a plain Python function is simply inlined"
            fail(errors.argument("@m.define", reason, fix), at)
        params = code.co_varnames[: code.co_argcount]
        body = function(*(CompoundFormula(syntax.Name(id=param, span=NOWHERE)) for param in params))
        if is_comprehension(body) or body is None:
            fail(errors.not_a_formula(_shown(body), f"in `return` of `{name}`"), at)
        defined = DefDecl(name=name, params=params, body=node_of(body, at), span=at)
        self._put(defined, (body,), function.__doc__ or "", at)
        symbol: Function = self._name_symbol(name, Function())
        return symbol

    def dim(self, *names: str, doc: str = "") -> Any:
        """Several sizes in one statement: ``d, k = m.dim("d", "k")``."""
        at = places.here()
        for name in names:
            self._check_name(name, at)
        self._put(DimDecl(names=names, span=at), (), doc, at)
        return _one_or_all(self._name_symbol(name, Dim()) for name in names)

    def index(self, *, doc: str = "", **over: Any) -> Any:
        """Several indices in one statement: ``i, j = m.index(i=m.P, j=draw(m.N))``."""
        at = places.here()
        binders = []
        for name, members in over.items():
            self._check_name(name, at)
            kind, domain = declarations.indexed_by(members, at)
            binders.append(syntax.Binder(name=name, kind=kind, domain=domain, span=at))
        self._put(IndexDecl(binders=tuple(binders), span=at), tuple(over.values()), doc, at)
        return _one_or_all(self._name_symbol(name, Number("index")) for name in over)

    def minimize(self, value: Any = None, /, *, doc: str = "", **named: Any) -> None:
        """The objective, under a name or without: ``m.minimize(risk=E(...))``; another one replaces it."""
        self._objective("minimize", value, doc, named)

    def maximize(self, value: Any = None, /, *, doc: str = "", **named: Any) -> None:
        """The objective, under a name or without: ``m.maximize(auc=E(...))``; another one replaces it."""
        self._objective("maximize", value, doc, named)

    def _objective(self, sense: str, value: Any, doc: str, named: Mapping[str, Any]) -> None:
        at = places.here()
        if (value is None) != (len(named) == 1):
            fix = f"write `m.{sense}(name=formula)`"
            fail(errors.argument(f"m.{sense}(...)", "A model has one objective.", fix), at)
        label: str | None = None
        body = value
        if named:
            label, body = next(iter(named.items()))
        if is_comprehension(body):
            fail(errors.not_a_formula("a comprehension", f"in `{sense}`"), at)
        self._put(Objective(sense=sense, body=node_of(body, at), label=label, span=at), (body,), doc, at)

    def subject_to(
        self, relation: Any = None, /, *, doc: str = "", using: Mapping[str, Any] | None = None, **named: Any
    ) -> None:
        """Constraints under labels: ``m.subject_to(gap=(abs(r[t]) <= m.kappa for t in T))``.

        relation  a constraint without a label: ``left <= right``, ``left >= right``, ``left == right``
                  or ``between(low, e, high)``
        doc       the comment above it
        using     options of the constraint, which a file gives after ``with``
        named     constraints by label; a comprehension gives a family
        """
        at = places.here()
        if relation is None and not named:
            entries.put(
                self._entries, StatementEntry(statement=SubjectTo(span=at), at=at, doc=inspect.cleandoc(doc))
            )
            self._changed()
        if relation is not None:
            self._constraint(None, relation, doc, using or {}, at)
        for label, value in named.items():
            self._constraint(label, value, doc, using or {}, at)

    def _constraint(
        self, label: str | None, value: Any, doc: str, using: Mapping[str, Any], at: Span
    ) -> None:
        """Add a constraint, or a family of constraints."""
        value, family, parts = _read_family(value, label or "subject_to", at)
        if family is not None and label is None:
            reason = "The members of a family are told apart by its label and their indices."
            fix = "write `m.subject_to(name=(left <= right for k in K))`"
            fail(errors.argument("m.subject_to(...)", reason, fix), at)
        if not isinstance(value, Formula):
            fail(errors.not_a_formula(_shown(value), "as a constraint"), at)
        options = tuple(
            syntax.Keyword(name=name, value=_option(option, at), span=at) for name, option in using.items()
        )
        relation = node_of(value, at)
        constraint = Constraint(relation=relation, label=label, family=family, options=options, span=at)
        self._put(constraint, (*parts, *using.values()), doc, at)

    def options(self, settings: Mapping[str, Any] | None = None, /, *, doc: str = "", **more: Any) -> None:
        """How to solve: ``m.options(algorithm="sonex", seed=1)``. Options of earlier calls stay.

        settings  options as a mapping, for dotted names
        doc       the comment above the statement
        more      options by name
        """
        at = places.here()
        items: dict[str, syntax.Keyword] = {}
        for entry in self._entries:
            if isinstance(entry.statement, Options):
                items = {item.name: item for item in entry.statement.items}
                doc = doc or entry.doc
        for name, value in {**(settings or {}), **more}.items():
            items[name] = syntax.Keyword(name=name, value=_option(value, at), span=at)
        self._put(Options(items=tuple(items.values()), span=at), (), doc, at)

    def include(self, other: Notation) -> None:
        """Add the statements of another model, all but its name and its options."""
        if not isinstance(other, Notation):
            fix = "write `m.include(fc.Model.parse(path))`"
            fail(errors.argument("m.include(...)", "It takes a model.", fix))
        for entry in other._entries:
            if statements.of(entry.statement).included:
                self._entries.append(entry)
        for name, symbol in other._symbols.items():
            self._symbols.setdefault(name, symbol)
        self._included.append(other)
        self._changed()

    @property
    def constraints(self) -> Constraints:
        """The constraints by label: ``del m.constraints["gap"]``."""
        return Constraints(self)

    def to_python(self) -> str:
        """Python code that builds the same model."""
        return writing.program(self._name, self._doc, self._in_order(), {*dir(Notation), *dir(type(self))})


class Constraints(Mapping[str, str]):
    """The labelled constraints of a model as texts; ``del`` removes one."""

    def __init__(self, model: Notation):
        self._model = model

    def __getitem__(self, label: str) -> str:
        for entry in entries.named(self._model._entries, {}):
            if ("constraint", label) in entry.keys:
                return statements.text(entry.statement)
        raise KeyError(label)

    def __iter__(self) -> Iterator[str]:
        return iter(self._model._names("constraint"))

    def __len__(self) -> int:
        return len(self._model._names("constraint"))

    def __delitem__(self, label: str) -> None:
        self._model._remove("constraint", label)

    def __repr__(self) -> str:
        return "\n".join(self.values()) or "no constraints with labels"


#: What stands in Python for the names of a statement.
_SYMBOLS: Mapping[str, Callable[[], PythonSyntax]] = {
    "dim": Dim,
    "set": lambda: NamedSet("set"),
    "table": lambda: NamedSet("table"),
    "net": Net,
    "frozen net": lambda: Net(frozen=True),
    "define": Function,
    "number": lambda: Number("number"),
    "index": lambda: Number("index"),
}


def _symbol(statement: syntax.Statement) -> PythonSyntax:
    """The object in Python for a name of a statement."""
    return _SYMBOLS[statements.of(statement).stands_for(statement)]()


def _option(value: Any, at: Span) -> syntax.Expr:
    """The value of an option; a text that reads as a name becomes a word."""
    if isinstance(value, bool):
        return syntax.Name(id=str(value).lower(), span=at)
    taken = lexer.grammar().words.keys() - reductions.words().keys()
    if isinstance(value, str) and re.fullmatch(NAME, value) and value not in taken:
        return syntax.Name(id=value, span=at)
    return node_of(value, at)


def _read_family(value: Any, name: str, at: Span) -> tuple[Any, syntax.Indexing | None, tuple[Any, ...]]:
    """The formula of a value, its family if it is a comprehension over sets, and what both are made of.

    Raises F0122 for a comprehension over Python's own objects: it would be several statements.
    """
    if not is_comprehension(value):
        return value, None, (value,)
    read = comprehensions.read(value, name)
    if read.elements:
        family = read.indexing("in", at)
    elif len(read.values) > 1:
        fail(errors.several_statements(), at)
    else:
        family = None
    return read.value, family, (*read.parts, read.value)


def _of_itself(function: Callable[[Any], Any], name: str, at: Span) -> Any:
    """The value of a recursion: a function of the family that it makes."""
    if len(inspect.signature(function).parameters) != 1:
        reason = "A recursion is a function of the members that it makes."
        fix = f"write `m.let({name}=lambda {name}: (... for t in m.T))`"
        fail(errors.argument(f"m.let({name}=...)", reason, fix), at)
    return function(CompoundFormula(syntax.Name(id=name, span=NOWHERE)))


def _one_or_all(symbols: Iterable[Any]) -> Any:
    """The only symbol, or a tuple of several."""
    every = tuple(symbols)
    if len(every) == 1:
        return every[0]
    return every


def _is_own_heading(entry: StatementEntry) -> bool:
    """Whether a statement is a ``subject to`` that the first constraint brought."""
    return isinstance(entry.statement, SubjectTo) and entry.at is NOWHERE


def _shown(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Word):
        return f"the word `{value.__name__}`"
    if isinstance(value, PythonSyntax) and value._node is not None:
        return f"`{value!r}`"
    return described(value)


__all__ = ["Constraints", "Notation"]
