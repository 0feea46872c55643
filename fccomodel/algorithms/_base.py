"""What an algorithm declares: its assumptions, its estimator, its step, its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One algorithm of the papers.

    name       identifier, as ``--algorithm`` takes it            title   as the paper calls it
    requires   facts that its theorem assumes, each with the words that say what is missing where it does not hold
    estimator  module with ``track`` (how u follows g) and ``needs_previous``
    steps      name of the update of w -> function; the first is the default
    rate       oracle calls to an eps-stationary point, as the theorem says, in n, B1, B2, eps
    theorem    where
    hyper      default values of its hyper-parameters
    preference lower is chosen first among those whose requirements hold
    """

    name: str
    title: str
    requires: Mapping[str, str]
    estimator: ModuleType
    steps: Mapping[str, Callable[..., Any]]
    rate: str
    theorem: str
    cite: str
    hyper: Mapping[str, float] = field(default_factory=dict)
    preference: tuple[float, ...] = (0.0,)
