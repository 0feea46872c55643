"""The effect of scaling, tilting, perturbing, precomposing and adding on value, slope and
conjugate.

Bauschke and Combettes, Convex Analysis and Monotone Operator Theory in Hilbert Spaces, 2nd ed.,
propositions 24.8, 24.11, 24.14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, Any

from fccomodel.library.proximal._base import Proximal

if TYPE_CHECKING:
    import torch

Numbers = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


def literal(value: Numbers, like: str) -> str:
    """The text of a number, or of an array in the type of the tensor ``like``."""
    if isinstance(value, float | int):
        return f"({value!r})"
    return f"{like}.new_tensor({_listed(value)!r})"


def _listed(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_listed(v) for v in value]
    return value


def _tensor(value: Numbers, like: torch.Tensor) -> torch.Tensor:
    if isinstance(value, tuple):
        return like.new_tensor(_listed(value))
    return like.new_tensor(value)


def _size(value: float | tuple[float, ...]) -> float:
    """The Euclidean norm of a number or vector."""
    if isinstance(value, float | int):
        return abs(value)
    return sqrt(sum(v**2 for v in value))


def product(a: str, b: float) -> str:
    """The text ``(a * b)``, or a alone if b is 1."""
    if b == 1:
        return a
    return f"({a} * {b!r})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Changed(Proximal):
    """A function whose prox comes from that of another function ``inner``."""

    inner: Proximal

    def _after(self, text: str, x: str) -> str:
        """The text of a slope that uses the point twice, as a call."""
        return f"(lambda x: {text})({x})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaled(Changed):
    """The function factor f + constant, factor > 0."""

    factor: float
    constant: float = 0.0

    @classmethod
    def of(cls, inner: Proximal, factor: float, constant: float = 0.0) -> Scaled:
        """The scaled function."""
        return cls(
            inner=inner,
            factor=factor,
            constant=constant,
            rank=inner.rank,
            lipschitz=factor * inner.lipschitz,
            weak=factor * inner.weak,
            diameter=factor * inner.diameter,
            tolerance=inner.tolerance,
            how=f"{inner.how}; scaled by {factor:g}",
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of factor f(u) + constant."""
        return f"{self.factor!r} * ({self.inner.value_text(u, dims)}) + {literal(self.constant, u)}"

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of factor times the slope of f with parameter factor lam."""
        return f"{self.factor!r} * {self.inner.slope_text(x, product(lam, self.factor), dims)}"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """factor f*(y / factor) - constant."""
        value = self.inner.conjugate(y / self.factor)
        if value is None:
            return None
        return self.factor * value - self.constant

    @property
    def domain(self) -> str:
        """The scaled domain, in words."""
        return f"{self.factor:g} times {self.inner.domain}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Tilted(Changed):
    """The function f + a.u, whose slope is moved by a."""

    a: float | tuple[float, ...]

    @classmethod
    def of(cls, inner: Proximal, a: float | tuple[float, ...]) -> Tilted:
        """The tilted function."""
        if isinstance(a, tuple) or inner.rank == 0:
            steep = _size(a)
        elif a:
            steep = inf
        else:
            steep = 0.0
        return cls(
            inner=inner,
            a=a,
            rank=inner.rank,
            lipschitz=inner.lipschitz + steep,
            weak=inner.weak,
            diameter=inner.diameter,
            tolerance=inner.tolerance,
            how=f"{inner.how}; tilted",
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f(u) + a.u."""
        linear = f"{literal(self.a, u)} * {u}"
        return f"{self.inner.value_text(u, dims)} + " + (f"({linear}).sum({dims})" if dims else linear)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of a plus the slope of f at x - lam a."""
        a = literal(self.a, "x")
        return self._after(f"{a} + {self.inner.slope_text(f'(x - {lam} * {a})', lam, dims)}", x)

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """f*(y - a)."""
        return self.inner.conjugate(y - _tensor(self.a, y))

    @property
    def domain(self) -> str:
        """The moved domain, in words."""
        return f"{self.inner.domain}, moved by {self.a}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed(Changed):
    """The function f + q/2 |u|^2.

    With x' = x/(1 + lam q) and mu = lam/(1 + lam q), y = q x' + (slope of f at x', mu) / (1 + lam
    q).
    """

    q: float

    @classmethod
    def of(cls, inner: Proximal, q: float) -> Perturbed:
        """The function with a quadratic added."""
        return cls(
            inner=inner,
            q=q,
            rank=inner.rank,
            weak=max(inner.weak - q, 0.0),
            tolerance=inner.tolerance,
            how=f"{inner.how}; with a quadratic added",
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f(u) + q/2 |u|^2."""
        if dims:
            square = f"{u}.square().sum({dims})"
        else:
            square = f"{u}.square()"
        return f"{self.inner.value_text(u, dims)} + {self.q / 2!r} * {square}"

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the slope, by that of f at x'."""
        scale = f"(1 + {lam} * {self.q!r})"
        inner = self.inner.slope_text(f"(x / {scale})", f"({lam} / {scale})", dims)
        return self._after(f"({self.q!r} * x + {inner}) / {scale}", x)

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """|y|^2/(2 q) less the envelope of f with parameter 1/q at y/q, for q > 0."""
        if self.q <= 0 or self.inner.weak >= self.q:
            return None
        if self.dims:
            square = y.square().sum(self.dims)
        else:
            square = y.square()
        return square / (2 * self.q) - self.inner.envelope(y / self.q, 1 / self.q)


@dataclass(frozen=True, kw_only=True, eq=False)
class Composed(Changed):
    """The function f(a u + b) with a number a != 0, and a number or vector b."""

    a: float
    b: float | tuple[float, ...] = 0.0

    @classmethod
    def of(cls, inner: Proximal, a: float, b: float | tuple[float, ...] = 0.0) -> Composed:
        """The composition."""
        return cls(
            inner=inner,
            a=a,
            b=b,
            rank=inner.rank,
            lipschitz=abs(a) * inner.lipschitz,
            weak=a * a * inner.weak,
            diameter=abs(a) * inner.diameter,
            tolerance=inner.tolerance,
            how=f"{inner.how}; of an affine argument",
        )

    def moved(self, u: str) -> str:
        """The text of a u + b."""
        if self.a == 1:
            text = u
        else:
            text = f"{self.a!r} * {u}"
        if self.b:
            return f"({text} + {literal(self.b, u)})"
        return f"({text})"

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f(a u + b)."""
        return self.inner.value_text(self.moved(u), dims)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of a times the slope of f at a x + b with parameter a^2 lam."""
        return f"{self.a!r} * {self.inner.slope_text(self.moved(x), product(lam, self.a * self.a), dims)}"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """f*(y / a) - b.y / a."""
        value = self.inner.conjugate(y / self.a)
        shift = _tensor(self.b, y) * y / self.a
        if value is None:
            return None
        return value - (shift.sum(self.dims) if self.dims else shift)

    @property
    def domain(self) -> str:
        """The scaled domain, in words."""
        return f"{self.a:g} times {self.inner.domain}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Mapped(Changed):
    """The function f(A u + b) with A A' = s I, such as f(a.u + b) for any a.

    y = A' (slope of f at A x + b with parameter s lam).
    """

    matrix: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    square: float

    @classmethod
    def of(cls, inner: Proximal, matrix: Sequence[Sequence[float]], b: Sequence[float] = ()) -> Mapped | str:
        """The composition, or why it has no simple prox.

        A function of rank 0 takes one row, or is summed over the rows.
        """
        rows = tuple(tuple(map(float, row)) for row in matrix)
        gram = [[sum(p * q for p, q in zip(r, t, strict=True)) for t in rows] for r in rows]
        square = gram[0][0]
        if any(
            abs(g - square * (j == k)) > 1e-9 * max(square, 1e-300)
            for j, r in enumerate(gram)
            for k, g in enumerate(r)
        ):
            return "its argument is a linear map whose rows are not orthogonal and of one length"
        if inner.rank == 0:
            inner = Separable.of(inner, len(rows))
        return cls(
            inner=inner,
            matrix=rows,
            b=tuple(map(float, b)) or (0.0,) * len(rows),
            square=square,
            rank=1,
            lipschitz=sqrt(square) * inner.lipschitz,
            weak=square * inner.weak,
            diameter=sqrt(square) * inner.diameter,
            tolerance=inner.tolerance,
            how=f"{inner.how}; of a semi-orthogonal map of the argument",
        )

    def moved(self, u: str) -> str:
        """The text of A u + b."""
        return f"({u} @ {literal(self.matrix, u)}.T + {literal(self.b, u)})"

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of f(A u + b)."""
        return self.inner.value_text(self.moved(u), dims)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of A' times the slope of f at A x + b with parameter s lam."""
        return (
            f"({self.inner.slope_text(self.moved(x), product(lam, self.square), dims)}) @ "
            f"{literal(self.matrix, x)}"
        )

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """f*(z) - b.z with y = A' z; inf if y is not in the range of A'."""
        matrix = _tensor(self.matrix, y)
        z = y @ matrix.T / self.square
        value = self.inner.conjugate(z)
        outside = ((z @ matrix - y).abs() > 1e-9 * (1 + y.abs())).any(-1)
        if value is None:
            return None
        return (value - z @ _tensor(self.b, y)).masked_fill(outside, inf)

    @property
    def domain(self) -> str:
        """The image of the domain, in words."""
        return f"A' of {self.inner.domain}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Separable(Changed):
    """The sum (``mean``: the mean) of one function of a number over the entries of an array."""

    share: float = 1.0

    @classmethod
    def of(cls, inner: Proximal, size: float = inf, rank: int = 1, mean: bool = False) -> Separable:
        """The sum over ``size`` entries (inf: unknown)."""
        if mean:
            share = 1 / size
        else:
            share = 1.0
        stretch = sqrt(size) * share
        return cls(
            inner=inner,
            share=share,
            rank=rank,
            lipschitz=stretch * inner.lipschitz if inner.lipschitz else 0.0,
            weak=share * inner.weak,
            diameter=stretch * inner.diameter,
            tolerance=inner.tolerance,
            how=f"entry by entry: {inner.how}",
        )

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the sum or mean over ``dims``."""
        text = f"({self.inner.value_text(u, ())}).sum({dims})"
        if self.share == 1:
            return text
        return f"{self.share!r} * {text}"

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the slopes, entry by entry."""
        text = self.inner.slope_text(x, product(lam, self.share), ())
        if self.share == 1:
            return text
        return f"{self.share!r} * ({text})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """The sum of the conjugates of the entries."""
        values = self.inner.conjugate(y / self.share)
        if values is None:
            return None
        return self.share * values.sum(self.dims)

    @property
    def domain(self) -> str:
        """The domain of each entry, in words."""
        return f"entry by entry {self.inner.domain}"


@dataclass(frozen=True, kw_only=True, eq=False)
class SumOverBlocks(Proximal):
    """The sum of functions of disjoint entries of a vector.

    A part is (entries, function), with one entry for a function of rank 0.
    """

    parts: tuple[tuple[tuple[int, ...], Proximal], ...]

    @classmethod
    def of(cls, parts: Sequence[tuple[Sequence[int], Proximal]]) -> SumOverBlocks:
        """The sum over blocks."""
        fs = [f for _, f in parts]
        return cls(
            parts=tuple((tuple(at), f) for at, f in parts),
            rank=1,
            lipschitz=sqrt(sum(f.lipschitz**2 for f in fs)),
            weak=max(f.weak for f in fs),
            diameter=sqrt(sum(f.diameter**2 for f in fs)),
            tolerance=max(f.tolerance for f in fs),
            how="a sum over blocks: " + " | ".join(dict.fromkeys(f.how for f in fs)),
        )

    def _at(self, u: str, at: tuple[int, ...], f: Proximal) -> str:
        if f.rank == 0:
            return f"{u}[..., {at[0]}]"
        return f"{u}[..., {list(at)}]"

    def value_text(self, u: str, dims: tuple[int, ...]) -> str:
        """The text of the sum of the blocks' values."""
        return " + ".join(f"({f.value_text(self._at(u, at, f), f.dims)})" for at, f in self.parts)

    def slope_text(self, x: str, lam: str, dims: tuple[int, ...]) -> str:
        """The text of the blocks' slopes, put back into the order of the entries."""
        texts = []
        for at, f in self.parts:
            text = f.slope_text(self._at("x", at, f), lam, f.dims)
            texts.append(f"({text})" + ("[..., None]" if f.rank == 0 else ""))
        order = [k for at, _ in self.parts for k in at]
        back = [order.index(k) for k in range(len(order))]
        joined = f"torch.cat([{', '.join(texts)}], -1)" + ("" if back == sorted(back) else f"[..., {back}]")
        return f"(lambda x: {joined})({x})"

    def conjugate(self, y: torch.Tensor) -> torch.Tensor | None:
        """The sum of the blocks' conjugates, or None if one is unknown."""
        values = [f.conjugate(y[..., at[0]] if f.rank == 0 else y[..., list(at)]) for at, f in self.parts]
        return None if any(v is None for v in values) else sum(values)  # type: ignore[arg-type, return-value]

    @property
    def domain(self) -> str:
        """The product of the blocks' domains, in words."""
        return " x ".join(f.domain for _, f in self.parts)
