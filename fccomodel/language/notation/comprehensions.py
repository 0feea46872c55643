"""Comprehensions: one pass through a generator gives the formula of an element that stands for all."""

from __future__ import annotations

import dataclasses
import inspect
import re
import threading
from dataclasses import dataclass, field
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn

from fccomodel.core.source import NOWHERE, Span
from fccomodel.language import syntax, vocabulary
from fccomodel.language.errors import notation as errors
from fccomodel.language.notation import places
from fccomodel.language.notation.terms import TOKEN, CompoundFormula, PythonSyntax, fail, token

if TYPE_CHECKING:
    from fccomodel.language.notation.sets import Set


@dataclass(kw_only=True)
class Family:
    """A comprehension's formula and the sets that it goes over.

    frame     the frame of the generator
    elements  each with its token, its set, and the place of the set
    names     the names of the elements, by token
    values    the formulas: one, or as many as a comprehension over Python's own objects gives
    """

    frame: FrameType
    elements: list[tuple[CompoundFormula, str, Set, Span]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    values: list[Any] = field(default_factory=list)

    def element(self, over: Set, at: Span) -> CompoundFormula:
        """A new element of a set."""
        name = token()
        term = CompoundFormula(syntax.Name(id=name, span=NOWHERE), over._owner)
        self.elements.append((term, name, over, at))
        return term

    @property
    def value(self) -> Any:
        """The formula."""
        return self.values[0]

    @property
    def parts(self) -> list[PythonSyntax]:
        """The sets and the conditions of the head, for their model and size."""
        sets = [over for _, _, over, _ in self.elements]
        weights = [over._weight.part for over in sets if over._weight is not None]
        return [*sets, *(where.part for over in sets for where in over._wheres), *weights]

    def indexing(self, kind: str, at: Span) -> syntax.Indexing:
        """``i in I, z in D | condition``, with ``kind`` for ``in`` unless the set says which it is."""
        binders = []
        joined: syntax.Expr | None = None
        for _, name, over, place in self.elements:
            assert over._node is not None
            shown = f"{name}{TOKEN}{self.names.get(name, 'z')}"
            binder = syntax.Binder(name=shown, kind=over._draw or kind, domain=over._node, span=place)
            if over._weight is not None:
                binder = dataclasses.replace(binder, weight=over._weight.of(name))
            binders.append(binder)
            condition = over._condition(name)
            if joined is None:
                joined = condition
            elif condition is not None:
                joined = syntax.Binary(op="and", left=joined, right=condition, span=at)
        return syntax.Indexing(binders=tuple(binders), condition=joined, span=at)


class _Open(threading.local):
    """The comprehensions that are being read in this thread, the innermost last."""

    def __init__(self) -> None:
        self.families: list[Family] = []


_OPEN = _Open()


def of(frame: FrameType) -> Family | None:
    """The comprehension that a frame runs for if it is the innermost one, else None."""
    if _OPEN.families and _OPEN.families[-1].frame is frame:
        return _OPEN.families[-1]
    return None


def read(generator: GeneratorType, word: str) -> Family:
    """The formula of a comprehension, or the formulas of one over Python's own objects."""
    at = places.here()
    if generator.gi_frame is None:
        fail(errors.no_member(word), at)
    family = Family(frame=generator.gi_frame)
    _OPEN.families.append(family)
    nothing = object()
    try:
        value = next(generator, nothing)
        if value is nothing:
            fail(errors.no_member(word), at)
        held = {id(object_): name for name, object_ in reversed(generator.gi_frame.f_locals.items())}
        family.names = {name: held[id(term)] for term, name, _, _ in family.elements if id(term) in held}
        while value is not nothing:
            family.values.append(value)
            value = next(generator, nothing)
    finally:
        _OPEN.families.pop()
        generator.close()
    if family.elements and len(family.values) > 1:
        fail(errors.several_members(), at)
    return family


def is_comprehension(value: Any) -> bool:
    """Whether a value is a comprehension of Python."""
    return inspect.isgenerator(value)


def refuse_python(asking: FrameType, at: Span) -> NoReturn:
    """Raise the error of a set that Python itself goes through: a builtin function, a list, a loop."""
    frame: FrameType | None = asking
    while frame is not None and frame.f_code.co_flags & inspect.CO_GENERATOR and frame.f_back is not None:
        frame = frame.f_back
    place: Span
    if frame is asking:
        place = places.iterable(at)
    else:
        place = places.here(frame)
    called = re.match(r"[A-Za-z_][\w.]*(?=\()", places.text(place))
    if called:
        function = called[0]
    else:
        function = ""
    fail(errors.builtin_over_set(function, vocabulary.names()), place)
