"""How emitted text refers to values: names, numbers, expressions used once, and views that line axes up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fccomodel.core import quoting
from fccomodel.library.graph import Axis, Graph, Val
from fccomodel.solver.emit.texts import bare, number, simple
from fccomodel.solver.lower._names import reserved

LONGEST = 64


@dataclass(eq=False)
class References(ABC):
    """Names of values and how they line up with one another; what depends on the data alone goes to ``prepared``, once.

    layout    variables' slices of the flat vector w: name -> (start, stop, shape)
    comments  the model's own text beside the line that computes it, by value id
    dual      the blocks of an outer function keep their y
    recomputed  autograd goes through the text: slices of a full pass are computed again in its backward pass
    """

    graph: Graph
    layout: Mapping[str, tuple[int, int, tuple[int, ...]]]
    comments: Mapping[int, str] = field(default_factory=dict)
    params: dict[str, float] = field(default_factory=dict)
    prepared: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(reserved(), 1))
    numbered: set[str] = field(default_factory=set)
    uses: dict[int, int] = field(default_factory=dict)
    depths: dict[int, int] = field(default_factory=dict)
    together: dict[int, list[Val]] = field(default_factory=dict)
    taped: set[int] = field(default_factory=set)
    needed: set[int] = field(default_factory=set)
    double: bool = False
    dual: bool = False
    recomputed: bool = False

    @abstractmethod
    def text(self, val: Val) -> str:
        """The torch expression of one operation."""

    @abstractmethod
    def static(self, val: Val) -> None:
        """Prints a value of the data alone where it is computed once."""

    def put(self, line: str, comment: str | None = None) -> None:
        """A statement, the model's own line beside it, or above it where both are long."""
        if comment and len(line) + len(comment) > 106:
            self.lines.append(f"# {comment}")
            comment = None
        self.lines.append(f"{line}  # {comment}" if comment else line)

    # ------------------------------------------------------------------------------------------------------------ names
    def fresh(self, stem: str) -> str:
        """A name not used before: the stem, or its number raised."""
        while True:
            self.counters[stem] = self.counters.get(stem, 0) + 1
            count = self.counters[stem]
            if stem[-1] == "1" and not stem[-2:-1].isdigit():
                if count == 1 or f"{stem[:-1]}{count}" not in self.counters:
                    self.numbered.add(f"{stem[:-1]}{count}")
                    return f"{stem[:-1]}{count}"
                continue
            if count == 1:
                if stem not in self.numbered:
                    return stem
                continue
            if (name := f"{stem}_{count}") not in self.counters:
                self.counters[name] = 1
                return name

    def name(self, val: Val) -> str:
        return self.fresh(self.stem(val))

    def stem(self, val: Val) -> str:
        axes = "_".join(a.name for a in val.axes)
        match val.op:
            case "take" | "take_val" if val.event or val.op == "take_val":
                stem = val.attrs.get("key", "s").split("_", 1)[-1] if val.op == "take" else "s"
                return f"{stem}_{axes}" if axes else stem
            case "take":
                return f"{val.attrs['key'].split('_', 1)[-1]}_{axes}"
            case "score":
                return f"s_{axes}"
            case "net":
                return f"{val.attrs['net']}_{axes}"
            case "table_score" | "table_net":
                return "scores"
            case "track":
                return val.attrs["name"] or "g1"
            case "draw" | "draw_range":
                return f"{val.attrs['axis'].name}"
            case "var":
                return val.attrs["name"] + ("_prev" if val.attrs.get("previous") else "")
            case "centre":
                return f"c_{val.attrs['name']}"
            case "weights":
                return str(val.attrs["name"])
            case "envelope_slope":
                return "y1"
            case "mean_axes" | "sum_axes" | "segment" | "log_mean_axes" | "log_segment":
                return "g1"
        return "t1"

    # ------------------------------------------------------------------------------------------------------- references
    def view(self, val: Val, axes: tuple[Axis, ...], event: int) -> str:
        """The index that lines a value up with other axes: ``[:, None]``, or nothing."""
        parts = [":" if a in val.axes else "None" for a in axes]
        parts += ["None"] * (event - len(val.event)) + [":"] * len(val.event)
        while parts and parts[0] == "None":
            parts.pop(0)
        return f"[{', '.join(parts)}]" if "None" in parts else ""

    def ref(self, val: Val, axes: tuple[Axis, ...] | None = None, event: int | None = None) -> str:
        """A value's name, number or (once only) its expression, lined up with the given axes."""
        if val.op == "const":
            return number(val.attrs["value"])
        if val.op == "param":
            self.params[val.attrs["name"]] = val.attrs["value"]
            return f"data.{quoting.attribute(val.attrs['name'])}"
        if val.op == "hyper":
            return f"h.{val.attrs['name']}"
        if val.id not in self.names and val.static:
            self.static(val)
        if val.id not in self.names:
            text = self.text(val)
            if len(text) <= LONGEST:
                lined = (
                    self.view(val, val.axes if axes is None else axes, len(val.event) if event is None else event)
                    if val.axes
                    else ""
                )
                return (f"({text})" if not simple(text) else text) + lined
            self.names[val.id] = self.name(val)
            self.lines.append(f"{self.names[val.id]} = {bare(text)}")
        name = self.names[val.id]
        if not val.axes:
            return name
        return name + (self.view(val, val.axes if axes is None else axes, len(val.event) if event is None else event))

    def dims(self, val: Val, over: Iterable[Axis]) -> str:
        places = sorted(val.axes.index(a) for a in over)
        return str(places[0]) if len(places) == 1 else str(tuple(places))

    def pull_rows(self, rows: Val, adjoint: Val) -> str:
        """``X[rows]ᵀ adjoint``."""
        if len(rows.axes) == 1:
            return f"{self.expanded(adjoint, rows.axes)} @ {self.ref(rows)}"
        return f"{self.expanded(adjoint, rows.axes)}.reshape(-1) @ {self.ref(rows)}.reshape(-1, {rows.event[-1]})"

    def expanded(self, val: Val, axes: tuple[Axis, ...], event: tuple[int, ...] = ()) -> str:
        sizes = tuple(a.size for a in axes) + event
        if val.op in ("const", "param"):
            return f"w.new_full({sizes}, {self.ref(val)})"
        if val.axes == axes and val.event == event:
            return self.ref(val)
        return f"{self.ref(val, axes, len(event))}.expand({sizes})"
