"""ALEXR with a half square as psi for smooth outer functions too (alexr-2025, section 3.1, Theorems 1
and 3)."""

import dataclasses
from functools import partial

from fccomodel.algorithms import alexr
from fccomodel.algorithms.base import Variant

algorithm = dataclasses.replace(
    alexr.algorithm,
    name="alexr_quadratic",
    title="ALEXR (half squares)",
    requires={
        **{name: clause for name, clause in alexr.algorithm.requires.items() if name != "quadratic dual"},
        "conjugate prox": "alexr-2025, section 3.1",
    },
    beyond={},
    outer="conjugate",
    variants=(
        Variant(
            "psi a half square, f smooth",
            "alexr-2025, Theorems 1 and 3",
            "as in the paper (schedule = theory)",
        ),
    ),
    theory=partial(alexr.theory, squares=True),
)
