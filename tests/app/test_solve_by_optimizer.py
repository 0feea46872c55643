"""``solve(optimizer=...)``: nets trained by somebody's optimizer, with schedules, callbacks, validation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import FccoError

AUC = """
model ranking; dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
net s : real[d] -> real;
var w = params(s);
let auc = E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));
maximize objective_name: E[p ~ P, n ~ N] sigmoid(s(w; p.x) - s(w; n.x));
subject to flagged: E[z ~ D] sigmoid(s(w; z.x)) <= 0.3;
"""
#: a threshold beside the net
THRESHOLD = """
model level; dim d;
data D : table(x: real[d], y: {0, 1});
net s : real[d] -> real;
var w = params(s); var t >= -1, <= 1;
minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * (s(w; z.x) - t));
"""


def data(n: int = 200, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5))
    return {"x": x, "y": (x[:, 0] + 0.3 * rng.normal(size=n) > 0.5).astype(int)}


def mlp(*layers: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    inner = [torch.nn.Linear(5, 8), *layers, torch.nn.Tanh(), torch.nn.Linear(8, 1), torch.nn.Flatten(0)]
    return torch.nn.Sequential(*inner)


@functools.cache
def model(text: str = AUC) -> Any:
    return fccomodel.compile(text).bind(D=data(), nets={"s": mlp()})


def adam(rate: float = 1e-2) -> Any:
    return lambda p: torch.optim.AdamW(p, lr=rate)


def test_a_net_is_trained_and_the_report_is_of_the_problem_as_written() -> None:
    result = model().solve(optimizer=adam(), budget="300it")
    x, y = torch.from_numpy(data()["x"]), data()["y"]
    scores = result.module("s").double()(x).detach().numpy()
    pairs = 1 / (1 + np.exp(-(scores[y == 1][:, None] - scores[y == 0][None])))
    flagged = (1 / (1 + np.exp(-scores))).mean() - 0.3
    assert abs(result.objective - pairs.mean()) < 1e-6 and result.objective > 0.85
    assert abs(result.constraints["flagged"] - flagged) < 1e-6 and flagged < 0.02
    assert result.outcome.solution.iterations == 300
    assert "steps by AdamW: no theorem is claimed" in str(result)
    assert result.json["theorem"] is None and "Theorem" not in result.details


def test_the_same_call_gives_the_same_bits() -> None:
    first, second = (model().solve(optimizer=adam(), budget="60it", ema=0.9) for _ in range(2))
    assert np.array_equal(first.variables["w"], second.variables["w"])


@pytest.mark.parametrize(
    "how",
    [
        {"optimizer": adam()},
        {
            "optimizer": lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9),
            "scheduler": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 120),
            "ema": 0.95,
            "clip": 1.0,
        },
    ],
)
def test_chunks_go_on_where_one_run_would_be(how: dict[str, Any]) -> None:
    seen: list[np.ndarray] = []

    def keep(state: Any) -> None:
        parts = [p.detach().reshape(-1) for p in state.modules["s"].parameters()]
        seen.append(torch.cat(parts).numpy().copy())

    whole = model().solve(**how, budget="120it", callback=keep, every=120)
    chunk = model().solve(**how, budget="40it")
    for _ in range(2):
        chunk = model().solve(**how, budget="40it", start=chunk, callback=keep, every=40)
    assert len(seen) == 3
    assert np.array_equal(seen[0], seen[2])
    assert chunk.history[-1]["iteration"] == whole.history[-1]["iteration"] == 120


def test_advice_on_a_run_is_about_keywords_that_it_takes() -> None:
    result = model().solve(optimizer=adam(), budget="0.2s")
    said = str(result)
    assert "oracles" not in said and "inner_batch" not in said
    assert f"--budget {result.outcome.solution.iterations}it" in " ".join(said.split())


def test_a_later_run_is_never_worse_than_its_start() -> None:
    first = model().solve(optimizer=adam(), budget="200it")
    ruined = model().solve(optimizer=adam(30.0), budget="20it", start=first)
    assert ruined.objective >= first.objective - 1e-9
    assert ruined.report.feasibility <= first.report.feasibility + 1e-9


def test_a_callback_sees_the_run_and_may_end_it() -> None:
    steps = []

    def callback(state: Any) -> bool | None:
        steps.append(state.step)
        assert set(state.values) == {"objective", "constraints", "multipliers", "violation"}
        assert state.modules["s"][0].weight.requires_grad and state.seconds > 0
        exact = state.look()
        assert set(exact.constraints) == {"flagged"} and 0 < exact.objective < 1
        return state.step < 30

    result = model().solve(callback=callback, every=10, budget="1000it")
    assert steps == [10, 20, 30] and result.outcome.solution.iterations == 30
    assert result.outcome.stopped == "the callback ended it"


@pytest.mark.parametrize("error", [ValueError("no disk"), KeyboardInterrupt()])
def test_what_a_callback_raises_keeps_the_best_point(error: BaseException) -> None:
    def callback(state: Any) -> None:
        if state.step == 100:
            raise error

    solve = functools.partial(model().solve, optimizer=adam(), callback=callback, every=50, budget="5000it")
    if isinstance(error, KeyboardInterrupt):
        result = solve()
        assert result.outcome.status == "interrupted"
    else:
        with pytest.warns(RuntimeWarning, match="no disk"):
            result = solve()
        assert "ValueError: no disk" in result.outcome.stopped
    assert result.outcome.solution.iterations == 100
    assert result.objective > 0.6 and result.report.constraints["flagged"].value < 0.1


def test_an_error_of_progress_is_that_of_the_caller() -> None:
    def progress(now: Any) -> None:
        assert set(now.constraints) == {"flagged"}
        raise KeyboardInterrupt

    result = model().solve(optimizer=adam(), progress=progress, budget="500it")
    assert result.outcome.status == "interrupted" and result.outcome.solution.iterations == 1


def test_validation_chooses_the_answer_and_ends_the_run() -> None:
    few = {name: part[:30] for name, part in data().items()}
    problem = fccomodel.compile(AUC).bind(D=few, nets={"s": mlp()})
    other = data(300, seed=1)
    result = problem.solve(
        optimizer=adam(5e-2), validate={"D": other}, watch="maximize auc", patience=3, budget="5000it"
    )
    seen = [entry["validation"] for entry in result.history]
    assert "no gain of `auc`" in result.outcome.stopped and len(seen) < 60
    x, y = torch.from_numpy(other["x"]), other["y"]
    scores = result.module("s").double()(x).detach().numpy()
    pairs = 1 / (1 + np.exp(-(scores[y == 1][:, None] - scores[y == 0][None])))
    assert abs(pairs.mean() - max(seen)) < 1e-4


def test_looks_come_as_often_as_one_says() -> None:
    history = model().solve(clip=1.0, look_every=7, budget="30it").history
    steps = [entry["iteration"] for entry in history]
    assert steps == [0, 7, 14, 21, 28, 30]


def test_validation_on_the_rows_held_out() -> None:
    result = model().solve(
        optimizer=adam(), holdout=0.3, validate="holdout", watch="violation", budget="100it"
    )
    assert all(entry["validation"] >= 0 for entry in result.history)
    assert result.heldout is not None


def test_averaged_weights_are_the_answer() -> None:
    """Steps that jump around a minimum: the average is closer to it."""
    noisy = {"optimizer": lambda p: torch.optim.SGD(p, lr=4.0), "batch": 8, "budget": "400it"}
    plain = model(THRESHOLD).solve(**noisy)
    averaged = model(THRESHOLD).solve(**noisy, ema=0.99)
    assert averaged.objective < plain.objective


def test_groups_of_parameters_by_name() -> None:
    seen = {}

    def optimizer(p: Any) -> torch.optim.Optimizer:
        seen.update(p.named)
        slow = [q for name, q in p.named.items() if name.startswith("s.0")]
        fast = [q for name, q in p.named.items() if not name.startswith("s.0")]
        return torch.optim.Adam([{"params": slow, "lr": 0.0}, {"params": fast, "lr": 1e-2}])

    result = model(THRESHOLD).solve(optimizer=optimizer, budget="50it")
    assert set(seen) == {"s.0.weight", "s.0.bias", "s.2.weight", "s.2.bias", "t"}
    assert torch.equal(result.module("s")[0].weight, mlp()[0].weight)
    assert not torch.equal(result.module("s")[2].weight, mlp()[2].weight)


def test_variables_stay_in_their_sets() -> None:
    text = THRESHOLD.replace("- t)", "- 3 * t) + square(t - 5)")
    result = model(text).solve(optimizer=adam(0.1), budget="100it")
    assert result.variables["t"] == 1.0


def test_layers_in_train_mode_are_trained_and_judged_in_evaluation_mode() -> None:
    net = mlp(torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2)).train()
    problem = fccomodel.compile(AUC).bind(D=data(), nets={"s": net})
    result = problem.solve(optimizer=adam(), budget="300it")
    trained = result.module("s")
    assert not torch.equal(trained[1].running_mean, net[1].running_mean)
    x, y = torch.from_numpy(data()["x"]), data()["y"]
    scores = trained.eval().double()(x).detach().numpy()
    pairs = 1 / (1 + np.exp(-(scores[y == 1][:, None] - scores[y == 0][None])))
    assert abs(result.objective - pairs.mean()) < 1e-6 and result.objective > 0.8


def test_scores_that_are_not_finite_end_the_run_at_its_best_point() -> None:
    result = model().solve(optimizer=lambda p: torch.optim.SGD(p, lr=float("inf")), budget="50it")
    assert "not finite" in result.outcome.stopped
    assert np.isfinite(result.variables["w"]).all()


def test_a_plateau_schedule_hears_of_looks() -> None:
    rates = []

    def scheduler(o: torch.optim.Optimizer) -> Any:
        return torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, factor=0.5, threshold=10.0)

    def callback(state: Any) -> None:
        rates.append(state.optimizer.param_groups[0]["lr"])

    model().solve(optimizer=adam(), scheduler=scheduler, callback=callback, every=10, budget="200it")
    assert rates[-1] < 0.1 * rates[0]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"optimizer": torch.optim.Adam([torch.zeros(1)])}, "not a function"),
        ({"optimizer": lambda p: None}, "returned a NoneType"),
        ({"optimizer": lambda p: torch.optim.Adam([torch.zeros(1, requires_grad=True)])}, "not of this run"),
        ({"clip": -1.0}, "clip=-1.0"),
        ({"ema": 1.5}, "ema=1.5"),
        ({"callback": print, "every": "60s"}, "every='60s'"),
        ({"patience": 3, "clip": 1.0}, "without `validate=`"),
        ({"validate": data()["x"]}, "not tables by name"),
        ({"validate": "holdout"}, "no rows are held out"),
        ({"validate": {"D": data()}, "watch": "auc"}, "cannot be watched"),
        ({"validate": {"D": data()}, "watch": "maximize nothing"}, "cannot be watched"),
        ({"clip": 1.0, "trace": ["u"]}, "`trace` does not go with"),
        ({"clip": 1.0, "starts": 4}, "`starts` does not go with"),
        ({"look_every": 0}, "look_every=0"),
        ({"clip": 1.0, "budget": "1e5oracles"}, "no budget in oracle calls"),
    ],
)
def test_what_does_not_fit_is_said(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(FccoError, match=message):
        model().solve(**{"budget": "10it", **keywords})


def test_models_without_nets_have_no_such_loop() -> None:
    text = "model m; data D : table(x: real); var w >= 0; minimize E[z ~ D] square(w - z.x);"
    problem = fccomodel.compile(text).bind(D={"x": np.ones(3)})
    with pytest.raises(FccoError, match="this model has no net"):
        problem.solve(optimizer=adam(), every=5)


class Mixed(torch.nn.Module):
    """A net of token ids and of real numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 4)
        self.last = torch.nn.Linear(9, 1)

    def forward(self, tokens: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.cat([self.embedding(tokens).mean(-2), x], dim=-1)).squeeze(-1)


def test_a_net_of_token_ids_and_numbers_is_trained() -> None:
    text = (
        "model m; dim d; dim t; data D : table(i: int[t], x: real[d], y: {0, 1});"
        "net s : int[t], real[d] -> real; var w = params(s);"
        "minimize E[z ~ D] log1pexp(-(2 * z.y - 1) * s(w; z.i, z.x));"
    )
    tokens = np.random.default_rng(1).integers(7, size=(200, 3))
    torch.manual_seed(0)
    problem = fccomodel.compile(text).bind(D={**data(), "i": tokens}, nets={"s": Mixed()})
    result = problem.solve(optimizer=adam(), budget="150it")
    x, y = torch.from_numpy(data()["x"]), torch.from_numpy(data()["y"])
    scores = result.module("s").double()(torch.from_numpy(tokens), x)
    loss = torch.nn.functional.softplus(-(2 * y - 1) * scores).mean()
    assert result.objective == pytest.approx(float(loss.detach()), abs=1e-6)
    assert result.objective < 0.45


def test_rows_that_are_drawn_are_transformed_anew_in_steps() -> None:
    seen = []

    class Rows(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 200

        def __getitem__(self, row: int) -> dict[str, Any]:
            return {"x": torch.from_numpy(data()["x"][row]).float(), "y": int(data()["y"][row])}

    def transform(x: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return x + 0.1 * torch.randn_like(x)

    compiled = fccomodel.compile(AUC)
    problem = compiled.bind(D=Rows(), nets={"s": mlp()}, transform={"x": transform})
    result = problem.solve(optimizer=adam(), budget="20it", batch=16)
    assert len(seen) >= 20 * 16
    scores = result.module("s").double()(torch.from_numpy(data()["x"])).detach().numpy()
    y = data()["y"]
    pairs = 1 / (1 + np.exp(-(scores[y == 1][:, None] - scores[y == 0][None])))
    assert result.objective == pytest.approx(pairs.mean(), abs=1e-5)
