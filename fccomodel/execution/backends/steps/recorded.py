"""Torch's operations in some work, derivatives included, recorded once and repeated on other arrays."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from fccomodel.execution.backends._base import Unfit

aten = torch.ops.aten
#: Operations that return the same array under another name.
SAME = ("aten::detach", "aten::alias")
#: Operations whose results have sizes that depend on data only if they are given masks.
PLACES = (aten.index.Tensor,)


@dataclass(frozen=True)
class Slot:
    """A stand-in for an array, by its number in the order in which arrays were met."""

    number: int


@dataclass(frozen=True)
class Operation:
    """A function of torch: its arguments and results with slots for arrays, and the recorded results."""

    function: Any
    args: tuple[Any, ...]
    named: dict[str, Any]
    made: list[Slot]
    result: Any

    def part(self, k: int) -> Operation:
        """The operation that gives one of the parts of ``unbind``."""
        source, dim = self.args[0], next(iter(self.args[1:]), self.named.get("dim", 0))
        return Operation(aten.select.int, (source, dim, k), {}, [self.made[k]], self.result[k])


@dataclass
class Recorded:
    """A sequence of operations on ``given`` arrays."""

    given: list[torch.Tensor]
    operations: list[Operation] = field(default_factory=list)
    results: list[Slot] = field(default_factory=list)

    def __call__(self, *arrays: torch.Tensor) -> list[torch.Tensor]:
        """The results for these arrays. Arrays that the work changed in place are changed."""
        held = dict(enumerate(arrays))
        for one in self.operations:
            found = one.function(*filled(one.args, held), **filled(one.named, held))
            held.update(zip((slot.number for slot in one.made), arrays_in(found), strict=True))
        return [held[slot.number] for slot in self.results]

    def lean(self) -> None:
        """Remove operations whose results are not used and that change nothing.

        ``unbind`` of which few parts are used becomes a selection of these.
        """
        asked, kept = {slot.number for slot in self.results} | set(range(len(self.given))), list[Operation]()
        for one in reversed(self.operations):
            wanted = [k for k, slot in enumerate(one.made) if slot.number in asked]
            if one.function._schema.is_mutable or wanted:
                asked |= {slot.number for slot in slots_in((one.args, one.named))}
                few_parts = one.function is aten.unbind.int and 2 * len(wanted) < len(one.made)
                if few_parts:
                    kept += [one.part(k) for k in wanted]
                else:
                    kept += [one]
        self.operations = kept[::-1]

    def in_place(self, moved: Collection[int]) -> None:
        """Let given arrays change in place if only a copy reads them, among those that may be ``moved``."""
        uses = Counter(slot.number for one in self.operations for slot in slots_in((one.args, one.named)))
        uses.update(slot.number for slot in self.results)
        same: dict[int, Any] = {}
        for one in self.operations:
            if one.function is aten.clone.default:
                source = one.args[0]
            else:
                source = None
            if isinstance(source, Slot) and source.number in moved and uses[source.number] == 1:
                same[one.made[0].number] = source
        slots = {
            number: Slot(number) for one in self.operations for number in (slot.number for slot in one.made)
        }
        slots |= {k: Slot(k) for k in range(len(self.given))} | same
        self.operations = [
            replace(
                one,
                args=filled(one.args, slots),
                named=filled(one.named, slots),
                made=[slots[x.number] for x in one.made],
            )
            for one in self.operations
            if not (one.made and one.made[0].number in same and one.function is aten.clone.default)
        ]
        self.results = [slots[slot.number] for slot in self.results]

    def graph(self) -> torch.fx.Graph:
        """The operations as a graph of torch; ``val`` in a node's ``meta`` is its recorded result."""
        graph = torch.fx.Graph()
        held: dict[int, Any] = {}
        for k, x in enumerate(self.given):
            held[k] = graph.placeholder(f"given_{k}")
            held[k].meta["val"] = x
        for one in self.operations:
            node = graph.call_function(one.function, filled(one.args, held), filled(one.named, held))
            node.meta["val"] = one.result
            if isinstance(one.result, torch.Tensor):
                held[one.made[0].number] = node
                continue
            for k, (slot, x) in enumerate(zip(one.made, arrays_in(one.result), strict=True)):
                held[slot.number] = graph.call_function(operator.getitem, (node, k))
                held[slot.number].meta["val"] = x
        graph.output([held[slot.number] for slot in self.results])
        return graph


class Recording(TorchDispatchMode):
    """Records operations. It keeps all arrays alive, so that each has its own identity."""

    def __init__(self, arrays: Sequence[torch.Tensor], part_of: Callable[[Any], Callable | None]):
        super().__init__()
        self.found, self.part_of, self.alive = Recorded(list(arrays)), part_of, list(arrays)
        self.numbers = {id(x): k for k, x in enumerate(arrays)}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:  # else torch loads its compiler, which takes a second
        return False

    def slot(self, x: torch.Tensor) -> Slot:
        """The slot of an array; a new one for a new array."""
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.alive)
            self.alive.append(x)
        return Slot(self.numbers[id(x)])

    def argument(self, x: Any) -> Any:
        """An argument with slots for arrays. An unknown array of one entry is taken as a constant."""
        if isinstance(x, torch.Tensor):
            if id(x) not in self.numbers and x.numel() > 1:
                raise Unfit("its steps hold arrays that are no arguments")
            if id(x) in self.numbers:
                return self.slot(x)
            return x.detach().clone()
        if isinstance(x, list | tuple):
            return type(x)(map(self.argument, x))
        if isinstance(x, dict):
            return {key: self.argument(y) for key, y in x.items()}
        return x

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        masks = any(x.dtype == torch.bool for x in arrays_in(args[1:2]))
        sized = torch.Tag.dynamic_output_shape in func.tags and (masks or func not in PLACES)
        if torch.Tag.data_dependent_output in func.tags or sized:
            raise Unfit("its steps go by numbers that they read from arrays")
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise Unfit("its steps draw random numbers of their own")
        given = self.argument(tuple(args)), self.argument(named)
        if (made_of := self.part_of(func)) is not None:
            with self:
                result = made_of(*args, **named)
            if result is not NotImplemented:
                return result
        result = func(*args, **named)
        if func._schema.name in SAME and isinstance(given[0][0], Slot):
            self.alive.append(result)
            self.numbers[id(result)] = given[0][0].number
        else:
            made = [self.slot(x) for x in arrays_in(result)]
            self.found.operations.append(Operation(func, *given, made, as_now(result)))
        return result


def recorded(
    work: Callable[..., Sequence[torch.Tensor]],
    arrays: Sequence[torch.Tensor],
    part_of: Callable[[Any], Callable | None] = lambda operation: None,
) -> Recorded:
    """The operations of ``work(*arrays)``, which is carried out once.

    ``part_of(operation)`` gives the operation as a function of others, or None to keep it. Raises
    ``Unfit`` if the work reads numbers from arrays, draws random numbers, or holds other arrays.
    """
    with torch.inference_mode(False), torch.no_grad(), Recording(arrays, part_of) as mode:
        results = work(*arrays)
        mode.found.results = [mode.slot(x) for x in results]
    mode.found.lean()
    return mode.found


def as_now(held: Any) -> Any:
    """The arrays detached, so that their shapes stay."""
    if isinstance(held, torch.Tensor):
        return held.detach()
    if isinstance(held, list | tuple):
        return type(held)(map(as_now, held))
    return held


def arrays_in(held: Any) -> Iterator[torch.Tensor]:
    """The arrays in nested lists, in order."""
    if isinstance(held, torch.Tensor):
        yield held
    elif isinstance(held, list | tuple):
        for x in held:
            yield from arrays_in(x)


def slots_in(held: Any) -> Iterator[Slot]:
    """The slots in nested lists and mappings, in order."""
    if isinstance(held, Slot):
        yield held
    elif isinstance(held, list | tuple | dict):
        for x in held.values() if isinstance(held, dict) else held:
            yield from slots_in(x)


def filled(held: Any, arrays: Mapping[int, Any]) -> Any:
    """The value with arrays in place of slots."""
    if isinstance(held, Slot):
        return arrays[held.number]
    if isinstance(held, list | tuple):
        return type(held)(filled(x, arrays) for x in held)
    if isinstance(held, dict):
        return {key: filled(x, arrays) for key, x in held.items()}
    return held
