"""Assumptions of theorems about a problem: each assumption by name, and the test that decides it for a
model.
"""

from __future__ import annotations

from fccomodel.plan.assumptions import _inner, _outer, _shape, _whole
from fccomodel.plan.assumptions._base import RANGE, TRUST, WEIGHTS, Assumption, Block, Finding, Setting
from fccomodel.plan.assumptions._inner import NETS
from fccomodel.plan.assumptions._whole import coercive, modulus

__all__ = [
    "ALL",
    "NETS",
    "RANGE",
    "TRUST",
    "WEIGHTS",
    "Assumption",
    "Block",
    "Finding",
    "Setting",
    "coercive",
    "modulus",
]

ALL: dict[str, Assumption] = {
    a.name: a for module in (_whole, _outer, _inner, _shape) for a in module.ASSUMPTIONS
}
