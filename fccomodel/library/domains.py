"""The conditions that an expression puts on the values in it.

They come from atoms, simple sets, distributions and options of reductions. Each of these declares
its ``Domain``; here they take one form, so that one check serves all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fccomodel.core import ir
from fccomodel.library import atoms, distributions, reductions, sets
from fccomodel.library.atoms import Atom, Domain
from fccomodel.library.reductions import Reduction


@dataclass(frozen=True, eq=False, kw_only=True)
class Use:
    """Arguments of an atom, distribution or set, and the conditions on them.

    kind    ``atom``, ``option``, ``set`` or ``distribution``
    owner   what asks: the atom's name, the reduction's, the set as the model writes it, ...
    names   the arguments' own names
    titles  how messages call each argument
    shape   of the first argument of an atom, of a set's points: what ``Domain.amiss`` takes
    """

    kind: str
    owner: str
    asks: Domain
    args: tuple[ir.Expr, ...]
    names: tuple[str, ...]
    titles: tuple[str, ...]
    shape: ir.Shape = ()


#: how messages call an argument of an operator, by its position
TITLES = {"pow": (0, "the base of a power"), "div": (1, "the denominator of a quotient")}


def by_data(expr: ir.Expr) -> bool:
    """Whether data and parameters alone decide the value: no variable and no random draw enters."""
    for node in ir.walk(expr):
        match node:
            case ir.Var() | ir.NetCall() | ir.Hole():
                return False
            case ir.Column(binder=binder) | ir.Element(binder=binder) if drawn(binder):
                return False
            case ir.Reduce(binders=binders) if any(drawn(b) for b in binders):
                return False
    return True


def drawn(binder: ir.Binder) -> bool:
    """Whether a binder stands for a draw of a distribution or a vector of a set, not for a listed
    element."""
    return isinstance(binder.domain, ir.Distribution | ir.VectorSet)


def uses(node: ir.Expr) -> Iterator[Use]:
    """The conditions of a node itself: on an atom's arguments, a reduction's option, elements and
    the ranges of its binders."""
    if isinstance(node, ir.Apply):
        atom = atoms.of(node)
        if atom is not None and atom.accepts(len(node.args)):
            yield of_atom(atom, node.args)
    elif isinstance(node, ir.Reduce):
        kind = reductions.of(node)
        yield from of_options(kind, node.options)
        yield from of_elements(kind, node.body)
        for binder in node.binders:
            yield from of_domain(binder.domain)


def of_domain(domain: ir.Set) -> Iterator[Use]:
    """The conditions on the arguments of the set or distribution of a binder or a variable."""
    if isinstance(domain, ir.Distribution | ir.VectorSet) and (use := of_set(domain)) is not None:
        yield use


def of_atom(atom: Atom, args: Sequence[ir.Expr]) -> Use:
    """The conditions on the arguments of an atom."""
    names = atom.names(len(args))
    titles = [f"`{name}` of `{atom.signature}`" for name in names]
    titles[0] = f"`{atom.name}`"
    if atom.name in TITLES:
        place, titles[place] = TITLES[atom.name]
    return Use(
        kind="atom",
        owner=atom.name,
        asks=atom,
        args=tuple(args),
        names=names,
        titles=tuple(titles),
        shape=args[0].shape,
    )


def of_options(kind: Reduction, options: Mapping[str, ir.Expr]) -> Iterator[Use]:
    """The conditions on the option of a reduction."""
    option = kind.option
    if option is not None and option.name in options:
        title = f"`{option.name}` of `{kind.name}`"
        yield Use(
            kind="option",
            owner=kind.name,
            asks=option,
            args=(options[option.name],),
            names=(option.name,),
            titles=(title,),
        )


def of_elements(kind: Reduction, body: ir.Expr) -> Iterator[Use]:
    """The conditions on the elements of a reduction."""
    if kind.elements.limited:
        title = f"an element of `{kind.name}`"
        yield Use(
            kind="atom", owner=kind.name, asks=kind.elements, args=(body,), names=("e",), titles=(title,)
        )


def of_set(domain: ir.Distribution | ir.VectorSet) -> Use | None:
    """The conditions on the arguments of a set or a distribution; None for a sampler of the user's
    own."""
    known = (
        distributions.get(domain.family) if isinstance(domain, ir.Distribution) else sets.get(domain.family)
    )
    if known is None:
        return None
    if isinstance(known, distributions.Distribution):
        names = known.parameters
    else:
        names = known.arguments
    return Use(
        kind="distribution" if isinstance(domain, ir.Distribution) else "set",
        owner=domain.name,
        asks=known,
        args=domain.args,
        names=names,
        titles=tuple(f"`{name}` of `{known.name}`" for name in names),
        shape=domain.shape,
    )
