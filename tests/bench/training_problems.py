"""The five problems of ``training.py``: a model, its network and data, and the same formulas by hand."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn import functional

import fccomodel

ROOT = Path(__file__).resolve().parents[2]
RECIPES = ROOT / "examples" / "recipes"
sys.path.insert(0, str(RECIPES))

from common import convnet, digits  # noqa: E402
from language import Language, pretrained  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "pneumoniamnist.parquet"
#: misses of each group, at most
MISSES = 0.1
#: weight of the new value in a moving average by hand
NEW = 0.1
#: the temperature of the contrastive loss
TAU = 0.5
#: DPO: weight of the margin, and the largest drop of the log-likelihood of preferred texts
BETA = 0.5
DROP = 0.05
#: continual learning: the largest rise of an old class's loss
RISE = 0.05
#: letters of a text; those given
LENGTH, GIVEN = 24, 8

Columns = Mapping[str, np.ndarray]
#: objective, and constraints (at most 0 where they hold; NaN for those of which the batch has no row)
Parts = tuple[torch.Tensor, torch.Tensor]

PARTIAL_AUC = f"""
model pauc; dim c; dim h; dim v; set G;
data D : table(x: real[c, h, v], y: {{0, 1}}, g: G);
set P = {{z in D | z.y == 1}};
set N = {{z in D | z.y == 0}};
net s : real[c, h, v] -> real;
var w = params(s);
minimize pauc: E[p ~ P] log(E[n ~ N] exp(square(max(1 - (s(w; p.x) - s(w; n.x)), 0)) / 0.5));
subject to misses[k in G]: E[p ~ P | p.g == k] sigmoid(-s(w; p.x)) <= {MISSES};
"""


class ByHand:
    """Batches and the formulas of a problem as a practitioner writes them, with moving averages.

    count    number of constraints
    batches  row numbers of one batch after another
    parts    objective and constraints of a batch, from the outputs of the net
    """

    count = 0

    def __init__(self, columns: Columns):
        self.columns = columns
        self.rng = np.random.default_rng(0)

    def batches(self) -> Iterator[np.ndarray]:
        """Batches of rows."""
        raise NotImplementedError

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        """The objective, and constraints, of a batch."""
        raise NotImplementedError

    def drawn(self, rows: np.ndarray, count: int) -> np.ndarray:
        """So many of these rows, each at most once."""
        return self.rng.choice(rows, min(count, len(rows)), replace=False)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem of the benchmark.

    model       its text
    net         the net's name there, and ``inputs`` the columns that it is applied to
    train       columns to train on, and ``held`` those to judge by
    network     makes the network that every way starts from
    by_hand     its formulas by hand
    batch       rows of a batch of the criterion
    params      of the model
    libauc      makes a loss of LibAUC, ``loss(net, rows)``, from the columns; None: why there is none
    """

    model: str
    train: Columns
    held: Columns
    network: Callable[[], torch.nn.Module]
    by_hand: Callable[[Columns], ByHand]
    net: str = "s"
    inputs: tuple[str, ...] = ("x",)
    batch: int = 64
    params: Mapping[str, float] = field(default_factory=dict)
    libauc: Callable[[Columns], Callable[[torch.nn.Module, np.ndarray], torch.Tensor]] | None = None

    def bound(self, columns: Columns) -> Any:
        """The model with some columns, and with a new network."""
        compiled = fccomodel.compile(self.model)
        return compiled.bind(D=dict(columns), nets={self.net: self.network()}, params=dict(self.params))


# ------------------------------------------------------------------- partial AUC with groups' bounds
@cache
def pneumonia() -> tuple[Columns, Columns]:
    """The X-rays of ``../shared/data``: pixels in [0, 1], labels and groups, to train on and to judge by."""
    table = pd.read_parquet(DATA)
    first = table.pixels.iloc[0]
    rows = [np.frombuffer(v, np.uint8) if isinstance(first, bytes) else np.asarray(v) for v in table.pixels]
    x = np.stack(rows).astype(np.float32).reshape(-1, 1, 28, 28) / 255
    y = table.label.to_numpy().astype(int)
    g = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(3, size=len(y))]
    parts = ((table.split == name).to_numpy() for name in ("train", "val"))
    train, held = ({"x": x[part], "y": y[part], "g": g[part]} for part in parts)
    return train, held


def more_images(columns: Columns, count: int) -> Columns:
    """So many images: those of the table, each moved by up to two pixels, with a little noise."""
    rng = np.random.default_rng(1)
    rows = rng.integers(len(columns["y"]), size=count)
    x = columns["x"][rows]
    for axis in (2, 3):
        moves = rng.integers(-2, 3, size=count)
        for move in range(-2, 3):
            x[moves == move] = np.roll(x[moves == move], move, axis=axis)
    x += 0.05 * rng.standard_normal(x.shape, dtype=np.float32)
    return {"x": x, "y": columns["y"][rows], "g": columns["g"][rows]}


def two_convolutions() -> torch.nn.Module:
    """Two convolutions: 6,369 weights."""
    torch.manual_seed(0)
    nn = torch.nn
    first = nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(1568, 1), nn.Flatten(-2))


class PartialAUC(ByHand):
    """SOPA-s: 32 positive and 32 negative images in a batch."""

    count = 3

    def __init__(self, columns: Columns):
        super().__init__(columns)
        self.x, y = torch.from_numpy(columns["x"]), columns["y"]
        self.g = torch.from_numpy(np.searchsorted(["a", "b", "c"], columns["g"]))
        self.positive, self.negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
        self.u = torch.full((len(y),), torch.nan)

    def batches(self) -> Iterator[np.ndarray]:
        while True:
            yield np.concatenate([self.drawn(self.positive, 32), self.drawn(self.negative, 32)])

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        p, scores = rows[:32], net(self.x[rows])
        sp, sn = scores[:32], scores[32:]
        pairs = (1 - (sp[:, None] - sn)).clamp(min=0).square() / 0.5
        inner = torch.logsumexp(pairs, 1) - np.log(32)
        old, new = self.u[p], inner.detach()
        mixed = torch.logaddexp(old + np.log(1 - NEW), new + np.log(NEW))
        self.u[p] = torch.where(old.isnan(), new, mixed)
        objective = ((new - self.u[p]).clamp(max=5).exp() * inner).mean()
        misses = torch.sigmoid(-sp)
        groups = [misses[self.g[p] == k] for k in range(3)]
        return objective, torch.stack([mean_or_nan(values) for values in groups]) - MISSES


def partial_auc_by_libauc(columns: Columns) -> Callable[[torch.nn.Module, np.ndarray], torch.Tensor]:
    """LibAUC's KL partial AUC, without constraints, which it does not have."""
    from libauc.losses import pAUC_DRO_Loss

    positive = columns["y"] == 1
    loss = pAUC_DRO_Loss(data_len=int(positive.sum()), gamma=NEW, Lambda=0.5, device="cpu")
    places = torch.from_numpy(np.cumsum(positive) - 1)
    x, y = torch.from_numpy(columns["x"]), torch.from_numpy(columns["y"])

    def of(net: torch.nn.Module, rows: np.ndarray) -> torch.Tensor:
        """The loss of a batch: of index only the positive ones are read."""
        return loss(net(x[rows])[:, None], y[rows][:, None], places[rows])

    return of


# ------------------------------------------------------------------------------------------ group DRO
def rare_digits() -> tuple[Columns, Columns]:
    """Is the digit even? The groups are the digits, one of which is rare in training."""
    train, test = digits()
    kept = np.delete(np.arange(len(train.x)), np.flatnonzero(train.digit == 8)[12:])
    both = []
    for x, digit in ((train.x[kept], train.digit[kept]), (test.x, test.digit)):
        both.append({"x": x, "y": (digit % 2 == 0).astype(int), "g": digit})
    return both[0], both[1]


class GroupDRO(ByHand):
    """The mean of the three worst of ten groups by moving averages of their risks: 8 rows of each."""

    def __init__(self, columns: Columns):
        super().__init__(columns)
        self.x, self.sign = torch.from_numpy(columns["x"]), torch.from_numpy(1.0 - 2.0 * columns["y"]).float()
        self.rows = [np.flatnonzero(columns["g"] == k) for k in range(10)]
        self.risks = torch.full((10,), torch.nan)

    def batches(self) -> Iterator[np.ndarray]:
        while True:
            yield np.concatenate([self.drawn(rows, 8) for rows in self.rows])

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        risks = functional.softplus(self.sign[rows] * net(self.x[rows])).view(10, 8).mean(1)
        averaged(self.risks, risks.detach())
        return risks[self.risks.topk(3).indices].mean(), torch.zeros(0)


# ------------------------------------------------------------------------------ global contrastive loss
def two_views() -> tuple[Columns, Columns]:
    """Digits, and the same moved by a pixel with a little noise."""
    rng = np.random.default_rng(0)
    both = []
    for images in digits():
        moved = np.roll(images.x, 1, axis=3) + 0.1 * rng.standard_normal(images.x.shape)
        both.append({"a": images.x, "b": moved.astype(np.float32)})
    return both[0], both[1]


class Contrastive(ByHand):
    """SogCLR: each image has two moving averages, one for each view."""

    def __init__(self, columns: Columns):
        super().__init__(columns)
        self.a, self.b = torch.from_numpy(columns["a"]), torch.from_numpy(columns["b"])
        self.u = torch.full((2, len(self.a)), torch.nan)

    def batches(self) -> Iterator[np.ndarray]:
        while True:
            yield self.drawn(np.arange(len(self.a)), 64)

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        one, other = functional.normalize(net(torch.cat([self.a[rows], self.b[rows]])), dim=1).chunk(2)
        own = (one * other).sum(1) / TAU
        others = 1.0 - torch.eye(len(rows))
        total = torch.zeros(())
        for k, x in enumerate((one, other)):
            ratios = [torch.exp(x @ y.T / TAU - own[:, None]) * others for y in (one, other)]
            inner = (ratios[0] + ratios[1]).sum(1) / (len(rows) - 1)
            self.u[k, rows] = moved(self.u[k, rows], inner.detach())
            total = total + TAU * (inner / self.u[k, rows]).mean()
        return total, torch.zeros(0)


def contrastive_by_libauc(columns: Columns) -> Callable[[torch.nn.Module, np.ndarray], torch.Tensor]:
    """LibAUC's SogCLR."""
    from libauc.losses.contrastive import GCLoss_v1

    a, b = torch.from_numpy(columns["a"]), torch.from_numpy(columns["b"])
    loss = GCLoss_v1(N=len(a), tau=TAU, gamma=NEW, device="cpu")

    def of(net: torch.nn.Module, rows: np.ndarray) -> torch.Tensor:
        """The loss of a batch."""
        one, other = net(torch.cat([a[rows], b[rows]])).chunk(2)
        found = loss(one, other, torch.from_numpy(rows))
        if isinstance(found, tuple):
            return found[0]
        return found

    return of


# ---------------------------------------------------------------------------- DPO with a drift bound
@cache
def texts() -> tuple[Columns, Columns, torch.nn.Module]:
    """Pieces of text, the same with shuffled letters, and the reference network's log-likelihoods."""
    sys.path.insert(0, str(RECIPES))
    from dpo import pairs

    chosen, rejected, letters = pairs()
    good, bad = torch.from_numpy(chosen), torch.from_numpy(rejected)
    reference = pretrained(Language(letters, LENGTH, GIVEN), good[:1000], 150)
    with torch.no_grad():
        columns = {
            "chosen": chosen,
            "rejected": rejected,
            "ref_chosen": reference(good).double().numpy(),
            "ref_rejected": reference(bad).double().numpy(),
        }
    train, held = (
        {name: v[part] for name, v in columns.items()} for part in (slice(1000), slice(1000, None))
    )
    return train, held, reference


class Preferences(ByHand):
    """DPO, and the drop of the log-likelihood of preferred texts."""

    count = 1

    def __init__(self, columns: Columns):
        super().__init__(columns)
        self.all = {name: torch.from_numpy(values) for name, values in columns.items()}

    def batches(self) -> Iterator[np.ndarray]:
        while True:
            yield self.drawn(np.arange(len(self.all["chosen"])), 32)

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        here = {name: values[rows] for name, values in self.all.items()}
        good, bad = net(torch.cat([here["chosen"], here["rejected"]])).chunk(2)
        drop = (here["ref_chosen"] - good).float()
        margin = -drop - (bad - here["ref_rejected"]).float()
        return functional.softplus(-BETA * margin).mean(), drop.mean()[None] - DROP


# -------------------------------------------------------------------------------- continual learning
@cache
def new_digits() -> tuple[Columns, Columns, torch.nn.Module]:
    """Five new digits for a network that knows the first five, and its losses on these."""
    train, test = digits()
    old = train.digit < 5
    net = convnet(10)
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3)
    x, truth = torch.from_numpy(train.x[old]), torch.from_numpy(train.digit[old])
    for _ in range(60):
        loss = functional.cross_entropy(net(x), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    both = []
    for images in (train, test):
        with torch.no_grad():
            logits = net(torch.from_numpy(images.x))
            losses = functional.cross_entropy(logits, torch.from_numpy(images.digit), reduction="none")
        # a new digit has the class of an old one: a class without an old digit has no constraint
        columns = {"x": images.x, "hot": np.eye(10)[images.digit], "class": images.digit % 5}
        columns |= {"new": (images.digit >= 5).astype(int), "old": losses.double().numpy()}
        both.append(columns)
    return both[0], both[1], net


class NewDigits(ByHand):
    """The loss on 40 images of new digits, and the rise of it on 8 of each old one."""

    count = 5

    def __init__(self, columns: Columns):
        super().__init__(columns)
        self.x, digit = torch.from_numpy(columns["x"]), columns["hot"].argmax(1)
        self.digit, self.old = torch.from_numpy(digit), torch.from_numpy(columns["old"]).float()
        self.fresh = np.flatnonzero(digit >= 5)
        self.known = [np.flatnonzero(digit == k) for k in range(5)]

    def batches(self) -> Iterator[np.ndarray]:
        while True:
            old = [self.drawn(rows, 8) for rows in self.known]
            yield np.concatenate([self.drawn(self.fresh, 40), *old])

    def parts(self, net: torch.nn.Module, rows: np.ndarray) -> Parts:
        losses = functional.cross_entropy(net(self.x[rows]), self.digit[rows], reduction="none")
        rises = (losses[40:] - self.old[rows[40:]]).view(5, 8).mean(1)
        return losses[:40].mean(), rises - RISE


# ---------------------------------------------------------------------------------------------- all
def recipe(name: str) -> str:
    """The text of a model of the recipes."""
    return (RECIPES / f"{name}.fcco").read_text()


def partial_auc(count: int | None = None) -> Problem:
    """The partial AUC on all X-rays to train on, or on so many made from them."""
    train, held = pneumonia()
    if count is not None:
        train = more_images(train, count)
    return Problem(
        model=PARTIAL_AUC,
        train=train,
        held=held,
        network=two_convolutions,
        by_hand=PartialAUC,
        libauc=partial_auc_by_libauc,
    )


def group_dro() -> Problem:
    """CVaR over ten groups."""
    train, held = rare_digits()
    model = recipe("group_dro_images")
    return Problem(model=model, train=train, held=held, network=plain_convnet, by_hand=GroupDRO, batch=80)


def contrastive() -> Problem:
    """SogCLR."""
    train, held = two_views()
    return Problem(
        model=recipe("sogclr"),
        train=train,
        held=held,
        network=lambda: plain_convnet(32),
        by_hand=Contrastive,
        net="e",
        inputs=("a", "b"),
        params={"tau": TAU, "m": 32},
        libauc=contrastive_by_libauc,
    )


def preferences() -> Problem:
    """DPO with a drift bound."""
    train, held, reference = texts()
    return Problem(
        model=recipe("dpo").replace(": real[t]", ": int[t]"),
        train=train,
        held=held,
        network=lambda: copy.deepcopy(reference),
        by_hand=Preferences,
        inputs=("chosen", "rejected"),
        batch=32,
        params={"beta": BETA, "drop": DROP},
    )


def continual() -> Problem:
    """New classes without forgetting."""
    train, held, before = new_digits()
    return Problem(
        model=recipe("continual_images"),
        train=train,
        held=held,
        network=lambda: copy.deepcopy(before),
        by_hand=NewDigits,
        batch=80,
        params={"rise": RISE},
    )


def plain_convnet(outputs: int = 1) -> torch.nn.Module:
    """The recipes' small network, its batch normalisation in evaluation mode."""
    return convnet(outputs).eval()


PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    "pauc": partial_auc,
    "pauc 60,000": lambda: partial_auc(60_000),
    "group_dro": group_dro,
    "contrastive": contrastive,
    "dpo": preferences,
    "continual": continual,
}


# ------------------------------------------------------------------------------------ small helpers
def mean_or_nan(values: torch.Tensor) -> torch.Tensor:
    """The mean, NaN of nothing."""
    return values.sum() / len(values) if len(values) else torch.tensor(torch.nan)


def moved(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """The moving average after a new value: the first value as it is."""
    return torch.where(old.isnan(), new, (1 - NEW) * old + NEW * new)


def averaged(known: torch.Tensor, new: torch.Tensor) -> None:
    """Moves averages in place; a new value that is not a number moves none."""
    known.copy_(torch.where(new.isnan(), known, moved(known, new)))
