"""Models whose answers are easily wrong, with what is true of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

UNBOUNDED, INFEASIBLE, UNATTAINED = "unbounded", "infeasible", "unattained"


@dataclass(frozen=True, kw_only=True)
class Trap:
    """A model with its truth, the optimum or what failure there is; ``others``: objectives at further
    points that meet the first-order conditions without being a maximum or a saddle, or an infimum."""

    text: str
    truth: float | str
    others: tuple[float, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)


def trap(text: str, truth: Any, others: Any = (), **data: Any) -> Trap:
    truth = truth if isinstance(truth, str) else float(truth)
    return Trap(text=text, truth=truth, others=tuple(float(v) for v in others), data=data)


ENDS = {
    "logarithm_far": trap("var x; minimize -x; subject to c: log(1 + x^2) <= 20;", -np.sqrt(np.expm1(20))),
    "logarithm_near": trap("var x; minimize -x; subject to c: log(1 + x^2) <= 5;", -np.sqrt(np.expm1(5))),
    "ratio_of_squares": trap("var x; minimize -x; subject to c: x^2 / (1 + x^2) <= 0.99;", -np.sqrt(99)),
    "saturation": trap("var x; minimize -x; subject to c: tanh(x) <= 0.9999;", -np.arctanh(0.9999)),
    "sigmoid_bound": trap("var x; maximize x; subject to c: sigmoid(x) <= 0.999;", np.log(999)),
    "saturation_never_binds": trap("var x; minimize -x; subject to c: tanh(x) <= 1.5;", UNBOUNDED),
    "root_bound": trap("var x >= 0; minimize -x; subject to c: sqrt(x) <= 50;", -2500),
    "log_alone": trap("var x; minimize -log(x);", UNBOUNDED),
    "log_barrier": trap("var x; minimize x - log(x);", 1),
    "log_barrier_far": trap("var x; minimize 1e-6 * x - log(x);", 1 + np.log(1e-6)),
    "exponential_decay": trap("var x; minimize exp(-x);", UNATTAINED, [0]),
    "reciprocal_decay": trap("var x >= 0; minimize 1 / x;", UNATTAINED, [0]),
    "hyperbola": trap("var x; minimize sqrt(1 + x^2) - x;", UNATTAINED, [0]),
    "softplus_decay": trap("var x; minimize log1pexp(-x);", UNATTAINED, [0]),
    "no_bound_from_exp": trap("var x; minimize -x; subject to c: exp(-x) <= 1;", UNBOUNDED),
    "cube": trap("var x; minimize x^3;", UNBOUNDED),
    "cubic_with_a_dip": trap("var x; minimize x^3 - 3 * x;", UNBOUNDED, [-2]),
    "slow_descent": trap("var x; minimize log(1 + x^2) - 0.001 * x;", UNBOUNDED, [-2.5e-7]),
    "small_slope": trap("var x; minimize pos(1 - x) - 1e-4 * x;", UNBOUNDED),
    "small_slope_that_ends": trap("var x <= 1e5; minimize pos(1 - x) - 1e-4 * x;", -10),
    "flat_direction": trap("var x; var y; minimize (x - y)^2 - 0.001 * (x + y);", UNBOUNDED),
    "flat_direction_that_ends": trap(
        "var x; var y; minimize (x - y)^2 - 0.001 * (x + y); subject to c: x + y <= 1e5;", -100
    ),
    "ray": trap(
        "var x >= 0; var y >= 0; minimize -x - y; subject to c: x - y <= 1; d: y - x <= 1;", UNBOUNDED
    ),
    "ray_that_ends_far": trap(
        "var x >= 0; var y >= 0; minimize -x - y; subject to c: x - y <= 1; d: y - x <= 1; e: x <= 1e5;",
        -200001,
    ),
    "concave_in_a_box": trap("var x >= -3, <= 2; minimize -x^2;", -9, [-4]),
    "entropy_pulls": trap("var x >= 0; minimize x * log(x) - 5 * x;", -np.exp(4)),
}


def divisors() -> dict[str, Trap]:
    a = np.random.default_rng(3).normal(size=200) + 1.0
    table, m = {"x": a}, a.mean()
    q = (a**2).mean() + 1
    ends = [-m + s * np.sqrt(3 * m**2 + q) for s in (1, -1)]
    top = (3 + 5**0.5) / 2
    return {
        "reciprocal_crosses": trap("var x >= -1, <= 1; minimize 1 / x;", UNBOUNDED, [1]),
        "reciprocal_of_mean_crosses": trap(
            "data D : table(x: real); var w >= -2, <= 2; minimize 1 / E[z ~ D] (w * z.x);", UNBOUNDED, [0.5 / m], D=table
        ),
        "ratio_crosses": trap(
            "data D : table(x: real); var w; minimize (E[z ~ D] (w - z.x)^2 + 1) / E[z ~ D] (w + z.x);", UNBOUNDED,
            [(w * w - 2 * m * w + q) / (w + m) for w in ends], D=table,
        ),
        "sum_with_reciprocal": trap("var x; minimize x + 1 / x;", UNBOUNDED, [2]),
        "sum_with_reciprocal_kept_away": trap("var x >= 0.01; minimize x + 1 / x;", 2),
        "divisor_beyond_the_optimum": trap("var x; minimize (x^2 + 1) / (x - 3);", UNBOUNDED, [6 + 2 * 10**0.5]),
        "inverse_square_decays": trap("var x; minimize 1 / (x - 1)^2;", UNATTAINED, [0]),
        "inverse_square_falls": trap("var x; minimize (x - 2)^2 - 1 / (x - 1)^2;", UNBOUNDED),
        "witch": trap("var x; minimize x / (1 + x^2);", -0.5, [0.5]),
        "log_of_a_square": trap(
            "var x; minimize log(x^2) + (x - 3)^2;", UNBOUNDED, [np.log(top**2) + (top - 3) ** 2]
        ),
        "sharpe": trap(
            "data D : table(x: real); var w >= 0.1, <= 5; maximize E[z ~ D] (w * z.x) / sqrt(0.01 + E[r "
            "~ D] (w * r.x)^2);",
            5 * m / np.sqrt(0.01 + 25 * (a**2).mean()), D=table,
        ),
        "divisor_at_zero_in_a_corner": trap("var x >= 0; var y >= 0; minimize (x + 1) / (y + x);", UNATTAINED, [0]),
        "divisor_touches": trap("var x; minimize (x^2 + 1e-4) / x^2;", UNATTAINED, [1]),
        "divisor_by_its_constraint": trap("var x; minimize 1 / x; subject to c: x >= -1; d: x <= 2;", UNBOUNDED, [0.5]),
    }  # fmt: skip


FIT = "dim d; data D : table(x: real[d], y: real); var w[d]; minimize E[z ~ D] (z.y - dot(w, z.x))^2"


def scales() -> dict[str, Trap]:
    random = np.random.default_rng(5)
    sizes = np.array([1e6, 1.0, 1e-6])
    unit = random.normal(size=(300, 3))
    y = unit @ np.array([1.0, -2.0, 0.5]) + 0.1 * random.normal(size=300)
    fitted = np.linalg.lstsq(unit, y, rcond=None)[0]
    least, rows = ((y - unit @ fitted) ** 2).mean(), {"x": unit * sizes, "y": y}
    tight = np.linalg.solve(unit[:, :2].T @ unit[:, :2], unit[:, :2].T @ y)
    stiff = random.normal(size=(300, 2)) @ np.array([[1.0, 1.0], [0.0, 1e-4]])
    aim = stiff @ np.array([3.0, -2.0])
    quick = np.array([1.0, 1e4, 1e8])
    return {
        "features_of_all_sizes": trap(f"{FIT};", least, D=rows),
        "features_of_all_sizes_bounded": trap(
            f"{FIT}; subject to c: w[3] == 0;", ((y - unit[:, :2] @ tight) ** 2).mean(), D=rows
        ),
        "collinear_features": trap(f"{FIT};", 0, D={"x": stiff, "y": aim}),
        "optimum_at_a_million": trap("var x; minimize (x - 1e6)^2;", 0),
        "kink_at_a_million": trap("var x; minimize abs(x - 1e6);", 0),
        "flat_at_a_million": trap("var x; minimize 1e-12 * (x - 1e6)^2 + 1;", 1),
        "hubers_slope_at_a_million": trap("var x; minimize huber(x - 1e6, 1);", 0),
        "largest_at_a_million": trap("var x; minimize max(x - 1e6, 5 - 1e-6 * x);", 5 - 1 / (1 + 1e-6) * (1 + 5e-6)),
        "cost_at_a_million": trap("var x >= 0; minimize 1e6 / x + x / 1e6;", 2),
        "tiny_objective": trap("var x; minimize 1e-8 * (x - 3)^2;", 0),
        "tiny_objective_with_a_level": trap("var x; minimize 1e-8 * (x - 3)^2 + 1e-8;", 1e-8),
        "huge_objective": trap("var x; minimize 1e8 * (x - 3)^2 + 1;", 1),
        "tiny_constraint": trap("var x; minimize x^2; subject to c: 1e-8 * x >= 1e-8;", 1),
        "huge_constraint": trap("var x; minimize x^2; subject to c: 1e8 * x >= 1e8;", 1),
        "constraints_of_both_sizes": trap("var x; var y; minimize x + y; subject to c: 1e7 * x >= 1e7; "
                                          "d: 1e-7 * y >= 1e-7;", 2),
        "variables_of_both_sizes": trap(
            "var x; var y; minimize (1e-5 * x - 1)^2 + (1e5 * y - 1)^2; subject to c: 1e-5 * x + 1e5 * y "
            "<= 1;", 0.5
        ),
        "valley": trap("dim n; data q : real[n]; var x[n]; minimize sum[i in n] q[i] * (x[i] - 1)^2;", 0, q=quick),
        "rosenbrock": trap("var x; var y; minimize (1 - x)^2 + 1e4 * (y - x^2)^2;", 0),
        "flat_eighth_power": trap("var x; minimize (x - 2)^8;", 0),
        "outlier": trap("data D : table(y: real); var m; minimize E[z ~ D] abs(z.y - m);", (1e8 + 2) / 5,
                        D={"y": np.array([-1.0, 0.0, 0.0, 1.0, 1e8])}),
        "small_weights": trap(
            "dim n; data c : real[n]; var p[n] in simplex(n); minimize dot(c, p) - 0.05 * sum(entr(p));",
            -0.05 * np.log(np.exp(-20 * np.array([0.0, 0.1, 1, 2, 3])).sum()), c=np.array([0.0, 0.1, 1, 2, 3]),
        ),
        "offset_of_ten_millions": trap("data D : table(y: real); var m; minimize E[z ~ D] (z.y - m)^2;", 2 / 3,
                                       D={"y": 1e7 + np.array([-1.0, 0.0, 1.0])}),
    }  # fmt: skip


QUALIFICATIONS = {
    "cusp": trap("var x; var y; minimize x; subject to c: y^2 - x^3 <= 0;", 0),
    "kuhn_and_tuckers_cusp": trap("var x; var y >= 0; minimize -x; subject to c: y - (1 - x)^3 <= 0;", -1),
    "tangent_discs": trap(
        "var x; var y; minimize x + y; subject to c: (x - 1)^2 + y^2 <= 1; d: (x + 1)^2 + y^2 <= 1;", 0
    ),
    "square_at_most_zero": trap("var x; minimize x; subject to c: x^2 <= 0;", 0),
    "fourth_power_at_most_zero": trap("var x; minimize x; subject to c: x^4 <= 0;", 0),
    "cube_is_zero": trap("var x; minimize x; subject to c: x^3 == 0;", 0),
    "line_touches_circle": trap("var x; var y; minimize y; subject to c: x^2 + y^2 == 1; d: x == 1;", 0),
    "norm_at_most_zero": trap(
        "dim n; data a : real[n]; var x[n]; minimize dot(a, x); subject to c: norm2(x) <= 0;", 0, a=np.ones(3)
    ),
    "complements": trap(
        "var x >= 0; var y >= 0; minimize (x - 1)^2 + (y - 2)^2; subject to c: x * y <= 0;", 1, [4, 5]
    ),
    "sharp_corner_without_interior": trap(
        "var x; var y; minimize x; subject to c: abs(y) <= x; d: x <= y;", 0
    ),
    "equalities_twice": trap(
        "var x; var y; minimize x^2 + y^2; subject to c: x + y == 1; d: 2 * x + 2 * y == 2;", 0.5
    ),
    "inequalities_ten_times": trap(
        "var x; minimize x; subject to " + " ".join(f"c{k}: {k + 1} * x >= {k + 1};" for k in range(10)), 1
    ),
    "bounds_that_meet": trap("var x >= 2, <= 2; var y; minimize (x - y)^2 + y;", 1.75),
    "box_by_constraints_that_meet": trap("var x; minimize x^2 - 6 * x; subject to c: x <= 2; d: x >= 2;", -8),
    "entropic_without_slater": trap("var x; minimize -x; subject to c: exp(x) - x <= 1;", 0),
}

NOT_FEASIBLE = {
    "bounds_cross": trap("var x; minimize x; subject to c: x >= 1; d: x <= 0;", INFEASIBLE),
    "bounds_cross_slightly": trap("var x; minimize x; subject to c: x >= 1; d: x <= 0.99;", INFEASIBLE),
    "square_below_zero": trap("var x; minimize x; subject to c: x^2 + 0.1 <= 0;", INFEASIBLE),
    "discs_apart": trap("var x; var y; minimize x; subject to c: (x - 2)^2 + y^2 <= 1; d: (x + 2)^2 + "
                        "y^2 <= 1;", INFEASIBLE),
    "simplex_too_rich": trap("dim n; data a : real[n]; var p[n] in simplex(n); minimize sumsq(p); "
                             "subject to c: dot(a, p) >= 2;",
                             INFEASIBLE, a=np.array([1.0, 1.5, 1.9])),
    "circle_and_far_line": trap("var x; var y; minimize x; subject to c: x^2 + y^2 == 1; d: x + y == 3;", INFEASIBLE),
    "large_constants_cross": trap("var x; minimize x; subject to c: x >= 1e6; d: x <= 0.9e6;", INFEASIBLE),
    "sum_of_means_too_large": trap(
        "data D : table(x: real); var w >= 0, <= 1; minimize w; subject to c: E[z ~ D] (w * z.x) >= 2;", INFEASIBLE,
        D={"x": np.linspace(0, 2, 50)},
    ),
    "feasible_far_away": trap("var x; minimize (x - 1)^2; subject to c: exp(-0.001 * x) <= 0.01;", (1000 * np.log(100) - 1) ** 2),
    "feasible_in_a_sliver": trap("var x; minimize -x; subject to c: (x - 3)^2 <= 1e-8;", -3.0001),
    "two_wells_feasible": trap("var x >= 0, <= 20; minimize x; subject to c: (x - 3)^2 * (x - 9)^2 <= 1;",
                               2.8377223, [8.828427]),
    "violation_stationary_at_zero": trap("var x >= 0; var y >= 0; minimize x + y; subject to c: x * y >= 1;", 2),
    "flat_violation_at_zero": trap("var x[3] >= 0; minimize sum(x); subject to c: x[1] * x[2] * x[3] >= 8;", 6),
}  # fmt: skip


def shapes() -> dict[str, Trap]:
    random = np.random.default_rng(8)
    root = random.normal(size=(5, 5))
    A = root @ root.T
    values, vectors = np.linalg.eigh(A)
    a = random.normal(size=5)
    x = random.normal(size=(100, 2))
    apart = {"x": x, "y": np.where(x[:, 0] > 0, 1, -1)}
    double = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 1.0]])
    sphere = "dim n; data A : real[n, n]; var x[n]; "
    return {
        "double_well": trap("var x; minimize x^4 - x^2;", -0.25),
        "kinked_double_well": trap("var x; minimize x^2 - abs(x);", -0.25),
        "saddle": trap("var x; var y; minimize x^2 + y^4 - y^2;", -0.25),
        "saddle_in_a_box": trap("var x >= -1, <= 1; var y >= -1, <= 1; minimize x * y;", -1),
        "absolute_of_absolute": trap("var x; minimize abs(abs(x) - 1);", 0),
        "least_of_two_bowls": trap("var x; minimize min((x + 1)^2, (x - 3)^2 - 1);", -1, [0]),
        "top_of_a_cone": trap("var x[2]; minimize -norm2(x) + sumsq(x);", -0.25),
        "sphere_least": trap(f"{sphere}minimize dot(x, A @ x); subject to c: sumsq(x) == 1;", values[0], A=A),
        "ball_is_concave": trap(f"{sphere}minimize -dot(x, A @ x); subject to c: sumsq(x) <= 1;", -values[-1], A=A),
        "linear_on_a_sphere": trap(
            "dim n; data a : real[n]; var x[n]; minimize dot(a, x); subject to c: sumsq(x) == 1;", -np.linalg.norm(a), a=a
        ),
        "separable_classes": trap(
            "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; minimize E[z ~ D] log1pexp(-z.y * "
            "dot(w, z.x));",
            UNATTAINED, [0], D=apart,
        ),
        "separable_classes_by_hinge": trap(
            "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; minimize E[z ~ D] hinge(1 - z.y * "
            "dot(w, z.x));", 0, D=apart
        ),
        "separable_classes_by_squares_of_hinge": trap(
            "dim d; data D : table(x: real[d], y: {-1, 1}); var w[d]; minimize E[z ~ D] sqhinge(1 - z.y "
            "* dot(w, z.x));",
            0, D=apart,
        ),
        "rows_twice": trap(
            "dim d; data D : table(x: real[d]); var w[d] in simplex(d); minimize max[z in D] dot(w, z.x);", 5 / 3, D={"x": double}
        ),
        "root_of_nothing": trap("dim d; data D : table(x: real[d]); var w[d]; minimize sqrt(E[z ~ D] "
                                "dot(w, z.x)^2) + w[1];",
                                UNBOUNDED if np.sqrt(np.linalg.inv(double.T @ double / 3)[0, 0]) > 1 else 0, D={"x": double}),
        "norm_at_its_kink": trap(
            "dim n; data a : real[n]; var x[n]; minimize 3 * norm2(x) - dot(a, x);", 0, a=a / np.linalg.norm(a)
        ),
        "slope_of_one_at_the_kink": trap("var x; minimize abs(x) - x;", 0),
        "tail_of_one_row": trap("data D : table(x: real); var w; minimize cvar(tail = 0.01)[z in D] "
                                "abs(w - z.x);", 0.5,
                                D={"x": np.linspace(0, 1, 100)}),
        "many_optima_on_a_face": trap("dim n; data c : real[n]; var p[n] in simplex(n); minimize dot(c, "
                                      "p);", 1, c=np.ones(4)),
        "maximum_of_smooth_at_zero": trap("var x; minimize max(x^2, -x^2 + 0 * x);", 0),
        "power_below_two": trap("var x; minimize abs(x - 1)^1.1;", 0),
        "root_at_zero": trap("var x >= 0; minimize sqrt(x) + 0.1 * (x - 2)^2;", 0.4, _root_values()),
    }  # fmt: skip


def _root_values() -> list[float]:
    """Where 1 / (2 sqrt(x)) = 0.2 (2 - x)."""
    s = np.roots([0.2, 0, -0.4, 0.5])
    return [r.real + 0.1 * (r.real**2 - 2) ** 2 for r in s if abs(r.imag) < 1e-9 and r.real > 0]


#: By name.
TRAPS = {**ENDS, **divisors(), **scales(), **QUALIFICATIONS, **NOT_FEASIBLE, **shapes()}
