# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 9. Ranking and partial AUC, with networks
#
# After this session you can
#
# - write the area under the ROC curve as an expectation over pairs, and the part of it that matters as a composition;
# - say why plain minibatches fail on the second and not on the first;
# - train a small network for it, and judge what was gained on new rows.
#
# It takes about an hour; the computing takes less than twenty seconds.

# %% [markdown]
# ## Pairs
#
# A score $s$ ranks. How good it is, whatever the threshold, is the **area under the ROC curve** (AUC): the probability that a
# positive scores above a negative,
#
# $$ \mathrm{AUC}(s) = \mathbb{E}_{p \sim P}\, \mathbb{E}_{n \sim N}\, 1[s(x_p) > s(x_n)] . $$
#
# To train for it, a wrong or a narrow pair costs $\ell_{pn}(w) = [1 + s(x_n) - s(x_p)]_+^2$. This is an expectation over
# *pairs*, and no function is around it: any random pairs give an unbiased gradient.
#
# But mostly nobody looks at the whole curve. Of a thousand cases ten can be looked at, or false alarms are tolerable in one
# case of ten: then only the negatives at the *top* count. The **partial AUC** (with false positive rates up to $\beta$) is the
# AUC over the share $\beta$ of the negatives with the highest scores.

# %%
import matplotlib.pyplot as plt
import numpy as np
from checks import check

import fccomodel as fc


def measures(score, y, beta=0.1):
    """The AUC, and the AUC over the share ``beta`` of the negatives with the highest scores."""
    positive, negative = score[y == 1], np.sort(score[y == 0])[::-1]
    above = positive[:, None] > negative
    return above.mean(), above[:, : int(beta * len(negative))].mean()


def clusters(count, seed):
    """Positives; most negatives far to the left; a few negatives to the lower right."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=count, p=[0.15, 0.77, 0.08])
    centres, widths = np.array([[1.0, 0.0], [-2.0, 0.5], [1.6, -1.0]]), np.array([0.7, 0.8, 0.4])
    return centres[kind] + widths[kind][:, None] * rng.normal(size=(count, 2)), (kind == 0).astype(int)


x, y = clusters(400, 0)
new_x, new_y = clusters(5000, 1)

# %% [markdown]
# ## The top of the negatives
#
# Which negatives are at the top changes with $w$. As in session 7 an adversary finds them: for each positive $p$ he reweighs
# the negatives, at a price $\theta$ for leaving the uniform weights, and that is
#
# $$ \min_w \; \frac{1}{|P|} \sum_{p \in P} \theta \log\, \mathbb{E}_{n \sim N}\, e^{\ell_{pn}(w) / \theta} . $$
#
# A logarithm around an expectation, one for every positive: $f_i(g_i(w))$ with as many blocks as positives, the form of session
# 2. With $\theta \to \infty$ it is the loss for the AUC, and the smaller $\theta$ is, the fewer negatives count. **Predict**:
# what happens to the AUC, and what to the partial AUC, as $\theta$ falls?

# %%
TEXT = """
model ranking;
dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
param theta > 0 default 0.5;
var w[d];
def pair(p, n) = sqhinge(1 + dot(w, n) - dot(w, p));
minimize mean[p in P] (LOSS) + 0.001 * sumsq(w);
"""
PAIRS = "E[n ~ N] pair(p.x, n.x)"
TOP = "logmeanexp(theta = theta)[n ~ N] pair(p.x, n.x)"


def bind(text, **given):
    return fc.compile(text).bind(D={"x": x, "y": y}, **given)


top = bind(TEXT.replace("LOSS", TOP))
found = {"AUC": bind(TEXT.replace("LOSS", PAIRS)).solve(seed=0).variables["w"]}
found |= {f"theta = {theta}": top.with_params(theta=theta).solve(seed=0).variables["w"] for theta in (0.5, 0.1)}
print("                direction       own rows: AUC, partial      new rows: AUC, partial")
table = {}
for words, w in found.items():
    table[words] = (*measures(x @ w, y), *measures(new_x @ w, new_y))
    own, part, new, new_part = table[words]
    print(f"{words:12}{w / np.linalg.norm(w)}    {own:.3f}, {part:.3f}          {new:.3f}, {new_part:.3f}")
whole, half, tenth = table.values()
assert whole[1] < half[1] < tenth[1] and whole[3] < half[3] < tenth[3] and whole[2] > half[2] > tenth[2]

# %%
picture, axes = plt.subplots(1, 2, figsize=(9, 3.6))
axes[0].scatter(*new_x[new_y == 0][:600].T, s=4, color="0.6", label="negative")
axes[0].scatter(*new_x[new_y == 1][:120].T, s=4, color="tab:red", label="positive")
for words, w in found.items():
    score = new_x @ w
    line = np.quantile(score[new_y == 0], 0.9)  # where one negative in ten is above
    across = np.array([-1.0, 3.0])
    axes[0].plot(across, (line - w[0] * across) / w[1], linewidth=1, label=words)
    thresholds = np.sort(score[new_y == 0])[::-1]
    axes[1].plot(np.linspace(0, 1, len(thresholds)), [(score[new_y == 1] > t).mean() for t in thresholds], label=words)
axes[0].set(xlim=(-5, 4), ylim=(-3, 3), title="above the line: a tenth of the negatives")
axes[0].legend(frameon=False, loc="lower left", fontsize=7)
axes[1].axvspan(0, 0.1, color="0.93")
axes[1].set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 0.4))
axes[1].legend(frameon=False, loc="lower right")

# %% [markdown]
# The AUC is won against the crowd on the left. Where only the top counts, the few on the lower right are what matters, and the
# line turns towards them: the curves cross. Neither is "better": they answer different questions.
#
# ## Rings
#
# Now positives on a ring, and negatives within and without. No line can rank them, but a network can. The model hardly changes:
# `net` declares a function of a row, and its weights are the variable.

# %%
NET = TEXT.replace("var w[d];", "net s : real[d] -> real;\nvar w = params(s);")
NET = NET.replace("1 + dot(w, n) - dot(w, p)", "1 + s(w; n) - s(w; p)").replace("0.001 *", "0.0001 *")
NETS = {"s": "mlp(12, activation = elu)"}


def rings(count, seed):
    rng = np.random.default_rng(seed)
    y, angle = (rng.random(count) < 0.2).astype(int), rng.uniform(0, 2 * np.pi, count)
    radius = np.where(y == 1, 1.5, np.where(rng.random(count) < 0.5, 0.4, 2.6)) + 0.3 * rng.normal(size=count)
    return radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]), y


def score(result, rows):
    return np.asarray(result.value("s", {"x": rows, "y": np.zeros(len(rows), int)})).ravel()


x, y = rings(300, 0)
new_x, new_y = rings(4000, 1)
linear = bind(TEXT.replace("LOSS", PAIRS)).solve(seed=0).variables["w"]
given = {"schedule": "decay", "seed": 4, "polish": False}
auc = bind(NET.replace("LOSS", PAIRS), nets=NETS).solve(algorithm="sox", inner_batch=16, eta=0.1, budget="1500it", **given)
print(f"line:    AUC of new rows {measures(new_x @ linear, new_y)[0]:.3f}")
print(f"network: AUC of new rows {measures(score(auc, new_x), new_y)[0]:.3f}")
assert measures(new_x @ linear, new_y)[0] < 0.6 and measures(score(auc, new_x), new_y)[0] > 0.9

# %%
grid = np.stack(np.meshgrid(np.linspace(-3.5, 3.5, 80), np.linspace(-3.5, 3.5, 80)), axis=-1)
picture, axes = plt.subplots(figsize=(4.6, 4))
axes.contourf(grid[..., 0], grid[..., 1], score(auc, grid.reshape(-1, 2)).reshape(80, 80), levels=20, cmap="Blues")
axes.scatter(*x[y == 0].T, s=6, color="0.5", label="negative")
axes.scatter(*x[y == 1].T, s=6, color="tab:red", label="positive")
axes.set(aspect="equal")
axes.legend(frameon=False, loc="upper left", fontsize=7)

# %% [markdown]
# ## Partial AUC with a network
#
# The exponentials make the objective steep, and a random network does not know yet which negatives are hard. So we begin at the
# network for the AUC (`start=`), and go on with the loss of the top, by plain minibatches (BSGD) and by SOX, with *four*
# negatives a step for each positive. **Predict** what four negatives do inside a logarithm.

# %%
top = bind(NET.replace("LOSS", TOP), nets=NETS)
given |= {"outer_batch": 16, "inner_batch": 4, "eta": 0.015, "budget": "1500it", "start": auc, "unverified": True}
results = {"network for the AUC": auc} | {name: top.solve(algorithm=name, **given) for name in ("bsgd", "sox")}
tops = {}
for name, result in results.items():
    own, part, new, new_part = (*measures(score(result, x), y), *measures(score(result, new_x), new_y))
    tops[name] = (result.objective, part, new_part)
    print(f"{name:19} objective {result.objective:.3f}   partial AUC: own rows {part:.3f}, new rows {new_part:.3f}")
assert tops["sox"][0] < 0.85 * tops["bsgd"][0] and tops["sox"][1] > tops["network for the AUC"][1]

# %% [markdown]
# (The first objective is that of the AUC, and cannot be compared.) BSGD puts the logarithm of a mean of four in the place of
# the logarithm of the mean: it mostly does not see the one hard negative in forty, and when it sees it, it counts it ten times.
# SOX keeps $u_p$ for each positive, and gets further for the same samples.
#
# And the new rows? What was gained on the rows at hand is not there. The partial AUC rests on two dozen negatives here, and a
# network with 49 weights learns *them*. The lesson of session 8 holds for objectives too: the smaller the tail, the fewer the
# rows that tell you anything.

# %%
assert tops["sox"][2] < tops["network for the AUC"][2] + 0.02
print("\n".join(str(results["sox"]).splitlines()[5:10]))

# %% [markdown]
# The report is honest about what it found: no minimum is proved of a network, and the residual says how far from stationary the
# point is.
#
# ## Exercise 9.1
#
# Two positives with scores 3 and 1, two negatives with scores 2 and 0. Give the AUC, and the partial AUC over the worst half of
# the negatives, as a list.

# %%
areas = ...
check("9.1", areas)

# %% [markdown]
# ## Exercise 9.2
#
# Partial AUC has a second side: the worst *positives*. Write the (linear) model that minimises the mean, over the worst half of
# the positives, of their mean pair loss $[1 + s(x_n) - s(x_p)]_+^2$, plus `0.001 * sumsq(w)`. (Which reduction takes the worst
# half?)

# %%
worst_positives = ...
check("9.2", worst_positives)

# %% [markdown]
# ## Exercise 9.3
#
# From a story to a model. A hospital ranks patients within each ward alone. Take `dim d;`,
# `data D : table(x: real[d], y: {0, 1}, g: {"a", "b"});`, the sets $P$ and $N$ as above and `var w[d];`. Minimise the mean over the
# positives $p$ of the mean of $[1 + w^\top x_n - w^\top x_p]_+^2$ over the negatives *of the same ward* $g$, plus
# `0.001 * sumsq(w)`.

# %%
within_groups = ...
check("9.3", within_groups)

# %% [markdown]
# ## What to remember
#
# The AUC is an expectation over pairs, and anything will do. A part of it puts a function around an expectation for every
# positive, and needs estimates that remember. Begin with the easy loss; judge on rows that were not there.
