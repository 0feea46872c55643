"""The lists and cards of what the compiler knows."""

from __future__ import annotations

import pytest

from fccomodel import atoms, catalogue
from fccomodel.diagnostics import FccoError


def test_every_atom_is_listed_once_within_eighty_columns():
    text = catalogue.atoms()
    assert max(map(len, text.splitlines())) <= catalogue.WIDTH
    for name, atom in atoms.all().items():
        if not atom.internal and name not in catalogue.OPERATORS:
            assert text.count(f"\n  {atom.signature} ") == 1, name


@pytest.mark.parametrize("name", [name for name, atom in atoms.all().items() if not atom.internal])
def test_every_atom_has_a_card(name):
    atom = atoms.all()[name]
    text = catalogue.atoms(name)
    assert text.startswith(atom.signature) and "domain" in text
    assert atom.boolean or "curvature" in text


def test_an_alias_finds_its_atom():
    assert catalogue.atoms("softplus") == catalogue.atoms("log1pexp")


def test_an_unknown_name_is_refused_with_a_guess():
    with pytest.raises(FccoError, match="Did you mean `log1pexp`"):
        catalogue.atoms("log1pex")
