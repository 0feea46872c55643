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

# %% [markdown]
# ## Few misses, at a price
#
# Tumours are to be found: among the malignant ones ($y = 1$) the loss shall be at most $\kappa$, and with that the benign ones
# shall be treated as well as can be. The data come with scikit-learn.

# %%
from checks import check
from sklearn.datasets import load_breast_cancer

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
frame = load_breast_cancer(as_frame=True).frame
names = list(frame.columns[:5])
binding = {"D": {"x": {"columns": names, "scale": "standard"}, "y": {"column": "target", "map": {"0": 1, "1": 0}}}}
problem = fc.compile(TEXT).bind(spec=binding, D=frame)
result = problem.solve(seed=0)
print(result)

# %% [markdown]
# ## The multiplier is a price
#
# A constraint $c(w) \le \kappa$ that is active has a multiplier $y \ge 0$ with $\nabla F + y \nabla c = 0$. If $\kappa$ grows
# by a little, the optimal value falls by $y$ times that little. Let us see.

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
# With $\rho$ large enough, $F(w) + \rho\,[c(w) - \kappa]_+$ has the same minima (an *exact penalty*). But it is a composition:
# a hinge around an expectation. A minibatch value of $c$ in the hinge is biased, by Jensen's inequality, wherever $c$ is near
# $\kappa$, and there is where the solution is.
#
# SONEX smooths the hinge (its Moreau envelope) and tracks $c$ by an MSVR estimate; its slope $\rho\,[\,\cdot\,]_+'$ is then an
# estimate of the multiplier. ALEXR2 solves for the multiplier by dual steps.

# %%
given = {"inner_batch": 32, "budget": "4000it", "seed": 0, "trace": ["u", "g", "y"]}
for name in ("sonex", "alexr2"):
    seen = problem.solve(algorithm=name, **given).trace
    path = [look.multipliers["misses"] for look in seen.looks]
    shown = ", ".join(f"{y:.2f}" for y in path[::6])
    print(f"{name}: the multiplier goes {shown} ...; the report's is {seen.multipliers['misses']:.2f}")

# %%
picture = seen.plot.multipliers()
picture

# %% [markdown]
# ## KKT: three numbers and a verdict
#
# A point is a KKT point if it is feasible, if multipliers with $y \ge 0$ make the gradient of the Lagrangian vanish
# (stationarity), and if multipliers of inactive constraints are zero (complementarity). The report computes all three from the
# problem as written, over all rows, whatever the solver believed.

# %%
report = result.report
for name in ("feasibility", "stationarity", "complementarity"):
    print(f"{name:16} {getattr(report, name):.1e}")
print(report.verdict)

# %% [markdown]
# For a convex problem like this one, a KKT point is optimal, and the multipliers prove it: they give a lower bound on what any
# feasible point can reach. The report's gap is what is left between the two.

# %% [markdown]
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
# ## What to remember
#
# The multiplier is the price of a constraint. A penalty on an expectation is a composition, with all that session 1 said of
# compositions. An answer is judged by its KKT residuals.
