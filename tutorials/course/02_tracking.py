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
# It takes about an hour; the computing takes less than ten seconds.
#
# Session 1 ended with a bias that comes from putting a minibatch into a nonlinear function.

# %% [markdown]
# ## Many expectations
#
# Some positives $i$, many negatives $j$, a score $w^\top x$. The p-norm push wants no negative above a positive:
#
# $$ \min_w \; \frac1n \sum_i f(g_i(w)), \qquad g_i(w) = \mathbb{E}_j\,\ell(w^\top x_j - w^\top x_i), \qquad f(u) = u^3 . $$
#
# Here $\ell(a) = \log(1 + e^a)$, `log1pexp` in a model. Every $i$ has an expectation of its own inside a cube; we call $i$ a
# *block*. A step can afford a few of them: it draws $B_1$ blocks (`outer_batch`), and for each $B_2$ of the $j$ (`inner_batch`,
# the $B$ of session 1).

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
print(str(problem.explain().why("objective")).splitlines()[0])

# %% [markdown]
# ## Four estimates
#
# The gradient is $\frac1n \sum_i f'(g_i(w))\,\nabla g_i(w)$, and the question is what to put in the place of $g_i(w)$ inside
# $f'$. Let $w_t$ be the point of step $t$, and $\hat g_i(w_t)$ the mean over the $B_2$ samples that it drew for block $i$.
#
# | | in the place of $g_i(w_t)$ | error |
# |---|---|---|
# | BSGD | $\hat g_i(w_t)$ | noise of the batch, of order $1/\sqrt{B_2}$, which $f'$ turns into a bias of order $1/B_2$ |
# | SOAP, SOX | $u_i \leftarrow (1 - \gamma)\,u_i + \gamma\,\hat g_i(w_t)$ | less noise, but $u_i$ lags behind a moving $w$ |
# | MSVR | the same $+\; \gamma'\,(\hat g_i(w_t) - \hat g_i(w_{t-1}))$, one batch at both points | the lag is corrected |
#
# All of them update only the $u_i$ of the blocks that they drew. SOX differs from SOAP in two things: it averages the
# gradient as well (momentum), and it puts $u_i$ into $f'$ as it was *before* this step's batch, so that the two factors of
# the product are independent.
#
# ## Seen: u beside g
#
# The trace has the estimate $u_i$ and the true value $g_i(w_t)$ of every block, before chosen steps. We print how far they are
# apart, in the mean over the blocks: at looks 12 to 17, while $w$ moves fast, and at the last three.

# %%
given = {"outer_batch": 30, "inner_batch": 1, "eta": 0.02, "schedule": "decay", "budget": "1500it", "seed": 0}
traces = {gamma: problem.solve(algorithm="sox", gamma=gamma, trace=["u", "g"], **given).trace for gamma in (0.02, 0.2, 1.0)}
for gamma, trace in traces.items():
    off = trace.off(next(iter(trace.trace.estimates)))
    print(f"gamma = {gamma:4}: u is off by {off[12:18].mean():.3f} while w moves, {off[-3:].mean():.3f} at the end")

# %% [markdown]
# The smallest $\gamma$ lags most while $w$ moves fast, and is the best at the end, when $w$ hardly moves: step sizes have
# fallen by then. $\gamma = 1$ is BSGD's estimate, kept from the last time the block was drawn: noise all the way. In between,
# 0.2 is the best while $w$ moves.

# %%
picture = traces[0.2].plot.tracking()
picture

# %% [markdown]
# ## What that means for the answer
#
# The four algorithms with the same number of oracle calls, values of $\ell$ at a pair $i, j$, from two seeds each.

# %%
found = fc.compare(
    problem,
    algorithms=["bsgd", "soap", "sox", "msvr"],
    seeds=2,
    budget="50000oracles",
    outer_batch=8,
    inner_batch=8,
)
print(found)

# %% [markdown]
# Look at the column *KKT*: it is the length of the true gradient at the answer. That of BSGD is the largest, for it does not
# go to the minimum of this problem. (The objectives differ less: near a minimum a small step aside costs little.) MSVR asks
# for every sample at two points, so it has taken half as many steps. With two seeds only large differences count: compare
# them with the standard deviations (*sd*) below the means. `found.plot()` draws the curves.
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
# Two runs have step sizes 0.001 and 0.1. Which of them should have the larger $\gamma$? Give a pair `[for the small step, for
# the large step]` of values between 0 and 1 that you would try.

# %%
gammas = ...
check("2.2", gammas)

# %% [markdown]
# ## Exercise 2.3
#
# From a story to a model. Take the data, the sets $P$ and $N$ and the variable of the model above. For each positive, take the
# mean of $\ell(w^\top x_j - w^\top x_i)$ over the negatives $j$; minimise the mean of the *squares* of these means, plus
# `0.01 * sumsq(w)`. Give the whole text.

# %%
milder = ...
check("2.3", milder)

# %% [markdown]
# ## What to remember
#
# Tracking has two errors. A small $\gamma$ has little noise and much lag, a large one the reverse. The slower $w$ moves, the
# smaller $\gamma$ may be: theorems let it fall with the step size, for that reason.
