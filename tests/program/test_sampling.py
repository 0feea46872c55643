"""Minibatches: in expectation they are the whole, and each pass over a set takes every element once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from support.emitted_models import HEAD, NET, Case, Made, make, mlp, table

from fccomodel.algorithms.runtime.helpers.support import shuffled
from fccomodel.algorithms.runtime.loops.progress import thinned
from fccomodel.evaluation import interpret
from fccomodel.program.emit import sampling
from fccomodel.program.lower import thinning as thinning_
from fccomodel.program.lower.reductions import reductions
from fccomodel.program.lower.thinning import Thinning

#: models that are affine in every sampled reduction, so that a minibatch gradient is unbiased
LINEAR = {
    "subset": "E[z ~ P] sigmoid(dot(w, z.x)) * z.time",
    "static_condition": "E[z ~ P | z.time > 1 and z.a == 0] sigmoid(dot(w, z.x))",
    "sum": "sum[z in P] sigmoid(dot(w, z.x)) / 30",
    "pairs": "E[p ~ P, n ~ N] sigmoid(dot(w, n.x - p.x) * p.time)",
    "nested": "mean[p in P] E[n ~ N] sigmoid(dot(w, n.x - p.x) * p.time)",
    "pair_dots": "mean[i in D] E[j ~ D] tanh(dot(w * i.x, j.x) * j.time)",
    "order": "mean[i in D] E[j ~ D | j.time >= i.time] tanh(dot(w, j.x - i.x) * i.time)",
    "order_strict": "mean[i in {z in D | z.time > 0.7}] E[j ~ D | j.time < i.time] tanh(dot(w, j.x - "
    "i.x) * i.time)",
    "order_sum": "mean[i in D] sum[j in D | j.time >= i.time] tanh(dot(w, j.x - i.x) * i.time)",
    "leave_out": "mean[i in D] E[j ~ D | j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "leave_out_sum": "sum[i in D] sum[j in D | j != i] tanh(dot(w, j.x - 0.3 * i.x) * i.time) / 3600",
    "key": "mean[i in D] E[j ~ D | j.g == i.g] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "key_and_leave_out": "mean[i in D] E[j ~ P | j.g == i.g and j.a == i.a and j != i] tanh(dot(w, j.x - "
    "0.3 * i.x) * i.time)",
    "key_and_order": "mean[i in D] sum[j in D | j.g == i.g and j.time >= i.time] tanh(dot(w, j.x - 0.3 * "
    "i.x) * i.time)",
    "key_of_set": "sum[k in K] k * (E[j ~ D | j.b == k and j.a == 1] tanh(dot(w, j.x) * k))",
    "mask": "mean[i in D] E[j ~ D | j.time + i.time > 2] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "mask_sum": "mean[i in D] sum[j in D | j.time + i.time > 2 and j != i] tanh(dot(w, j.x - 0.3 * i.x) "
    "* i.time)",
    "mask_and_key": "mean[i in D] E[j ~ D | j.a == i.a and abs(j.time - i.time) < 4] tanh(dot(w, j.x - "
    "0.3 * i.x) * i.time)",
    "combinations": "E[i ~ D, j ~ D | j.time > i.time] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations_keyed": "E[i ~ P, j ~ D | j.g == i.g and j.time > i.time] tanh(dot(w, j.x - 0.3 * i.x) "
    "* i.time)",
    "combinations_masked": "E[i ~ D, j ~ D | i.time + j.time > 4] tanh(dot(w, j.x - 0.3 * i.x) * i.time)",
    "combinations_sum": "sum[i in P, j in D | j.time > i.time and j.g == i.g] tanh(dot(w, j.x - 0.3 * "
    "i.x) * i.time) / 300",
    "combinations_of_three": "E[i ~ D, j ~ P, l ~ N | j.time > i.time and l.time > j.time] tanh(dot(w, "
    "j.x - i.x + l.x))",
    "combinations_per_group": "mean[k in K] E[i ~ D, j ~ D | i.b == k and j.time > i.time] tanh(k * "
    "dot(w, j.x - 0.3 * i.x))",
    "draw": "E[z ~ D, e ~ normal(0, 1)] tanh(dot(w, z.x) + 0 * e) * (1 + 0 * e)",
    "draw_alone": "E[e ~ uniform(0, 1)] tanh(0 * e + w[1]) + E[e ~ bernoulli(1)] tanh(e * w[2]) + w[3]^4 "
    "* w[1]",
}


def linear(body: str) -> Case:
    return Case(text=f"model m;{HEAD}minimize {body};", options={"outer_batch": 6, "inner_batch": 8})


def spread(case: Case, steps: int = 500) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mean and standard error of minibatch gradients, and the gradient of the whole by the interpreter."""
    made = make("m", case)
    solver, w = made.solver, made.point()
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    rng, h = torch.Generator().manual_seed(5), solver.Settings()
    parts = solver.draw(data, rng, steps)
    u, c = solver.buffers("cpu", torch.float64), solver.centres("cpu", torch.float64)
    found = torch.stack(
        [solver.gradient(data, w, w, u, c, [part[k] for part in parts], h) for k in range(steps)]
    )
    assert not vars(u), "an affine model tracks nothing"
    leaves = {
        name: w[a:b].reshape(shape).clone().requires_grad_()
        for name, (a, b, shape) in made.program.layout.items()
    }
    interpret.evaluate(made.bound, made.lowered.problem.objective.expr, leaves).backward()
    sign = solver.SIGN
    exact = torch.cat([sign * leaf.grad.reshape(-1) for leaf in leaves.values() if leaf.grad is not None])
    return found.mean(0), found.std(0) / steps**0.5, exact


@pytest.mark.parametrize("name", LINEAR)
def test_minibatches_are_unbiased(name: str) -> None:
    mean, error, exact = spread(linear(LINEAR[name]))
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all()), (mean, exact, error)


def test_minibatches_of_nets_are_unbiased() -> None:
    groups = "mean[i in D] E[j ~ D | j.g == i.g and j != i] s(v; j.x)"
    text = f"model m;{NET}minimize E[p ~ P, n ~ N] sigmoid(s(v; n.x) - s(v; p.x)) + {groups};"
    mean, error, exact = spread(Case(text=text, nets=lambda: {"s": mlp()}, scale=0.0))
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all())


#: several expectations of the same rows: overlapping sets, groups, groups of a part, and arguments
#: of nonlinear functions
SHARED = {
    "sets": "E[z ~ D] sigmoid(s(v; z.x)) * z.time + E[p ~ P] tanh(s(v; p.x)) * 2 + E[q ~ D | q.a == 1] "
    "s(v; q.x) * q.time",
    "groups": "E[z ~ D] sigmoid(s(v; z.x)) + sum[k in K] k * (E[j ~ D | j.b == k and j.a == 1] tanh(s(v; "
    "j.x) * k))",
    "labels": "E[n ~ N] sigmoid(s(v; n.x)) + mean[k in G] E[j ~ D | j.g == k] s(v; j.x) * j.time",
}


@pytest.mark.parametrize("how", ["epochs", "iid"])
@pytest.mark.parametrize("name", SHARED)
def test_shared_rows_are_unbiased(name: str, how: str) -> None:
    """Each step's rows come from every stratum; the mean gradient is that of all rows by autograd."""
    options = {"draws": "shared", "inner_batch": 5, "sampling": how}
    case = Case(
        text=f"model m;{NET}minimize {SHARED[name]};", nets=lambda: {"s": mlp()}, scale=0.0, options=options
    )
    made = make("m", case)
    (strata,) = made.lowered.plan.strata
    assert (strata.counts >= 1).all() and (strata.counts < strata.sizes).any()
    assert made.program.text.count("net_s.taped(w, ") == 1, "the net is evaluated once"
    mean, error, exact = spread(case)
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all()), (mean, exact, error)
    assert bool((error > 0).any())


def test_what_is_tracked_shares_rows_without_bias() -> None:
    """With weight 1 of new values an estimate is the batch's own, whose mean over many draws is that
    of all rows."""
    text = (
        "minimize E[z ~ D] log1pexp(s(v; z.x)); subject to c[k in G]: E[z ~ D | z.g == k] "
        "sigmoid(s(v; z.x)) <= 0.4;"
    )
    options = {"draws": "shared", "inner_batch": 4, "algorithm": "sonex", "gamma": 1.0, "gamma_prime": 0.0}
    made = make("m", Case(text=f"model m;{NET}{text}", nets=lambda: {"s": mlp()}, options=options))
    solver, w = made.solver, made.point()
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    parts = solver.draw(data, torch.Generator().manual_seed(5), 400)
    u, c, h, seen = (
        solver.buffers("cpu", torch.float64),
        solver.centres("cpu", torch.float64),
        solver.Settings(),
        [],
    )
    for k in range(400):
        solver.gradient(data, w, w, u, c, [part[k] for part in parts], h)
        seen.append(u.u1.clone())
    exact = solver.evaluate(solver.prepare_full(data), w)[1]["c"][1] + 0.4
    found = torch.stack(seen)
    assert found.isfinite().all() and bool(((found.mean(0) - exact).abs() <= 5 * found.std(0) / 20).all())
    again = solver.draw(solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64)),
                        torch.Generator().manual_seed(5), 400)  # fmt: skip
    assert all(map(torch.equal, parts, again))


@pytest.mark.parametrize(
    "given, shared", [({}, True), ({"draws": "separate"}, False), ({"schedule": "theory"}, False)], ids=str
)
def test_nets_share_rows_unless_told_otherwise(given: dict[str, str], shared: bool) -> None:
    text = "minimize E[z ~ D] log1pexp(s(v; z.x)); subject to c: E[p ~ P] sigmoid(s(v; p.x)) <= 0.4;"
    options = {"inner_batch": 4, "algorithm": "sonex", **given}
    plan = make(
        "m", Case(text=f"model m;{NET}{text}", nets=lambda: {"s": mlp()}, options=options)
    ).lowered.plan
    assert (
        any("share" in line and "draws = separate" in line for line in plan.practice)
        == bool(plan.strata)
        == shared
    )
    linear = text.replace("s(v; ", "dot(w, ")
    assert not make("m", Case(text=f"model m;{HEAD}{linear}", options=options)).lowered.plan.strata


def test_small_batches_are_truly_random() -> None:
    """What is compared above is spread: a test of means would be void if every batch were the whole."""
    _, error, _ = spread(linear(LINEAR["order"]), 50)
    assert bool((error > 0).all())


@pytest.mark.parametrize(
    "options", [{"sampling": "iid"}, {"inner_sampling": "per_block"}], ids=lambda o: next(iter(o.values()))
)
@pytest.mark.parametrize(
    "name", ["pairs", "nested", "order", "leave_out", "key", "mask", "combinations", "key_of_set"]
)
def test_other_ways_to_sample_are_unbiased(name: str, options: dict[str, str]) -> None:
    mean, error, exact = spread(
        Case(text=linear(LINEAR[name]).text, options={"outer_batch": 6, "inner_batch": 8, **options})
    )
    assert bool(((mean - exact).abs() <= 5 * error + 1e-9).all()), (mean, exact, error)


def drawn(text: str, steps: int, **options: object) -> tuple[Made, dict[str, torch.Tensor]]:
    """A program's positions for some steps, by the names that the program gives them."""
    sizes = {"outer_batch": 4, "inner_batch": 6}
    made = make("m", Case(text=f"model m;{HEAD}minimize {text};", options={**sizes, **options}))
    solver = made.solver
    data = solver.prepare(solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    rng = torch.Generator().manual_seed(11)
    calls = [made.positions(data, rng, steps // 4) for _ in range(4)]
    return made, {name: torch.cat([call[name] for call in calls]) for name in calls[0]}


def even(counts: torch.Tensor) -> bool:
    """Not refuted by a chi-square test at five standard deviations."""
    expected = counts.double().mean()
    free = counts.numel() - 1
    return abs(float((counts - expected).square().sum() / expected) - free) <= 5 * (2 * free) ** 0.5


NESTED = "mean[i in P] (E[j ~ N] tanh(dot(w, j.x - i.x)))^2"


def test_epochs_are_without_replacement() -> None:
    """Each pass takes every element once, also where it goes on in another call."""
    _, parts = drawn(NESTED, 60)
    for part in parts.values():
        flat, n = part.reshape(-1), 30
        for start in range(0, len(flat) - n + 1, n):
            assert flat[start : start + n].sort().values.tolist() == list(range(n))


@pytest.mark.parametrize("options", [{}, {"sampling": "iid"}, {"inner_sampling": "per_block"}], ids=str)
def test_every_element_is_as_likely(options: dict[str, str]) -> None:
    _, parts = drawn(NESTED, 4000, **options)
    for name, part in parts.items():
        places = (part * 30).long() if name.startswith("r_") else part
        for k in range(places.shape[1]):  # at every place of the batch
            assert even(places[:, k].reshape(-1).bincount(minlength=30)), name


def test_independent_draws_are_independent() -> None:
    """Of outer blocks drawn i.i.d., pairs are uniform too (with repetitions); in passes no batch
    repeats within itself much."""
    _, parts = drawn(NESTED, 8000, sampling="iid")
    pairs = parts["i"][:, 0] * 30 + parts["i"][:, 1]
    assert even(pairs.bincount(minlength=900))
    following = parts["i"][:-1, 0] * 30 + parts["i"][1:, 0]
    assert even(following.bincount(minlength=900))


def test_each_block_has_inner_samples_of_its_own() -> None:
    """Per block: one batch for every sampled block, pairwise independent; shared: one batch for all of
    them."""
    _, shared = drawn(NESTED, 40)
    assert shared["j"].shape == (40, 6)
    _, own = drawn(NESTED, 8000, inner_sampling="per_block")
    assert own["r_j"].shape == (8000, 4, 6)
    places = (own["r_j"] * 30).long()
    assert even((places[:, 0, 0] * 30 + places[:, 1, 0]).bincount(minlength=900))
    assert even((places[:, 0, 0] * 30 + places[:, 0, 1]).bincount(minlength=900))


@pytest.mark.parametrize(
    "condition, accepted",
    [("j.y == -1", lambda rows, i: rows["y"] == -1), ("j.g == i.g and j != i", lambda rows, i: rows["g"] == rows["g"][i]),
     ("j.time >= i.time", lambda rows, i: rows["time"] >= rows["time"][i])],
    ids=["label", "key", "order"],
)  # fmt: skip
def test_conditions_choose_rows_directly(condition: str, accepted: Any) -> None:
    """Rows under a condition are drawn among themselves, each as likely as the others: nothing is
    drawn and thrown away."""
    text = f"mean[i in P] (E[j ~ D | {condition}] tanh(dot(w, j.x - i.x)))^2"
    made, parts = drawn(text, 6000, outer_batch=1, inner_batch=4)
    rows, blocks = table(), np.flatnonzero(table()["y"] == 1)
    counts = {int(i): np.zeros(60) for i in blocks}
    data = made.solver.prepare(made.solver.as_namespace(dict(made.program.data), "cpu", torch.float64))
    for i, batch in zip(parts["i"].reshape(-1), next(v for k, v in parts.items() if k != "i"), strict=True):
        row = int(blocks[int(i)])
        place = batch
        if batch.is_floating_point():
            size, start = data.j_of_size[row], data.j_of_start[row]
            skip = data.j_of_skip[row] if hasattr(data, "j_of_skip") else None
            place = made.solver.in_range(start, size, batch.reshape(-1), skip)
        chosen = (data.j_of_rows if hasattr(data, "j_of_rows") else data.D_j)[place]
        np.add.at(counts[row], chosen.numpy().reshape(-1), 1)
    for row, count in counts.items():
        allowed = np.array(accepted(rows, row), dtype=bool)
        if "!=" in condition:
            allowed[row] = False
        assert count[~allowed].sum() == 0
        assert even(torch.as_tensor(count[allowed]))


def test_dots_of_pairs_are_products_of_matrices() -> None:
    """Neither they nor their gradients have an entry for each pair and coordinate."""
    text = gradient(make("m", linear(LINEAR["pair_dots"])))
    assert (
        'torch.einsum("ay,by->ab"' in text and 'torch.einsum("ab,bz->az"' in text and ":, :, None" not in text
    )


def test_two_inner_batches_are_independent() -> None:
    """Where an algorithm wants the gradient by samples of its own (ALEXR): uniform pairs of the two
    batches' elements."""
    _, parts = drawn(
        "mean[i in P] exp(E[j ~ N] tanh(dot(w, j.x - i.x)))", 8000, algorithm="alexr", unverified=True
    )
    first, second = [part for name, part in parts.items() if name != "i"]
    assert even((first[:, 0] * 30 + second[:, 0]).bincount(minlength=900))


def gradient(made: Made) -> str:
    """The text of a program's oracle."""
    return made.program.text.partition("def gradient(")[2].partition("\ndef ")[0]


@pytest.mark.parametrize("algorithm", ["alexr", "alexr2"])
def test_gradients_through_the_samples_of_the_estimates(algorithm: str) -> None:
    """``gradient_batch = same``: one batch, fewer oracle calls, and the plan says that the theorem
    asks for two."""
    options = {"algorithm": algorithm, "unverified": True}
    body = "mean[i in P] exp(E[j ~ N] tanh(dot(w, j.x - i.x)))"
    fresh, two = drawn(body, 8, **options)
    same, one = drawn(body, 8, gradient_batch="same", **options)
    assert len(two) == 3 and len(one) == 2 and same.solver.SOLVER.oracles < fresh.solver.SOLVER.oracles
    needed = "inner samples of gradients that are independent of the estimates'"
    assert [needed in " ".join(made.lowered.plan.unverified) for made in (fresh, same)] == [False, True]
    if algorithm == "alexr2":  # the step's oracle is then SONEX's
        sonex = drawn(body, 8, algorithm="sonex", unverified=True)[0]
        assert gradient(same) == gradient(sonex) != gradient(fresh)


def test_the_seed_decides_all_samples() -> None:
    first, again = drawn(NESTED, 40)[1], drawn(NESTED, 40)[1]
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_whole_batches_are_exact() -> None:
    """Where batches hold everything, the gradient is that of the problem itself."""
    for body in LINEAR.values():
        if "~ normal" in body or "| j.time" in body or "mask" in body:
            continue
        case = Case(
            text=f"model m;{HEAD}minimize {body};", options={"outer_batch": 10_000, "inner_batch": 10_000}
        )
        made = make("m", case)
        if made.lowered.steps.state.draws:
            continue
        mean, _, exact = spread(case, 2)
        assert torch.allclose(mean, exact, rtol=1e-9, atol=1e-12)


def test_values_between_stages_take_a_moderate_part_of_many_pairs():
    """Of 8e8 pairs, each evaluation between stages sees few enough to take a second."""
    thinning = Thinning(passes=[({"P": 2747, "N": 283_301}, 2747 * 283_301)])
    kept = {"P": 2747, "N": 283_301} | thinning.thin
    assert thinning.heavy and min(kept.values()) >= 256 and 1 << 22 <= kept["P"] * kept["N"] <= 1 << 24
    thinning.whole.add("N")  # centres stand at its rows
    assert set(thinning.thin) == {"P"}


def test_tails_are_thinned_as_means_are(monkeypatch):
    """Of a tail's rows a quick evaluation takes some."""
    monkeypatch.setattr(thinning_, "QUICK", 64)
    monkeypatch.setattr(thinning_, "FEWEST", 4)
    monkeypatch.setattr(reductions, "DENSE", 8)
    # in an order for each p
    body = "mean[p in P] cvar(tail = 0.3)[n ~ N] square(1 - dot(w, p.x - n.x)) + 0.1 * sumsq(w)"
    case = Case(text=f"model m;{HEAD}minimize {body};", options={"algorithm": "bsgd", "unverified": True})
    assert set(make("m", case).solver.SOLVER.thin) == {"P", "N"}


@pytest.mark.parametrize("n", [1, 2, 17, 1003])
def test_places_are_shuffled_by_a_permutation(n: int) -> None:
    """One for each key, found place by place, each in the first tenth as often as it should be."""
    keys = torch.randint(1 << 62, (400,), generator=torch.Generator().manual_seed(0)).tolist()
    moved = torch.stack([shuffled(torch.arange(n), n, key) for key in keys])
    assert (moved.sort(1).values == torch.arange(n)).all()
    assert torch.equal(shuffled(torch.tensor([n - 1, 0]), n, keys[3]), moved[3, [n - 1, 0]])
    low = (moved < n / 10).double().mean(0)
    share = -(-n // 10) / n
    assert ((low - share).abs() <= 5 * (share * (1 - share) / 400) ** 0.5 + 1e-9).all()


def test_some_of_many_rows_are_drawn_without_a_permutation() -> None:
    """They differ, go up, are others for another seed and for each set of rows; nothing as long as the
    set is made."""
    solver = SimpleNamespace(thin={"P": 300, "N": 300, "many": 1000})
    data = SimpleNamespace(
        device="cpu", P=torch.arange(1003), N=torch.arange(1003), many=torch.zeros(1).expand(1 << 40)
    )
    one, other = (thinned(solver, data, seed) for seed in (1, 2))
    assert all((rows.diff() > 0).all() and len(rows) == 300 for rows in (one.P, one.N, other.P))
    assert len(one.many) == 1000 and not torch.equal(one.P, one.N) and not torch.equal(one.P, other.P)
    assert torch.equal(one.P, thinned(solver, data, 1).P)


def test_passes_over_many_elements_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes all once, by any number of calls, from a key and a place that a checkpoint can hold."""
    monkeypatch.setattr(sampling, "COUNTED_PASSES_FROM", 3)
    made = make("m", linear("sum[z in P] sigmoid(dot(w, z.x)) / 30"))
    solver = made.solver
    assert "counted('" in made.program.text and "def epochs" not in made.program.text
    data, rng = (
        solver.as_namespace(dict(made.program.data), "cpu", torch.float64),
        torch.Generator().manual_seed(1),
    )

    def taken_by(data: Any, rng: torch.Generator, steps: int) -> torch.Tensor:
        (places,) = made.positions(data, rng, steps).values()
        return places.flatten()

    taken = torch.cat([taken_by(data, rng, steps) for steps in (1, 2, 3, 4, 5, 5)])
    (held,) = data.waiting.values()
    assert all(isinstance(number, int) for number in held)
    again, other = (
        solver.as_namespace(dict(made.program.data), "cpu", torch.float64),
        torch.Generator().manual_seed(1),
    )
    assert torch.equal(taken, taken_by(again, other, 20))
    n = int(taken.max()) + 1
    assert len(taken) >= 2 * n
    first, second = taken[:n], taken[n : 2 * n]
    assert torch.equal(first.sort().values, torch.arange(n)) and torch.equal(
        second.sort().values, torch.arange(n)
    )
    assert not torch.equal(first, second)
