"""Data that several sessions use."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_breast_cancer


def tumours(features: list[str]) -> tuple[Any, dict[str, Any]]:
    """569 tumours as a DataFrame, and a binding of its columns to a table ``D``: x, scaled features; y, 1 for a malignant one."""
    x = {"columns": features, "scale": "standard"}
    y = {"column": "target", "map": {"0": 1, "1": 0}}
    return load_breast_cancer(as_frame=True).frame, {"D": {"x": x, "y": y}}
