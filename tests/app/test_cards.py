"""The lists and cards of what the compiler knows."""

from __future__ import annotations

import pytest

from fccomodel.app import cards
from fccomodel.core.diagnostics import FccoError
from fccomodel.library import atoms


def test_every_atom_is_listed_once_within_eighty_columns():
    text = cards.atoms()
    assert max(map(len, text.splitlines())) <= cards.WIDTH
    for name, atom in atoms.all().items():
        if not atom.internal and not atom.symbol:
            assert text.count(f"\n  {atom.signature} ") == 1, name


@pytest.mark.parametrize("name", [name for name, atom in atoms.all().items() if not atom.internal])
def test_every_atom_has_a_card(name):
    atom = atoms.all()[name]
    text = cards.atoms(name)
    assert text.startswith(atom.signature) and "domain" in text
    assert atom.boolean or ("curvature" in text and "prox " in text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("huber", ("u - lambda * ((u / (1 + lambda)).clamp(-2, 2))", "s^2 / 2 for s in [-2, 2] (for delta = 2)")),
        ("exp", ("safeguarded Newton", "-entr(s) - s for s in [0, inf)")),
        ("log", ("of -log: safeguarded Newton", "finite on -inf to 0")),
        ("inv", ("on u > 0: safeguarded Newton",)),
        ("scad", ("lambda < 1/rho = 2 (for a = 3", "rho = ")),
        ("norminf", ("the cross-polytope",)),
        ("max", ("the projection on the simplex, by sorting", "0 on the simplex")),
        ("clip", ("kink at 3 points downward",)),
        ("dot", ("none: a function of several arguments",)),
    ],
)
def test_prox_and_conjugate_on_cards(name, words):
    text = " ".join(cards.atoms(name).split())
    assert all(word in text for word in words), text


def test_an_alias_finds_its_atom():
    assert cards.atoms("softplus") == cards.atoms("log1pexp")


def test_an_unknown_name_is_refused_with_a_guess():
    with pytest.raises(FccoError, match="Did you mean `log1pexp`"):
        cards.atoms("log1pex")
