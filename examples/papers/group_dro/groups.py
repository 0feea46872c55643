"""The 83 groups of Adult, and its 123 binary features."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from common import read

HIGHER = ["Bachelors", "Masters", "Doctorate", "Prof-school", "Assoc-acdm", "Assoc-voc"]
SINGLE = ["Unmarried", "Not-in-family", "Own-child"]


def adult(folder: Path) -> pd.DataFrame:
    """Columns ``x`` (123 binary features, Platt's encoding), ``y`` (income above 50K), ``g`` (group)
    and ``split``; groups of fewer than 50 rows are left out (alexr-2025, appendix G.1.1)."""
    people, features = read(folder, "adult.parquet"), read(folder, "a9a.parquet")
    names = [c for c in features.columns if c.startswith("f")]
    group = (
        people["income"].astype(str)
        + "/" + people["race"].map(lambda r: r if r in ("White", "Black") else "other").astype(str)
        + "/" + people["sex"].astype(str)
        + "/" + pd.cut(people["age"], [0, 30, 45, 200], labels=["to 30", "to 45", "above"]).astype(str)
        + "/" + people["relationship"].isin(SINGLE).map({True: "single", False: "not single"})
        + "/" + people["education"].isin(HIGHER).map({True: "higher", False: "others"})
    )  # fmt: skip
    x = list(features[names].to_numpy(float))
    frame = pd.DataFrame({"x": x, "y": features["label"], "g": group, "split": people["split"]})
    return frame[frame.groupby("g")["g"].transform("size") >= 50].reset_index(drop=True)
