"""Mathematics as LaTeX. Each piece knows how tightly it binds, so that only needed brackets are
written."""

from __future__ import annotations

import re

#: How tightly a piece binds: relations and conditions, sums and signs, products, powers, and what
#: needs no brackets anywhere.
RELATION, SUM, PRODUCT, POWER, ATOM = range(5)

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
    if template[:2] in {f"{k} " for k in range(5)}:
        level, text = (int(template[0]), template[2:])
    else:
        level, text = (ATOM, template)
    pieces = {str(k): piece for k, piece in enumerate(args)} | named

    def piece(found: re.Match[str]) -> str:
        name, _, least = found[1].partition(":")
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
    else:
        if len(stem) == 1 and stem.isalpha():
            shown = stem
        else:
            shown = rf"\mathrm{{{escaped(stem)}}}"
    return Tex(f"{shown}_{{{digits}}}" if digits and stem else shown or digits)


def escaped(text: str) -> str:
    """The text with all LaTeX commands escaped."""
    return "".join(ESCAPES.get(character, character) for character in text)


def number(value: float) -> Tex:
    """A number to six digits, with powers of ten."""
    mantissa, _, power = f"{value:.6g}".partition("e")
    if mantissa in ("inf", "-inf"):
        return Tex(mantissa.replace("inf", r"\infty"), ATOM if value > 0 else SUM)
    if not power:
        text = mantissa
    elif mantissa != "1":
        text = rf"{mantissa} \cdot 10^{{{int(power)}}}"
    else:
        text = f"10^{{{int(power)}}}"
    return Tex(text, SUM if value < 0 else PRODUCT if r"\cdot" in text else POWER if power else ATOM)
