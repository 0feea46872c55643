"""Lists and cards of atoms, algorithms and options: the commands of these names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING, Any

from fccomodel.app import errors
from fccomodel.app.generated import samples
from fccomodel.core.diagnostics import refuse

if TYPE_CHECKING:
    from fccomodel.algorithms import Algorithm, Theorem
    from fccomodel.library.atoms import Atom
    from fccomodel.library.reductions import Reduction, Spelled
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.choice import Candidate

#: Columns of a card.
WIDTH = 80
#: The entry of a card that is a model.
EXAMPLE = "example"
#: How an algorithm treats outer functions with kinks, by the field ``outer`` of its record.
KINKS = {
    "moreau": "smoothed by Moreau envelopes",
    "entropy": "smoothed by entropy on the simplex",
    "conjugate": "kept, and smooth functions too, each block with its dual variable",
    "dual": "kept, each block with its dual variable",
    "subgradient": "kept, by their subgradients",
    "smooth": "none",
}
#: Fields of an algorithm's record that are copied into its card as data.
JSON_FIELDS = ("title", "theorem", "rate", "cite", "oracle", "outer", "penalty")


def rows(pairs: Iterable[tuple[str, str]], *, margin: int = 2) -> str:
    """Names and their meanings, in two columns that are 80 characters wide together."""
    pairs = list(pairs)
    left = min(max((len(name) for name, _ in pairs), default=0), 26) + margin + 2
    lines = []
    for name, meaning in pairs:
        head = " " * margin + name
        if len(head) + 2 <= left:
            first = head.ljust(left)
        else:
            first = head + "\n" + " " * left
        wrapped = textwrap.wrap(meaning, WIDTH - left, break_on_hyphens=False) or [""]
        lines.append(first + ("\n" + " " * left).join(wrapped))
    return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card about one concept: a heading, a meaning, and properties by name."""

    head: str
    meaning: str = ""
    entries: list[tuple[str, str]]

    def __str__(self) -> str:
        if self.meaning:
            about = textwrap.indent(textwrap.fill(self.meaning, WIDTH - 2), "  ") + "\n"
        else:
            about = ""
        return f"{self.head}\n{about}\n{rows(self.entries)}"


def _known(name: str, names: Iterable[str], kind: str) -> None:
    """Refuse a name that is not among these names."""
    names = list(names)
    if name not in names:
        refuse(errors.unknown_concept(kind, name, names))


# ------------------------------------------------------------------------------------------ options
def options(name: str | None = None) -> str:
    """All options with their meanings, or the card of one option."""
    from fccomodel.plan.settings import OPTIONS, SETTINGS

    if name is not None:
        return str(option(name))
    of_solves = f"of every solve\n{rows(SETTINGS.items())}"
    of_algorithms = f"of algorithms and their loops\n{rows(OPTIONS.items())}"
    return f"{of_solves}\n\n{of_algorithms}"


def option(name: str) -> Card:
    """The card of an option: its values, and its default for each algorithm. F0805 if it is unknown."""
    from fccomodel.plan.settings import OPTIONS, SETTINGS

    known = {**SETTINGS, **OPTIONS}
    _known(name, known, "option")
    defaults: dict[str, list[str]] = {}
    for key, record in registered().items():
        if name in record.hyper:
            defaults.setdefault(f"{record.hyper[name]:g}", []).append(key)
    entries = []
    values = _values(name)
    if values:
        entries.append(("values", values))
    for value, names in sorted(defaults.items(), key=lambda item: -len(item[1])):
        entries.append((f"default {value}", ", ".join(names)))
    ways = f"--option {name}=.. at a shell, {name}=.. in Python, options {{ {name} = ..; }} in a model"
    entries.append(("given as", ways))
    return Card(head=name, meaning=known[name], entries=entries)


def registered() -> Mapping[str, Algorithm]:
    """All algorithms by name."""
    from fccomodel import algorithms as registry

    return registry.all()


def _values(name: str) -> str:
    """The values that an option may have, in words; empty if they are not listed anywhere."""
    from fccomodel.core.options import ABOVE_ZERO, DEVICES, NUMBERS, PRECISIONS, WORDS

    words = {
        "device": (*DEVICES, "cuda:1"),
        "precision": PRECISIONS,
        "algorithm": ("race", *registered()),
        **WORDS,
    }
    if name == "backend":
        from fccomodel.execution import backends

        return ", ".join((backends.AUTO, *backends.all()))
    if name in words:
        return ", ".join(str(word).lower() if isinstance(word, bool) else word for word in words[name])
    if name not in NUMBERS:
        return ""
    whole, low, high = NUMBERS[name]
    text = "whole numbers" if whole else "numbers"
    if low == ABOVE_ZERO:
        text += " above 0"
    else:
        text += f" from {low:g}"
    if not isinf(high):
        text += f" to {high:g}"
    return text


# -------------------------------------------------------------------------------------------- atoms
def atoms(name: str | None = None) -> str:
    """All atoms by kind, or the cards of one name."""
    from fccomodel.library import atoms as registry

    if name is not None:
        return "\n\n".join(str(card) for card in named(name))
    listed: dict[str, list[tuple[str, str]]] = {}
    for title, names in groups().items():
        listed[title] = [_list_entry(key, registry.all()[key]) for key in names]
    listed |= _other_lists()
    return "\n\n".join(f"{title}\n{rows(entries)}" for title, entries in listed.items() if entries)


def _list_entry(name: str, atom: Atom) -> tuple[str, str]:
    """The line of an atom in the list: its signature and its meaning, or an operator and its name."""
    if atom.symbol:
        return atom.meaning, name
    if atom.aliases:
        return atom.signature, f"{atom.meaning} (also {', '.join(atom.aliases)})"
    return atom.signature, atom.meaning


def groups() -> dict[str, list[str]]:
    """The names of all atoms by kind."""
    from fccomodel.library import atoms as registry

    by_kind: dict[str, list[str]] = {
        "entry by entry": [],
        "of whole vectors and matrices": [],
        "operators": [],
    }
    for key, atom in registry.all().items():
        if atom.internal:
            continue
        if atom.symbol:
            kind = "operators"
        elif hasattr(atom, "formula"):
            kind = "entry by entry"
        else:
            kind = "of whole vectors and matrices"
        by_kind[kind].append(key)
    return by_kind


def named(name: str) -> list[Card]:
    """The cards of all concepts with this name: an atom, reductions, a set, a distribution.

    F0805 if there is none.
    """
    from fccomodel.library import atoms as registry

    other_cards = others()
    atoms = [key for key, atom in registry.all().items() if not atom.internal]
    _known(name, [*atoms, *registry.aliases(), *other_cards], "atom")
    atom = registry.get(name)
    cards = list(other_cards.get(name, ()))
    if atom is not None and not atom.internal:
        return [_atom(atom), *cards]
    return cards


def _other_lists() -> dict[str, list[tuple[str, str]]]:
    """The lists of functions that make arrays, reductions, simple sets and distributions."""
    from fccomodel.library import array_functions, distributions, reductions, sets

    with_notation = reductions.words().values()
    return {
        "arrays by their entries": [
            (one.signature, one.meaning) for one in array_functions.FUNCTIONS.values()
        ],
        "over sets and draws": [(_head(kind), kind.meaning) for kind in with_notation],
        "simple sets of variables": [(one.signature, one.meaning) for one in sets.all().values()],
        "distributions": [(one.signature, one.meaning) for one in distributions.all().values()],
    }


def _head(kind: Reduction | Spelled) -> str:
    """A reduction with its option and its brackets, as ``cvar(alpha = 0.1)[z ~ D]``."""
    option = ""
    if kind.option is not None:
        option = f"({kind.option.name} = {kind.option.example})"
    if kind.binders == ("~",):
        return f"{kind.name}{option}[z ~ D]"
    return f"{kind.name}{option}[k in K]"


def others() -> dict[str, list[Card]]:
    """The cards of functions that make arrays, reductions, simple sets and distributions by name."""
    from fccomodel.library import array_functions, distributions, reductions, sets

    cards: dict[str, list[Card]] = {}
    for name, function in array_functions.FUNCTIONS.items():
        entries = [("used", "in formulas; it is written out entry by entry"), (EXAMPLE, function.example)]
        cards[name] = [Card(head=function.signature, meaning=function.meaning, entries=entries)]
    for kind in reductions.all().values():
        if kind.written:
            cards.setdefault(kind.name, []).append(_reduction(kind))
    for word in reductions.spelled().values():
        entries = [("used", f"as a function of `{word.of}`"), (EXAMPLE, word.example)]
        cards[word.name] = [Card(head=f"{_head(word)} body", meaning=word.meaning, entries=entries)]
    for simple_set in sets.all().values():
        entries = [("used", "of a variable: `var w[d] in ...`"), *_arguments_and_source(simple_set)]
        entries.append((EXAMPLE, samples.of_set(simple_set)))
        card = Card(head=simple_set.signature, meaning=simple_set.meaning, entries=entries)
        cards.setdefault(simple_set.name, []).append(card)
    for family in distributions.all().values():
        entries = [("used", "to draw from: `E[z ~ ...]`"), *_arguments_and_source(family)]
        entries.append((EXAMPLE, samples.of_distribution(family)))
        card = Card(head=family.signature, meaning=family.meaning, entries=entries)
        cards.setdefault(family.name, []).append(card)
    return cards


def _arguments_and_source(concept: Any) -> list[tuple[str, str]]:
    """The arguments of a set or a distribution with their domains, and the paper that it comes from."""
    entries = []
    arguments = _arguments(concept)
    if arguments:
        everywhere = [_anything() for _ in arguments]
        domains = [domain or _anything() for domain in concept.domains(*everywhere)]
        entries.append(("arguments", _domain(arguments, domains)))
    if getattr(concept, "cite", ""):
        entries.append(("from", concept.cite))
    return entries


def _anything() -> Any:
    """The interval of all numbers."""
    from fccomodel.library.atoms import Interval

    return Interval()


def _arguments(concept: Any) -> tuple[str, ...]:
    """The names of the arguments of a set or of a distribution."""
    if hasattr(concept, "arguments"):
        return concept.arguments
    return concept.parameters


def _reduction(kind: Reduction) -> Card:
    """The card of a reduction, for elements of any value."""
    binders = {"in": "iterates over all elements: [k in K]", "~": "draws: [z ~ D]"}
    card = [("binders", "; ".join(binders[b] for b in kind.binders))]
    if kind.option is not None:
        domains = kind.option.domains(_anything())
        card += [("option", f"{kind.option.name}, as {kind.option.name} = {kind.option.example}")]
        card += [("domain", _domain((kind.option.name,), [where or _anything() for where in domains]))]
    if kind.increasing:
        card += [("monotone", "increasing in every element")]
    if kind.arrays:
        elements = kind.scalar or "may be arrays"
    elif kind.condition:
        elements = "a condition"
    else:
        elements = "numbers"
    card += [("elements", elements)]
    if kind.twin:
        card += [("twin", kind.twin)]
    if kind.cite:
        card += [("from", kind.cite)]
    card += [(EXAMPLE, samples.of_reduction(kind))]
    return Card(head=f"{_head(kind)} body", meaning=kind.meaning, entries=card)


def _atom(atom: Atom) -> Card:
    """The card of an atom, for arguments of any value in its domain."""
    from fccomodel.library.atoms import Interval

    names = atom.names(2)
    everywhere = tuple(Interval() for _ in names)
    domain = [limited or Interval() for limited in atom.domains(*everywhere)]
    domain += everywhere[len(domain) :]
    entries = []
    if atom.aliases:
        entries.append(("also called", ", ".join(atom.aliases)))
    entries.append(("domain", _domain(names, domain)))
    if atom.parameters:
        constant = ", ".join(atom.parameters)
        entries.append(("constant", f"{constant}: must not depend on the decision variables"))
    if atom.boolean:
        entries.append(("value", "true or false"))
    elif not atom.internal:
        entries += _properties(atom, names, domain)
    if isinstance(atom.torch, str):
        entries.append(("torch", atom.lower(names)))
    if atom.cite:
        entries.append(("from", atom.cite))
    entries.append((EXAMPLE, samples.of_atom(atom)))
    return Card(head=atom.signature, meaning=atom.meaning, entries=entries)


def _properties(atom: Atom, names: tuple[str, ...], domain: list[Any]) -> list[tuple[str, str]]:
    """The mathematical properties of an atom with a number as its value, over a domain."""
    from fccomodel.library.proximal import cards as proximal
    from fccomodel.structure import facts_of

    varying = tuple(name not in atom.parameters for name in names)
    entries = [("curvature", str(atom.curvature(*domain, varying=varying)))]
    monotone = _per_argument(names, varying, lambda k: atom.monotone(*domain, argument=k))
    entries.append(("monotone", monotone))
    smoothness = atom.gradient_lipschitz(*domain, varying=varying)
    entries.append(("gradient", "not everywhere" if smoothness is None else _lipschitz(smoothness)))
    lipschitz = _per_argument(names, varying, lambda k: _lipschitz(atom.lipschitz(*domain, argument=k)))
    entries.append(("Lipschitz", lipschitz))
    entries.append(("range", _interval(atom.range(*domain))))
    weak = atom.weak_convexity(*domain, varying=varying)
    if weak:
        entries.append(("weakly convex", "no constant is known" if isinf(weak) else f"rho = {weak:g}"))
    prox, conjugate = proximal.of_atom(atom, facts_of)
    entries.append(("prox", prox))
    if conjugate:
        entries.append(("conjugate", conjugate))
    if isinstance(atom.derivative, tuple) and atom.derivative:
        variable_names = [name for name, varies in zip(names, varying, strict=True) if varies]
        formulas = zip(variable_names, atom.derivative, strict=False)
        entries.append(("derivative", "; ".join(f"{name}: {formula}" for name, formula in formulas)))
    return entries


def _per_argument(names: tuple[str, ...], varying: tuple[bool, ...], property_of: Any) -> str:
    """A property of each argument that may vary; a single text if all have the same."""
    texts = {}
    for k, (name, varies) in enumerate(zip(names, varying, strict=True)):
        if varies:
            texts[name] = str(property_of(k))
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{name}: {text}" for name, text in texts.items())


def _lipschitz(constant: float) -> str:
    if isinf(constant):
        return "no global constant"
    return f"constant {constant:g}"


def _interval(where: Any) -> str:
    """``(0, inf)``, or ``all reals``."""
    if isinf(where.lo) and isinf(where.hi):
        return "all reals"
    left = "(" if where.lo_open or isinf(where.lo) else "["
    right = ")" if where.hi_open or isinf(where.hi) else "]"
    return f"{left}{where.lo:g}, {where.hi:g}{right}"


def _domain(names: tuple[str, ...], domain: list[Any]) -> str:
    """The domains of the arguments that are limited, as ``t in (0, inf)``; ``everything`` if none is."""
    limits = []
    for name, interval in zip(names, domain, strict=False):
        if not (isinf(interval.lo) and isinf(interval.hi)):
            limits.append(f"{name} in {_interval(interval)}")
    return ", ".join(limits) or "everything"


# --------------------------------------------------------------------------------------- algorithms
def algorithms(
    name: str | None = None,
    candidates: Mapping[str, Candidate] | None = None,
    findings: Mapping[str, Finding] | None = None,
) -> str:
    """All algorithms, or the card of one.

    candidates   the algorithms as judged for a model; the texts then say how the model meets each
                 requirement
    findings     how the model meets the assumptions of the interior-point method; None if it does not
    """
    from fccomodel import algorithms as registry
    from fccomodel.plan import interior
    from fccomodel.plan.candidates import GIVEN

    records = registry.all()
    if name == interior.NAME:
        return str(interior_point(candidates is not None, findings))
    if name is not None:
        _known(name, [*records, interior.NAME], "algorithm")
        return str(algorithm(records[name], None if candidates is None else candidates[name]))
    theorem = interior.THEOREM
    if candidates is None:
        lines = [(key, f"{a.title}: O({a.rate}) {a.counts}; {a.theorem}") for key, a in records.items()]
        of_interior = f"{interior.TITLE}: O({theorem.rate}) {interior.COUNTS}; {theorem.name}"
        return rows([*lines, (interior.NAME, of_interior)])
    lines = [(candidate.record.name, verdict_on(candidate)) for candidate in in_order(candidates)]
    if findings is not None:
        verdict = f"covers the model: {GIVEN[theorem.gives]}, O({theorem.rate}) {interior.COUNTS}"
    else:
        verdict = f"needs {'; needs '.join(interior.MEANINGS.values())}"
    return rows([*lines, (interior.NAME, verdict)])


def interior_point(for_model: bool, findings: Mapping[str, Finding] | None) -> Card:
    """The card of the interior-point method.

    for_model   whether the card is about a model
    findings    how the model meets the assumptions; None if it does not
    """
    from fccomodel.plan import interior

    lines = []
    for name, clause in interior.REQUIRES.items():
        line = f"{interior.MEANINGS[name]} ({clause})"
        if for_model and findings is not None:
            line += f": {findings[name].standing}; {findings[name].why}"
        elif for_model:
            line += ": LACKING"
        lines.append(line)
    shown = [("theorem", interior.THEOREM.name), ("rate", f"O({interior.THEOREM.rate}) {interior.COUNTS}")]
    shown += [("from", "clarabel-2024 (all rows at once), mehrotra-1992 (few variables and many rows)")]
    shown += [("" if place else "needs", text) for place, text in enumerate(lines)]
    return Card(head=f"{interior.NAME}: {interior.TITLE}", entries=shown)


HEAD = [("variant", "paper", "state"), ("---", "---", "---")]


def variants() -> str:
    """A table of the variants in the papers and their state here: ``variant | paper | state``."""
    from fccomodel import algorithms as registry

    table = [*HEAD]
    for record in registry.all().values():
        table += forms(record)
    return "\n".join(" | ".join(row) for row in table)


def forms(record: Algorithm) -> list[tuple[str, str, str]]:
    """The rows of one algorithm in the table of variants."""
    listed = [(f"{record.title}: {v.what}", v.where, v.state) for v in record.variants]
    return listed or [(record.title, record.theorem, "a baseline: its updates")]


def in_order(candidates: Mapping[str, Candidate]) -> list[Candidate]:
    """The candidates, those whose theorem covers the model first."""
    return sorted(candidates.values(), key=lambda c: (not c.covered, not c.admitted, not c.can_run, c.order))


def verdict_on(candidate: Candidate) -> str:
    """Whether a candidate's theorem covers the model, or the requirements that the model misses."""
    from fccomodel.plan.candidates import GIVEN

    rate = f"O({candidate.promise.rate}) {candidate.record.counts}"
    if candidate.covered:
        return f"covers the model: {GIVEN[candidate.guarantee]}, {rate}"
    if candidate.admitted:
        return f"runs without a guarantee, beyond its theorem: {'; '.join(candidate.adds())}"
    how = "" if candidate.can_run else "cannot run; "
    return how + "needs " + "; needs ".join(candidate.lacks())


def algorithm(record: Algorithm, candidate: Candidate | None = None) -> Card:
    """The card of an algorithm: its theorem, its requirements, and the parts that it consists of.

    With a ``candidate`` the card says how the model meets each requirement.
    """
    entries = [
        ("theorem", record.theorem),
        ("rate", f"O({record.rate}) {record.counts}"),
        ("from", record.cite),
    ]
    for theorem in record.better:
        promise = f"{theorem.name}: O({theorem.rate}), with {_further_assumptions(theorem)}"
        entries.append(("or, where more holds", promise))
    entries += [("" if place else "needs", text) for place, text in enumerate(_needs(record, candidate))]
    entries.append(("kinks in f", KINKS[record.outer]))
    entries.append(("constraints", (record.penalty or "none").replace("_", " ")))
    if record.oracle == "blocks":
        entries.append(("sees", "sampled blocks"))
    else:
        entries.append(("sees", "all tracked expectations as one vector"))
    if record.estimator is not None:
        entries.append(("gradients by", f"the {record.estimator.gradient_by} estimates u"))
    if len(record.steps) > 1:
        entries.append(("steps", ", ".join(record.steps)))
    if record.hyper:
        entries.append(("options", ", ".join(f"{key} = {text}" for key, text in _defaults(record).items())))
    if record.theory:
        entries.append(("schedules", "practical, theory (--option schedule=theory --option epsilon=1e-3)"))
    else:
        entries.append(("schedules", "practical"))
    return Card(head=f"{record.name}: {record.title}", entries=entries)


def _defaults(record: Algorithm) -> dict[str, str]:
    """The options of an algorithm with their default values, or the formulas that give them."""
    from fccomodel.plan import settings

    numbers = {name: f"{value:g}" for name, value in record.hyper.items()}
    return {**numbers, **settings.formulas(record)}


def _further_assumptions(theorem: Theorem) -> str:
    """The assumptions of a theorem beyond those of the algorithm's first theorem, in words."""
    from fccomodel.plan import assumptions

    return ", ".join(assumptions.ALL[name].meaning for name in theorem.where)


def _needs(record: Algorithm, candidate: Candidate | None) -> list[str]:
    """Each assumption with its clause, and how the model meets it if there is a candidate."""
    from fccomodel.plan import assumptions

    lines = []
    for name, clause in record.requires.items():
        line = f"{assumptions.ALL[name].meaning} ({clause})"
        if candidate is not None:
            finding = candidate.findings[name]
            if finding.holds:
                standing = str(finding.standing)
            elif name in candidate.beyond:
                standing = "beyond it"
            else:
                standing = "LACKING"
            line += f": {standing}; {finding.why}"
        lines.append(line)
    return lines


def algorithms_json(
    name: str | None = None, candidates: Mapping[str, Candidate] | None = None
) -> dict[str, Any]:
    """The cards of all algorithms, or of one, as data.

    Each name has ``title``, ``theorem``, ``rate``, ``cite``, ``requires`` and more. With ``candidates``
    it also has ``covered``, ``can_run``, and for each assumption ``holds``, ``standing`` and ``why``.
    """
    from fccomodel import algorithms as registry
    from fccomodel.app.shown import explain
    from fccomodel.plan import assumptions

    records = registry.all()
    if name is not None:
        _known(name, records, "algorithm")
    result = {}
    for key, record in records.items():
        if name not in (None, key):
            continue
        requires: dict[str, dict[str, Any]] = {
            need: {"meaning": assumptions.ALL[need].meaning, "clause": clause}
            for need, clause in record.requires.items()
        }
        card: dict[str, Any] = {field: getattr(record, field) for field in JSON_FIELDS}
        card["requires"] = requires
        card["steps"] = list(record.steps)
        card["options"] = dict(record.hyper)
        card["theory"] = record.theory is not None
        if candidates is not None:
            candidate = candidates[key]
            card["covered"] = candidate.covered
            card["admitted"] = candidate.admitted
            card["can_run"] = candidate.can_run
            for need, finding in explain.findings_json(record.requires, candidate.findings).items():
                requires[need] |= finding
        result[key] = card
    return result
