"""What models name and what becomes of it: pages from the registries of ``library``, ``normal`` and ``plan``."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from markup import card, fenced, heading, page, paragraph, properties, source

from fccomodel.app import registry
from fccomodel.app.shown import cards
from fccomodel.library import distributions as draws
from fccomodel.library import reductions as kinds
from fccomodel.library import regularisers as penalties
from fccomodel.library import sets as simple

GRAPHS = (
    "Pictures show a function f with its Moreau envelope, the minimum over v of f(v) + (v - u)^2 / 2. Beside it "
    "is the proximal map, the v that attains it; the grey line is u itself. A function that falls too fast has neither."
)


def atoms(group: str) -> str:
    """The functions of one group, as ``fccomodel atoms NAME`` shows them, with the graphs of scalar ones."""
    shown = [_with_graph(name) for name in cards.groups()[group]]
    return page(paragraph(GRAPHS), *shown) if any("<svg" in one for one in shown) else page(*shown)


def _with_graph(name: str) -> str:
    """The card of a function, and its graph if it is a function of one number."""
    import graphs

    from fccomodel.library import atoms as registry

    shown = card(cards.named(name)[0], name)
    atom = registry.get(name)
    return page(shown, graphs.picture(atom)) if isinstance(atom, registry.ScalarAtom) else shown


def reductions() -> str:
    return page(*(card(cards.named(one.name)[-1], one.name) for one in kinds.all().values() if one.written))


def sets() -> str:
    return page(*(card(cards.named(name)[-1], name) for name in simple.all()))


def distributions() -> str:
    return page(*(card(cards.named(name)[-1], name) for name in draws.all()))


def regularisers() -> str:
    """With their proximal maps."""
    about = "Summands of the objective without data; steps take them by their proximal maps, reports by their subdifferentials."
    return page(paragraph(about), *map(_regulariser, penalties.all().values()))


def _regulariser(one: penalties.Regulariser) -> str:
    entries = [("written by", ", ".join(one.forms)), ("coefficients", ", ".join(one.coefficients))]
    entries += [("kinks", "none" if one.smooth else "where the report takes its subdifferential")]
    entries += [("sum of", ", ".join(one.sum_of))] if one.sum_of else []
    entries += [("from", one.cite)] if one.cite else []
    return page(heading(one.name, one.name), paragraph(one.meaning), properties(entries), source(one.prox))


def reformulations() -> str:
    """Equivalent problems, smoothings and penalties."""
    from fccomodel.normal_form import reformulations as registry_of

    about = (
        "What a problem becomes so that an algorithm takes it: equivalent forms, smoothings, penalties of constraints. "
        "Explanations and reports name each that was applied."
    )
    return page(paragraph(about), *map(_reformulation, _every(registry_of.all())))


def _reformulation(one: Any) -> str:
    entries = [("role", one.role), ("removes", ", ".join(one.removes)), ("may leave", ", ".join(one.gives)), ("needs", one.needs)]
    entries += [("from", one.cite)]
    given = [(name, said) for name, said in entries if said]
    return page(heading(one.title, one.name), fenced(one.formula.replace(";  ", "\n")), paragraph(one.account), properties(given))


def identities() -> str:
    about = "By these, models that mean the same are brought to one form, before anything is proved of them."
    return page(paragraph(about), properties(registry.concepts("library.identities").items()))


def sources() -> str:
    return page(paragraph("What tables and arrays are bound to."), properties(registry.concepts("data.sources").items()))


def options() -> str:
    """As ``fccomodel options NAME`` shows them."""
    from fccomodel.plan.settings import OPTIONS, SETTINGS

    blocks = []
    for title, named in (("Of every solve", SETTINGS), ("Of algorithms and their loops", OPTIONS)):
        blocks += [f"## {title}", *(card(cards.option(name), name, level=3) for name in named)]
    return page(*blocks)


def assumptions() -> str:
    from fccomodel.plan.assumptions import ALL

    about = (
        "What theorems ask for. `fccomodel explain` says of each how a model meets it (proved, bounded from data, estimated or "
        "assumed), or what it lacks."
    )
    return page(paragraph(about), properties((name, one.meaning) for name, one in ALL.items()))


def estimators() -> str:
    """How estimates of inner expectations follow their samples."""
    blocks = []
    for name, meaning in registry.concepts("algorithms.estimators").items():
        module = importlib.import_module(f"fccomodel.algorithms.estimators.{name}")
        blocks += [heading(name, name), paragraph(meaning), source(module.track)]
    return page(*blocks)


def _every(found: Any) -> Iterable[Any]:
    return found.values() if hasattr(found, "values") else found
