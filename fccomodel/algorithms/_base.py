"""What an algorithm declares: the form it works on, its assumptions, its estimator, its step, its loop, its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from fccomodel.algorithms import _driver


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm of the papers.

    name       identifier, as ``--algorithm`` takes it            title   as the paper calls it
    requires   assumption (a name in ``assumptions.ALL``) -> where its theorem states it: "Assumption 1 (i)"
    rate       iterations to the accuracy that the theorem speaks of, a formula in n, B1, B2, eps, mu
    theorem    where                                              cite    authors, title, venue
    oracle     ``blocks``: ``gradient``, one estimate per sampled block i; ``vector``: ``inner`` and ``outer``, all blocks
               at once as one vector F(w) in R^q
    outer      how non-smooth outer functions reach its form: ``moreau`` (their envelopes, the centres moved between stages),
               ``subgradient`` (as they are), ``dual`` (each block keeps its y, moved in every step), ``smooth`` (there are none)
    penalty    how constraints do: ``smoothed_hinge``, ``hinge``, ``squared_hinge``, ``lagrangian``; None: it takes no constraint
    estimator  module with ``track`` (how u follows g) and ``needs_previous``; None where the oracle is ``vector``
    independent the gradient uses inner samples of its own, not those of the estimates
    begin      what the step keeps besides w: ``begin(state, h)``, called once; None: v and s, at zero
    steps      name of the update of w -> function; the first is the default
    loop       module whose functions are the loop around the step; its ``solve`` is what the program calls
    hyper      default values of its hyper-parameters
    preference lower is chosen first among those whose requirements hold
    """

    name: str
    title: str
    requires: Mapping[str, str]
    rate: str
    theorem: str
    cite: str
    steps: Mapping[str, Callable[..., Any]]
    oracle: str = "blocks"
    outer: str = "moreau"
    penalty: str | None = None
    estimator: ModuleType | None = None
    independent: bool = False
    begin: Callable[..., None] | None = None
    loop: ModuleType = _driver
    hyper: Mapping[str, float] = field(default_factory=dict)
    preference: tuple[float, ...] = (0.0,)
