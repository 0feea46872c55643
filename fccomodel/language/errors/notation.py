"""F0120-F0129: errors of models written in Python."""

from __future__ import annotations

from collections.abc import Iterable

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.language.errors import habits

TRUTH = Code("F0120", "truth value")
BUILTIN = Code("F0121", "python function")
COMPREHENSION = Code("F0122", "comprehension")
FOREIGN = Code("F0123", "another model")
ABSENT = Code("F0124", "name of the model")
ATTRIBUTE = Code("F0125", "attribute")
OPERAND = Code("F0126", "operand")
DECLARATION = Code("F0127", "declaration")

_SYMBOL = "A formula has no value until the model has data and is solved"


# ------------------------------------------------------------------------------------- truth values
#: construct of Python -> what to write in its place
INSTEAD = {
    "And": "join conditions by `&`, each in brackets: `(a) & (b)`",
    "Or": "join conditions by `|`, each in brackets: `(a) | (b)`",
    "Not": "negate a condition by `~`: `~(a)`",
    "Compare": "write `between(low, e, high)`, or `chain(a, '<', e, '<=', b)`",
    "GeneratorExp": "put the condition on the set: `for z in D.where(D.y == 1)`",
    "IfExp": "write the choice as a formula: `if_else(z.y == 1, u, v)`",
    "In": "write the cases out: `(z.y == 1) | (z.y == 2)`",
    "": "join conditions by `&`, `|`, `~`; put them on sets, `D.where(D.y == 1)`; write `between(low, e, "
    "high)` for a chain",
}


def truth_value(construct: str, shown: str) -> Diagnostic:
    """A formula is neither true nor false."""
    return TRUTH.error(
        f"`{shown}` is neither true nor false",
        reason=f"{_SYMBOL}: `if`, `and`, `or`, `not`, `in` and chains such as `a <= b <= c` ask for its "
        "truth value now.",
        fix=INSTEAD.get(construct, INSTEAD[""]),
    )


def no_number(what: str, shown: str, fix: str) -> Diagnostic:
    """A formula is not a Python number, and it has no length and no items."""
    return TRUTH.error(f"`{shown}` has no {what}", reason=f"{_SYMBOL}.", fix=fix)


# --------------------------------------------------------------------------------- Python functions
def builtin_over_set(function: str, words: Iterable[str]) -> Diagnostic:
    """A set of the model has no list of elements in Python."""
    word = function.rpartition(".")[2]
    known = word in words
    return BUILTIN.error(
        f"`{function}` cannot go through a set of the model"
        if function
        else "Python cannot go through a set of the model",
        reason="The set has its elements when the model has data; the words of the language take a "
        "comprehension over it as a "
        "whole, Python's own functions, lists and loops do not.",
        fix=f"write `from fccomodel import {word}`, or `fc.{word}(...)`"
        if known
        else "write a comprehension inside a word of the language: `fc.sum(f(z) for z in D)`",
    )


def foreign_function(function: str, word: str, shown: str) -> Diagnostic:
    """Functions of numpy and of other libraries take numbers, not formulas."""
    return BUILTIN.error(
        f"`{function}` cannot take `{shown}`",
        reason=f"{_SYMBOL}; functions of other libraries take numbers.",
        fix=f"write `fc.{word}(...)`"
        if word
        else "use the language's own functions; `fccomodel atoms` lists them",
    )


# ----------------------------------------------------------------------------------- comprehensions
def several_members() -> Diagnostic:
    """A comprehension goes over sets of the model only."""
    return COMPREHENSION.error(
        "this comprehension goes through a Python object that has several members",
        reason="A comprehension gives one formula, for an element that stands for all: its `for`s go "
        "over tables and sets of the "
        "model.",
        fix="write the numbers as a set of the model: `for k in values(1, 2, 3)`, `for t in grid(0, 1, "
        "by=0.1)`",
    )


def several_statements() -> Diagnostic:
    """A family goes over sets of the model only."""
    return COMPREHENSION.error(
        "this comprehension goes through a Python object that has several members",
        reason="A family is one formula, for an element that stands for all members: its `for`s go over "
        "tables and sets of the model.",
        fix='write the members as a set of the model, `for k in values("a", "b")`, or a statement for each: '
        '`for k in ("a", "b"): m.subject_to(**{f"bound_{k}": m.w[k] >= 0})`',
    )


def no_member(word: str) -> Diagnostic:
    """A comprehension has a name for the elements of a set of the model."""
    return COMPREHENSION.error(
        f"`{word}` has no set to go over here",
        reason="It takes a comprehension over tables and sets of the model, and each comprehension once.",
        fix=f"write `{word}(f(z) for z in D)`",
    )


def reduction_without_set(word: str, head: str) -> Diagnostic:
    """A reduction goes over a set."""
    return COMPREHENSION.error(
        f"`{word}` needs a set to go over",
        reason=f"In a file this is `{head} ...`; in Python a comprehension says it.",
        fix=f"write `{word}(f(z) for z in D)`",
    )


def escaped(name: str, where: str) -> Diagnostic:
    """An element has a meaning only inside its comprehension."""
    return COMPREHENSION.error(
        f"`{name}` is used outside of its comprehension",
        reason=f"It is an element of the comprehension at {where}, and means nothing elsewhere.",
        fix="move the formula into the comprehension",
    )


def unpacked(shown: str) -> Diagnostic:
    """An element is one name."""
    return COMPREHENSION.error(
        f"`{shown}` cannot be taken apart or gone through",
        reason="An element of a set is one name; its columns are `z.x`, entries of arrays `v[k]`.",
        fix="write `for z in D` and `z.x`, or go over the set that an array is indexed by: `sum(v[k] for "
        "k in K)`",
    )


# ----------------------------------------------------------------------------------- several models
def another_model(first: str, second: str) -> Diagnostic:
    """A formula belongs to one model."""
    return FOREIGN.error(
        f"this joins names of two models, {first} and {second}",
        reason="A formula is about the names of one model.",
        fix="declare it in this model, or take the other's statements over by `m.include(other)`",
    )


# --------------------------------------------------------------------------------------- statements
def removed(name: str, where: str) -> Diagnostic:
    """A statement that other statements use cannot be removed."""
    return ABSENT.error(
        f"`{name}` is used here, and its statement is gone",
        reason=f"It was removed at {where}.",
        fix=f"declare `{name}` again, or remove this statement too",
    )


def no_statement(what: str, name: str, names: Iterable[str], methods: Iterable[str] = ()) -> Diagnostic:
    """A statement that is removed or looked up is in the model.

    methods   the methods of ``Model``, if the name may be one of them
    """
    names, habit = list(names), ""
    if methods and name in habits.MODEL:
        habit = f"Write `{habits.MODEL[name]}`."
    return ABSENT.error(
        f"the model has no {what} `{name}`",
        reason=f"It has {', '.join(f'`{n}`' for n in names)}." if names else "It has none.",
        fix=habit or did_you_mean(name, [*names, *methods]) or "look at `print(m)`",
    )


#: Declarations in a message.
_KINDS = {
    **dict.fromkeys(("var", "params"), "a variable of the model"),
    "param": "a param of the model",
    "array": "an array of the model",
    "const": "a constant of the model",
    "dim": "a size of the model",
    "let": "a quantity of the model",
    "define": "a function of the model",
}


def no_attribute(shown: str, name: str, kind: str) -> Diagnostic:
    """Only elements of sets have attributes, their columns.

    kind   the kind of declaration, or ``formula``
    """
    return ATTRIBUTE.error(
        f"`{shown}` has no attribute `{name}`",
        reason=f"It is {_KINDS.get(kind, 'a formula')}. Only elements of sets have attributes: their "
        "columns.",
        fix=habits.instead(shown, name) or f"leave `.{name}` out, or write `z.{name}` of an element `z`",
    )


def not_a_name(name: str, reason: str, fix: str) -> Diagnostic:
    """A name of the model is allowed by the language and is not a method of ``Model``."""
    return ATTRIBUTE.error(f"`{name}` cannot be a name of the model", reason=reason, fix=fix)


def no_function(shown: str, methods: Iterable[str]) -> Diagnostic:
    """A formula, a column or a set cannot be called; a misspelt method is read as a column."""
    owner, _, name = shown.rpartition(".")
    fix = did_you_mean(name, methods) or habits.instead(owner, name)
    return ATTRIBUTE.error(
        f"`{shown}` cannot be called",
        reason="A name after a point is a column; nets, functions by `m.define` and the language's words "
        "take arguments.",
        fix=fix or "write a product with `*`, an entry as `v[k]`",
    )


def not_a_statement(shown: str) -> Diagnostic:
    """An attribute of a model is a declaration, a set or a formula."""
    return DECLARATION.error(
        f"{shown} is no statement of a model",
        reason="An attribute is a declaration (`fc.param()`, `fc.var(m.d)`, ...), a set, a formula, or a "
        "family of them by a "
        "comprehension. Data enter by `bind`.",
        fix="write `m.c = fc.array(m.G)` and `m.bind(c=...)` for data, `fc.const(2)` for a number",
    )


def without_name(kind: str) -> Diagnostic:
    """A declaration is used once it has a name."""
    return DECLARATION.error(
        f"this {kind} has no name yet",
        reason="A declaration belongs to a model under a name.",
        fix=f"write `m.name = fc.{kind}(...)` first, and use `m.name`",
    )


def argument(call: str, reason: str, fix: str) -> Diagnostic:
    """An argument of a declaration has one of the types that the declaration accepts."""
    return DECLARATION.error(f"`{call}` cannot take this", reason=reason, fix=fix)


# ----------------------------------------------------------------------------------------- operands
def not_an_operand(shown: str) -> Diagnostic:
    """Formulas are made of numbers, labels and names of the model."""
    return OPERAND.error(
        f"{shown} cannot stand in a formula",
        reason="Formulas are made of numbers, labels (texts) and names of the model; data enter by "
        "`bind` alone.",
        fix="declare `m.c = fc.array(m.d)` and bind it: `m.bind(c=values)`",
    )


def no_operator(op: str, fix: str) -> Diagnostic:
    """A formula uses operators of the language only."""
    return OPERAND.error(
        f"formulas have no `{op}`",
        reason="The operators are `+ - * / @ **` and comparisons, `& | ~` of conditions.",
        fix=fix,
    )


def not_a_formula(shown: str, where: str) -> Diagnostic:
    """A formula is made of values that the language has."""
    return OPERAND.error(
        f"{shown} cannot stand {where}",
        reason="A formula or a comprehension of one stands here.",
        fix="for a constraint write `left <= right`; for an objective a number",
    )


def too_large(limit: int) -> Diagnostic:
    """A formula written out has a bounded length."""
    return OPERAND.error(
        f"this formula has more than {limit:,} parts written out",
        reason="A Python name that is used many times is written out each time.",
        fix="name the parts that are used again: `m.let(part=...)`, or `@m.define`",
    )


def unfinished(kind: str) -> Diagnostic:
    """A number of a model can be written in a file."""
    return OPERAND.error(
        f"{kind} is no number of a model",
        reason="Numbers are finite.",
        fix="leave the bound out, or write a finite number",
    )
