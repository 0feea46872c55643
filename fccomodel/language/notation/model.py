"""A model built statement by statement in Python."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import NOWHERE, Source, Span
from fccomodel.language import lexer, statements, syntax
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import comprehensions, declarations, entries, naming, places, reading
from fccomodel.language.notation.comprehensions import is_comprehension
from fccomodel.language.notation.declarations import Dim, Function, NamedSet, Net, Number
from fccomodel.language.notation.entries import Entry
from fccomodel.language.notation.sets import Set
from fccomodel.language.notation.source import Composed, Said, composed
from fccomodel.language.notation.terms import Formula, Part, Term, fail, node_of, owner
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


class NoName(FccoError, AttributeError):
    """A name that the model does not have; an ``AttributeError``, so that ``hasattr`` answers."""


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
        self._entries: list[Entry] = []
        self._symbols: dict[str, Part] = {}
        self._removed: dict[str, Span] = {}
        self._included: list[Notation] = []
        self._composed: Composed | None = None

    # ---------------------------------------------------------------------------------------- texts
    @classmethod
    def read(cls, text: Source) -> Any:
        """The model that a text states, its comments as ``doc``; raises FccoError with every syntax error."""
        model = cls()
        model._name, model._doc, model._entries = reading.read(text)
        model._at = places.Written(start=0, end=0, source=text)
        for entry in model._entries:
            model._take_names(entry)
        return model

    @property
    def source(self) -> Source:
        """The model file, whose places are those in Python; raises FccoError for what is no syntax."""
        if self._composed is None:
            self._composed = self._compose()
        return self._composed

    def _compose(self) -> Composed:
        said = [Said(statement=e.statement, doc=e.doc) for e in self._in_order()]
        if self._name is not None:
            said.insert(0, Said(statement=ModelDecl(name=self._name, span=self._at)))
        files = {found[0].name for entry in self._entries if (found := places.place(entry.at)) is not None}
        return composed(
            said, doc=self._doc, name=files.pop() if len(files) == 1 else "<model>", whole=self._at
        )

    def _in_order(self) -> list[Entry]:
        """The statements of the file, elements under their names."""
        self._refuse_removed({name for entry in self._entries for kind, name in entry.keys if kind == "name"})
        constrained = any(isinstance(e.statement, Constraint) for e in self._entries)
        ordered = entries.ordered(self._entries)
        heads = [
            e for e in ordered if isinstance(e.statement, SubjectTo) and not constrained and e.at is NOWHERE
        ]
        return entries.named([e for e in ordered if e not in heads], {})

    def _refuse_removed(self, declared: builtins.set[str]) -> None:
        """An error where a statement uses a name whose statement was removed."""
        gone = {name: at for name, at in self._removed.items() if name not in declared}
        for entry in self._entries if gone else ():
            for name in sorted(naming.uses(entry.statement) & {*gone}):
                fail(errors.removed(name, places.row(gone[name])), entries.place_of(entry, name))

    def __str__(self) -> str:
        return self.source.text

    def __repr__(self) -> str:
        return f"<Model {self._name or 'without name'}: {len(self._entries)} statements>"

    @property
    def _title(self) -> str:
        if self._name:
            return f"`{self._name}`"
        return "one without name"

    def _has_names_of(self, other: Notation) -> bool:
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
            self._absent(errors.removed(name, places.row(self._removed[name])), at)
        self._absent(errors.no_statement("name", name, self._symbols), at)

    def _absent(self, diagnostic: Diagnostic, at: Span) -> NoReturn:
        error = places.refusal(at, diagnostic)
        raise NoName(error.diagnostics, error.source)

    def __contains__(self, name: object) -> bool:
        return name in self._symbols

    def __delattr__(self, name: str) -> None:
        self._remove("name", name)

    def __delitem__(self, name: str) -> None:
        self._remove("name", name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._symbols})

    def _remove(self, kind: str, name: str) -> None:
        gone = entries.remove(self._entries, (kind, name))
        if gone is None:
            fail(errors.no_statement("name" if kind == "name" else kind, name, self._names(kind)))
        if kind == "name":
            del self._symbols[name]
            self._removed[name] = places.here()
        self._changed()

    def _names(self, kind: str) -> list[str]:
        return [name for entry in self._entries for known, name in sorted(entry.keys) if known == kind]

    def _changed(self) -> None:
        self._composed = None

    # ----------------------------------------------------------------------------------- statements
    def _put(self, statement: syntax.Statement, parts: Any, doc: str, at: Span) -> None:
        """Add a statement whose formulas are made of ``parts``."""
        model = owner(parts, at)
        if model is not None and not self._has_names_of(model):
            fail(errors.another_model(self._title, model._title), at)
        naming.named(statement, (), naming.elements(*(part for part in parts if isinstance(part, Part))))
        entry = Entry(statement=statement, at=at, doc=inspect.cleandoc(doc))
        entries.put(self._entries, entry)
        self._changed()

    def _declare(self, name: str, value: Any, doc: str = "") -> Any:
        """The statement that gives a name to a declaration, a set, a formula or a family of them."""
        at = places.here()
        self._check_name(name, at)
        family, kind = None, "in"
        parts: tuple[Any, ...] = (value,)
        if is_comprehension(value):
            read = comprehensions.read(value, name)
            value, parts = read.value, (*read.parts, read.value)
            if read.elements:
                family = read.indexing(kind, at)
            else:
                family = None
        if isinstance(value, Part):
            declaration = getattr(value, "_declaration", None)
        else:
            declaration = None
        if (
            declaration is not None
            and declaration.make is not None
            and (value._node is None or value is self._symbols.get(name))
        ):
            statement, symbol = declaration.make(name, at), value
            doc, parts = doc or declaration.doc, (*parts[:-1], *declaration.uses)
            if family is not None:
                statement, symbol = self._family(statement, family, at), NamedSet("table")
        elif isinstance(value, Set):
            statement, symbol = (
                SetDecl(name=name, family=family, value=node_of(value, at), span=at),
                NamedSet("set"),
            )
        elif isinstance(value, Formula) and value._node is not None:
            statement, symbol = (
                LetDecl(name=name, family=family, value=node_of(value, at), span=at),
                Number("let"),
            )
        else:
            fail(errors.not_a_statement(_shown(value)), at)
        self._put(statement, parts, doc, at)
        return self._name_symbol(name, symbol)

    def _family(self, statement: syntax.Statement, family: syntax.Indexing, at: Span) -> syntax.Statement:
        """A family of tables."""
        if not isinstance(statement, DataDecl):
            reason = "There are families of tables, of sets, of `let`s and of constraints."
            fail(
                errors.argument("a comprehension", reason, "give the set as the shape: `m.v = fc.var(m.K)`"),
                at,
            )
        from dataclasses import replace

        return replace(statement, family=family)

    def _name_symbol(self, name: str, symbol: Any) -> Any:
        symbol._call(name, self)
        if isinstance(symbol, Set):
            symbol._rows = self._bases(name)
        self._symbols[name] = symbol
        self._removed.pop(name, None)
        return symbol

    def _bases(self, name: str) -> tuple[syntax.Expr, ...]:
        """The names whose columns are those of a set's rows: of its table, and of the sets between."""
        entry = next((e for e in self._entries if ("name", name) in e.keys), None)
        if entry is not None:
            value = getattr(entry.statement, "value", None)
        else:
            value = None
        while isinstance(value, syntax.SetComprehension | syntax.Index):
            if isinstance(value, syntax.Index):
                value = value.obj
            else:
                value = value.indexing.binders[0].domain
        if not isinstance(value, syntax.Name) or value.id == name or value.id not in self._symbols:
            return ()
        return (value, *getattr(self._symbols[value.id], "_rows", ()))

    def _check_name(self, name: str, at: Span) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            fail(
                errors.not_a_name(name, "Names have letters of ASCII, digits and `_`.", "choose such a name"),
                at,
            )
        if name in lexer.grammar().words:
            fail(
                errors.not_a_name(
                    name, "The language uses this word itself.", f"choose another name, as `{name}_1`"
                ),
                at,
            )

    def _take_names(self, entry: Entry) -> None:
        """The symbols of a statement that a text or another model made."""
        for kind, name in entry.keys:
            if kind == "name":
                self._name_symbol(name, _symbol(entry.statement))

    def let(self, *, doc: str = "", **named: Any) -> Any:
        """``let``: quantities under names, families by a comprehension: ``m.let(risk=(E(...) for k in
        G))``; returns them."""
        return self._each(named, lambda name, value: self._declare(name, value, doc))

    def _each(self, named: Mapping[str, Any], declare: Callable[[str, Any], Any]) -> Any:
        if not named:
            fail(errors.argument("m.let()", "A `let` has a name.", "write `m.let(name=formula)`"))
        found = tuple(declare(name, value) for name, value in named.items())
        if len(found) == 1:
            return found[0]
        return found

    def set(self, *, doc: str = "", **named: Any) -> Any:
        """``set``: sets under names, families by a comprehension: ``m.set(T=grid(0, 1, by=0.1),
        doc="levels")``; returns them."""
        return self._each(named, lambda name, value: self._declare(name, value, doc))

    def define(self, function: Callable[..., Any]) -> Function:
        """``def``: a function of the model, as a decorator; its docstring is the comment above it."""
        at = places.here()
        name = function.__name__
        self._check_name(name, at)
        code = function.__code__
        if (
            code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
            or not code.co_argcount
            or code.co_kwonlyargcount
        ):
            reason = "A `def` of the language has named arguments, one at least."
            fail(
                errors.argument(
                    "@m.define",
                    reason,
                    "write `def score(x): ...`; a plain Python function is simply inlined",
                ),
                at,
            )
        params = code.co_varnames[: code.co_argcount]
        body = function(*(Term(syntax.Name(id=param, span=NOWHERE)) for param in params))
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
        found = tuple(self._name_symbol(name, Dim()) for name in names)
        if len(found) == 1:
            return found[0]
        return found

    def index(self, *, doc: str = "", **over: Any) -> Any:
        """Several indices in one statement: ``i, j = m.index(i=m.P, j=draw(m.N))``."""
        at = places.here()
        binders = []
        for name, set_ in over.items():
            self._check_name(name, at)
            kind, domain = declarations.indexed_by(set_, at)
            binders.append(syntax.Binder(name=name, kind=kind, domain=domain, span=at))
        self._put(IndexDecl(binders=tuple(binders), span=at), tuple(over.values()), doc, at)
        found = tuple(self._name_symbol(name, Number("index")) for name in over)
        if len(found) == 1:
            return found[0]
        return found

    def minimize(self, value: Any = None, /, *, doc: str = "", **named: Any) -> None:
        """The objective, under a name or without: ``m.minimize(risk=E(...))``; another one replaces it."""
        self._objective("minimize", value, doc, named)

    def maximize(self, value: Any = None, /, *, doc: str = "", **named: Any) -> None:
        """The objective, under a name or without: ``m.maximize(auc=E(...))``; another one replaces it."""
        self._objective("maximize", value, doc, named)

    def _objective(self, sense: str, value: Any, doc: str, named: Mapping[str, Any]) -> None:
        at = places.here()
        if (value is None) != (len(named) == 1):
            fail(
                errors.argument(
                    f"m.{sense}(...)", "A model has one objective.", f"write `m.{sense}(name=formula)`"
                ),
                at,
            )
        if named:
            label, body = next(iter(named.items()))
        else:
            label, body = (None, value)
        if is_comprehension(body):
            fail(errors.not_a_formula("a comprehension", f"in `{sense}`"), at)
        self._put(Objective(sense=sense, body=node_of(body, at), label=label, span=at), (body,), doc, at)

    def subject_to(
        self, relation: Any = None, /, *, doc: str = "", using: Mapping[str, Any] | None = None, **named: Any
    ) -> None:
        """Constraints under labels, families by a comprehension: ``m.subject_to(gap=(abs(r[t]) <=
        m.kappa for t in T))``.

        relation  one without a label: ``left <= right``, ``left >= right``, ``left == right`` or
                  ``between(low, e, high)``
        using     options of the constraint, which a file gives after ``with``
        doc       the comment above it
        """
        at = places.here()
        if relation is None and not named:
            entries.put(self._entries, Entry(statement=SubjectTo(span=at), at=at, doc=inspect.cleandoc(doc)))
            self._changed()
        for label, value in (*([(None, relation)] if relation is not None else []), *named.items()):
            self._constraint(label, value, doc, using or {}, at)

    def _constraint(
        self, label: str | None, value: Any, doc: str, using: Mapping[str, Any], at: Span
    ) -> None:
        family, parts = None, (value, *using.values())
        if is_comprehension(value):
            read = comprehensions.read(value, label or "subject_to")
            value, parts = read.value, (*read.parts, read.value, *using.values())
            if read.elements:
                family = read.indexing("in", at)
            else:
                family = None
        if family is not None and label is None:
            reason = "The members of a family are told apart by its label and their indices."
            fail(
                errors.argument(
                    "m.subject_to(...)", reason, "write `m.subject_to(name=(left <= right for k in K))`"
                ),
                at,
            )
        if not isinstance(value, Formula):
            fail(errors.not_a_formula(_shown(value), "as a constraint"), at)
        options = tuple(
            syntax.Keyword(name=name, value=_option(option, at), span=at) for name, option in using.items()
        )
        relation = node_of(value, at)
        self._put(
            Constraint(relation=relation, label=label, family=family, options=options, span=at),
            parts,
            doc,
            at,
        )

    def options(self, given: Mapping[str, Any] | None = None, /, *, doc: str = "", **more: Any) -> None:
        """How to solve, ``m.options(algorithm="sonex", seed=1)``; dotted names as a mapping. Those
        given before stay."""
        at = places.here()
        before = next((e for e in self._entries if ("options", "") in e.keys), None)
        items = {item.name: item for item in getattr(before and before.statement, "items", ())}
        for name, value in {**(given or {}), **more}.items():
            items[name] = syntax.Keyword(name=name, value=_option(value, at), span=at)
        self._put(
            Options(items=tuple(items.values()), span=at),
            (),
            doc or (before.doc if before else ""),
            at,
        )

    def include(self, other: Notation) -> None:
        """The statements of another model, as ``include`` of its file: all but its name and its options."""
        if not isinstance(other, Notation):
            fail(
                errors.argument(
                    "m.include(...)", "It takes a model.", "write `m.include(fc.Model.parse(path))`"
                )
            )
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
        """Python code that builds the model: ``Model`` and ``str`` of what it builds are the same."""
        from fccomodel.language.notation import writing

        return writing.program(self._name, self._doc, self._in_order(), {*dir(Notation), *dir(type(self))})


class Constraints(Mapping[str, str]):
    """A model's labelled constraints as texts; ``del`` takes one away."""

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
_SYMBOLS: Mapping[str, Callable[[], Part]] = {
    "dim": Dim,
    "set": lambda: NamedSet("set"),
    "table": lambda: NamedSet("table"),
    "net": Net,
    "define": Function,
    "number": lambda: Number("number"),
}


def _symbol(statement: syntax.Statement) -> Part:
    """What a name of a statement stands for in Python."""
    return _SYMBOLS[statements.of(statement).stands_for(statement)]()


def _option(value: Any, at: Span) -> syntax.Expr:
    """An option's value: a word where a text reads as one."""
    if isinstance(value, bool):
        return syntax.Name(id=str(value).lower(), span=at)
    if (
        isinstance(value, str)
        and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value)
        and value not in lexer.grammar().words
    ):
        return syntax.Name(id=value, span=at)
    return node_of(value, at)


def _shown(value: Any) -> str:
    from fccomodel.language.notation.terms import described

    if isinstance(value, Part) and not isinstance(value, Word) and value._node is not None:
        return f"`{value!r}`"
    if isinstance(value, Word):
        return f"the word `{value.__name__}`"
    return described(value)


__all__ = ["Constraints", "Notation"]
