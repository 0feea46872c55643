"""Steps as a loop in C, built by the system's compiler: one library per program, kept on disk.

One step is traced into a graph of torch's operations. Each operation becomes a loop over arrays of
fixed sizes, in memory of the caller. Sizes and parameters of the model are part of the text; arrays
and the settings of the steps are arguments.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from fccomodel.execution.backends import c
from fccomodel.execution.backends._base import Backend, Unfit, attempting
from fccomodel.execution.backends.c import Loops, part_of
from fccomodel.execution.backends.c.head import HEAD
from fccomodel.execution.backends.c.values import Buffer, Node, View, kind
from fccomodel.execution.backends.steps.kept import folder, key
from fccomodel.execution.backends.steps.leap import Arguments, Leap, Results
from fccomodel.execution.backends.steps.recorded import recorded
from fccomodel.execution.backends.steps.several import Several, apart

#: The largest number of steps in one call: the loop looks at the clock between calls.
LARGEST_CALL = 64
#: The options of the compiler.
FLAGS = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-shared",
    "-fPIC",
    "-Wl,-z,defs",
)
#: The vector functions that the system may have: all, those of the first version, none.
VECTORS = ("2", "1", "0")
#: Multiplications in a step's matrix products from which on torch's own products are faster.
MOST_MULTIPLICATIONS = 2e7


def compiler() -> str:
    """The first C compiler on the path that accepts GNU extensions; an empty text if there is none."""
    return next((name for name in ("gcc", "clang", "cc") if shutil.which(name)), "")


def missing(device: str) -> str:
    """The reason why the backend does not run here, or an empty text."""
    if device != "cpu":
        return "it compiles for the processor; on a GPU it is cuda-graph"
    if compiler():
        return ""
    return "there is no C compiler (gcc)"


class Text:
    """The C text of a step of one phase; ``before`` are the numbers with which the phase begins."""

    def __init__(self, several: Several, pooled: bool, before: dict[str, Any]):
        one = replace(several, batches=several.batches[:1]).beginning(before)
        groups = {
            "fixed": one.fixed(one.data),
            "moving": one.moving(one.state, one.state.w.clone()),
            "kept": one.kept(one.u, one.c),
            "rows": [torch.ones(1, one.numbers, dtype=one.dtype)],
            "weights": [torch.zeros(1, dtype=one.dtype)],
            "drawn": list(one.batches[0]),
        }
        graph = graph_of(one, [x for group in groups.values() for x in group], pooled)
        self.loops = Loops()
        self.heads: list[str] = []
        self.moved: dict[Any, View] = {}
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        for name, group in groups.items():
            for k in range(len(group)):
                self.argument(name, k, placeholders.pop(0))
        for node in graph.nodes:
            if node.op == "call_function":
                self.operation(node)
            elif node.op == "output":
                self.results([self.loops.view(x) for x in node.args[0]])
        if self.loops.products > MOST_MULTIPLICATIONS:
            raise Unfit("products of its matrices are so large that torch's own are faster")

    def argument(self, group: str, k: int, node: Node) -> None:
        """Declare the pointer to an argument; rows, weights and draws are those of the step."""
        x = node.meta["val"]
        name = f"a{len(self.heads)}"
        number = kind(x.dtype)
        place = f"{group}[{k}]"
        if group == "rows":
            place = f"rows + step * {x.shape[-1]}"
        elif group == "weights":
            place = "weights + step"
        elif group == "drawn":
            place = f"drawn[step * DRAWN + {k}]"
        self.heads.append(f"{number} *{name} = ({number} *)({place});")
        buffer = Buffer(name, x.dtype, x.numel(), argument=True)
        view = View(buffer, tuple(x.shape), tuple(x.stride()))
        self.loops.values[node] = view
        if group == "moving":
            self.moved[node] = view

    def operation(self, node: Node) -> None:
        """Add a node of the graph. The copy of an argument that nothing else reads needs no operation."""
        source: Any
        if node.args:
            source = node.args[0]
        else:
            source = None
        alone = source in self.moved and len(source.users) == 1
        if alone and str(node.target) == "aten.clone.default":
            self.loops.values[node] = self.loops.values[source]
        else:
            self.loops.run(node)

    def results(self, found: Sequence[View]) -> None:
        """Write the new values of the arguments that change; values that are arguments are copied first."""
        loops, pairs = self.loops, zip(self.moved.values(), found, strict=True)
        left = [(a, x) for a, x in pairs if a.buffer is not x.buffer]
        for k, (a, x) in enumerate(left):
            if x.buffer.argument:
                array = loops.own(x.shape, x.dtype)
                loops.copied(array, x)
                left[k] = (a, array)
        for a, x in left:
            loops.copied(a, x)

    @property
    def lines(self) -> str:
        """The statements of the step."""
        return "\n            ".join([*self.heads, *self.loops.lines])


@dataclass(frozen=True)
class Texts:
    """The texts of the phases of a round.

    phases     the numbers that each begins with
    following  the phase after each
    each       the text of each
    """

    several: Several
    phases: list[dict[str, Any]]
    following: list[int]
    each: list[Text]

    @classmethod
    def of(cls, several: Several, pooled: bool) -> Texts:
        """The texts of a program's steps. Raises ``Unfit`` if the round of phases is long."""
        phases, following = several.phases()
        return cls(several, phases, following, [Text(several, pooled, before) for before in phases])

    @property
    def room(self) -> int:
        """Bytes for intermediate arrays."""
        return max(text.loops.room for text in self.each)

    @property
    def text(self) -> str:
        """The C text of the library."""
        number = kind(self.several.dtype)
        alike: dict[str, list[int]] = {}
        for k, one in enumerate(self.each):
            alike.setdefault(one.lines, []).append(k)
        cases = [
            f"{' '.join(f'case {k}:' for k in phases)} {{\n            {lines}\n            break;\n      "
            f"  }}"
            for lines, phases in alike.items()
        ]
        return f"""{HEAD}
PRODUCT({number})
#define DRAWN {len(self.several.batches[0])}
long steps(
    long phase, long count, void **fixed, void **moving, void **kept,
    {number} *rows, {number} *weights, void **drawn, char *room
) {{
    static const long following[] = {{{", ".join(map(str, self.following))}}};
    for (long step = 0; step < count; step++) {{
        switch (phase) {{
        {(chr(10) + 8 * " ").join(cases)}
        }}
        phase = following[phase];
    }}
    return phase;
}}
"""


def graph_of(several: Several, arrays: list[torch.Tensor], pooled: bool) -> torch.fx.Graph:
    """One step as a graph of operations for which C has loops."""
    copies = apart(arrays, len(several.fixed(several.data)))
    return recorded(lambda *given: several(*given, pooled=pooled), copies, part_of).graph()


class Library:
    """The compiled functions: one for batches that move w one by one, one for batches that do so together."""

    def __init__(self, several: Several):
        self.several, self.made, self.kept = several, dict[bool, Any](), True
        self.fixed: tuple[Any, Any] = (None, None)
        self.phases: list[dict[str, Any]] = []
        moving = several.moving(several.state, several.state.w)
        estimates = several.kept(several.u, several.c)
        self.sizes = [x.numel() for x in (*moving, *estimates)]
        self.function(False)

    def function(self, pooled: bool) -> Any:
        """The compiled function with its memory."""
        if pooled not in self.made:
            self.made[pooled] = self.loaded(pooled)
        return self.made[pooled]

    def loaded(self, pooled: bool) -> Any:
        """The function from the disk; it is built if it is not there."""
        place = folder() / f"{key(self.several, made_by())}-{'pooled' if pooled else 'each'}.so"
        beside = place.with_suffix(".json")
        if not (place.exists() and beside.exists()):
            self.kept, texts = False, Texts.of(self.several, pooled)
            build(texts.text, place)
            beside.write_text(json.dumps({"room": texts.room, "phases": texts.phases}))
        steps, known = ctypes.CDLL(str(place)).steps, json.loads(beside.read_text())
        steps.restype = ctypes.c_long
        steps.argtypes = [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 7]
        self.phases, room = known["phases"], torch.zeros(known["room"] + 64, dtype=torch.uint8)
        return steps, room, room.data_ptr() + -room.data_ptr() % 64

    def __call__(self, given: Arguments) -> Results:
        """Take the steps. All arguments change in place."""
        steps, _, room = self.function(given.pooled)
        if self.fixed[0] is not given.fixed:
            own_data = self.several.fixed(self.several.data)
            assert layouts(given.fixed) == layouts(own_data), "data are those of another program"
            self.fixed = given.fixed, pointers(given.fixed)
        moving = [x if x.is_contiguous() else x.contiguous() for x in given.moving]
        sizes = [x.numel() for x in (*moving, *given.kept)]
        assert sizes == self.sizes, "arrays are those of another program"
        phase = steps(
            self.phases.index(given.before),
            len(given.rows),
            self.fixed[1],
            pointers(moving),
            pointers(given.kept),
            given.rows.data_ptr(),
            given.weights.data_ptr(),
            pointers(given.drawn),
            room,
        )
        return moving, given.kept, self.phases[phase]


@cache
def made_by() -> str:
    """A hash of the code that makes the text and the library."""
    files = [Path(__file__), *sorted(Path(str(c.__file__)).parent.glob("*.py"))]
    return hashlib.sha256("".join(file.read_text() for file in files).encode()).hexdigest()


def layouts(arrays: Sequence[torch.Tensor]) -> list[tuple[Any, ...]]:
    """The shape, the strides and the type of each array."""
    return [(array.shape, array.stride(), array.dtype) for array in arrays]


def pointers(arrays: Sequence[torch.Tensor]) -> Any:
    """The addresses of arrays."""
    addresses = ctypes.c_void_p * max(len(arrays), 1)
    return addresses(*[array.data_ptr() for array in arrays])


def build(text: str, place: Path) -> None:
    """Build the library of a text, and put it in its place as a whole."""
    place.parent.mkdir(parents=True, exist_ok=True)
    message = ""
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        source, library = Path(beside) / "steps.c", Path(beside) / "steps.so"
        source.write_text(text)
        for vectors in VECTORS:
            command = [compiler(), *FLAGS, f"-DMVEC={vectors}", str(source), "-o", str(library), "-lm"]
            compilation = subprocess.run(command, capture_output=True, text=True, check=False)
            if compilation.returncode == 0:
                library.replace(place)
                return
            complaints = (line for line in compilation.stderr.splitlines() if "error" in line)
            message = message or next(complaints, "")
    raise Unfit(f"the C compiler fails: {message[:200]}")


def leap(several: Several) -> tuple[Leap, str]:
    """Steps by the library on disk, or by one made now; and a sentence on them."""
    with attempting():
        library = Library(several)
    where = "at hand" if library.kept else "made for this run"
    note = f"steps by the compiled backend, {LARGEST_CALL} in a call; its library was {where}"
    return Leap(several, library, least=1, most=LARGEST_CALL), note


backend = Backend(
    name="compiled",
    meaning=f"up to {LARGEST_CALL} steps in a call of a function of C that the system's compiler makes, "
    "kept on disk",
    leap=leap,
    missing=missing,
    share=0.9,
    start=2.5,
)
