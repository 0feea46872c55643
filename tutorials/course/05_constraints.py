# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 5. Constraints: penalties, multipliers, KKT
#
# After this session you can
#
# - write a constraint on an expectation, and read its multiplier as a price;
# - say why plug-in minibatches fail on penalties, and what SONEX and ALEXR2 do about it;
# - judge an answer by its KKT residuals, and not by the objective alone.
#
# It takes about an hour; the computing takes less than ten seconds.

# %% [markdown]
# ## Few misses, at a price
#
# Tumours are to be found. A score $s(x) = w^\top x + b$ above 0 says "malignant". Among the tumours that are (class 1) the
# mean loss shall be at most $\kappa = 0.1$: few are *missed*. With that, the loss of the benign ones (class 0) shall be as
# small as it can: few *false alarms*. The data come with scikit-learn, and [`data.py`](data.py) says which columns become $x$
# and the class.

# %%
from checks import check
from data import tumours

import fccomodel as fc

TEXT = """
model neyman_pearson;
dim d;
data D : table(x: real[d], y: {0, 1});
param kappa default 0.1;
var w[d];
var b;
def score(x) = dot(w, x) + b;
minimize alarms: E[z ~ D | z.y == 0] log1pexp(score(z.x)) + 0.01 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= kappa;
"""
frame, binding = tumours(["mean radius", "mean texture", "mean perimeter", "mean area", "mean smoothness"])
problem = fc.compile(TEXT).bind(spec=binding, D=frame)
result = problem.solve(seed=0)
print(result)

# %% [markdown]
# ## The multiplier is a price
#
# We minimise $F(w)$ subject to $c(w) \le \kappa$. (Here $w$ is short for both variables, $w$ and $b$.) The constraint is
# *active*: it holds with equality, as the report shows. Then there is a number $y \ge 0$, its **multiplier** (the $y$ of
# sessions 3 and 4), with
#
# $$ \nabla F(w) + y\, \nabla c(w) = 0 . $$
#
# If $\kappa$ grows by a little, the optimal value falls by $y$ times that little. Let us see: solve with a slightly larger
# and a slightly smaller $\kappa$, each from the answer we have (`start=`), and divide the differences.

# %%
step = 0.002
more = problem.with_params(kappa=0.1 + step).solve(start=result)
less = problem.with_params(kappa=0.1 - step).solve(start=result)
slope = (more.objective - less.objective) / (2 * step)
price = float(result.report.constraints["misses"].multiplier)
print(f"the optimal value changes by {slope:.4f} per unit of kappa; the multiplier is {price:.4f}")
assert abs(slope + price) < 0.02 * price

# %% [markdown]
# ## From a constraint to a penalty
#
# Where $\rho$ is larger than the multiplier, $F(w) + \rho\,[c(w) - \kappa]_+$ has the same minimum (an *exact penalty*; this
# problem is convex). But it is a composition: a hinge around an expectation. A minibatch value of $c$ in the hinge is biased,
# by Jensen's inequality, wherever $c$ is within its noise of $\kappa$; and that is where the solution is.
#
# Two algorithms do without that bias. Both round the hinge, by its Moreau envelope of session 3:
#
# - **SONEX** tracks $c(w)$ by an estimate $u$ of the kind MSVR (session 2). The slope of the rounded penalty at $u$ takes the
#   place of $y$ in the gradient above.
# - **ALEXR2** has two loops. The inner one is ALEXR (session 4) on the rounded problem plus a parabola that holds $w$ near
#   where it is; its dual variable plays the role of the multiplier $y$. The outer one moves $w$ towards what the inner one found.
#
# So each has, at every step, an idea of the multiplier, and a trace shows it. (`inner_batch` is the number of rows that a
# step draws for $c$.)

# %%
given = {"inner_batch": 32, "budget": "3000it", "seed": 0, "trace": ["u", "g", "y"]}
for name in ("sonex", "alexr2"):
    seen = problem.solve(algorithm=name, **given).trace
    path = [look.multipliers["misses"] for look in seen.looks]
    shown = ", ".join(f"{y:.2f}" for y in path[::6])
    print(f"{name}: the multiplier goes {shown} ...; the report's is {seen.multipliers['misses']:.2f}")

# %%
picture = seen.plot.multipliers()
picture

# %% [markdown]
# As long as $c(w)$ is well below $\kappa$ the penalty is flat, and the multiplier is 0. When the constraint begins to bind,
# it rises until the two gradients balance, and then wavers: the noise that is left is that of $u$. The multiplier of the
# *report* does not waver, as it is computed over all rows at the end.
#
# ## KKT: three numbers and a verdict
#
# A point is a KKT point (after Karush, Kuhn and Tucker) if three things hold:
#
# - *feasibility*: $c(w) \le \kappa$;
# - *stationarity*: some $y \ge 0$ makes $\nabla F(w) + y\, \nabla c(w)$ vanish;
# - *complementarity*: a constraint that is not active has $y = 0$, that is $y\,(c(w) - \kappa) = 0$.
#
# The report has a number for each, by how much it fails: the violation, the length of that vector, and the size of that
# product. It computes them from the problem as written, over all rows, whatever the solver believed.

# %%
report = result.report
for name in ("feasibility", "stationarity", "complementarity"):
    print(f"{name:16} {getattr(report, name):.1e}")
print(report.verdict)

# %% [markdown]
# For a convex problem like this one, a KKT point is optimal, and the multiplier proves it. As any $y$ in session 4, any
# $y \ge 0$ gives a lower bound of what feasible points can reach, $\min_v F(v) + y\,(c(v) - \kappa)$. The *gap* in the
# report is what is left between the objective and that bound.
#
# ## Exercise 5.1
#
# Minimise $w^2$ subject to $w \ge 1$. What is the multiplier?

# %%
multiplier = ...
check("5.1", multiplier)

# %% [markdown]
# ## Exercise 5.2
#
# Write a model (no data) with a constraint that is active at the optimum and has the multiplier 0.

# %%
degenerate = ...
check("5.2", degenerate)

# %% [markdown]
# ## Exercise 5.3
#
# From a story to a model. A shop has shelves for one unit in all, and three goods: it stocks $x_k \ge 0$ of good $k$. Stock brings
# $c^\top x$ and costs $x_1^2 + x_2^2 + x_3^2$. It wants the most. Write the model with `data c : real[3];` and `var x`.

# %%
shop = ...
check("5.3", shop)

# %% [markdown]
# ## What to remember
#
# The multiplier is the price of a constraint. A penalty on an expectation is a composition, with all that session 1 said of
# compositions. An answer is judged by its KKT residuals.
