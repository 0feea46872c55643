"""The lists and cards of what the compiler knows."""

from __future__ import annotations

import pytest

from fccomodel import pipeline
from fccomodel.app import cli
from fccomodel.app.shown import cards
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.library import atoms
from fccomodel.plan import settings


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
        (
            "huber",
            ("u - lambda * ((u / (1 + lambda)).clamp(-2, 2))", "s^2 / 2 for s in [-2, 2] (for delta = 2)"),
        ),
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


#: what the papers of these algorithms give: algorithms, theorems, and forms without a theorem
GIVEN = {
    "sox-2022": "Algorithm 1|Algorithm 2|Theorem 1|Theorem 2|Theorem 3|Corollary 1|appendix E",
    "alexr-2025": "Algorithm 1|Lemma 1|Theorem 1|Theorems 2 and 3|line 7",
    "sonex-alexr2-2025": "Algorithm 1|Algorithm 2|Theorem 4.7|Theorem 4.10|Corollary 4.11|Theorem "
    "5.3|Theorem E.6|appendix F.3",
    "hscg-2020": "Algorithm 1|Algorithm 2|Theorem 3.1|Theorem 3.2|Theorem 3.3|Theorem 3.4|Theorem "
    "4.1|Theorem 4.2|Lemma 3.1"
    "|section 2.3",
    "ascvrg-2021": "Algorithm 1|Theorem 3.5",
}


@pytest.mark.parametrize("paper", GIVEN)
def test_every_form_of_the_papers_has_a_state(paper: str) -> None:
    rows = [line.split(" | ") for line in cards.variants().splitlines()]
    assert all(len(row) == 3 and all(row) for row in rows)
    places = " ".join(place for _, place, _ in rows if paper in place)
    assert not [form for form in GIVEN[paper].split("|") if form not in places]


def test_the_table_of_forms_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["algorithms", "--variants"]) == 0
    assert capsys.readouterr().out == cards.variants() + "\n"


# ------------------------------------------------------------------------------------------ options
@pytest.mark.parametrize("name", [*settings.OPTIONS, *settings.SETTINGS])
def test_an_option_s_card_says_what_it_may_be(name):
    text = " ".join(cards.options(name).split())
    assert (
        {**settings.OPTIONS, **settings.SETTINGS}[name] in text
        and f"--option {name}=" in text
        and name in cards.options()
    )
    if name in options.NUMBERS or name in options.WORDS:
        assert "values" in text
    assert all(len(line) <= 80 for line in cards.options(name).splitlines())


def test_an_option_s_card_has_the_defaults_of_algorithms():
    text = " ".join(cards.options("gamma").split())
    assert "numbers above 0 to 1" in text and "sonex" in text


def test_options_that_solves_take_have_words():
    numbers = {*options.NUMBERS, *options.WORDS}
    assert numbers <= {*settings.OPTIONS, *settings.SETTINGS}


# ----------------------------------------------------------------------------------------- examples
def test_every_example_of_a_card_is_a_model():
    """Of functions, operators, reductions, sets and distributions; each uses what it is an example of."""
    names = [name for name, atom in atoms.all().items() if not atom.internal]
    names += [name for name in cards.others() if name not in names]
    for name in names:
        written = atoms.all()[name].symbol if name in atoms.all() else ""
        for card in cards.named(name):
            text = dict(card.entries)[cards.EXAMPLE]
            assert (written or name) in text
            pipeline.compile_model(Source(text=text, name="example"))
