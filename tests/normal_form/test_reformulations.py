"""Each reformulation against the quantity it replaces: equal once the variables it added are minimised
over."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import torch

import fccomodel
from fccomodel import pipeline
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.evaluation import interpret
from fccomodel.evaluation.interpret.evaluator import Evaluator
from fccomodel.library import sets
from fccomodel.library.identities import canonical
from fccomodel.normal_form import normalise, reformulations
from fccomodel.normal_form.constants import constant_values

HEAD = "dim d;\nset K = {0, 1, 2};\ndata D : table(x: real[d], g: {0, 1, 2});\nvar w[d];\n"
LOSS = "square(dot(w, z.x) - 1)"


def bound(text: str, rows: int = 40, **more: np.ndarray) -> tuple[object, object]:
    rng = np.random.default_rng(1)
    compiled = pipeline.compile_model(Source(text=HEAD + text, name="m"))
    data = {"D": {"x": rng.normal(size=(rows, 3)), "g": np.arange(rows) % 3.0}, **more}
    return compiled.problem, pipeline.bind(compiled, pipeline.Binding(data=data))


def value(problem: object, bound_problem: object, point: dict[str, torch.Tensor]) -> float:
    objective = problem.objective
    sign = -1 if objective.sense == "maximize" else 1
    return sign * float(interpret.evaluate(bound_problem, objective.expr, point))


def least(
    problem: object, bound_problem: object, point: dict[str, torch.Tensor], name: str, shape: tuple[int, ...]
) -> float:
    """The least over an added convex threshold: by the values at which it can change."""
    from scipy.optimize import minimize

    def at(s: np.ndarray) -> float:
        return value(problem, bound_problem, {**point, name: torch.tensor(s.reshape(shape))})

    start = np.zeros(int(np.prod(shape)) if shape else 1)
    found = minimize(at, start, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14, "maxiter": 20000})
    return float(found.fun)


EQUAL = {
    "variance": "minimize variance[z ~ D] dot(w, z.x);",
    "logmeanexp": f"minimize logmeanexp(theta = 0.7)[z in D] {LOSS};",
    "pmean": f"minimize pmean(p = 3)[z in D] {LOSS};",
    "affine_sum": "minimize log(2 + 0.5 * E[z ~ D] exp(dot(w, z.x)) - E[y ~ D] tanh(dot(w, y.x)) / 3 + "
    "w[1]^2);",
    "affine_nested": "minimize sqrt(1 + E[z ~ D] (2 * (E[j ~ D | j.g == 1] square(dot(w, j.x - z.x))) + "
    "z.x[1]^2));",
    "affine_of_two_draws": f"minimize max[k in K] ((E[z ~ D | z.g == k] {LOSS}) - (E[j ~ D | j.g == k] "
    "dot(w, j.x)) / 2);",
    "minimised": "maximize E[z ~ D] tanh(dot(w, z.x));",
    "kl": f"minimize max[q in simplex(K)] (sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - 0.5 * kl(q, "
    "uniform(K)));",
    "simplex": f"minimize max[q in simplex(K)] (sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}));",
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values(name: str) -> None:
    problem, data = bound(EQUAL[name])
    chain = reformulations.chain(problem)
    assert chain.steps
    for seed in range(3):
        point = {"w": torch.tensor(np.random.default_rng(seed).normal(size=3))}
        assert value(chain.problem, data, point) == pytest.approx(
            value(problem, data, point), rel=1e-9, abs=1e-10
        )


@pytest.mark.parametrize("name", [name for name in EQUAL if name.startswith("affine")])
def test_an_affine_function_of_expectations_is_tracked_as_one(name: str) -> None:
    problem, data = bound(EQUAL[name])
    (term,) = normalise(problem, data).terms
    assert (len(term.means), term.depth) == (1, 1)


def test_expectations_over_different_draws_stay_apart() -> None:
    two = "(E[z ~ D | z.g == 0] dot(w, z.x)) - E[z ~ D | z.g == 1] dot(w, z.x)"
    for text in (
        f"minimize log(9 + {two});",
        "minimize log(9 + E[z ~ D] E[j ~ D | j.g == z.g] dot(w, j.x - z.x));",
    ):
        problem, _ = bound(text)
        assert not reformulations.chain(problem).steps


TAILS = {
    "cvar": (f"minimize cvar(tail = 0.3)[z in D] {LOSS};", ()),
    "topk": (f"minimize topk(k = 5)[z in D] {LOSS};", ()),
    "chi2": (
        f"minimize max[q in simplex(K)] (sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - 0.5 * chi2(q, "
        "uniform(K)));",
        (),
    ),
    "chi2, small mu": (
        f"minimize max[q in simplex(K)] (sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - 0.01 * chi2(q, "
        "uniform(K)));",
        (),
    ),
    "largest of 4,800": ("minimize max[i in D, j in D, k in K] (dot(w, i.x - k * j.x) + square(w[1]));", ()),
    "least of 4,800": ("maximize min[i in D, j in D, k in K] (dot(w, i.x - k * j.x) - square(w[1]));", ()),
    "capped simplex": (
        f"minimize max[q in capped_simplex(K, 0.5)] (sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}));",
        (),
    ),
}
#: divergences that a user may write, of a weight q[k], and the same in CVXPY
DIVERGENCES = {
    "total variation": ("0.2 * sum[k in K] abs(q[k] - 1/3)", lambda q: 0.2 * cp.sum(cp.abs(q - 1 / 3))),
    "squares": ("2 * sum[k in K] square(q[k] - 0.5)", lambda q: 2 * cp.sum_squares(q - 0.5)),
    "mean of squares": ("mean[k in K] 3 * square(3 * q[k] - 1)", lambda q: cp.sum_squares(3 * q - 1)),
    "one-sided": (
        "0.7 * sum[k in K] sqhinge(3 * q[k] - 1)",
        lambda q: 0.7 * cp.sum_squares(cp.pos(3 * q - 1)),
    ),
    "huber": ("3 * sum[k in K] huber(q[k] - 0.4, 0.1)", lambda q: 1.5 * cp.sum(cp.huber(q - 0.4, 0.1))),
    "entropy": ("0.3 * sum[k in K] q[k] * log(q[k])", lambda q: -0.3 * cp.sum(cp.entr(q))),
    "parameter": (
        "mu * mean[k in K] 3 * q[k] * log(3 * q[k])",
        lambda q: -0.4 / 3 * 3 * cp.sum(cp.entr(3 * q)) / 3,
    ),
    "cube": ("sum[k in K] q[k]^3 * mu", lambda q: 0.4 * cp.sum(cp.power(q, 3))),
    "exponential": ("mu * (sum[k in K] exp(2 * q[k])) / 4", lambda q: 0.1 * cp.sum(cp.exp(2 * q))),
    "of a vector": ("2 * sumsq(q - p)", lambda q: 2 * cp.sum_squares(q - SHARES)),
    "products of vectors": ("0.3 * dot(q, log(q))", lambda q: -0.3 * cp.sum(cp.entr(q))),
    "of shares": ("mu * chi2(q, p)", lambda q: 0.4 * cp.sum(cp.multiply(1 / SHARES, cp.square(q - SHARES)))),
    "of shares, closed": ("mu * kl(q, p)", lambda q: 0.4 * cp.sum(cp.rel_entr(q, SHARES))),
}
SHARES = np.array([0.2, 0.3, 0.5])


@pytest.mark.parametrize("name", DIVERGENCES)
def test_robust_dual_of_any_divergence(name: str) -> None:
    """The dual at its best threshold, of the problem as identities leave it, against the maximum over
    q by CVXPY."""
    text, divergence = DIVERGENCES[name]
    risks = f"param mu >= 0 default 0.4; data p : real[K]; let r[k in K] = E[z ~ D | z.g == k] {LOSS};"
    problem, data = bound(
        f"{risks} minimize max[q in simplex(K)] (sum[k in K] q[k] * r[k] - {text});", p=SHARES
    )
    chain = reformulations.chain(canonical(problem), constant=constant_values(problem, data))
    added = [v for v in chain.problem.variables if v not in problem.variables]
    point = {"w": torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)}
    (family,) = problem.lets.values()
    r = interpret.evaluate(data, family.body, point, {family.binders[0]: range(3)}).numpy()
    q = cp.Variable(3, nonneg=True)
    best = cp.Problem(cp.Maximize(r @ q - divergence(q)), [cp.sum(q) == 1]).solve(solver=cp.CLARABEL)
    found = least(chain.problem, data, point, added[0], ()) if added else value(chain.problem, data, point)
    assert found == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("payoff", ["dot(v, A @ q)", "dot(transpose(A) @ v, q)", "2 * dot(A @ q, v / 2)"])
@pytest.mark.parametrize("divergence", ["kl", "chi2"])
def test_a_game_with_a_divergence(payoff: str, divergence: str) -> None:
    """The dual of a bilinear payoff less a divergence, and its gradient, against the maximum by CVXPY."""
    game = np.array([[1.0, -2.0, 0.5], [0.3, 0.1, -1.0], [-0.2, 1.5, 0.4]])
    text = f"minimize max[q in simplex(K)] ({payoff} - 0.4 * {divergence}(q, p));"
    problem, data = bound(f"data p : real[K]; data A : real[K, K]; var v[K]; {text}", p=SHARES, A=game)
    chain = reformulations.chain(canonical(problem), constant=constant_values(problem, data))
    v = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    r = game.T @ v.numpy()
    q = cp.Variable(3, nonneg=True)
    _, cost = DIVERGENCES["of shares, closed" if divergence == "kl" else "of shares"]
    best = cp.Problem(cp.Maximize(r @ q - cost(q)), [cp.sum(q) == 1]).solve(solver=cp.CLARABEL)
    added = [one for one in chain.problem.variables if one not in problem.variables]
    if added:
        assert divergence == "chi2"
        assert least(chain.problem, data, {"v": v}, added[0], ()) == pytest.approx(best, rel=1e-6)
        return
    at = v.clone().requires_grad_()
    reached = Evaluator(data, {"v": at}).value(chain.problem.objective.expr, {}).data
    shares = SHARES * np.exp(r / 0.4)
    assert reached.item() == pytest.approx(best, rel=1e-6)
    assert reached.item() == pytest.approx(0.4 * np.log(shares.sum()), rel=1e-12)
    (gradient,) = torch.autograd.grad(reached, at)
    assert np.allclose(gradient.numpy(), game @ (shares / shares.sum()), atol=1e-12)


WEIGHED = [
    "dot(q, c * v)",
    "sum(v * q * c)",
    "(sum[k in K] c[k] * q[k] * v[k])",
    "(sum[k in K] q[k] * (c[k] * v[k]))",
]


@pytest.mark.parametrize("total", WEIGHED)
def test_one_dual_of_all_ways_of_writing_the_weighted_sum(total: str) -> None:
    problem, data = bound(
        f"data c : real[K]; var v[K]; minimize max[q in simplex(K)] {total};", c=np.array([1.0, 3.0, -2.0])
    )
    chain = reformulations.chain(canonical(problem), constant=constant_values(problem, data))
    point = {"v": torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)}
    assert value(chain.problem, data, point) == pytest.approx(2.0)


@pytest.mark.parametrize("name", TAILS)
def test_equal_at_the_best_threshold(name: str) -> None:
    text, shape = TAILS[name]
    problem, data = bound(text)
    chain = reformulations.chain(problem, constant=constant_values(problem, data))
    added = [v for v in chain.problem.variables if v not in problem.variables]
    assert len(added) == 1
    point = {"w": torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)}
    assert least(chain.problem, data, point, added[0], shape) == pytest.approx(
        value(problem, data, point), rel=1e-6
    )
    assert chain.recover({"w": np.zeros(3), added[0]: np.zeros(1)}).keys() == {"w"}


@pytest.mark.parametrize(
    "text",
    [
        f"maximize cvar(tail = 0.3)[z in D] {LOSS};",
        f"minimize -cvar(tail = 0.3)[z in D] {LOSS};",
        f"minimize sumsq(w);\nsubject to c: cvar(tail = 0.3)[z in D] {LOSS} >= 1;",
        f"minimize sumsq(w);\nsubject to c: cvar(tail = 0.3)[z in D] {LOSS} == 1;",
    ],
)
def test_a_tail_that_should_be_large_is_refused(text: str) -> None:
    problem, _ = bound(text)
    with pytest.raises(FccoError) as caught:
        reformulations.chain(problem)
    assert [d.code for d in caught.value.diagnostics] == ["F0601"]


@pytest.mark.parametrize(
    "inside",
    [
        f"sum[k in K] square(q[k]) * (E[z ~ D | z.g == k] {LOSS})",
        f"sum[k in K | k >= 1] q[k] * (E[z ~ D | z.g == k] {LOSS})",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) + 0.5 * kl(q, uniform(K))",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - (-0.5) * kl(q, uniform(K))",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - sum[k in K] sqrt(q[k])",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - sum[k in K] (-log(q[k]))",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - sum[k in K] min(q[k], 0.1)",
        f"sum[k in K] q[k] * (E[z ~ D | z.g == k] {LOSS}) - sum[k in K] q[k] * log(q[k] + exp(q[k]))",
    ],
)
def test_an_unknown_inner_maximum_is_refused(inside: str) -> None:
    problem, _ = bound(f"minimize max[q in simplex(K)] ({inside});")
    with pytest.raises(FccoError) as caught:
        reformulations.chain(problem)
    assert [d.code for d in caught.value.diagnostics] == ["F0602"]


#: constraints of one variable, a term of the objective, and the labels of those that become the
#: variable's set
SETS = {
    "ball": ("c: norm1(w) <= 1;", "", {"c"}),
    "one of two": ("a: norm1(w) <= 1; b: norm2(w) <= 0.5;", "", {"a"}),
    "bounds": ("a[i in d]: -0.5 <= w[i] <= 1; b: norminf(w) <= 0.6;", "", {"a.lower", "a.upper", "b"}),
    "simplex": ("a: sum(w) == 1; b[i in d]: w[i] >= 0;", "", {"a", "b"}),
    "sum": ("a: sum(w) == 1; b[i in d]: w[i] >= -1;", "", {"b"}),
    "without points": ("a[i in d]: w[i] >= 0.5; b[i in d]: w[i] <= 0;", "", {"a"}),
    "beside a prox": ("c: norm1(w) <= 1;", "+ 0.1 * norm2(w)", set()),
    "with a prox": ("c: norm2(w) <= 1;", "+ 0.1 * norm2(w)", {"c"}),
    "with steps of one size alone": ("c: norm1(w) <= 1;", "+ 0.1 * sumsq(w)", set()),
    "entry by entry": ("c: norminf(w) <= 1;", "+ 0.1 * norm1(w)", {"c"}),
}


@pytest.mark.parametrize("name", SETS)
def test_constraints_that_are_the_sets_of_variables(name: str) -> None:
    """Points of the set are those where the constraints taken hold, and where a regulariser has a prox
    it keeps it."""
    constraints, term, taken = SETS[name]
    problem, data = bound(f"minimize E[z ~ D] {LOSS} {term};\nsubject to {constraints}")
    form = normalise(problem, data)
    assert {c.label for c in problem.constraints} - {c.label for c in form.reformed.constraints} == taken
    assert bool(form.prox) == bool(term)
    domains = form.variables["w"].sets
    assert len(domains) == bool(taken)
    for w in np.random.default_rng(0).normal(scale=0.6, size=(40, 3)) if taken else ():
        w = w if name != "simplex" else np.abs(w) / np.abs(w).sum() * (1 if w[0] > 0 else 1.1)
        point = {"w": torch.tensor(w)}
        held = [c for c in problem.constraints if c.label in taken]
        inside = all(
            float(v) <= 1e-9 and (c.kind == "le" or float(v) >= -1e-9)
            for c in held
            for k in range(3 if c.binders else 1)
            for v in [interpret.evaluate(data, c.body, point, {b: [k] for b in c.binders}).reshape(())]
        )
        simple, args = (
            sets.get(domains[0].family),
            [constant_values(problem, data)(a) for a in domains[0].args],
        )
        assert inside == simple.contains(point["w"], *args, tolerance=1e-9)


def test_every_reformulation_is_under_test() -> None:
    texts = [
        *EQUAL.values(),
        *(text for text, _ in TAILS.values()),
        f"minimize E[z ~ D] {LOSS};\nsubject to {SETS['ball'][0]}",
    ]
    chains = [
        reformulations.chain(problem, constant=constant_values(problem, data))
        for problem, data in map(bound, texts)
    ]
    used = {step.reformulation.name for chain in chains for step in chain.steps}
    assert used == {r.name for r in reformulations.all() if r.role == "equivalent"}


RISKS = f"let r[k in K] = E[z ~ D | z.g == k] {LOSS};"
WORST = {
    "cvar": "cvar(tail = 0.5)[k in K] r[k]",
    "topk": "topk(k = 2)[k in K] r[k]",
    "max": "max[k in K] r[k]",
    "logmeanexp": "logmeanexp(theta = 0.3)[k in K] r[k]",
    "kl": "max[q in simplex(K)] (sum[k in K] q[k] * r[k] - 0.5 * kl(q, uniform(K)))",
    "capped": "max[q in capped_simplex(K, 0.5)] (sum[k in K] q[k] * r[k])",
    "direct": f"max[k in K] (E[z ~ D | z.g == k and z.x[1] > -1] {LOSS})",
}
SURROGATES = {
    "group_average": lambda inside: (
        "mean[k in K] " + ("r[k]" if "-1" not in inside else inside.split("] ", 1)[1])
    ),
    "row_average": lambda inside: f"E[z ~ D{' | z.x[1] > -1' if '-1' in inside else ''}] {LOSS}",
}


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("name", WORST)
def test_surrogates_are_means(name: str, surrogate: str) -> None:
    """What the baselines minimise: the mean of the groups, or of all rows, here of groups of different
    sizes."""
    problem, data = bound(f"{RISKS}minimize {WORST[name]} + sumsq(w);", rows=41)
    normal = normalise(problem, data, surrogate=surrogate)
    expected, _ = bound(f"{RISKS}minimize {SURROGATES[surrogate](WORST[name])} + sumsq(w);", rows=41)
    point = {"w": torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)}
    assert value(normal.reformed, data, point) == pytest.approx(value(expected, data, point), rel=1e-12)
    assert any(
        "solves another problem" in sentence for step in normal.chain.steps for sentence in step.sentences
    )
    assert normal.problem is problem


def test_a_worst_group_is_a_constraint_family() -> None:
    """The epigraph at the least threshold that its constraints allow, and none where a large value is
    wanted."""
    problem, data = bound(f"{RISKS}minimize (max[k in K] r[k]) + sum[j in K] max[k in K] (k + 1) * r[j];")
    chain = reformulations.chain(problem, {"worst case"}, [reformulations.get("worst_group")])
    assert (
        [c.label for c in chain.problem.constraints]
        == list(chain.problem.variables)[1:]
        == ["max_1", "max_2"]
    )
    point = {"w": torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)}
    zero = {"max_1": torch.zeros((), dtype=torch.float64), "max_2": torch.zeros(3, dtype=torch.float64)}
    thresholds = {}
    for constraint in chain.problem.constraints:
        env = {b: range(3) for b in constraint.binders}
        least_of = interpret.evaluate(data, constraint.body, {**point, **zero}, env)
        thresholds[constraint.label] = least_of.amax(-1)
    assert value(chain.problem, data, {**point, **thresholds}) == pytest.approx(
        value(problem, data, point), rel=1e-12
    )
    assert chain.recover({"w": np.zeros(3), "max_1": np.zeros(()), "max_2": np.zeros(3)}).keys() == {"w"}
    with pytest.raises(FccoError):
        reformulations.chain(
            bound(f"{RISKS}maximize max[k in K] r[k];")[0],
            {"worst case"},
            [reformulations.get("worst_group")],
        )


def test_the_cheapest_chain_is_found() -> None:
    """Fewest steps first; an algorithm without a way gets no chain that it cannot take; nothing is
    done that nobody needs."""
    problem, data = bound(f"{RISKS}maximize -(max[q in capped_simplex(K, 0.5)] (sum[k in K] q[k] * r[k]));")

    def via(**form: object) -> list[str]:
        return [step.reformulation.name for step in normalise(problem, data, **form).chain.steps]

    assert via() == ["minimised", "robust", "cvar", "moreau"]
    assert via(coupled=True) == ["minimised", "robust", "moreau"]
    assert via(outer="subgradient") == ["minimised", "robust", "cvar"]
    assert via(coupled=True, outer="subgradient") == ["minimised", "robust"]
    assert via(surrogate="group_average") == ["group_average", "minimised"]
    problem, data = bound(f"{RISKS}minimize max[k in K] r[k]; subject to c: E[z ~ D] pos(dot(w, z.x)) <= 1;")
    assert via() == ["smoothed_hinge", "moreau", "nested_moreau"]
    assert via(outer="smooth", penalty="squared_hinge", inner="subgradient") == [
        "worst_group",
        "squared_hinge",
    ]
    assert via(outer="subgradient", penalty="hinge", inner="subgradient") == ["hinge"]
    assert via(outer="dual", penalty="lagrangian", inner="subgradient") == ["lagrangian", "moreau"]


POWERS = {
    "max(0, 1 - {})^2": True,
    "pos({} - 1)^3": True,
    "abs({})^2.5": True,
    "square(max(0, abs({}) - 1))": True,
    "max(0, {})^1.5": False,
    "max(1, {})^2": False,
    "(1 + pos({}))^2": False,
}


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("where", ["E[z ~ D] {}", "{}"], ids=["inside", "outside"])
def test_powers_of_hinges_are_smooth(power: str, where: str) -> None:
    """Their kinks are at zeros, where the slope of the power is zero: no envelope takes their place."""
    below = "dot(w, z.x)" if "E[" in where else "(E[z ~ D] dot(w, z.x))"
    problem, data = bound(f"minimize {where.format(power.format(below))} + sumsq(w);")
    assert bool(normalise(problem, data).smoothed) != POWERS[power]


@pytest.mark.parametrize(("family", "size"), [("k in d", 3), ("k in 1 .. d - 1", 2)])
def test_thresholds_of_a_family_over_a_dim(family: str, size: int) -> None:
    """They have the size of the dim, which is no set, or of the numbers written there."""
    text = (
        f"minimize sum[{family}] cvar(tail = 0.5)[z in D] abs(w[k] - z.x[k]); subject to low[k in d | "
        "k > 1]: w[k] <= 1;"
    )
    x = np.array([[0.0, 1, 2], [1, 3, 4], [5, 4, 1], [2, 8, 0]])
    found = fccomodel.compile(HEAD + text).bind(data={"D": {"x": x, "g": np.arange(4) % 3}}).solve()
    w = cp.Variable(3)
    worst = sum(cp.sum_largest(cp.abs(w[k] - x[:, k]), 2) / 2 for k in range(size))
    best = cp.Problem(cp.Minimize(worst), [w[1:] <= 1]).solve(solver=cp.CLARABEL)
    assert found.report.solved and found.objective == pytest.approx(best, abs=1e-6)
