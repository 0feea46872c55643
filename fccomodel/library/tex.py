"""Mathematics as LaTeX. Each piece knows how tightly it binds, so that only needed brackets are
written."""

from __future__ import annotations

import re

# How tightly a piece binds, from the loosest to the tightest.
RELATION = 0  # relations and conditions
SUM = 1  # sums and signs
PRODUCT = 2
POWER = 3
ATOM = 4  # needs no brackets anywhere

GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon "
    "phi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
SPELT = {"lam": "lambda", "eps": "epsilon"}
ESCAPES = {character: f"\\{character}" for character in "_%&#${}"} | {
    "\\": r"\backslash{}",
    "~": r"\sim{}",
    "^": r"\hat{}",
}


class Tex(str):
    """A piece of LaTeX of some ``level``; ``format(piece, "2")`` puts brackets around one that binds
    less tightly than 2."""

    level: int

    def __new__(cls, text: str, level: int = ATOM) -> Tex:
        piece = super().__new__(cls, text)
        piece.level = level
        return piece

    def __format__(self, least: str) -> str:
        if not least or self.level >= int(least):
            return str(self)
        return rf"\left({self}\right)"


def written(template: str, *args: Tex, **named: Tex) -> Tex:
    """Fill a template ``TEXT`` or ``LEVEL TEXT``.

    ``<0>``, ``<1>``, ``<name>`` are pieces. ``<0:2>`` puts brackets around a piece that binds less
    tightly than 2. ``<...>`` are all pieces with commas between.
    """
    level, text = ATOM, template
    if template[:2] in {f"{k} " for k in range(5)}:
        level, text = int(template[0]), template[2:]
    pieces = {str(k): piece for k, piece in enumerate(args)} | named

    def piece(place: re.Match[str]) -> str:
        """The text of a placeholder."""
        name, _, least = place[1].partition(":")
        if name == "...":
            return ", ".join(args)
        return format(pieces[name], least)

    return Tex(re.sub(r"<(\.\.\.|\w+(?::\d)?)>", piece, text), level)


def name(text: str) -> Tex:
    """A name in LaTeX: one letter in italics, Greek letters as such, longer words upright, trailing
    digits below."""
    stem, digits = re.fullmatch(r"(.*?)(\d*)", text).groups()  # type: ignore[union-attr]
    stem = stem.rstrip("_") or stem
    stem = SPELT.get(stem, stem)
    if stem in GREEK:
        shown = f"\\{stem}"
    elif len(stem) == 1 and stem.isalpha():
        shown = stem
    else:
        shown = rf"\mathrm{{{escaped(stem)}}}"
    if digits and stem:
        return Tex(f"{shown}_{{{digits}}}")
    return Tex(shown)


def escaped(text: str) -> str:
    """The text with all LaTeX commands escaped."""
    return "".join(ESCAPES.get(character, character) for character in text)


def number(value: float) -> Tex:
    """A number to six digits, with powers of ten."""
    mantissa, _, power = f"{value:.6g}".partition("e")
    if mantissa in ("inf", "-inf"):
        return Tex(mantissa.replace("inf", r"\infty"), ATOM if value > 0 else SUM)
    if not power:
        text, level = mantissa, ATOM
    elif mantissa != "1":
        text, level = rf"{mantissa} \cdot 10^{{{int(power)}}}", PRODUCT
    else:
        text, level = f"10^{{{int(power)}}}", POWER
    if value < 0:
        level = SUM
    return Tex(text, level)
