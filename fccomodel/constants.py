"""The constants of a problem that theorems' schedules are made of, each with how far it can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

from fccomodel import ir, structure
from fccomodel.algorithms import Constants
from fccomodel.assumptions import Setting, modulus
from fccomodel.facts import Fact, Standing

#: a constant that is zero would make a step of infinite size
LEAST = 1e-12
Known = tuple[float, Standing]


def constants(setting: Setting, *, n: int, B1: int, B2: int, eps: float, rows: int = 1, sample: bool = False) -> Constants:
    """The numbers of a setting: the analysis's where it has one, else estimated where ``sample``, else 1 and assumed."""
    inner = [g for b in setting.blocks for g in b.inner]
    seen = [
        structure.estimate(setting.reformed, setting.bound, g.expr) if sample and setting.bound is not None else {} for g in inner
    ]
    found: dict[str, Known] = {
        "C_f": _largest([b.f.lipschitz for b in setting.blocks]),
        "L_f": _largest([b.f.gradient for b in setting.blocks]),
        "rho_f": _largest([b.f.below for b in setting.blocks]),
        "C_g": _largest([g.sample.lipschitz for g in inner], [s.get("lipschitz") for s in seen]),
        "L_g": _largest([g.mean.gradient for g in inner], [s.get("gradient") for s in seen]),
        "rho_g": _largest([g.mean.below for g in inner], [s.get("gradient") for s in seen]),
        "sigma": _root(_largest([], [s.get("value noise") for s in seen])),
        "zeta": _root(_largest([], [s.get("gradient noise") for s in seen])),
        "mu": (modulus(setting)[0], Standing.PROVED),
    }
    if B2 >= rows > 1:  # every row in every step: no noise
        found |= {"sigma": (0.0, Standing.PROVED), "zeta": (0.0, Standing.PROVED)}
    if any(not b.f.smooth for b in setting.blocks):
        found["L_f"] = (float("inf"), Standing.PROVED)
    sizes = [
        f.size.value
        for name, v in setting.problem.variables.items()
        for f in [setting.analysis.see(ir.Var(name=name, shape=v.shape))]
    ]
    if sizes and all(s.known and s.finite for s in sizes):
        found["diameter"] = (2 * sqrt(sum(s.value**2 for s in sizes)), Standing.PROVED)
    floor = ("C_f", "C_g", "L_g")
    return Constants(
        n=n, B1=B1, B2=B2, eps=eps, rows=rows, d1=max((len(b.inner) for b in setting.blocks), default=1) or 1,
        standing={name: str(standing) for name, (_, standing) in found.items()} | {"delta0": str(Standing.ASSUMED)},
        **{name: max(value, LEAST) if name in floor else value for name, (value, _) in found.items()},
    )  # fmt: skip


def _largest(proved: Iterable[Fact], estimated: Iterable[Fact | None] = ()) -> Known:
    """The largest of some bounds; of estimates where one is not a number; 1 where these fail too."""
    facts = list(proved)
    if facts and all(f.value.finite and f.value.known for f in facts):
        return max(f.value.value for f in facts), max(f.standing for f in facts)
    found = [f.value for f in estimated if f is not None]
    if found and all(a.finite and a.known for a in found):
        return max(a.value for a in found), Standing.ESTIMATED
    return 1.0, Standing.ASSUMED


def _root(known: Known) -> Known:
    return sqrt(known[0]), known[1]
