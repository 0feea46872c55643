"""A graph of values as readable torch statements, in order."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fccomodel.program.emit.nets import Calls
from fccomodel.program.graph import below
from fccomodel.program.names import Names
from fccomodel.program.operations.base import (
    Arithmetic,
    Axes,
    Event,
    MoreauEnvelope,
    Pull,
    Val,
    bare,
    python,
    shape_text,
    spread_text,
)
from fccomodel.program.operations.entrywise import entrywise
from fccomodel.program.operations.estimates import centre
from fccomodel.program.operations.scores import net
from fccomodel.program.operations.sources import chunk, hyper, variable
from fccomodel.program.operations.sums import chunked, swept

#: an expression longer than this gets a name
LONGEST = 64
#: operations inside one another on one line
DEEPEST = 16
#: numbers in a slice of a full pass
SLICE = 1 << 18
#: numbers from which a value that only prepared values need is deleted after its last use
DELETED_FROM = 1 << 18


@dataclass(eq=False)
class PreparedValues:
    """Values of the data alone: computed once, stored as attributes of ``data``, and used by all
    functions.

    large   names of those with more than ``DELETED_FROM`` numbers
    """

    lines: list[str] = field(default_factory=list)
    large: set[str] = field(default_factory=set)

    @property
    def taken(self) -> list[str]:
        """The names that it has."""
        return [name for line in self.lines for name in re.findall(r"^data\.(\w+) =", line)]

    def keep(self, name: str, text: str) -> str:
        """A new attribute, that holds the value of a text."""
        self.lines.append(f"data.{name} = {text}")
        return f"data.{name}"

    def statements(self, elsewhere: str) -> list[str]:
        """The lines; a large value that only they name, and no text ``elsewhere``, is deleted after its last
        use.
        """
        last: dict[int, list[str]] = {}
        for name in self.taken:
            named = re.compile(rf"\bdata\.{name}\b")
            if name in self.large and not named.search(elsewhere):
                place = max(k for k, line in enumerate(self.lines) if named.search(line))
                last.setdefault(place, []).append(f"data.{name}")
        statements = []
        for k, line in enumerate(self.lines):
            statements.append(line)
            if k in last:
                statements.append(f"del {', '.join(last[k])}")
        return statements

    def holding(self, text: str) -> str:
        """The attribute that holds the value of a text already, if one does."""
        return next(
            (left for left, right in (line.split(" = ", 1) for line in self.lines) if right == text), ""
        )


#: a negated name as an argument, in parentheses that it does not need: ``exp((-x))``
NEGATIVE_ARGUMENT = re.compile(r"(\w\()\((-[\w.]+)\)([,)])")


@dataclass(eq=False)
class FunctionPrinter:
    """The statements of one function.

    layout     slices of the variables in the flat vector w: name -> (start, stop, shape)
    comments   the model's own text beside the line that computes it, by value id
    prepared   statements that depend on the data alone
    names      names of the function
    texts      names of values, by id
    calls      calls of nets that are made together
    before     minibatch values at the previous iterate, by the id of the estimate that asks for them
    present    whether a batch has a value's elements, by the id of the value whose statement asks for it
    estimator  writes the estimate of a minibatch value
    smoother   writes the call of an envelope's function
    dual       whether the blocks of an outer function keep their y
    previous   the ids of values at the previous iterate
    autograd   whether torch differentiates the text: slices of a full pass are computed again in its
               backward pass, except means of them, whose gradient comes with the value
    preparing  whether the text is about the data alone, outside the function
    shared     whether each rank takes a share of the rows of tables
    last_comment  the comment that was printed last
    sizes      numbers of elements that the statements name
    """

    layout: Mapping[str, tuple[int, int, Event]]
    comments: Mapping[int, str] = field(default_factory=dict)
    prepared: PreparedValues = field(default_factory=PreparedValues)
    names: Names = field(default_factory=Names)
    texts: dict[int, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    calls: Calls = field(default_factory=Calls)
    before: Mapping[int, Val] = field(default_factory=dict)
    present: Mapping[int, Val] = field(default_factory=dict)
    estimator: Callable[[Val], str] | None = None
    smoother: Callable[[str, MoreauEnvelope, str, str], str] | None = None
    dual: bool = False
    autograd: bool = False
    previous: set[int] = field(default_factory=set)
    uses: dict[int, int] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)
    preparing: bool = False
    shared: bool = False
    last_comment: str = ""
    sizes: dict[str, int] = field(default_factory=dict)

    # ------------------------------------------------------------------------------------- printing
    def print(self, roots: Iterable[Val]) -> None:
        """Statements for the roots and all they need; a Python number needs none."""
        roots = [root for root in roots if not root.op.python]
        needed = self.needed(roots)
        self.count(needed, roots)
        self.previous |= at_previous(needed, self.previous)
        inside = [v for v in needed if any(a.kind == "chunk" for a in v.axes) and v.op is not chunked]
        sliced = {v.id for v in inside}
        needed_ids = {v.id for v in needed}
        for val in needed:
            if val.id not in sliced:
                self.statement(val, inside, needed_ids)

    def needed(self, roots: Iterable[Val]) -> list[Val]:
        """The roots and all values that they need, each after the values that it needs.

        A value needs its arguments, what its statement asks for beside them, and the arguments of all calls
        of a net that are made with it.
        """
        asked = below(roots)
        while extra := [val for i in asked for val in self.asked_for(i) if val.id not in asked]:
            asked |= below(extra)
        ordered: dict[int, Val] = {}
        for key in sorted(asked):
            stack = [(asked[key], False)]
            while stack:
                val, ready = stack.pop()
                if ready:
                    ordered.setdefault(val.id, val)
                elif val.id not in ordered:
                    beside = [
                        a
                        for other in self.calls.together.get(val.id, ())
                        if other.id in asked
                        for a in other.args
                    ]
                    stack.append((val, True))
                    stack.extend((a, False) for a in reversed((*val.args, *self.asked_for(val.id), *beside)))
        return list(ordered.values())

    def asked_for(self, i: int) -> list[Val]:
        """The values that the statement of a value asks for beside its arguments, by its id."""
        return [asked[i] for asked in (self.before, self.present) if i in asked]

    def count(self, needed: Iterable[Val], roots: Iterable[Val]) -> None:
        """Count the uses of each value; one that must have a name counts at least twice."""
        for val in needed:
            if val.id in self.present:
                named = self.present[val.id].id
                self.uses[named] = self.uses.get(named, 0) + 2
            for arg in val.args:
                uses = 2 if stretches(val, arg) else 1
                self.uses[arg.id] = self.uses.get(arg.id, 0) + uses
        for root in roots:
            self.uses[root.id] = self.uses.get(root.id, 0) + 2

    def statement(self, val: Val, inside: list[Val], asked: set[int]) -> None:
        """The statement of one value, unless it is printed inside another value or is prepared."""
        if val.id in self.texts or val.op.python or val.op is hyper or val.static:
            return
        if val.op is chunked or val.op is swept:
            self.slices(val, inside)
        elif val.op is net:
            self.calls.statement(self, val, asked)
        elif not self.inline(val):
            text = bare(val.op.text(self, val))
            if text.isidentifier() or val.op is centre and not val.args:
                self.texts[val.id] = text
            else:
                self.named(val, text)

    def inline(self, val: Val) -> bool:
        """Whether a value prints inside the one expression that uses it."""
        if not val.op.inline or self.uses.get(val.id, 0) != 1:
            return False
        depth = 1 + max((self.depths.get(a.id, 0) for a in val.args), default=0)
        if depth <= DEEPEST:
            self.depths[val.id] = depth
        return depth <= DEEPEST

    def named(self, val: Val, text: str) -> None:
        """The statement that gives a value a name, with the model's own line."""
        name = self.name(val)
        self.put(f"{name} = {text}", self.comments.get(val.id))
        self.texts[val.id] = name

    def put(self, line: str, comment: str | None = None) -> None:
        """Print a statement, with the model's own line beside it, or above it if both are long.

        A comment that the statement before has is not repeated.
        """
        line = NEGATIVE_ARGUMENT.sub(r"\1\2\3", line)
        if comment and self.last_comment == comment:
            comment = None
        elif comment:
            self.last_comment = comment
        if comment and len(line) + len(comment) > 106:
            self.lines.append(f"# {comment}")
            comment = None
        self.lines.append(f"{line}  # {comment}" if comment else line)

    def slices(self, val: Val, inside: list[Val]) -> None:
        """A loop over slices of one axis, as a function of the slice; the names of its lines are local."""
        axis, (body,) = val.attrs["axis"], val.args
        self.names.counters.setdefault(axis.name, 1)
        needed = of_slice(body)
        here = [v for v in inside if v.id in needed]
        if self.autograd:
            inputs = self.given(here)
        else:
            inputs = []
        outside, saved, self.lines = dict(self.texts), self.lines, []
        for v in here:
            if v.op is chunk:
                self.texts[v.id] = axis.name
            else:
                self.statement(v, [], needed)
        result = self.ref(body)
        inner, self.lines = self.lines, saved
        self.texts = {i: text for i, text in self.texts.items() if i in outside or text.startswith("data.")}
        function, name = self.names.fresh(f"over_{axis.name}"), self.name(val)
        self.lines += [
            f"def {function}({', '.join([axis.name, *inputs])}):",
            *("    " + line for line in inner),
        ]
        self.lines += [f"    return {result}"]
        self.lines.append(f"{name} = {self.loop(val, function, inputs, here)}")
        self.texts[val.id] = name

    def given(self, here: list[Val]) -> list[str]:
        """The names of the inputs of a slice that depend on the variables."""
        own = {v.id for v in here}
        outer = {arg.id: arg for v in here for arg in v.args if arg.varying and arg.id not in own}
        for arg in outer.values():
            if not self.texts.get(arg.id, "").isidentifier():
                self.named(arg, bare(self.texts.get(arg.id) or arg.op.text(self, arg)))
        return list(dict.fromkeys(self.texts[i] for i in outer))

    def loop(self, val: Val, function: str, given: list[str], here: list[Val]) -> str:
        """The text that combines the values of all slices: one after another, or their mean."""
        axis, (body,) = val.attrs["axis"], val.args
        width = max(
            (math.prod([*(a.size for a in v.axes if a.kind != "chunk"), *v.event]) for v in here), default=1
        )
        key = next((v.attrs["key"] for v in here if v.op is chunk and v.attrs["axis"] is axis), None)
        if key is None:
            length = axis.size
        else:
            length = f"len(data.{key})"
        parts = f"torch.arange({length}, device=data.device).split({max(1, SLICE // max(width, 1))})"
        if val.op is swept:
            return f"swept({', '.join([function, parts, *given])}) / {length}"
        place = body.axes.index(axis)
        if given:
            whole = f"sliced({', '.join([function, parts, str(place), *given])})"
        else:
            whole = f"torch.cat([{function}(part) for part in {parts}], {place})"
        layout = [val.attrs["onto"] if other is axis else other for other in body.axes]
        if tuple(layout) == val.axes:
            return whole
        dims = [
            *(layout.index(other) for other in val.axes),
            *range(len(layout), len(layout) + len(val.event)),
        ]
        return f"{whole}.permute({', '.join(map(str, dims))})"

    # ----------------------------------------------------------------------------------- references
    def name(self, val: Val) -> str:
        """A new name for a value; ``_prev`` says that it is at the previous iterate."""
        stem = val.op.stem(val)
        if val.id not in self.previous or val.op is variable:
            return self.names.fresh(stem)
        numbered = stem[-1] == "1" and not stem[-2:-1].isdigit()
        return self.names.fresh(f"{stem[:-1]}_prev1" if numbered else f"{stem}_prev")

    def ref(self, val: Val, axes: Axes | None = None, event: int | None = None) -> str:
        """A value's name, number or (once only) its expression, lined up with axes and a number of
        event dims."""
        if val.op.python or val.op is hyper:
            return val.op.text(self, val)
        if val.id not in self.texts and val.static:
            self.static(val)
        if val.axes:
            lined = view(val, val.axes if axes is None else axes, len(val.event) if event is None else event)
        else:
            lined = ""
        if val.id not in self.texts:
            text = val.op.text(self, val)
            if len(text) <= LONGEST:
                return (text if simple(text) else f"({text})") + lined
            self.texts[val.id] = self.name(val)
            self.put(f"{self.texts[val.id]} = {bare(text)}")
        return self.texts[val.id] + lined

    def expanded(self, val: Val, axes: Axes, event: Event = ()) -> str:
        """A value as a tensor on all of these axes and dims."""
        if python(val):
            return self.filled(shape_text(axes, event), self.ref(val))
        if val.axes == axes and val.event == event:
            return self.ref(val)
        return f"{self.ref(val, axes, len(event))}.expand({spread_text(val.axes, axes, event)})"

    def filled(self, shape: str, number: str) -> str:
        """A tensor of one number, of the type of w, or of the data in prepared lines."""
        alone = f"torch.full({shape}, {number}, dtype=data.dtype, device=data.device)"
        if self.preparing:
            return alone
        return f"w.new_full({shape}, {number})"

    def arithmetic(self, formula: Arithmetic) -> str:
        """The text of a constant's arithmetic. Prepared values, which no function defines sizes for, have
        these as numbers."""
        if self.preparing:
            return formula.in_numbers()
        return formula.with_names(lambda name: self.size(name, formula.sizes[name]))

    def size(self, name: str, count: int) -> str:
        """The name of a number of elements; the number itself if the name is taken."""
        if name not in self.sizes and name not in self.names.counters:
            self.sizes[self.names.claim(name)] = count
        if self.sizes.get(name) == count:
            return name
        return str(count)

    @property
    def body(self) -> list[str]:
        """The statements, after those that define the sizes they name."""
        definitions = [f"{name} = {count}" for name, count in self.sizes.items()]
        return [*definitions, *self.lines]

    def estimate(self, val: Val) -> str:
        """The text of the estimate of a minibatch value."""
        assert self.estimator is not None, "this function has no estimates"
        return self.estimator(val)

    def smooth(self, kind: str, envelope: MoreauEnvelope, argument: str, centre: str) -> str:
        """The call of the function for an envelope: its ``value``, or its ``slope``."""
        assert self.smoother is not None, "this function has no envelopes"
        return self.smoother(kind, envelope, argument, centre)

    def static(self, val: Val) -> None:
        """A value of the data alone: an attribute of ``data``."""
        attributes = val.op.kept(val)
        for arg in () if attributes else val.args:
            if not arg.op.python and arg.id not in self.texts:
                self.static(arg)
        self.texts[val.id] = attributes or self.computed(val)

    def computed(self, val: Val) -> str:
        """The attribute that a static value is computed for, or one with the same text."""
        self.preparing = True
        text = bare(val.op.text(self, val))
        self.preparing = False
        held = self.prepared.holding(text)
        if held:
            return held
        name = self.name(val)
        if math.prod([*(axis.size for axis in val.axes), *val.event]) > DELETED_FROM:
            self.prepared.large.add(name)
        return self.prepared.keep(name, text)

    # ------------------------------------------------------------------------------------ gradients
    def contributions(self, pulls: Iterable[Pull]) -> list[tuple[str, str]]:
        """The contributions to the gradient of each variable, flat; those of nets last, one for all
        calls of a net."""
        pulls = list(pulls)
        alone = [(p.variable, p.source.op.contribution(self, p)) for p in pulls if p.source.op is not net]
        return alone + self.calls.contributions(self, [p for p in pulls if p.source.op is net])


def at_previous(needed: Iterable[Val], known: Iterable[int]) -> set[int]:
    """The ids of the values, each listed after its arguments, that are computed at the previous iterate
    alone."""
    previous = set(known)
    for val in needed:
        own = val.op is variable and val.attrs["previous"]
        if own or not val.varying and any(arg.id in previous for arg in val.args):
            previous.add(val.id)
    return previous


def of_slice(body: Val) -> set[int]:
    """The ids of the values that a slice of a loop computes; the results of other loops are not among
    them.
    """
    seen: set[int] = set()
    stack = [body]
    while stack:
        val = stack.pop()
        if val.id not in seen and val.op is not chunked and val.op is not swept:
            seen.add(val.id)
            stack.extend(val.args)
    return seen


def stretches(val: Val, arg: Val) -> bool:
    """Whether ``val`` lines ``arg`` up with new dims."""
    return val.op is entrywise and bool(arg.axes) and view(arg, val.axes, len(val.event)) != ""


def view(val: Val, axes: Axes, event: int) -> str:
    """The index that lines a value up with other axes: ``[:, None]``, or nothing."""
    parts = [":" if a in val.axes else "None" for a in axes]
    parts += ["None"] * (event - len(val.event)) + [":"] * len(val.event)
    while parts and parts[0] == "None":
        parts.pop(0)
    if "None" in parts:
        return f"[{', '.join(parts)}]"
    return ""


def simple(text: str) -> bool:
    """Whether a text is a name, a call or an index, which needs no parentheses anywhere."""
    depth = 0
    for char in text:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif depth == 0 and not (char.isalnum() or char in "._"):
            return False
    return True
