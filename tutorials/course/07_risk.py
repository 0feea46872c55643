# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 7. Risk and robustness
#
# After this session you can
#
# - choose between mean, variance and CVaR, and say what each does not see;
# - read a risk measure as a worst case over reweighted rows (DRO), and find the weights;
# - write robustness against *moved* rows (Wasserstein) as a norm, and attack an answer to see whether it holds.
#
# It takes about an hour; the computing takes less than fifteen seconds.

# %% [markdown]
# ## Four assets, one of which crashes
#
# Five hundred days of returns, in percent, of four assets. The last is like selling insurance: it earns a steady 0.15 a day,
# and one day in fifty it loses 5.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fccomodel as fc

NAMES = ["steady", "index", "other", "crash"]
rng = np.random.default_rng(0)
days = 500
market = rng.normal(0.03, 0.8, days)
steady = rng.normal(0.02, 0.2, days)
index = market + rng.normal(0.02, 0.3, days)
other = 0.5 * market + rng.normal(0.04, 0.9, days)
crash = 0.15 + rng.normal(0, 0.3, days) - 5 * (rng.random(days) < 0.02)
returns = np.column_stack([steady, index, other, crash])
for name, r in zip(NAMES, returns.T, strict=True):
    print(f"{name:7} mean {r.mean():6.3f}   standard deviation {r.std():.2f}   worst day {r.min():6.2f}")
calm = crash[crash > -3]
print(f"crash falls on {days - len(calm)} days; without them its standard deviation is {calm.std():.2f}")

# %% [markdown]
# **Before you go on**: by mean and standard deviation, which of `index` and `crash` is the better asset?

# %% [markdown]
# By these two numbers it is `crash`: a larger mean, and a smaller standard deviation. They do not say that it has days far
# worse than the worst of `index`.
#
# ## The mean of the worst
#
# The *loss* $L$ of a day is its return with the sign turned. The **conditional value at risk** of $L$, at tail $\alpha$, is the
# mean of its worst share $\alpha$. With $\alpha = 1$ it is the mean, with $\alpha \to 0$ the worst case. (Some books count from
# the other end: their CVaR at 95% has the tail 0.05.) Rockafellar and Uryasev wrote it as a minimum,
#
# $$ \mathrm{CVaR}_\alpha(L) = \min_s \; s + \frac1\alpha\, \mathbb{E}\,[L - s]_+ , \qquad [a]_+ = \max(a, 0) , $$
#
# attained at the $s$ that a share $\alpha$ of the losses is above (the *value at risk*). That is what the compiler does with
# `cvar`: it adds the variable $s$, and smooths the kink of the hinge as in session 3. Note where the hinge is: *inside* the
# expectation, so that CVaR over rows is no composition yet. Here it is for `crash`.

# %%
loss, alpha = -returns[:, 3], 0.05
s = np.linspace(-1, 6, 701)
curve = s + np.maximum(loss[:, None] - s, 0).mean(axis=0) / alpha
worst = np.sort(loss)[-int(alpha * days) :]
print(f"mean of the worst {len(worst)} days: {worst.mean():.3f}")
print(f"least value of the curve:  {curve.min():.3f}, at s = {s[curve.argmin()]:.2f}")
assert abs(worst.mean() - curve.min()) < 0.01

# %%
picture, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].hist(loss, bins=60, color="0.6")
axes[0].hist(worst, bins=60, range=(loss.min(), loss.max()), color="tab:red", label="worst 5%")
axes[0].set(xlabel="loss of a day", ylabel="days", yscale="log")
axes[0].legend(frameon=False)
axes[1].plot(s, curve)
axes[1].plot(s[curve.argmin()], curve.min(), "o", color="tab:red")
axes[1].set(xlabel="s", ylabel=r"$s + E\,[L - s]_+ / \alpha$")

# %% [markdown]
# ## Portfolios
#
# Shares $x$ of the four, none negative, of sum 1; a day's loss is $-r^\top x$. We want the least risk at a mean return of at
# least 0.04, by CVaR with the tails 0.5, 0.05 and 0.02, and by the variance. **Predict**: which of these four risks buys most
# of `crash`, and which least?

# %%
TEXT = """
model portfolio;
set A;
data R : table(r: real[A]);
param alpha > 0, <= 1 default 0.05;
var x[A] in simplex(A);
minimize risk: cvar(tail = alpha)[z ~ R] (-dot(z.r, x));
subject to income: E[z ~ R] dot(z.r, x) >= 0.04;
"""
problem = fc.compile(TEXT).bind(R={"r": returns})
tails = [0.5, 0.05, 0.02]
curve = problem.sweep(alpha=tails, seed=0, tol=1e-4)
shares = {f"CVaR, tail {alpha}": result.variables["x"] for alpha, result in zip(tails, curve, strict=True)}
VARIANCE = TEXT.replace("cvar(tail = alpha)[z ~ R] (-dot(z.r, x))", "variance[z ~ R] dot(z.r, x)")
shares["variance"] = fc.compile(VARIANCE).bind(R={"r": returns}).solve(seed=0).variables["x"]
print(f"{'share of':16}" + "".join(f"{name:>8}" for name in NAMES) + "   worst 5%  worst 2% of days")
for words, share in shares.items():
    tail5, tail2 = (np.sort(-returns @ share)[-int(part * days) :].mean() for part in (0.05, 0.02))
    print(f"{words:16}" + "".join(f"{abs(part):8.2f}" for part in share) + f"{tail5:11.3f}{tail2:10.3f}")
crashing = {words: share[3] for words, share in shares.items()}
assert crashing["CVaR, tail 0.5"] > crashing["variance"] > crashing["CVaR, tail 0.05"] > crashing["CVaR, tail 0.02"]

# %% [markdown]
# The tail 0.5 buys most: it is a mean over 250 days, and the eight crashes are lost among them. Among the 25 days of the tail
# 0.05, or the ten of 0.02, they are not, and the share falls from 0.58 to 0.26. The variance does see the crashes: most of the
# variance of `crash` is theirs (standard deviations 0.70 and 0.30, with them and without). But it counts a good day as badly as
# a bad one, and cannot say which share of days it is about. Over the worst 5% of days it is nearly as good as CVaR, over the
# worst 2% it is not. The tail is the share of days that you want to be judged by: it is a decision, not a detail.
#
# ## The adversary
#
# CVaR is a game, as in session 4, and so are many other risk measures. Somebody reweighs the $n$ rows against us:
#
# $$ \mathrm{CVaR}_\alpha(L) = \max_q \left\{ \sum_i q_i L_i  :  0 \le q_i \le \tfrac{1}{\alpha n},\ \sum_i q_i = 1 \right\} , $$
#
# the largest mean under any distribution that gives no row more than $1/\alpha$ times its share $1/n$. This is
# *distributionally robust optimisation* (DRO), and other rules for the adversary give other measures. One who pays for
# leaving the data, by a price $\theta$ times the Kullback-Leibler divergence of $q$ from equal weights, gives the **entropic
# risk**
#
# $$ \max_q \; \sum_i q_i L_i - \theta \sum_i q_i \log(n q_i) \;=\; \theta \log \frac1n \sum_i e^{L_i / \theta} , $$
#
# with $q_i$ proportional to $e^{L_i/\theta}$. A high price leaves the mean, a price near 0 gives the worst case. You know this
# from session 3: it is the largest of the $L_i$, smoothed by entropy. And it is a *logarithm of an expectation*: a composition,
# of which plain minibatches give a biased value and a biased gradient. **Predict**: is the value too high or too low?

# %%
L = -returns @ shares["CVaR, tail 0.05"]


def adversaries(L):
    """Their weights: by the bound 1 / (alpha n), alpha = 0.05, and by the price theta = 1."""
    first = np.zeros(len(L))
    first[np.argsort(L)[-int(0.05 * len(L)) :]] = 1 / int(0.05 * len(L))
    second = np.exp(L - L.max())
    return first, second / second.sum()


capped, priced = adversaries(L)
divergence = (priced * np.log(days * priced)).sum()
print(f"mean loss                     {L.mean():6.3f}")
print(f"adversary with a bound, 0.05: {capped @ L:6.3f}, and CVaR is {np.sort(L)[-25:].mean():.3f}")
print(f"adversary with a price, 1:    {priced @ L - divergence:6.3f}, and the logarithm is {np.log(np.exp(L).mean()):.3f}")
assert abs(capped @ L - np.sort(L)[-25:].mean()) < 1e-9 and abs(priced @ L - divergence - np.log(np.exp(L).mean())) < 1e-9

theta = 0.2
few = theta * np.log(np.exp(rng.choice(L, (20000, 4)) / theta).mean(axis=1)).mean()
full = theta * np.log(np.exp(L / theta).mean())
print(f"with a price of {theta}: true value {full:.3f}, mean over minibatches of four days {few:.3f}")
assert few < full - 0.1

# %% [markdown]
# Each adversary gives what its formula says. A price of 1 is high for losses of this size, and the risk stays near the mean. At
# 0.2 the risk is 0.995, and a few bad days make most of it. A minibatch of four days rarely has one of these. When it has, the
# logarithm damps it: by Jensen's inequality the mean of logarithms is below the logarithm of the mean. So 0.191 is too low.
#
# ## Robust to groups
#
# An adversary over single rows finds outliers and errors in the data. Often it is wiser to let him choose among *groups*:
# cities, hospitals, devices. Then the losses are expectations themselves, and CVaR over them is a composition with a block for
# every group, the case that ALEXR was made for. Its dual $y_k$, between 0 and 1, is the adversary at work: of $K$ groups, group
# $k$ has the weight $y_k / (\alpha K)$.
#
# We make $K = 8$ groups of a hundred rows, and classify by three features. In groups 0 and 1 the second feature has the
# opposite effect. With the tail 0.25 the risk is the mean of the two worst groups, and no group can have a weight above
# $1 / (0.25 \cdot 8) = 0.5$. **Predict**: how much weight do groups 0 and 1 have together, and what becomes of the second
# feature?

# %%
GROUPS = """
model groups;
dim d;
set G;
data D : table(x: real[d], y: {-1, 1}, g: G);
param alpha > 0, <= 1 default 0.25;
var w[d];
minimize risk: cvar(tail = alpha)[k in G] (E[z ~ D | z.g == k] log1pexp(-z.y * dot(w, z.x))) + 0.05 * sumsq(w);
"""
g = np.arange(800) % 8
x = rng.normal(size=(800, 3))
other_way = np.where(g < 2, -1, 1)
label = np.where(x[:, 0] + other_way * x[:, 1] + 0.7 * rng.normal(size=800) > 0, 1, -1)
groups = fc.compile(GROUPS).bind(D={"x": x, "y": label, "g": g})
seen = groups.solve(algorithm="alexr", inner_batch=8, budget="1000it", seed=0, trace=["y"], trace_at=range(0, 1000, 10)).trace
(name,) = seen.trace.duals
weights = np.mean([look.y[name] for look in seen.looks[50:]], axis=0) / (0.25 * 8)  # over the second half of the steps
print("weights:", np.round(weights, 2), "of which groups 0 and 1 have", round(weights[:2].sum(), 2))

# %%
for alpha in (1.0, 0.25):
    w = groups.with_params(alpha=alpha).solve(seed=0).variables["w"]
    risk = np.logaddexp(0, -label * (x @ w))
    each = np.array([risk[g == k].mean() for k in range(8)])
    print(f"alpha = {alpha:4}: mean over the groups {each.mean():.3f}, worst group {each.max():.3f}; w = {np.round(w, 2)}")
    assert (abs(w[1]) > 0.3) == (alpha == 1) and (each.max() > 0.7) == (alpha == 1)
print("losses of the groups at alpha = 0.25:", np.round(each, 2))
assert set(np.argsort(each)[-2:]) == set(np.argsort(weights)[-2:])
assert 0.4 < weights[:2].sum() < 0.6

# %% [markdown]
# The mean ($\alpha = 1$) gives the second feature to the majority. Against the adversary that feature is of no use: he gives
# half of the weight to groups 0 and 1 together, just enough for the two effects to cancel (more, and we would turn the sign;
# that is the balance of the game). Within each kind he prefers the groups that do worst in this sample: of the first two
# group 1, of the other six group 2. Robustness to groups leaves out what does not hold everywhere: the worst group gains, and
# the mean pays.
#
# ## Rows that move
#
# So far the adversary reweighs the rows there are. New rows will not be among them: they are *moved* a little. Let him take any
# distribution $Q$ whose **Wasserstein distance** from the data is at most $\epsilon$: he may move the $x$ of every row (not its
# $y$), and the mean length of the moves is at most $\epsilon$. For losses such as $|w^\top x - y|$, whose slope in $w^\top x$
# is at most 1, moving $x$ by $\delta$ changes the loss by no more than $|w^\top \delta| \le |w|_2\, |\delta|_2$, so that
#
# $$ \sup_{Q} \; \mathbb{E}_Q\, |w^\top x - y| \;=\; \frac1n \sum_i |w^\top x_i - y_i| + \epsilon\, |w|_2 . $$
#
# That the left side is at most the right is clear from the line above. For equality we attack: move $x_i$ by a length of
# $\epsilon$ along $w$, to the side where the error $w^\top x_i - y_i$ is already. The norm of $w$ is the *dual* of the norm by
# which moves are measured: the largest $w^\top \delta$ over moves $\delta$ of length 1. If moves are measured by their largest
# entry, so that each entry may move by $\epsilon$, it is $\epsilon\, |w|_1$, and we have found the lasso (for absolute errors).
#
# We fit 40 rows with three values of $\epsilon$, and look at the mean error on these rows, on the same rows attacked with
# 0.5, on 4000 new rows, and on the new rows with noise of standard deviation 0.5 in every feature.

# %%
WASSERSTEIN = """
model moved;
dim d;
data D : table(x: real[d], y: real);
param eps >= 0 default 0;
var w[d];
minimize E[z ~ D] abs(dot(w, z.x) - z.y) + eps * norm2(w);
"""


def rows(count):
    """Five features, the last two nearly the same, and only their sum matters."""
    x = rng.normal(size=(count, 5))
    x[:, 4] = x[:, 3] + 0.2 * x[:, 4]
    return x, x @ [1.0, 0.5, 0.0, 0.5, 0.5] + rng.normal(size=count)


def attacked(w, x, y, eps):
    """The mean error where every row is moved by eps along w, to the side where its error is."""
    moved = x + eps * np.sign(x @ w - y)[:, None] * w / np.linalg.norm(w)
    return np.abs(moved @ w - y).mean()


(x, y), (new_x, new_y) = rows(40), rows(4000)
noisy = new_x + 0.5 * rng.normal(size=new_x.shape)
moved = fc.compile(WASSERSTEIN).bind(D={"x": x, "y": y})
print("  eps    |w|   own rows   attacked by 0.5   new rows   new rows, noisy x")
table = []
for eps in (0.0, 0.1, 0.5):
    result = moved.with_params(eps=eps).solve(seed=0)
    w = result.variables["w"]
    assert abs(attacked(w, x, y, eps) - result.objective) < 1e-6  # the attack reaches the bound
    table.append([np.linalg.norm(w), *(np.abs(X @ w - Y).mean() for X, Y in ((x, y), (new_x, new_y), (noisy, new_y)))])
    size, own, new, worse = table[-1]
    print(f"{eps:5} {size:6.2f} {own:10.3f} {attacked(w, x, y, 0.5):17.3f} {new:10.3f} {worse:19.3f}")

(_, own0, new0, worse0), (_, own1, new1, worse1), (_, own5, new5, worse5) = table
assert own0 < own1 < own5 and new1 < new0 and new1 < new5 and worse5 < worse1 < worse0

# %% [markdown]
# The norm is no trick to tame the fit: it *is* the worst case (the cell asserts that an attack by $\epsilon$ has the value of
# the objective, to six digits), and $\epsilon$ has a unit, that of the features. The attack by 0.5 adds half of $|w|$ to the
# error. Read the table by columns. On its own rows the bare fit, $\epsilon = 0$, is the best, of course, and under the attack
# it is the worst. On new rows a little robustness helps a little, against the accidents of a sample of 40, and much of it
# harms. Where new features are measured with noise, which no row of the sample showed, the most robust of the three is the
# best.
#
# ## Exercise 7.1
#
# The losses are $1, 2, \dots, 10$, equally likely. What is the CVaR with tail 0.25? (A quarter of ten losses is two and a half:
# the boundary element counts in part.)

# %%
cvar = ...
check("7.1", cvar)

# %% [markdown]
# ## Exercise 7.2
#
# Write the text of a logistic regression, a string like `WASSERSTEIN`, on `data D : table(x: real[d], y: {-1, 1});` with
# `dim d;` and `var w[d];`, against an adversary who may move *every* row by up to 0.1 in each entry of $x$, and no row further.
# The loss of a row is `log1pexp(-z.y * dot(w, z.x))`, as in the groups above, and the adversary makes it as large as he can: by
# how much can $w^\top x$ change, and where in the loss does that go? (There are `norm1`, `norm2` and `norminf`.)

# %%
robust = ...
check("7.2", robust)

# %% [markdown]
# ## Exercise 7.3
#
# From a story to a model. An investor with `dim n; data R : table(r: real[n]);` has shares `w[n]` that are not negative and sum to 1.
# A scenario's loss is $-w^\top r$. She minimises half the mean loss plus half the mean of the worst tenth of the losses. Write
# the model.

# %%
cautious = ...
check("7.3", cautious)

# %% [markdown]
# ## What to remember
#
# A risk measure is an adversary: say what he may do, and you know what you are protected from. Reweighing rows gives CVaR and
# the entropic risk, reweighing groups gives group DRO, moving rows gives norms. The entropic risk and group DRO put an
# expectation into a function; CVaR over rows and norms do not.
