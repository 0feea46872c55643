"""Recordings of torch's operations: a piece of work is recorded once and repeated on other arrays.

The recorded operations include those of derivatives.
"""

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
class ArrayPlace:
    """A placeholder for an array; arrays are numbered in the order in which they occur."""

    number: int


@dataclass(frozen=True)
class RecordedCall:
    """A call of a function of torch.

    args, named  its arguments, with slots for arrays
    outputs      the slots of the arrays in its result
    result       its result when it was recorded
    """

    function: Any
    args: tuple[Any, ...]
    named: dict[str, Any]
    outputs: list[ArrayPlace]
    result: Any

    def part(self, k: int) -> RecordedCall:
        """The operation that computes only part k of this ``unbind``."""
        source = self.args[0]
        dim = next(iter(self.args[1:]), self.named.get("dim", 0))
        return RecordedCall(aten.select.int, (source, dim, k), {}, [self.outputs[k]], self.result[k])


@dataclass
class RecordedCalls:
    """A sequence of operations on ``given`` arrays."""

    given: list[torch.Tensor]
    operations: list[RecordedCall] = field(default_factory=list)
    results: list[ArrayPlace] = field(default_factory=list)

    def __call__(self, *arrays: torch.Tensor) -> list[torch.Tensor]:
        """The results for these arrays. Arrays that the work changed in place are changed."""
        known = dict(enumerate(arrays))
        for one in self.operations:
            result = one.function(*filled(one.args, known), **filled(one.named, known))
            known.update(zip((slot.number for slot in one.outputs), arrays_in(result), strict=True))
        return [known[slot.number] for slot in self.results]

    def lean(self) -> None:
        """Remove operations whose results are not used and that change no array.

        An ``unbind`` with few used parts is replaced by selections of these parts.
        """
        needed = {slot.number for slot in self.results}
        needed.update(range(len(self.given)))
        operations: list[RecordedCall] = []
        for one in reversed(self.operations):
            used = [k for k, slot in enumerate(one.outputs) if slot.number in needed]
            if not used and not one.function._schema.is_mutable:
                continue
            needed.update(slot.number for slot in slots_in((one.args, one.named)))
            if one.function is aten.unbind.int and 2 * len(used) < len(one.outputs):
                operations += [one.part(k) for k in used]
            else:
                operations.append(one)
        self.operations = operations[::-1]

    def in_place(self, changeable: Collection[int]) -> None:
        """Remove copies of given arrays that nothing else reads, so that the arrays change in place.

        ``changeable`` are the numbers of the arrays that may change.
        """
        uses = Counter(slot.number for one in self.operations for slot in slots_in((one.args, one.named)))
        uses.update(slot.number for slot in self.results)
        slots: dict[int, ArrayPlace] = {k: ArrayPlace(k) for k in range(len(self.given))}
        replaced: dict[int, ArrayPlace] = {}
        operations: list[RecordedCall] = []
        for one in self.operations:
            slots.update((slot.number, slot) for slot in one.outputs)
            if one.function is aten.clone.default:
                source = one.args[0]
                if (
                    isinstance(source, ArrayPlace)
                    and source.number in changeable
                    and uses[source.number] == 1
                ):
                    replaced[one.outputs[0].number] = source
                    continue
            operations.append(one)
        # A copy has its slot in later operations too, which may change it.
        slots |= replaced
        self.operations = [
            replace(
                one,
                args=filled(one.args, slots),
                named=filled(one.named, slots),
                outputs=[slots[slot.number] for slot in one.outputs],
            )
            for one in operations
        ]
        self.results = [slots[slot.number] for slot in self.results]

    def graph(self) -> torch.fx.Graph:
        """The operations as a graph of torch; ``val`` in a node's ``meta`` is its recorded result."""
        graph = torch.fx.Graph()
        values: dict[int, Any] = {}
        for k, x in enumerate(self.given):
            values[k] = graph.placeholder(f"given_{k}")
            values[k].meta["val"] = x
        for one in self.operations:
            node = graph.call_function(one.function, filled(one.args, values), filled(one.named, values))
            node.meta["val"] = one.result
            if isinstance(one.result, torch.Tensor):
                values[one.outputs[0].number] = node
                continue
            for k, (slot, x) in enumerate(zip(one.outputs, arrays_in(one.result), strict=True)):
                values[slot.number] = graph.call_function(operator.getitem, (node, k))
                values[slot.number].meta["val"] = x
        graph.output([values[slot.number] for slot in self.results])
        return graph


class Recording(TorchDispatchMode):
    """A mode of torch that records operations.

    It keeps all arrays alive, so that no two arrays have one ``id``.
    """

    def __init__(self, arrays: Sequence[torch.Tensor], part_of: Callable[[Any], Callable | None]):
        super().__init__()
        self.found, self.part_of, self.alive = RecordedCalls(list(arrays)), part_of, list(arrays)
        self.numbers = {id(x): k for k, x in enumerate(arrays)}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise torch loads its compiler, which takes a second.
        return False

    def slot(self, x: torch.Tensor) -> ArrayPlace:
        """The slot of an array; a new one for a new array."""
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.alive)
            self.alive.append(x)
        return ArrayPlace(self.numbers[id(x)])

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
        if func._schema.name in SAME and isinstance(given[0][0], ArrayPlace):
            self.alive.append(result)
            self.numbers[id(result)] = given[0][0].number
        else:
            outputs = [self.slot(x) for x in arrays_in(result)]
            self.found.operations.append(RecordedCall(func, *given, outputs, as_now(result)))
        return result


def recorded(
    work: Callable[..., Sequence[torch.Tensor]],
    arrays: Sequence[torch.Tensor],
    part_of: Callable[[Any], Callable | None] = lambda operation: None,
) -> RecordedCalls:
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
    """The arrays, detached; later changes of an array's shape do not change them."""
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


def slots_in(held: Any) -> Iterator[ArrayPlace]:
    """The slots in nested lists and mappings, in order."""
    if isinstance(held, ArrayPlace):
        yield held
    elif isinstance(held, list | tuple | dict):
        for x in held.values() if isinstance(held, dict) else held:
            yield from slots_in(x)


def filled(held: Any, arrays: Mapping[int, Any]) -> Any:
    """The value with arrays in place of slots."""
    if isinstance(held, ArrayPlace):
        return arrays[held.number]
    if isinstance(held, list | tuple):
        return type(held)(filled(x, arrays) for x in held)
    if isinstance(held, dict):
        return {key: filled(x, arrays) for key, x in held.items()}
    return held
