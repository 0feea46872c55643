# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 4. Convex problems: primal and dual
#
# After this session you can
#
# - write a composition as a game between $w$ and one $y_i$ per block, and say what the two steps of ALEXR do in it;
# - say why a dual step is the moving average of session 2 in other words;
# - turn any $y$ into a lower bound, and say of a convex problem whether an answer can be *proved* to be good.
#
# It takes about an hour; the computing takes less than ten seconds.

# %% [markdown]
# ## A prediction that is fair to every site
#
# Twenty sites, each with thirty measurements. A linear prediction $w^\top x$ shall be right *on average at every site*, or as
# nearly so as can be:
#
# $$ \min_w \; F(w) = \frac1n \sum_{i=1}^n |g_i(w)|, \qquad g_i(w) = \mathbb{E}_{z \sim P_i}\,[w^\top x_z - y_z] . $$
#
# An absolute value around an expectation: a composition with a kink. All $g_i$ are affine and $|\cdot|$ is convex, so the
# problem is convex, and this session is about what that gives.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fccomodel as fc

TEXT = """
model sites;
dim d;
set G;
data D : table(x: real[d], y: real, g: G);
var w[d] >= -3, <= 3;
minimize mean[k in G] abs(E[z ~ D | z.g == k] (dot(w, z.x) - z.y));
"""
rng = np.random.default_rng(0)
n, site = 20, np.arange(600) % 20
x = np.column_stack([np.ones(600), rng.normal(size=(600, 2)) + rng.normal(size=(n, 2))[site]])
y = x @ [1.0, -0.5, 0.8] + rng.normal(size=n)[site] + rng.normal(size=600)
table = {"x": x, "y": y, "g": site}
problem = fc.compile(TEXT).bind(D=table)

# %% [markdown]
# ## The game
#
# Session 3 wrote a convex $f$ as the largest of its lines, $f(u) = \max_y\, y u - f^*(y)$. Do this in every block:
#
# $$ \min_w \; \frac1n \sum_i f_i(g_i(w)) + r(w) \;=\; \min_w \max_{y_1, \dots, y_n} \;
#    \frac1n \sum_i \bigl( y_i\, g_i(w) - f_i^*(y_i) \bigr) + r(w) . $$
#
# For $|u|$ the slopes are $-1 \le y_i \le 1$, and $f^*$ is 0 at all of them. A player who is against us weighs the sites,
# with a sign. What have we won? *There is no expectation inside a function any more.* The expectation $g_i$ is multiplied by
# a number, and a minibatch in its place is unbiased, in the gradient in $w$ and in the gradient in $y$. The price is that
# there is a $y_i$ to be found for every block.
#
# **ALEXR** plays the game in turns. It draws $B_1$ blocks $i$, two independent minibatches for each, and
#
# | ALEXR | in step $t$ |
# |---|---|
# | looks ahead | $\tilde g_i = g_i(w_t) + \theta\,(g_i(w_t) - g_i(w_{t-1}))$, both by the first minibatch |
# | dual step | $y_i \leftarrow \mathrm{arg\,max}_v\; v\,\tilde g_i - f_i^*(v) - \tau\,U_\psi(v, y_i)$ |
# | primal step | $w \leftarrow \mathrm{prox}_{\eta r}(w - \eta G)$, $G = \frac{1}{B_1} \sum_i y_i \nabla g_i(w_t)$ by the other |
#
# Three numbers are to be chosen: $\theta$, between 0 and 1, says how far $w$'s last move is continued; a large $\tau$ keeps
# $y_i$ near where it was; $\eta$ is the step size. $U_\psi(v, y) = \psi(v) - \psi(y) - \psi'(y)\,(v - y)$ is a distance, made
# of a convex function $\psi$. With $\psi(y) = \frac12 y^2$ it is $\frac12 (v - y)^2$, and for $|u|$ the dual step is $y_i
# \leftarrow y_i + \tilde g_i / \tau$, cut off at $-1$ and 1. (In the paper $\eta$ is the inverse of ours, and the blocks and
# samples of a step are $S$ and $B$.)
#
# ## A dual step is a moving average
#
# For a smooth $f$ take $f^*$ itself as $\psi$. Then, if it is so at the start, $y_i = f_i'(u_i)$ throughout (Lemma 1 of the
# paper), with
#
# $$ u_i \leftarrow \frac{\tau\, u_i + \tilde g_i}{1 + \tau} , $$
#
# which is SOX's moving average with $\gamma = 1 / (1 + \tau)$. Let us see it for $f(u) = u^2$. There $f^*(y) = y^2 / 4$, and
# $U_\psi(v, y) = (v - y)^2 / 4$. We maximise by brute force, on a grid, and keep a moving average beside it.

# %%
tau, grid = 4.0, np.linspace(-8, 8, 160001)
dual, average = 0.0, 0.0
for value in (1.0, 3.0, 2.0, -1.0):
    dual = grid[np.argmax(grid * value - grid**2 / 4 - tau * (grid - dual) ** 2 / 4)]
    average += (value - average) / (1 + tau)
    print(f"value {value:4}: y = {dual:6.3f}, f'(u) = 2 u = {2 * average:6.3f}")
    assert abs(dual - 2 * average) < 1e-3

# %% [markdown]
# So "track the inner expectation" (sessions 1 and 2) and "play the dual" are the same for smooth $f$; where $f$ has a kink,
# only the second still makes sense, for there $f'$ of an estimate jumps.
#
# ## The duals of a run
#
# **Before you run it**: at the answer, what will be the $y_i$ of a site whose error $g_i$ is well above 0? Of one well below?
# How many sites can have a $y_i$ strictly between $-1$ and 1, when there are three variables?

# %%
steps = 2000
given = {"outer_batch": 10, "inner_batch": 4, "tau": 2.0, "eta": 0.05, "budget": f"{steps}it", "seed": 0}
seen = problem.solve(algorithm="alexr", trace=["y"], trace_at=range(0, steps, 10), **given).trace
print("y of:", seen.trace.duals)
(name,) = seen.trace.duals
W = np.array([look.variables["w"] for look in seen.looks])
Y = np.array([look.y[name] for look in seen.looks])

# %%
picture = seen.plot.multipliers()
picture

# %% [markdown]
# They jump about, as a step has 4 of the 30 measurements of a site. The theorems of merely convex problems are about
# *averages* of the iterates. Let us average both players over the second half of the run, and look at the answer beside it,
# from a solve with its finish.

# %%
exact = problem.solve(seed=0)
a, b = (np.array([of[site == k].mean(0) for k in range(n)]) for of in (x, y))  # g_i(w) = a_i w - b_i
errors = a @ exact.variables["w"] - b
late = Y[len(Y) // 2 :].mean(0)
for k in np.argsort(errors)[[0, 1, 2, -3, -2, -1]]:
    print(f"site {k:2}: error {errors[k]:6.2f}, average y {late[k]:5.2f}")
between = np.flatnonzero(np.abs(errors) < 1e-4)
print(f"errors that are 0: {len(between)}; their average y:", np.round(late[between], 2))
assert len(between) == 3 and (late * np.sign(errors) > 0.5)[np.abs(errors) > 1].all()

# %% [markdown]
# A site whose prediction is too high has $y_i$ near 1, one whose prediction is too low near $-1$. Three sites, as many as there
# are variables, are met exactly; they sit on the kink, and their $y_i$ are whatever balances the others.
#
# ## Any y is a bound
#
# Now the other half of the game. Give *any* $y$ with $-1 \le y_i \le 1$, good or bad. Then for every $w$
#
# $$ F(w) \;\ge\; \frac1n \sum_i y_i\, g_i(w) \;\ge\; \min_{v} \frac1n \sum_i y_i\, g_i(v) \;=:\; D(y) . $$
#
# The problem on the right is easy (here it is linear in $v$), and its value $D(y)$ is a **lower bound** of the optimal value of
# the problem we want to solve. With $g_i(w) = a_i^\top w - b_i$ and $-3 \le w_j \le 3$ it is
#
# $$ D(y) = -\frac1n \sum_i y_i b_i - 3 \sum_j \Bigl| \frac1n \sum_i y_i a_{ij} \Bigr| . $$


# %%
def primal(w):
    return np.abs(a @ w - b).mean()


def bound(y):
    return -y @ b / n - 3 * np.abs(a.T @ y / n).sum()


def half(path, T):
    """The average over the second half of the first T looks."""
    return path[T // 2 : T].mean(0)


for T in (10, 30, 100, 200):
    print(f"after {10 * T:4} steps: {bound(half(Y, T)):6.3f} <= optimal value <= {primal(half(W, T)):.3f}")
assert bound(half(Y, 200)) < exact.objective < primal(half(W, 200)) < bound(half(Y, 200)) + 0.1

# %%
looks = range(10, 201, 5)
picture, axes = plt.subplots(figsize=(7, 3.2))
axes.plot([10 * T for T in looks], [primal(half(W, T)) for T in looks], label="F at the average w")
axes.plot([10 * T for T in looks], [bound(half(Y, T)) for T in looks], "--", label="D at the average y")
axes.axhline(exact.objective, color="0.6", linewidth=1, label="optimal value")
axes.set(xlabel="step", ylabel="value")
axes.legend(frameon=False, loc="lower right")

# %% [markdown]
# The distance between the two is the **duality gap**. It needs nobody's word: whoever has $w$ and $y$ checks it with one pass
# over the data, and need not know how they were found, nor trust whoever found them. That is a *certificate*. Look which of the
# two curves is late: $w$ has been good for a long time when $y$ proves it.
#
# ## What a certificate needs
#
# The bound has a minimum over $v$ in it, and this must be finite. **Before you run it**: what is $D(y)$ if the bounds on $w$
# are dropped? And if they are dropped, but $0.05\,|w|^2$ is added? Which of the three answers can be proved to be optimal?

# %%
free = TEXT.replace(" >= -3, <= 3", "")
curved = free.replace("z.y));", "z.y)) + 0.05 * sumsq(w);")
for words, text in {"bounded": TEXT, "free": free, "free and curved": curved}.items():
    report = fc.compile(text).bind(D=table).solve(seed=0).report
    print(f"{words}: stationarity {report.stationarity:.0e}\n  {report.gap}\n")
    assert report.stationarity < 1e-6 and report.gap.value < 1e-5

# %% [markdown]
# All three answers are optimal; a KKT point of a convex problem is. But without bounds $D(y) = -\infty$ unless $\sum_i y_i a_i$
# is *exactly* 0, and no computed $y$ is that: something has to say that $v$ is not far away. Bounds on $w$ say so, and make the
# error of $y$ count three times (their size). Curvature makes it count squared: with $\frac\mu2 |v|^2$ added the minimum over $v$
# is $-\frac{1}{2\mu} |\frac1n \sum_i y_i a_i|^2$. And with neither, $F$ itself may say it. Points better than the answer have
# no larger $F$; $F$ is a sum of absolute values of $a_i^\top v - b_i$, which grow with $|v|$ where the $a_i$ span all directions;
# so all better points lie in a ball around the answer, and the error of $y$ counts as often as its radius says.
#
# Not every loss grows to all sides (the hinge loss of classes that a line separates does not). The lesson for a modeller: **write
# the bounds that you know**, even if they never become active. They cost nothing, and they turn a claim into a proof.
#
# ## What convexity does to the theorems
#
# `explain` says what was proved of the model, and what follows: of which kind of point, and how fast.

# %%
lines = str(problem.explain()).splitlines()
at = next(k for k, line in enumerate(lines) if line.startswith("Algorithm"))
print("\n".join(lines[at : at + 7]))

# %% [markdown]
# An *optimum*, $O(1/\epsilon^2)$; with strong convexity and smooth $f$, Theorem 1 has $O(1/\epsilon)$ up to a logarithm. For
# problems that are not convex all that can be had is a stationary point. ALEXR asks that $f$ be convex, $g_i$ be convex, and
# $f$ non-decreasing where $g_i$ is curved (otherwise $y_i < 0$ would turn a convex $g_i$ into a concave one).
#
# ## Exercise 4.1
#
# Let $f(u) = \frac12 u^2$, so that $f^*(y) = \frac12 y^2$, let $\psi = f^*$, $\tau = 3$ and $\theta = 0$. The last $y$ was 1,
# and the minibatch has $g = 3$. What is the next $y$?

# %%
next_y = ...
check("4.1", next_y)

# %% [markdown]
# ## Exercise 4.2
#
# Prove to somebody that $|w - 1| + |w - 2| + |w - 6|$ is at least 5 for every $w$ (without bounds on $w$), by giving $y_1, y_2,
# y_3$.

# %%
certificate = ...
check("4.2", certificate)

# %% [markdown]
# ## Exercise 4.3
#
# A function of an expectation is a game because it is a maximum. Write the model that minimises the mean of $|w - a|$ over the
# rows of `data D : table(a: real);` with `var w;`, without `abs`: with `max` of two functions.

# %%
as_a_maximum = ...
check("4.3", as_a_maximum)

# %% [markdown]
# ## What to remember
#
# A convex function of an expectation is a game, in which minibatches are unbiased. The dual step is the moving average again.
# Every $y$ is a lower bound, and the gap between the two players proves an answer good, provided that the minimum over $w$ is
# finite: by bounds or by curvature. In session 5 the same $y$ are the multipliers of constraints.
