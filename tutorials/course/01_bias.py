# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 1. What a composition does to SGD
#
# After this session you can
#
# - say why a minibatch put in place of an inner expectation gives a biased gradient, and how large the bias is;
# - predict where plain SGD ends on a composition, and see it end there;
# - tell from a model whether it has such a composition.
#
# It takes about an hour; the computing takes less than a minute.

# %% [markdown]
# ## An expectation inside a square
#
# We minimise $F(w) = (\mathbb{E}[w x] - 1)^2$ where $x$ is normal with mean 1 and variance 1. Since $\mathbb{E}[w x] = w$, this
# is $(w - 1)^2$, and the optimum is $w = 1$. That needs no computer, which is why we take this problem: whatever goes wrong, we
# shall see it. In a model, `normal(1, 1)` has the mean first and then the standard deviation.

# %%
from checks import check

import fccomodel as fc

TEXT = """
model square;
var w >= -2, <= 2;
minimize (E[x ~ normal(1, 1)] (w * x) - 1) ^ 2;
"""
problem = fc.compile(TEXT).bind()

# %% [markdown]
# The gradient is $F'(w) = 2\,(\mathbb{E}[w x] - 1)\,\mathbb{E}[x]$: a *product* of two expectations. Plain SGD draws $B$
# samples, calls their mean $\bar x$, and steps along
#
# $$ G = 2\,(w \bar x - 1)\,\bar x . $$
#
# Both factors use the same samples, and the mean of a product is not the product of the means:
#
# $$ \mathbb{E}[G] = 2 w\,\mathbb{E}[\bar x^2] - 2\,\mathbb{E}[\bar x] = 2 w\,(1 + \tfrac1B) - 2 . $$
#
# That is the gradient of another function, $\mathbb{E}[(w \bar x - 1)^2]$, whose minimum is at $w = B / (B + 1)$. With one
# sample SGD solves that problem, perfectly, and ends at $w = 1/2$.

# %% [markdown]
# ## Seen
#
# `bsgd` is plain SGD with a batch for the inner expectation: `inner_batch` is $B$. It takes 6000 steps (`budget`) of size
# 0.02 (`eta`). `schedule="decay"` makes the last iterate the answer and divides the step size by ten at half and at three
# quarters of the steps, so that what remains is bias, not noise.

# %%
batches = [1, 2, 4, 8]
ends = []
for B in batches:
    result = problem.solve(algorithm="bsgd", inner_batch=B, eta=0.02, schedule="decay", budget="6000it", seed=0)
    ends.append(float(result.variables["w"]))
    print(f"B = {B}: ends at {ends[-1]:.3f}, predicted {B / (B + 1):.3f}")

# %% [markdown]
# No step size repairs this, and neither does a longer run: both remove noise. A larger batch does, slowly: the bias is of order
# $1/B$.

# %%
tracked = problem.solve(algorithm="sox", inner_batch=1, gamma=0.1, eta=0.02, schedule="decay", budget="6000it", seed=0)
print(f"SOX with one sample a step ends at {float(tracked.variables['w']):.3f}")

# %% [markdown]
# SOX keeps a running estimate $u$ of the inner expectation, in which a new sample has the weight `gamma`, and puts *it* into
# the outer function's derivative. How that works is the subject of session 2.
#
# ## Under the microscope
#
# `trace` looks at some of the steps: here at the mean of the stochastic gradient $G$ at the current $w$ (over many batches),
# and at the true gradient $2w - 2$ there. With $B = 1$ the formula above says $4w - 2$ for the mean.

# %%
given = {"eta": 0.02, "schedule": "decay", "budget": "3000it", "seed": 0}
looks = [0, 10, 30, 60, 100, 200, 400, 800, 1500, 2200, 2900]
seen = problem.solve(algorithm="bsgd", inner_batch=1, trace=["gradient"], trace_at=looks, **given).trace
for look in seen.looks[::2]:
    w, G = float(look.variables["w"]), look.gradient
    print(f"step {look.step:5}  w = {w:5.2f}  true {G.true[0]:6.2f}  mean of G {G.mean[0]:6.2f}  by the formula {4 * w - 2:6.2f}")

# %%
picture = seen.plot.bias()
picture

# %% [markdown]
# In the last row the mean of $G$ is nearly zero, so that SGD stays, while the true gradient is about $-1$: what holds SGD
# there is the bias. In the picture the same, all along the run.
#
# ## The compiler knows
#
# A model says which expectations are inside nonlinear functions. `explain` finds them: it calls the objective a
# *composition*, says which expectation has to be *tracked*, and says of plain SGD what its theorem asks for and does not get,
# inner batches which grow with the accuracy.

# %%
lines = str(problem.explain(algorithm="bsgd", unverified=True)).splitlines()
print("\n".join(line for line in lines if any(word in line for word in ("composition", "tracked:", "- inner batches"))))

# %% [markdown]
# ## Exercise 1.1
#
# Let $x$ be normal with mean 1 and standard deviation 2. Where does plain SGD with $B = 4$ end? Work it out on paper, put the
# number in the place of `...`, and only then run the cell. (`check` says whether it is right.)

# %%
ending = ...
check("1.1", ending)

# %% [markdown]
# ## Exercise 1.2
#
# Write a model with an expectation over `x ~ normal(1, 1)` and one variable `w` between -2 and 2, strictly convex, for which
# plain SGD with one sample is *not* biased. (What must be true of the function around the expectation?)

# %%
unbiased = ...
check("1.2", unbiased)

# %% [markdown]
# ## Exercise 1.3
#
# A colleague wants $(\mathbb{E}[w x] - 1)^2$ and has written the model below. Repair it: write the text of the model that he
# means. (Where does a square have to stand?)

# %%
COLLEAGUE = """
var w >= -2, <= 2;
minimize E[x ~ normal(1, 1)] (w * x - 1) ^ 2;
"""
repaired = ...
check("1.3", repaired)

# %% [markdown]
# ## What to remember
#
# A minibatch in place of an inner expectation is unbiased only where the function around it is affine. What this course is
# about has another function there: risks of groups, fairness constraints, partial AUC, penalties on expectations.
