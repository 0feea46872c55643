"""What the language and the compiler know, as lists and cards: ``fccomodel atoms``, ``algorithms`` and
``options``."""

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
    from fccomodel.library.reductions import Reduction
    from fccomodel.plan.assumptions import Finding
    from fccomodel.plan.choice import Candidate

WIDTH = 80
#: The entry of a card that is a model.
EXAMPLE = "example"


def rows(pairs: Iterable[tuple[str, str]], *, margin: int = 2) -> str:
    """Names and what they mean, in two columns of 80 together."""
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
    """All that is said of one concept: what it is, and its properties by name; as text at 80 columns."""

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
    """The name must be one of those."""
    names = list(names)
    if name not in names:
        refuse(errors.unknown_concept(kind, name, names))


# ------------------------------------------------------------------------------------------ options
def options(name: str | None = None) -> str:
    """All options and what they mean, or the card of one: its values, its default by algorithm."""
    from fccomodel.plan.settings import OPTIONS, SETTINGS

    if name is None:
        return (
            f"of every solve\n{rows(SETTINGS.items())}\n\nof algorithms and their "
            f"loops\n{rows(OPTIONS.items())}"
        )
    return str(option(name))


def option(name: str) -> Card:
    """The card of an option. F0805 for one that there is not."""
    from fccomodel.plan.settings import OPTIONS, SETTINGS

    known = {**SETTINGS, **OPTIONS}
    _known(name, known, "option")
    defaults: dict[str, list[str]] = {}
    for key, record in registered().items():
        if name in record.hyper:
            defaults.setdefault(f"{record.hyper[name]:g}", []).append(key)
    if values := _values(name):
        shown = [("values", values)]
    else:
        shown = []
    shown += [
        (f"default {value}", ", ".join(names))
        for value, names in sorted(defaults.items(), key=lambda item: -len(item[1]))
    ]
    ways = f"--option {name}=.. at a shell, {name}=.. in Python, options {{ {name} = ..; }} in a model"
    return Card(head=name, meaning=known[name], entries=[*shown, ("given as", ways)])


def registered() -> Mapping[str, Algorithm]:
    """All algorithms by name."""
    from fccomodel import algorithms as registry

    return registry.all()


def _values(name: str) -> str:
    """What an option may be, in words."""
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
    if low == ABOVE_ZERO:
        least = "above 0"
    else:
        least = f"from {low:g}"
    return f"{'whole ' if whole else ''}numbers {least}{'' if isinf(high) else f' to {high:g}'}"


# -------------------------------------------------------------------------------------------- atoms
def atoms(name: str | None = None) -> str:
    """All atoms by kind, or the card of one."""
    from fccomodel.library import atoms as registry

    if name is not None:
        return "\n\n".join(str(card) for card in named(name))
    listed: dict[str, list[tuple[str, str]]] = {}
    for title, names in groups().items():
        for key in names:
            atom = registry.all()[key]
            if atom.aliases:
                also = f" (also {', '.join(atom.aliases)})"
            else:
                also = ""
            listed.setdefault(title, []).append(
                (atom.meaning, key) if atom.symbol else (atom.signature, atom.meaning + also)
            )
    return "\n\n".join(
        f"{title}\n{rows(entries)}" for title, entries in {**listed, **_further()}.items() if entries
    )


def groups() -> dict[str, list[str]]:
    """The names of all atoms by kind."""
    from fccomodel.library import atoms as registry

    found: dict[str, list[str]] = {"entry by entry": [], "of whole vectors and matrices": [], "operators": []}
    for key, atom in registry.all().items():
        if not atom.internal:
            if hasattr(atom, "formula"):
                numbers = "entry by entry"
            else:
                numbers = "of whole vectors and matrices"
            found["operators" if atom.symbol else numbers].append(key)
    return found


def named(name: str) -> list[Card]:
    """The cards of all that models write by this name: an atom, a reduction, a set, a distribution.
    F0805 where there is none."""
    from fccomodel.library import atoms as registry

    further = others()
    _known(
        name,
        [*(key for key, atom in registry.all().items() if not atom.internal), *registry.aliases(), *further],
        "atom",
    )
    atom = registry.get(name)
    return [*([_atom(atom)] if atom is not None and not atom.internal else []), *further.get(name, ())]


def _further() -> dict[str, list[tuple[str, str]]]:
    """What a model names besides functions."""
    from fccomodel.library import distributions, reductions, sets

    written = [kind for kind in reductions.all().values() if kind.written]
    return {
        "over sets and draws": [(_head(kind), kind.meaning) for kind in written],
        "simple sets of variables": [(one.signature, one.meaning) for one in sets.all().values()],
        "distributions": [(one.signature, one.meaning) for one in distributions.all().values()],
    }


def _head(kind: Reduction) -> str:
    if kind.option is not None:
        option = f"({kind.option.name} = {kind.option.example})"
    else:
        option = ""
    return f"{kind.name}{option}[{'z ~ D' if kind.binders == ('~',) else 'k in K'}]"


def others() -> dict[str, list[Card]]:
    """The cards of reductions, simple sets and distributions by name."""
    from fccomodel.library import distributions, reductions, sets

    cards: dict[str, list[Card]] = {}
    for kind in (kind for kind in reductions.all().values() if kind.written):
        cards.setdefault(kind.name, []).append(_reduction(kind))
    families: list[Any] = [*sets.all().values(), *distributions.all().values()]
    for one in families:
        domain = [where or _anything() for where in one.domains(*(_anything() for _ in _arguments(one)))]
        if _arguments(one):
            card = [("arguments", _domain(_arguments(one), domain))]
        else:
            card = []
        if getattr(one, "cite", ""):
            card += [("from", one.cite)]
        simple = hasattr(one, "project")
        if simple:
            where = "of a variable: `var w[d] in ...`"
        else:
            where = "to draw from: `E[z ~ ...]`"
        card += [(EXAMPLE, samples.of_set(one) if simple else samples.of_distribution(one))]
        cards.setdefault(one.name, []).append(
            Card(head=one.signature, meaning=one.meaning, entries=[("used", where), *card])
        )
    return cards


def _anything() -> Any:
    from fccomodel.library.atoms import Interval

    return Interval()


def _arguments(one: Any) -> tuple[str, ...]:
    if hasattr(one, "arguments"):
        return one.arguments
    return one.parameters


def _reduction(kind: Reduction) -> Card:
    """Everything said of a reduction where its elements are anything."""
    binders = {"in": "iterates over all elements: [k in K]", "~": "draws: [z ~ D]"}
    card = [("binders", "; ".join(binders[b] for b in kind.binders))]
    if kind.option is not None:
        given = kind.option.domains(_anything())
        card += [("option", f"{kind.option.name}, as {kind.option.name} = {kind.option.example}")]
        card += [("domain", _domain((kind.option.name,), [where or _anything() for where in given]))]
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
    """Everything known about an atom where its arguments are anything in its domain."""
    from fccomodel.library.atoms import Interval
    from fccomodel.library.proximal import cards as proximal
    from fccomodel.structure import facts_of

    names = atom.names(2)
    whole = tuple(Interval() for _ in names)
    domain = [where or Interval() for where in atom.domains(*whole)]
    domain += list(whole[len(domain) :])
    if atom.aliases:
        card = [("also called", ", ".join(atom.aliases))]
    else:
        card = []
    card += [("domain", _domain(names, domain))]
    if atom.parameters:
        card.append(("constant", ", ".join(atom.parameters) + ": must not depend on the decision variables"))
    if atom.boolean:
        card.append(("value", "true or false"))
    elif not atom.internal:
        varying = tuple(n not in atom.parameters for n in names)
        card += [("curvature", str(atom.curvature(*domain, varying=varying)))]
        card += [("monotone", _per_argument(names, varying, lambda k: atom.monotone(*domain, argument=k)))]
        smooth = atom.gradient_lipschitz(*domain, varying=varying)
        card += [("gradient", "not everywhere" if smooth is None else _lipschitz(smooth))]
        card += [
            (
                "Lipschitz",
                _per_argument(names, varying, lambda k: _lipschitz(atom.lipschitz(*domain, argument=k))),
            )
        ]
        card += [("range", _interval(atom.range(*domain)))]
        weak = atom.weak_convexity(*domain, varying=varying)
        if weak:
            card += [("weakly convex", "no constant is known" if isinf(weak) else f"rho = {weak:g}")]
        prox, conjugate = proximal.of_atom(atom, facts_of)
        card += [("prox", prox), *([("conjugate", conjugate)] if conjugate else [])]
        if isinstance(atom.derivative, tuple) and atom.derivative:
            shown = zip(
                [n for n, free in zip(names, varying, strict=True) if free], atom.derivative, strict=False
            )
            card += [("derivative", "; ".join(f"{n}: {text}" for n, text in shown))]
    if isinstance(atom.torch, str):
        card.append(("torch", atom.lower(names)))
    if atom.cite:
        card.append(("from", atom.cite))
    card.append((EXAMPLE, samples.of_atom(atom)))
    return Card(head=atom.signature, meaning=atom.meaning, entries=card)


def _per_argument(names: tuple[str, ...], varying: tuple[bool, ...], what: Any) -> str:
    """A property per argument that may vary; said once where it is the same for all."""
    texts = [(n, str(what(k))) for k, (n, free) in enumerate(zip(names, varying, strict=True)) if free]
    same = len({text for _, text in texts}) == 1
    if same:
        return texts[0][1]
    return "; ".join(f"{n}: {text}" for n, text in texts)


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
    limited = [
        (n, where)
        for n, where in zip(names, domain, strict=False)
        if not (isinf(where.lo) and isinf(where.hi))
    ]
    return ", ".join(f"{n} in {_interval(where)}" for n, where in limited) or "everything"


# --------------------------------------------------------------------------------------- algorithms
def algorithms(
    name: str | None = None,
    candidates: Mapping[str, Candidate] | None = None,
    findings: Mapping[str, Finding] | None = None,
) -> str:
    """All algorithms, or the card of one; with those that a model has as ``candidates``, what each
    would need there, and how the model meets the assumptions of the interior-point method, if it
    does (``findings``)."""
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
        last = f"{interior.TITLE}: O({theorem.rate}) {interior.COUNTS}; {theorem.name}"
        return rows(
            [(key, f"{a.title}: O({a.rate}) {a.counts}; {a.theorem}") for key, a in records.items()]
            + [(interior.NAME, last)]
        )
    ordered = sorted(
        candidates.values(), key=lambda c: (not c.covered, not c.admitted, not c.can_run, c.order)
    )
    covers = f"covers the model: {GIVEN[theorem.gives]}, O({theorem.rate}) {interior.COUNTS}"
    if findings is not None:
        verdict = covers
    else:
        verdict = f"needs {'; needs '.join(interior.MEANINGS.values())}"
    return rows([*((c.record.name, _verdict(c)) for c in ordered), (interior.NAME, verdict)])


def interior_point(asked: bool, findings: Mapping[str, Finding] | None) -> Card:
    """What the interior-point method needs and promises; ``asked``: of a model, which meets it as in
    ``findings``, if it does."""
    from fccomodel.plan import interior

    lines = []
    for name, clause in interior.REQUIRES.items():
        line = f"{interior.MEANINGS[name]} ({clause})"
        if asked:
            if findings is not None:
                line += f": {findings[name].standing}; {findings[name].why}"
            else:
                line += ": LACKING"
        lines.append(line)
    shown = [("theorem", interior.THEOREM.name), ("rate", f"O({interior.THEOREM.rate}) {interior.COUNTS}")]
    shown += [("from", "clarabel-2024 (all rows at once), mehrotra-1992 (few variables and many rows)")]
    shown += [("" if place else "needs", text) for place, text in enumerate(lines)]
    return Card(head=f"{interior.NAME}: {interior.TITLE}", entries=shown)


HEAD = [("variant", "paper", "state"), ("---", "---", "---")]


def variants() -> str:
    """The forms of the papers' algorithms and their state here: ``variant | paper | state`` by algorithm."""
    from fccomodel import algorithms as registry

    return "\n".join(
        " | ".join(row)
        for row in [*HEAD, *(row for record in registry.all().values() for row in forms(record))]
    )


def forms(record: Algorithm) -> list[tuple[str, str, str]]:
    """The rows of one algorithm in that table."""
    listed = [(f"{record.title}: {v.what}", v.where, v.state) for v in record.variants]
    return listed or [(record.title, record.theorem, "a baseline: its updates")]


def _verdict(candidate: Candidate) -> str:
    """Whether its theorem covers the model, or what is missing."""
    from fccomodel.plan.candidates import GIVEN

    rate = f"O({candidate.promise.rate}) {candidate.record.counts}"
    if candidate.covered:
        return f"covers the model: {GIVEN[candidate.guarantee]}, {rate}"
    if candidate.admitted:
        return f"runs without a guarantee, beyond its theorem: {'; '.join(candidate.adds())}"
    how = "" if candidate.can_run else "cannot run; "
    return how + "needs " + "; needs ".join(candidate.lacks())


def algorithm(record: Algorithm, candidate: Candidate | None = None) -> Card:
    """What an algorithm needs, promises, and is made of."""
    shown = [
        ("theorem", record.theorem),
        ("rate", f"O({record.rate}) {record.counts}"),
        ("from", record.cite),
    ]
    shown += [("or, where more holds", f"{t.name}: O({t.rate}), with {_and(t)}") for t in record.better]
    shown += [("" if place else "needs", text) for place, text in enumerate(_needs(record, candidate))]
    forms = {
        "moreau": "smoothed by Moreau envelopes",
        "entropy": "smoothed by entropy on the simplex",
        "conjugate": "kept, and smooth functions too, each block with its dual variable",
        "dual": "kept, each block with its dual variable",
        "subgradient": "kept, by their subgradients",
        "smooth": "none",
    }
    shown += [
        ("kinks in f", forms[record.outer]),
        ("constraints", (record.penalty or "none").replace("_", " ")),
    ]
    shown += [
        ("sees", "sampled blocks" if record.oracle == "blocks" else "all tracked expectations as one vector")
    ]
    if record.estimator is not None:
        shown += [("gradients by", f"the {record.estimator.gradient_by} estimates u")]
    if len(record.steps) > 1:
        shown += [("steps", ", ".join(record.steps))]
    if record.hyper:
        shown += [("options", ", ".join(f"{key} = {value:g}" for key, value in record.hyper.items()))]
    schedules = "practical" + (
        ", theory (--option schedule=theory --option epsilon=1e-3)" if record.theory else ""
    )
    return Card(head=f"{record.name}: {record.title}", entries=[*shown, ("schedules", schedules)])


def _and(theorem: Theorem) -> str:
    """What a theorem assumes besides, in words."""
    from fccomodel.plan import assumptions

    return ", ".join(assumptions.ALL[name].meaning for name in theorem.where)


def _needs(record: Algorithm, candidate: Candidate | None) -> list[str]:
    """Each assumption with its clause, and for a model how it is met."""
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
    """The same as data: by name ``title``, ``theorem``, ``rate``, ``cite``, ``requires``; with a model
    also ``covered``, ``can_run`` and per assumption ``holds``, ``standing``, ``why``."""
    from fccomodel import algorithms as registry
    from fccomodel.app.shown import explain
    from fccomodel.plan import assumptions

    records = registry.all()
    if name is not None:
        _known(name, records, "algorithm")
    result = {}
    for key, a in records.items():
        if name in (None, key):
            result[key] = {
                text: getattr(a, text)
                for text in ("title", "theorem", "rate", "cite", "oracle", "outer", "penalty")
            }
            result[key]["requires"] = {
                need: {"meaning": assumptions.ALL[need].meaning, "clause": clause}
                for need, clause in a.requires.items()
            }
            result[key] |= {"steps": list(a.steps), "options": dict(a.hyper), "theory": a.theory is not None}
            if candidates is not None:
                one = candidates[key]
                result[key] |= {"covered": one.covered, "admitted": one.admitted, "can_run": one.can_run}
                for need, said in explain.findings_json(a.requires, one.findings).items():
                    result[key]["requires"][need] |= said
    return result
