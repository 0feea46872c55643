"""The section with the samples of steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from fccomodel.core.quoting import literal
from fccomodel.library import distributions
from fccomodel.program.emit.page import function
from fccomodel.program.emit.printer import FunctionPrinter
from fccomodel.program.graph import Graph
from fccomodel.program.lower import RankShares
from fccomodel.program.lower.records import Share
from fccomodel.program.names import Names
from fccomodel.program.operations import Val
from fccomodel.program.operations.draws import draw, draw_range, draw_strata
from fccomodel.program.operations.sources import FETCHED, take
from fccomodel.program.operations.together import joined

EPOCHS = """def epochs(name, elements, batch):
    # batches for T steps, without replacement within each pass over the elements; the rest of a pass
    # waits for the next call
    (rest,) = data.waiting.get(name, [()])
    pieces = []
    missing = T * batch
    while missing:
        if not len(rest):
            rest = torch.randperm(elements, generator=rng, device=data.device)
        pieces.append(rest[:missing])
        rest = rest[missing:]
        missing -= len(pieces[-1])
    data.waiting[name] = [rest]
    return torch.cat(pieces).view(T, batch)
"""

COUNTED = """def counted(name, elements, batch):
    # the same, but the k-th element of a pass is computed from a key: only the key and the place wait
    key, place = data.waiting.get(name, [0, elements])
    pieces = []
    missing = T * batch
    while missing:
        if place == elements:
            key = int(torch.randint(1 << 62, (), generator=rng, device=data.device))
            place = 0
        end = min(elements, place + missing)
        pieces.append(shuffled(torch.arange(place, end, device=data.device), elements, key))
        missing -= end - place
        place = end
    data.waiting[name] = [key, place]
    return torch.cat(pieces).view(T, batch)
"""
#: elements from which on passes are counted: a permutation of so many takes 128 MB
COUNTED_PASSES_FROM = 1 << 24


@dataclass(frozen=True, eq=False)
class LookedUp:
    """Values that depend only on draws: arrays of the data at drawn places, and rows beside one another.

    texts   name and text of each value for T steps, by the value's id, in order
    inside  the ids of these values, and of draws, that no other value uses
    """

    texts: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    inside: frozenset[int] = frozenset()

    @classmethod
    def of(cls, graph: Graph, roots: Iterable[Val], names: Names, staying: Collection[str]) -> LookedUp:
        """The values of a graph; arrays that stay in their files are left out and read step by step."""
        known, texts = dict[int, str](), dict[int, tuple[str, str]]()
        for val in graph.vals:
            args = [known.get(a.id, "") for a in val.args]
            if val.op in (draw, draw_strata):
                known[val.id] = names.claim(val.attrs["axis"].name)
            elif (
                val.op in (take, joined)
                and not val.event
                and all(args)
                and val.attrs.get("key") not in staying
            ):
                if val.op is joined:
                    text = f"torch.cat([{', '.join(args)}], 1)"
                else:
                    text = f"data.{val.attrs['key']}[{args[0]}]"
                known[val.id] = names.fresh(val.op.stem(val))
                texts[val.id] = known[val.id], text
        arguments = {a.id for val in graph.vals if val.id not in texts for a in val.args}
        used = arguments | {root.id for root in roots}
        return cls(texts, frozenset(known) - used)


@dataclass(frozen=True, eq=False)
class StepDraws:
    """The draws of a step, which are made for many steps at once and passed to each step as its ``batch``.

    looked    the values that are looked up by the draws
    fetches   rows that a source gives for a seed of the step
    changing  whether the rows differ from one draw to the next; then each step draws a seed
    """

    draws: list[Val]
    shares: RankShares | None = None
    looked: LookedUp = field(default_factory=LookedUp)
    fetches: tuple[Val, ...] = ()
    changing: bool = False

    @property
    def names(self) -> list[str]:
        """Positions by their axes, and the uniform numbers or noise that other draws are made of."""
        return [name for name, _ in map(drawn, self.draws)]

    @property
    def handed(self) -> list[str]:
        """The names of the samples that a step receives."""
        left = [
            name for name, val in zip(self.names, self.draws, strict=True) if val.id not in self.looked.inside
        ]
        left += [name for i, (name, _) in self.looked.texts.items() if i not in self.looked.inside]
        if self.fetches:
            return [*left, FETCHED]
        return left

    @property
    def ahead(self) -> list[str]:
        """The statements that draw the seeds of the steps, and tell sources which rows they will ask for."""
        if not self.fetches:
            return []
        known = {val.id: name for name, val in zip(self.names, self.draws, strict=True)}
        known |= {i: name for i, (name, _) in self.looked.texts.items()}
        keys: dict[str, list[str]] = {}
        for val in self.fetches:
            rows = val.args[0]
            if rows.id in known and self.shares is None:
                keys.setdefault(val.attrs["key"], []).append(known[rows.id])
            elif rows.static and rows.op.kept(rows):
                keys.setdefault(val.attrs["key"], []).append(f"{rows.op.kept(rows)}.expand(T, -1)")
        if self.changing:
            seeds = "torch.randint(1 << 62, (T,), generator=rng, device=data.device)"
        else:
            seeds = "torch.zeros((T,), dtype=torch.int64, device=data.device)"
        lines = [f"{FETCHED} = {seeds}"]
        return lines + [f"data.{key}.ahead([{', '.join(rows)}], {FETCHED})" for key, rows in keys.items()]

    @property
    def text(self) -> str:
        """``draw``, on the device."""
        passes = {way(max(sizes(val))) for val in self.draws if val.attrs.get("how") == "epochs"}
        lines = [
            line
            for name, text in (("epochs", EPOCHS), ("counted", COUNTED))
            if name in passes
            for line in text.split("\n")
        ]
        lines += [f"{name} = {text}" for name, text in map(drawn, self.draws)]
        lines += [f"{name} = {text}" for name, text in self.looked.texts.values()]
        lines += self.ahead
        about = "The samples of T steps, with a leading dim of T: positions in the data, and uniform numbers."
        text = function("draw", about, [*lines, f"return [{', '.join(self.handed)}]"], "data, rng, T")
        return f"# ---- sampling: the minibatches of T steps at once, on the device\n{text}"

    @property
    def unpacked(self) -> list[str]:
        """The statement that takes them out of a batch."""
        names = self.handed
        if names:
            whole = [f"{', '.join(names)}{',' if len(names) == 1 else ''} = batch"]
        else:
            whole = []
        return [
            *whole,
            *(line for share in (self.shares.split if self.shares else ()) for line in self.cut(share)),
        ]

    def cut(self, share: Share) -> list[str]:
        """The statements that leave a rank's share of an axis."""
        axis = share.axis
        along = [(name, val) for name, val in zip(self.names, self.draws, strict=True) if axis in val.axes]
        if not along:
            return []
        if share.blocks:
            places = f"owned({axis.name})"
        else:
            places = f"placed({int(axis.size)}, data.device)"
        lines = [f"own_{axis.name} = {places}"]
        for name, val in along:
            dim = val.axes.index(axis)
            lines.append(f"{name} = {name}.index_select({dim}, own_{axis.name})")
        return lines

    def introduce(self, printer: FunctionPrinter) -> None:
        """A function has them as variables."""
        for val in self.draws:
            name = printer.names.claim(val.attrs["axis"].name)
            if val.op in (draw, draw_strata):
                printer.texts[val.id] = name
        for i, (name, _) in self.looked.texts.items():
            printer.texts[i] = printer.names.claim(name)


def sizes(val: Val) -> tuple[int, ...]:
    """Among how many a draw is."""
    if val.op is draw_strata:
        return val.attrs["sizes"]
    return (val.attrs["n"],)


def way(n: int) -> str:
    """The function that makes passes over n elements."""
    if n > COUNTED_PASSES_FROM:
        return "counted"
    return "epochs"


def drawn(val: Val) -> tuple[str, str]:
    """A draw's name in a batch, and the text that makes it for T steps."""
    axis = val.attrs["axis"]
    shape = ", ".join(map(str, ["T", *(int(a.size) for a in val.axes), *val.event]))
    if val.op is draw and val.attrs["how"] == "epochs":
        elements, batch = val.attrs["n"], int(axis.size)
        call = f"{way(elements)}({literal(axis.name)}, elements={elements}, batch={batch})"
        return axis.name, call
    if val.op is draw_strata:
        return axis.name, strata(axis.name, val)
    if val.op is draw:
        return axis.name, f"torch.randint({val.attrs['n']}, ({shape}), generator=rng, device=data.device)"
    if val.op is draw_range:
        fine = ", dtype=torch.float64" if val.attrs["most"] > 1 << 16 else ""
        return f"r_{axis.name}", f"torch.rand(({shape}), generator=rng, device=data.device{fine})"
    standard = distributions.all()[val.attrs["family"]].standard
    return f"r_{val.attrs['name']}", f"noise({literal(standard)}, ({shape}), rng, data.device, data.dtype)"


def strata(name: str, val: Val) -> str:
    """The text of places in several strata, that lie one behind the other."""
    sizes, counts = val.attrs["sizes"], val.attrs["counts"]
    each = [(sum(sizes[:k]), n, count) for k, (n, count) in enumerate(zip(sizes, counts, strict=True))]
    one = "torch.randint(n, (T, count), generator=rng, device=data.device)"
    if val.attrs["how"] == "epochs":
        one = f"{way(max(sizes))}(({literal(name)}, start), elements=n, batch=count)"
    return f"torch.cat([start + {one} for start, n, count in {each}], 1)"
