# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 2. Tracking the inner expectation
#
# After this session you can
#
# - say what the estimates $u$ of BSGD, SOAP, SOX and MSVR are, and which errors each has;
# - choose $\gamma$ from the two errors that it trades: lag and noise;
# - see both in a run.
#
# Session 1 ended with a bias that comes from putting a minibatch into a nonlinear function.

# %% [markdown]
# ## Many expectations
#
# Some positives $i$, many negatives $j$, a score $w^\top x$. The p-norm push wants no negative above a positive:
#
# $$ \min_w \; \frac1n \sum_i f(g_i(w)), \qquad g_i(w) = \mathbb{E}_j\,\ell(w^\top x_j - w^\top x_i), \qquad f(u) = u^3 . $$
#
# Every $i$ has an expectation of its own inside a cube. A step can afford a few $i$ and a few $j$.

# %%
import numpy as np
from checks import check

import fccomodel as fc

TEXT = """
model push;
dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
var w[d];
minimize mean[i in P] (E[j ~ N] log1pexp(dot(w, j.x) - dot(w, i.x))) ^ 3 + 0.01 * sumsq(w);
"""
rng = np.random.default_rng(0)
y = (np.arange(300) % 5 == 0).astype(int)
x = rng.normal(size=(300, 3)) + np.outer(y, [1.0, 0.5, 0.0])
problem = fc.compile(TEXT).bind(D={"x": x, "y": y})
print(problem.explain().why("objective"))

# %% [markdown]
# ## Four estimates
#
# With a minibatch value $\hat g_i$ of $g_i(w_t)$ at hand,
#
# | | estimate of $g_i(w_t)$ | error |
# |---|---|---|
# | BSGD | $\hat g_i$ | noise of the batch, of order $1/\sqrt{B_2}$: a bias |
# | SOAP, SOX | $u_i \leftarrow (1 - \gamma)\,u_i + \gamma\,\hat g_i$ | less noise, but it lags behind a moving $w$ |
# | MSVR | the same $+\; \gamma'\,(\hat g_i(w_t) - \hat g_i(w_{t-1}))$, one batch at both points | the lag is corrected |
#
# SOX differs from SOAP in the gradient: SOX averages that as well (momentum), and updates only the $u_i$ of the blocks it drew.
#
# ## Seen: u beside g
#
# The trace has the estimate and the true value of every block before chosen steps.

# %%
given = {"outer_batch": 30, "inner_batch": 1, "eta": 0.02, "schedule": "decay", "budget": "2000it", "seed": 0}
traces = {gamma: problem.solve(algorithm="sox", gamma=gamma, trace=["u", "g"], **given).trace for gamma in (0.02, 0.2, 1.0)}
for gamma, trace in traces.items():
    off = trace.off(next(iter(trace.trace.estimates)))
    print(f"gamma = {gamma:4}: u is off by {off[12:18].mean():.3f} while w moves, {off[-3:].mean():.3f} at the end")

# %% [markdown]
# A small $\gamma$ lags while $w$ moves fast, and is the best at the end, when it hardly moves. $\gamma = 1$ is BSGD's estimate,
# kept from the last time the block was drawn: noise all the way.

# %%
picture = traces[0.2].plot.tracking()
picture

# %% [markdown]
# ## What that means for the answer

# %%
found = fc.compare(
    problem,
    algorithms=["bsgd", "soap", "sox", "msvr"],
    seeds=2,
    budget="50000oracles",
    outer_batch=8,
    inner_batch=4,
)
print(found)

# %% [markdown]
# `found.plot()` draws the curves. Times and oracle calls differ: MSVR asks for every sample at two points.
#
# ## Exercise 2.1
#
# Let $w$ stand still, so that $u \leftarrow (1 - \gamma) u + \gamma \hat g$ with independent $\hat g$ of variance 1. What is
# the variance of $u$ after many steps, for $\gamma = 0.1$?

# %%
variance = ...
check("2.1", variance)

# %% [markdown]
# ## Exercise 2.2
#
# Two runs have step sizes 0.001 and 0.1. In which order should their best $\gamma$ be? Give a pair `[for the small step, for
# the large step]` of values you would try.

# %%
gammas = ...
check("2.2", gammas)

# %% [markdown]
# ## What to remember
#
# Tracking trades noise for lag, and $\gamma$ is the price. Theorems let $\gamma$ fall with the step size, for that reason.
