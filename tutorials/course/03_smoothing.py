# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 3. Smoothing, in pictures
#
# After this session you can
#
# - draw the Moreau envelope of a function with kinks, and say what Nesterov's smoothing has to do with it;
# - compute the price of smoothing, and say why a centre that moves takes it away;
# - read what the compiler smooths, by how much, and which $\lambda$ it refuses.
#
# It takes about an hour; the computing takes less than ten seconds.

# %% [markdown]
# ## A kink, rounded
#
# Sessions 1 and 2 put an expectation into smooth functions, a square and a cube. But most of the functions that we shall need
# have *kinks*: $|u|$, the hinge $[u]_+ = \max(0, u)$, the largest of several numbers. The slope of $|u|$ jumps at 0 from $-1$
# to 1, so that an estimate of $u$ that is off by a hair can have the slope wrong by 2. We round the kink. The **Moreau
# envelope** of $f$ is
#
# $$ f_\lambda(u) = \min_v \; f(v) + \frac{(v - u)^2}{2\lambda} , $$
#
# and the $v$ at which the minimum is attained is the **proximal point** (prox) of $u$. Where $f$ is convex, $f_\lambda$ has a
# gradient everywhere, $f_\lambda'(u) = (u - \mathrm{prox}(u)) / \lambda$, which changes by at most $1/\lambda$ per unit of
# $u$.
#
# There is a second way. $|u|$ is the largest of the lines $y u$ with slopes $-1 \le y \le 1$, and the hinge of those with $0
# \le y \le 1$. **Nesterov's smoothing** makes slopes pay for their size:
#
# $$ f_\lambda(u) = \max_y \; y u - f^*(y) - \frac\lambda2\, y^2 , $$
#
# where $f^*(y)$ says how low the line with slope $y$ lies: $y u - f^*(y)$ touches $f$ from below. For $|u|$ and the hinge it
# is 0 at all their slopes. With half squares the two ways are one and the same function, and the best $y$ is its slope.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fccomodel as fc


def slope(u, slopes, lam, centre=0.0):
    """The best y of y u - lam/2 (y - centre)^2 between the two ``slopes``."""
    return np.clip(centre + u / lam, *slopes)


def smoothed(u, slopes, lam, centre=0.0):
    """Nesterov's smoothing of the largest line y u with y between the two ``slopes``."""
    y = slope(u, slopes, lam, centre)
    return y * u - lam / 2 * (y - centre) ** 2


def envelope(f, u, lam):
    """The Moreau envelope by its definition, on a grid of v: its values, and the proximal points."""
    v = np.linspace(-4, 4, 8001)
    away = f(v)[None] + (v[None] - np.asarray(u)[:, None]) ** 2 / (2 * lam)
    best = away.argmin(axis=1)
    return away.min(axis=1), v[best]


u = np.linspace(-2, 2, 401)
ABS, HINGE = (-1, 1), (0, 1)
kinks = {"|u|": (np.abs, ABS), "hinge": (lambda v: np.maximum(v, 0), HINGE)}
for name, (f, slopes) in kinks.items():
    apart = np.abs(envelope(f, u, 0.5)[0] - smoothed(u, slopes, 0.5)).max()
    print(f"{name}: Moreau's and Nesterov's smoothing differ by at most {apart:.0e}")

# %%
picture, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True)
for column, (name, (f, slopes)) in enumerate(kinks.items()):
    axes[0, column].plot(u, f(u), "k", linewidth=1, label=name)
    for lam, line in ((0.2, "-"), (1.0, "--")):
        axes[0, column].plot(u, smoothed(u, slopes, lam), line, label=f"envelope, lambda = {lam}")
        axes[1, column].plot(u, slope(u, slopes, lam), line)
    axes[0, column].set(ylim=(-0.1, 3.2))
    axes[0, column].legend(frameon=False, loc="upper center")
    axes[1, column].set(xlabel="u")
axes[0, 0].set(ylabel="value")
axes[1, 0].set(ylabel="slope")

# %% [markdown]
# The envelope of $|u|$ is Huber's function: a parabola near 0, $|u| - \lambda/2$ beyond. That of the hinge is a parabola
# between 0 and $\lambda$. The slopes below them are ramps where there were jumps.
#
# ## The price
#
# The envelope lies below the function, and by no more than what the slope pays:
#
# $$ 0 \;\le\; f(u) - f_\lambda(u) \;\le\; \frac\lambda2\, (\text{slope of } f \text{ at } u)^2 . $$
#
# (To see the second inequality, put the slope $y$ of $f$ at $u$ into Nesterov's maximum: it gives $f(u) - \frac\lambda2 y^2$,
# and the maximum is no less. At a kink any slope between the two serves, so the least of them gives the best bound.)

# %%
for name, (f, slopes) in kinks.items():
    for lam in (0.2, 1.0):
        price = (f(u) - smoothed(u, slopes, lam)).max()
        print(f"{name:5}  lambda = {lam}: at most {price:.3f} below; lambda / 2 * slope^2 = {lam / 2:.3f}")

# %% [markdown]
# A small $\lambda$ is a small price, but a steep ramp: gradients change by $1/\lambda$ per unit, steps must be that much
# shorter, and the noise of an estimate of $u$ is multiplied by it. That is the trade of this session.
#
# ## The largest of several
#
# The largest of $u_1, \dots, u_n$ is $\max_y \sum_i y_i u_i$ over weights $y_i \ge 0$ with $\sum_i y_i = 1$: the weight goes
# to the winner. There are two usual ways to make weights pay. Half squares, $\frac\lambda2 \sum_i y_i^2$, give the Moreau
# envelope again, at most $\lambda/2$ below. **Entropy**, $\lambda \sum_i y_i \log(n y_i)$, gives $\lambda \log \frac1n \sum_i
# e^{u_i / \lambda}$, at most $\lambda \log n$ below; its weights are the softmax, and none of them is ever zero.

# %%
t, lam = np.linspace(-2, 2, 401), 0.5
first = np.clip(0.5 + t / (2 * lam), 0, 1)  # the best weight of u_1 = t beside u_2 = 0, with half squares
squares = first * t - lam / 2 * (first**2 + (1 - first) ** 2)
entropy = lam * np.log((np.exp(t / lam) + 1) / 2)
largest = np.maximum(t, 0)
print(f"half squares: between {(largest - squares).min():.3f} and {(largest - squares).max():.3f} below the largest")
print(f"entropy:      between {(largest - entropy).min():.3f} and {(largest - entropy).max():.3f} below;", end=" ")
print(f"lambda log 2 = {lam * np.log(2):.3f}")

# %%
picture, axes = plt.subplots(1, 2, figsize=(9, 3.2))
axes[0].plot(t, largest, "k", linewidth=1, label="max(t, 0)")
axes[0].plot(t, squares, label="half squares")
axes[0].plot(t, entropy, "--", label="entropy")
axes[0].set(xlabel="t", ylabel="value")
axes[0].legend(frameon=False, loc="upper left")
axes[1].plot(t, first, label="half squares")
axes[1].plot(t, 1 / (1 + np.exp(-t / lam)), "--", label="entropy")
axes[1].set(xlabel="t", ylabel="weight of t")

# %% [markdown]
# ## The bias of an answer
#
# What does the price do to the answer of a problem? Take
#
# $$ \min_w \; (w - 1.3)^2 + |\mathbb{E}[w - x]|, \qquad \mathbb{E}[x] = 1 . $$
#
# Its optimum is the kink, $w = 1$: there the slope $y^* = 0.6$ of $|u|$ balances the slope $2\,(1 - 1.3) = -0.6$ of the
# square. This $y^*$ is the **multiplier** of the kink. In the smoothed problem the slope at $u = w - 1$ is $u / \lambda$, and
# so the answer must move to where this is the slope that is needed: $u = \lambda y$ with $y + 2\,(u - 0.3) = 0$, which gives
#
# $$ w_\lambda = 1 + \frac{0.6\,\lambda}{1 + 2\lambda} . $$

# %%
TEXT = """
model kink;
data D : table(x: real);
var w >= -3, <= 3;
minimize abs(E[z ~ D] (w - z.x)) + (w - 1.3) ^ 2;
"""
x = np.random.default_rng(0).normal(size=50)
table = {"x": x - x.mean() + 1}
problem = fc.compile(TEXT).bind(D=table)  # sonex: an algorithm that smooths, and tracks the expectation (session 5)
given = {"inner_batch": 10, "algorithm": "sonex", "polish": False, "schedule": "decay", "budget": "2000it", "seed": 0}
for lam in (1.0, 0.3, 0.1):
    w = float(problem.solve(lam=lam, **given).variables["w"])
    print(f"lambda = {lam}: ends at {w:.3f}, predicted {1 + 0.6 * lam / (1 + 2 * lam):.3f}; the optimum is 1")

# %% [markdown]
# (`polish=False` leaves out the finish by passes over all rows, which we come to now; `lam` fixes the smoothing.)
#
# ## Centres that move
#
# The slope paid for being away from 0. Let it pay for being away from a **centre** $c$ instead,
#
# $$ f_{\lambda, c}(u) = \max_y \; y u - f^*(y) - \frac\lambda2\,(y - c)^2 , $$
#
# so that at $u = 0$ the slope is $c$. If $c$ is the multiplier, then $u = 0$ is where the smoothed problem balances, and the
# bias is gone, *for any* $\lambda$. Of course we do not know the multiplier. But the slope at the smoothed answer is closer
# to it than $c$ was; make it the next centre.


# %%
def answer(lam, centre):
    """Where (w - 1.3)^2 and the smoothed |w - 1| balance: between w = 1 and w = 1.3, by halving."""
    low, high = 0.5, 1.3
    for _ in range(60):
        w = (low + high) / 2
        low, high = (low, w) if 2 * (w - 1.3) + slope(w - 1, ABS, lam, centre) > 0 else (w, high)
    return w


lam, centre = 1.0, 0.0
for _ in range(6):
    w = answer(lam, centre)
    print(f"centre {centre:.4f}: the smoothed problem's answer is {w:.4f}")
    centre = float(slope(w - 1, ABS, lam, centre))

# %% [markdown]
# With $\lambda = 1$ throughout, the smoothing stays as gentle as ever, and the error falls by a third each time. With a smaller
# $\lambda$ it falls faster. This is the *method of multipliers*. The finish of a solve, by passes over all rows, works like
# that.
#
# ## What the compiler smooths, and says
#
# `explain` names what it smooths and why it may; the report names the $\lambda$ it came to, and how far the smoothed function
# is from the one you wrote.

# %%
lines = str(problem.explain()).splitlines()
at = next(k for k, line in enumerate(lines) if line.startswith("Reformulations"))
print("\n".join(lines[at : at + 5]))

# %%
print(problem.solve(lam=0.3, **given))

# %% [markdown]
# Look at the line that begins with *smoothing of*. It counts with the widest distance that a slope of $|u|$ can have from a
# centre between $-1$ and 1, which is 2: $\frac\lambda2 2^2 = 0.6$. With the centre at 0 it is a quarter of that. And look at
# the verdict: the report judges the problem *as written*, with its kink, and is not content with the answer to a smoothed
# one. With its finish:

# %%
finished = problem.solve(seed=0, budget="1000it")
print(f"w = {float(finished.variables['w']):.6f}; {finished.report.verdict}")

# %% [markdown]
# ## Beyond convex: weak convexity
#
# Some functions with kinks are not convex, but nearly: $f$ is **$\rho$-weakly convex** if $f(u) + \frac\rho2 u^2$ is convex.
# The function $|u^2 - 1|$ has hills between its kinks at $-1$ and 1; adding $u^2$ (that is $\rho = 2$) gives $\max(2 u^2 - 1,
# 1)$, which is convex. The parabola in the Moreau envelope must be more curved than the hill, $1/\lambda > \rho$. Then the
# prox is one point, and the envelope has a gradient. Otherwise the prox jumps.

# %%
hill = lambda v: np.abs(v**2 - 1)  # noqa: E731
picture, axes = plt.subplots(1, 2, figsize=(9, 3.2))
axes[0].plot(u, hill(u), "k", linewidth=1, label="|u^2 - 1|")
for lam, line in ((0.3, "-"), (1.0, "--")):
    values, prox = envelope(hill, u, lam)
    axes[0].plot(u, values, line, label=f"envelope, lambda = {lam}")
    axes[1].plot(u, prox, line, label=f"lambda = {lam}")
    left, right = envelope(hill, np.array([-0.01, 0.01]), lam)[1]
    print(f"lambda = {lam}: the prox of -0.01 is {left:.3f}, that of 0.01 is {right:.3f}")
axes[0].set(xlabel="u", ylabel="value", ylim=(-0.1, 3.2))
axes[0].legend(frameon=False, loc="upper left")
axes[1].set(xlabel="u", ylabel="prox")

# %% [markdown]
# The compiler knows the weak convexity of its functions (`mcp`, a penalty that flattens out, has $1/a$), and refuses a
# $\lambda$ that is too large.

# %%
bent = fc.compile(TEXT.replace("abs(E[z ~ D] (w - z.x))", "mcp(E[z ~ D] (w - z.x), 2, 1)")).bind(D=table)
try:
    bent.solve(lam=3.0, **given)
except fc.FccoError as error:
    print(error)

# %% [markdown]
# ## Exercise 3.1
#
# What is the Moreau envelope of $3\,|u|$ at $u = 2$, for $\lambda = 0.5$? (Which slope has $3\,|u|$ there, and does the
# envelope have it too?)

# %%
value = ...
check("3.1", value)

# %% [markdown]
# ## Exercise 3.2
#
# The constraint $w \le 1$ of $\min_w (w - 3)^2$ is made a penalty, $10\,[w - 1]_+$, and the penalty is smoothed with $\lambda
# = 1$. Its slopes are between 0 and 10. Which centre makes $w = 1$ the answer to the smoothed problem?

# %%
centre = ...
check("3.2", centre)

# %% [markdown]
# ## Exercise 3.3
#
# How far below $3\,|u|$ can its Moreau envelope be, for $\lambda = 0.5$, over all $u$?

# %%
largest_gap = ...
check("3.3", largest_gap)

# %% [markdown]
# ## What to remember
#
# Smoothing lets slopes pay. The price is $\frac\lambda2$ times the slope squared, it moves the answer, and it vanishes when
# the slope that is needed, the multiplier, is the centre. Session 5 meets the same multipliers as the prices of constraints.
