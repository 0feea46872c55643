"""Sixteen problems made to break a solver: redundant and badly scaled constraints, kinks by the
thousand, saddles, conflicts.

    python tests/bench/harder.py [name ...] [--budget 10s]

The columns are those of ``twenty.py``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import numpy as np
import torch
from twenty import CLASSES, FIT, LOSS, REGRESSION, Problem, conic, gaussian, line, rows, squares

HEAD = f"{REGRESSION} var w[d];"


def redundant() -> Problem:
    """Forty multiples of one half-space, and a bound that it implies."""
    x, y = gaussian(800, 5)
    many = "c[k in K]: (1 + 0.1 * k) * (w[1] + w[2]) <= (1 + 0.1 * k) * 0.2; b: w[1] + w[2] <= 5;"
    text = f"{REGRESSION} set K = 1 .. 40 by 1; var w[d]; minimize {FIT}; subject to {many}"
    return Problem(
        text=text, data=rows(x, y), optimum=conic(squares(x, y), 5, [lambda c, w: w[0] + w[1] <= 0.2])
    )


def scaled_equalities() -> Problem:
    """Equations whose sizes differ by a million."""
    x, y = gaussian(1000, 6)
    text = f"{HEAD} minimize {FIT}; subject to a: 1000000 * (w[1] + w[2]) == 300000; b: w[3] - w[4] == 0.1;"
    limits = [lambda c, w: w[0] + w[1] == 0.3, lambda c, w: w[2] - w[3] == 0.1]
    return Problem(text=text, data=rows(x, y), optimum=conic(squares(x, y), 6, limits))


def svm_wide() -> Problem:
    """A support vector machine with 5,000 features; the optimum by its dual."""
    import cvxpy

    random, (x, _), mu, n = np.random.default_rng(4), gaussian(300, 5000), 0.05, 300
    x /= 5000**0.5 / 3
    y = np.sign(x[:, :5].sum(1) + 0.3 * random.normal(size=n))
    a, root = cvxpy.Variable(n), np.linalg.cholesky(x @ x.T + 1e-9 * np.eye(n))
    value = cvxpy.sum(a) / n - cvxpy.sum_squares(root.T @ cvxpy.multiply(a, y)) / (4 * mu * n * n)
    best = cvxpy.Problem(cvxpy.Maximize(value), [a >= 0, a <= 1]).solve(solver="CLARABEL")
    text = f"{CLASSES} var w[d]; minimize E[z ~ D] hinge(1 - z.y * dot(w, z.x)) + {mu} * sumsq(w);"
    return Problem(text=text, data=rows(x, y), optimum=float(best))


def svm_box() -> Problem:
    x, y = gaussian(3000, 30, noise=1.0)
    y = np.sign(y)
    text = f"{CLASSES} var w[d] in box(-0.1, 0.1); minimize E[z ~ D] hinge(1 - z.y * dot(w, z.x));"
    hinges = [lambda c, w: c.abs(w) <= 0.1]
    return Problem(
        text=text,
        data=rows(x, y),
        optimum=conic(lambda c, w: c.sum(c.pos(1 - c.multiply(y, x @ w))) / 3000, 30, hinges),
    )


def median() -> Problem:
    """100,000 kinks in one variable."""
    y = np.random.default_rng(1).standard_t(2, size=100_000)
    text = f"{REGRESSION} var t; minimize E[z ~ D] abs(t - z.y);"
    return Problem(
        text=text, data=rows(np.zeros((len(y), 1)), y), optimum=float(np.mean(np.abs(np.median(y) - y)))
    )


def kinked_constraints() -> Problem:
    x, y = gaussian(2000, 5)
    kinked = "a: E[z ~ D] hinge(dot(w, z.x)) <= 0.2; b: norm1(w) <= 3;"
    text = f"{HEAD} minimize E[z ~ D] abs(dot(w, z.x) - z.y); subject to {kinked}"
    limits = [lambda c, w: c.sum(c.pos(x @ w)) / 2000 <= 0.2, lambda c, w: c.norm1(w) <= 3]
    return Problem(
        text=text, data=rows(x, y), optimum=conic(lambda c, w: c.norm1(x @ w - y) / 2000, 5, limits)
    )


def infeasible_band() -> Problem:
    x, y = gaussian(600, 4)
    text = (
        f"{HEAD} minimize {FIT}; subject to band: 0.5 <= E[z ~ D] z.y * dot(w, z.x) <= 0.6; small: "
        "sumsq(w) <= 0.01;"
    )
    return Problem(text=text, data=rows(x, y), expected="infeasible")


def contradicting() -> Problem:
    """Two equations that miss each other by 0.001, of sizes that differ by a million."""
    x, y = gaussian(300, 4)
    text = f"{HEAD} minimize {FIT}; subject to a: 1000000 * w[1] == 1000000; b: w[1] == 0.999;"
    return Problem(text=text, data=rows(x, y), expected="infeasible")


def saddle() -> Problem:
    """A saddle at the origin; 0 on a hyperbola."""
    x, y = gaussian(100, 2)
    return Problem(
        text=f"{HEAD} minimize (w[1] * w[2] - 1)^2; subject to size: sumsq(w) <= 4;",
        data=rows(x, y),
        optimum=0.0,
    )


def sphere() -> Problem:
    """The smallest eigenvalue: an equation that is not convex."""
    x, y = gaussian(1000, 6)
    x = x * np.linspace(1, 2, 6)
    least = float(np.linalg.eigvalsh(x.T @ x / 1000)[0])
    text = f"{HEAD} minimize E[z ~ D] square(dot(w, z.x)); subject to one: sumsq(w) == 1;"
    return Problem(text=text, data=rows(x, y), optimum=least)


def partial_separation() -> Problem:
    """Four rows of one class alone have a feature, hidden by a rotation."""
    x, y = gaussian(500, 4, noise=1.0)
    y = np.sign(y)
    x[:, 3] = 0
    x[np.flatnonzero(y > 0)[:4], 3] = 1
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    return Problem(
        text=f"{CLASSES} var w[d]; minimize {LOSS};", data=rows(x @ rotation, y), expected="unattained"
    )


def ties() -> Problem:
    """A linear objective over a simplex: neither the optimum nor its multipliers are unique."""
    x, y = gaussian(200, 6)
    costs = "w[1] + w[2] + 2 * w[3] + 2 * w[4] + 3 * w[5] + 3 * w[6]"
    limits = "a: w[1] + w[2] <= 0.5; b: w[3] + w[4] + w[5] + w[6] >= 0.5;"
    text = f"{REGRESSION} var w[d] in simplex(d); minimize {costs}; subject to {limits}"
    return Problem(text=text, data=rows(x, y), optimum=1.5)


def growth() -> Problem:
    """A log-optimal portfolio."""
    import cvxpy

    x = 1 + 0.1 * np.random.default_rng(2).normal(size=(500, 5)) + np.linspace(0, 0.05, 5)
    w = cvxpy.Variable(5)
    best = cvxpy.Problem(
        cvxpy.Maximize(cvxpy.sum(cvxpy.log(x @ w)) / 500), [w >= 0, cvxpy.sum(w) == 1]
    ).solve(solver="CLARABEL")
    text = f"{REGRESSION} var w[d] in simplex(d); maximize E[z ~ D] log(dot(w, z.x));"
    return Problem(text=text, data=rows(x, x[:, 0]), optimum=float(best))


def scaled(factor: str) -> Problem:
    """The objective times a number."""
    x, y = gaussian(1000, 5)
    text = f"{HEAD} minimize {factor} * {FIT}; subject to a: w[1] <= 0.5;"
    return Problem(
        text=text,
        data=rows(x, y),
        optimum=float(factor) * conic(squares(x, y), 5, [lambda c, w: w[0] <= 0.5]),
    )


def far() -> Problem:
    """Bounded, but far away."""
    text = "model m; var w[2]; minimize -w[1]; subject to a: w[1] <= 100000 + w[2]; b: w[2] <= 1000;"
    return Problem(text=text, optimum=-101000.0)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    f.__name__: f
    for f in (
        redundant, scaled_equalities, svm_wide, svm_box, median, kinked_constraints, infeasible_band, contradicting, saddle,
        sphere, partial_separation, ties, growth, far,
    )
} | {"tiny": lambda: scaled("0.00000001"), "huge": lambda: scaled("10000000")}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name")
    parser.add_argument("--budget", default="10s")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wrong = 0
    for name in arguments.names or PROBLEMS:
        shown, bad = line(name, PROBLEMS[name](), arguments.budget)
        wrong += bad
        print(shown, flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
