"""Models and tables that the tests of binding share."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
import torch

from fccomodel.core import diagnostics
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.data.bind import bind
from fccomodel.evaluation.checks import claims
from fccomodel.language.check import check
from fccomodel.language.parse import parse
from support.places import SHARED

torch.set_num_threads(1)
MODELS = ("auc_roc_fair", "card_form", "cox", "group_dro_cvar", "mean_variance_l1", "neyman_pearson", "partial_auc", "pnorm_push",
          "worst_of_losses")  # fmt: skip
LOGISTIC = """
model m;
dim d;
data D : table(x: real[d], y: {-1, 1});
param mu >= 0 default 0.1;
var w[d];
minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x)) + mu * sumsq(w);
"""
GROUPS = """
model m;
dim d;
set G;
data D : table(x: real[d], g: G);
var w[d];
minimize max[k in G] (E[z ~ D | z.g == k] dot(w, z.x)) + sumsq(w);
"""

ARRAY = (
    "model m; set A; data c : real[A]; data R : table(r: real[A]); var x[A]; minimize dot(c, x) + "
    "E[z ~ R] dot(z.r, x)^2;"
)
FAMILY = """
model m; dim d; set K;
data S[k in K] : table(x: real[d], y: real);
var w[d];
minimize max[k in K] (E[z ~ S[k]] square(dot(w, z.x) - z.y));
"""


def problem(text: str):
    source = Source(text=text, name="m.fcco")
    return check(parse(source), source)


def shared_problem(name: str):
    return problem((SHARED / "models" / f"{name}.fcco").read_text())


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


def people() -> pd.DataFrame:
    return frame(
        age=[20, 30, 40, 50, 60, 70],
        job=pd.Categorical(["b", "a", "b", "c", "a", "b"]),
        rich=[True, False, True, False, True, False],
        income=["<=50K", ">50K", "<=50K", ">50K", ">50K", "<=50K"],
        split=["train", "train", "train", "train", "test", "test"],
    )


def failure(text: str, **given: Any) -> list[diagnostics.Diagnostic]:
    with pytest.raises(FccoError) as caught:
        claims.check(bind(problem(text), **given))
    return list(caught.value.diagnostics)
