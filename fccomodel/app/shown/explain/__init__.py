"""Explanations of a model: its facts with their reasons, as data and in words."""

from fccomodel.app.shown.explain.data import findings_json, normal_of, plan_json, to_json
from fccomodel.app.shown.explain.notes import warnings
from fccomodel.app.shown.explain.plans import assumption_lines, backend_lines, choice_lines, constant_lines
from fccomodel.app.shown.explain.screen import to_screen
from fccomodel.app.shown.explain.words import WIDTH, to_text, verdict

__all__ = [
    "WIDTH",
    "assumption_lines",
    "backend_lines",
    "choice_lines",
    "constant_lines",
    "findings_json",
    "normal_of",
    "plan_json",
    "to_json",
    "to_screen",
    "to_text",
    "verdict",
    "warnings",
]
