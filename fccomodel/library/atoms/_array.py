"""Atoms of whole arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from fccomodel.library.atoms.base import Atom, Shape, at
from fccomodel.library.atoms.interval import Interval


def one(shape: Sequence[float]) -> float:
    """The constant 1, for a norm of any shape."""
    return 1.0


@dataclass(frozen=True, kw_only=True)
class DualBall:
    """The unit ball B of the dual of a norm: the norm is the largest q.u over q in B.

    kind      ``box`` (every |q_i| <= 1), ``ball`` (|q|_2 <= 1), ``cross`` (|q|_1 <= 1),
              ``spectral`` (singular values <= 1), ``nuclear`` (their sum <= 1), ``spectraplex``
              (trace 1, eigenvalues >= 0: the support function is the largest eigenvalue, no norm)
    words     its name
    project   the torch text of the nearest point of B to ``{x}`` over the dims ``{dims}``
    norm      the torch text of the norm itself of ``{u}``
    dual      the same of the dual norm
    length    the largest |q|_2 in B, by the norm's shape (inf: a size that is not known); a
              function with a name, by
              which programs that hold a ball are pickled
    matrix    the norm is of a matrix as such, not of its entries in a row
    """

    kind: str
    words: str
    project: str
    norm: str
    dual: str
    length: Callable[[Sequence[float]], float] = one
    matrix: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayAtom(Atom):
    """An atom on whole arrays.

    reference   its definition in NumPy
    rule        the shape of its value (or ShapeError)
    pieces      the degree of its polynomial pieces over polyhedra, where it has such and is not
                linear: 1, or 2
    whole       there is one piece: it is a polynomial
    ball        of a norm: the unit ball of its dual; ``in_groups`` of consecutive groups, as many
                entries as the last argument
    generator   phi of a divergence sum p_i phi(q_i/p_i), in terms of ``t``
    symmetric   entries of its one vector, or rows of its matrix, may change places: its value, a
                number, is the same
    matrices    its conic form takes matrices as they are, not their entries in a row
    """

    reference: Callable[..., Any]
    rule: Callable[..., Shape]
    pieces: int | None = None
    whole: bool = False
    ball: DualBall | None = None
    in_groups: bool = False
    generator: str = ""
    symmetric: bool = False
    matrices: bool = False

    def shape(self, shapes: tuple[Shape, ...]) -> Shape:
        """The shape of the value by the atom's ``rule``, or ShapeError."""
        return self.rule(*shapes)

    def value(self, *args: Any) -> Any:
        """The value by the NumPy ``reference``."""
        return self.reference(*args)

    def lipschitz(self, *intervals: Interval, argument: int = 0, size: float = inf) -> float:
        """The value's Lipschitz constant in one argument, from its declared slope."""
        return float(at(self._slope(argument), *intervals, size))

    # --------------------------------------------------------------- what follows from all of these
    def degree(
        self,
        degrees: Sequence[int],
        numbers: Sequence[float | None],
        *,
        scalar: bool = True,
        whole: bool = False,
    ) -> int | None:
        """The degree of the polynomial pieces: that of a linear atom's arguments, else
        ``pieces``."""
        top = max(degrees)
        if top == 0 or self.linear([d > 0 for d in degrees]):
            return top
        if self.bilinear:
            if sum(degrees) <= 2:
                return sum(degrees)
            return None
        fixed = (
            degree
            for degree, name in zip(degrees, self.names(len(degrees)), strict=True)
            if name in self.parameters
        )
        if self.pieces is None or whole and not self.whole or any(fixed):
            return None
        if top == 1:
            return self.pieces
        if self.pieces == 1 and scalar:
            return 2
        return None

    def separable(self, *shapes: Shape) -> bool:
        """Whether the atom is a sum over entries, each term of one entry of each argument."""
        from fccomodel.library.atoms._registry import get
        from fccomodel.library.atoms.scalar import ScalarAtom

        texts = self.derivatives(self.site(("",) * len(shapes), shapes))
        if not texts or self.shape(shapes):
            return False
        nodes = [node for text in texts for node in ast.walk(ast.parse(text.replace("^", "**")))]
        called = {
            node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        names = {node.id for node in nodes if isinstance(node, ast.Name)} - called
        sizes = {str(n) for shape in shapes for n in shape}
        return names <= {*self.arguments, *sizes, "dy"} and all(
            isinstance(get(name), ScalarAtom) for name in called
        )
