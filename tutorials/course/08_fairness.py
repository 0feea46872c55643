# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 8. Fairness and Neyman-Pearson, for new rows
#
# After this session you can
#
# - write a bound on misses, and a bound on how differently two groups are treated;
# - judge a constraint on rows that were held out, and say when they cannot tell;
# - compute the margin by which a constraint must be tightened on the rows at hand to hold for new ones.
#
# It takes about an hour; the computing takes less than twenty seconds. The data are real, and come with scikit-learn.

# %% [markdown]
# ## A constraint that holds, and does not
#
# We take up the tumours of session 5 and its model: the loss of the malignant ones (class 1), the *misses*, shall be at most
# $\kappa$, which is 0.2 now. The solution sits at the bound, as constraints do that cost something. But "at most 0.2" is true
# of the rows that were solved on. Who will be diagnosed next is not among them.
#
# **Predict**: the rows are split into halves at random, four times. One half is solved on. In how many of the four cases does
# the constraint hold on the other half?

# %%
import numpy as np
from checks import check
from data import tumours
from sklearn.datasets import load_diabetes

import fccomodel as fc

TEXT = """
model neyman_pearson;
dim d;
data D : table(x: real[d], y: {0, 1});
param kappa default 0.2;
var w[d];
var b;
def score(x) = dot(w, x) + b;
minimize alarms: E[z ~ D | z.y == 0] log1pexp(score(z.x)) + 0.01 * sumsq(w);
subject to misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= kappa;
"""
frame, binding = tumours(["mean radius", "mean texture", "mean smoothness"])
model = fc.compile(TEXT)


def misses(result, rows):
    """The losses of the malignant ones among the rows (0 in the column ``target``), scaled as the rows that were solved on."""
    score = result.value("score", rows[rows["target"] == 0])
    return np.logaddexp(0, -np.asarray(score))


def halves(seed):
    order = np.random.default_rng(seed).permutation(len(frame))
    return frame.iloc[order[::2]], frame.iloc[order[1::2]]


# %%
found, answers = [], []
for seed in range(4):
    own, new = halves(seed)
    answers.append(model.bind(spec=binding, D=own).solve(seed=0))
    found.append([misses(answers[-1], rows).mean() for rows in (own, new)])
    print(f"split {seed}: misses on own rows {found[-1][0]:.4f}, on the others {found[-1][1]:.4f}")
failed = sum(new > 0.2 for _, new in found)
print(f"fails on the others: {failed} of 4")
assert all(abs(own - 0.2) < 1e-4 for own, _ in found) and failed == 2

# %% [markdown]
# A coin. It could hardly be otherwise: the mean over other rows is above the mean over these as often as below, and on these it
# is exactly at the bound. It is even a little worse than a coin, as $w$ was *chosen* to have small losses here.
#
# ## Held out, with an interval
#
# `holdout=0.3` leaves out a share of every class and judges the answer by it. A mean over $n$ rows has the standard error $s
# / \sqrt n$, where $s$ is the standard deviation of one row's loss, and 95% of the time the truth is within 1.96 of them. (A
# report finds the standard error by leaving out a twentieth of the rows at a time, a *jackknife*, which also serves functions
# of several means.)

# %%
result = model.bind(spec=binding, D=frame).solve(seed=0, holdout=0.3)
text = str(result).splitlines()
at = next(k for k, line in enumerate(text) if "held out" in line)
print("\n".join(text[at : at + 8]))

# %% [markdown]
# The value is left side minus right: the constraint holds where it is at most 0. There are three verdicts, not two: it *holds*
# with 95% confidence, it *fails*, or the rows **cannot tell**. The last is the usual one for a constraint at its bound.
#
# ## A margin
#
# To hold for new rows, the constraint must be tighter than needed on those at hand: $c(w) \le \kappa - m$. How large must $m$
# be? Let the rows at hand play the part of the truth. Draw as many of them *with replacement* (a **bootstrap** sample), solve
# on the sample, and look by how much the answer violates the constraint on the rows at hand. Do this nine times. A tenth such
# number is the largest of the ten in one case of ten. So the largest of the nine is a margin for 90%. It counts both that rows
# vary and that $w$ was chosen on them.

# %%
own, new = halves(0)
excess = []
for seed in range(9):
    sample = own.sample(len(own), replace=True, random_state=seed)
    excess.append(misses(model.bind(spec=binding, D=sample).solve(seed=0), own).mean() - 0.2)
margin = max(excess)
print(np.round(np.sort(excess), 3))

# %%
plain, safe = answers[0], model.bind(spec=binding, D=own).with_params(kappa=0.2 - margin).solve(seed=0)
on_new = {}
for words, answer in {"plain": plain, "margin": safe}.items():
    there = misses(answer, new)
    on_new[words] = there.mean()
    half = 1.96 * there.std() / np.sqrt(len(there))
    print(f"{words:6}  alarms {answer.objective:.3f}   misses on the others {there.mean():.3f} +- {half:.3f}")
assert on_new["plain"] > 0.2 > on_new["margin"] and safe.objective > plain.objective

# %% [markdown]
# The margin has a price, which the line *alarms* shows: safety for new rows is paid by those who are well. With it the misses
# of the other half are below 0.2; but its interval is wide, too, and these rows alone could not promise it.
# `solve(margin=0.95)` does all this, with 99 samples and in units of the standard errors, so that several constraints hold
# *together*; it takes some ten seconds here, and reports the price.
#
# ## Equal chances
#
# Now fairness. 442 patients with diabetes, and a measure of how the disease progressed within a year. A programme takes those
# whose risk of a fast progression ($y = 1$) is high. Do older patients ($g$) have the same chance to be *found* as the younger?
# *Equal opportunity* asks that among those with $y = 1$ the groups be chosen at nearly the same rate,
#
# $$ \bigl|\; \mathbb{E}[\sigma(s(x)) \mid y = 1, g = \text{young}] - \mathbb{E}[\sigma(s(x)) \mid y = 1, g = \text{old}]
#    \;\bigr| \;\le\; \kappa , $$
#
# where the sigmoid $\sigma$ of the score stands for "chosen". An absolute value around two expectations: a composition again,
# one block with two numbers to be tracked. Its curve is not convex, so the report says KKT point, and not optimum.

# %%
FAIR = """
model fair;
dim d;
set G = {"young", "old"};
data D : table(x: real[d], y: {0, 1}, g: G);
param kappa >= 0 default 0.02;
var w[d];
var b;
def score(x) = dot(w, x) + b;
let chosen[k in G] = E[z ~ D | z.y == 1 and z.g == k] sigmoid(score(z.x));
minimize loss: E[z ~ D] (log1pexp(score(z.x)) - z.y * score(z.x)) + 0.001 * sumsq(w);
subject to opportunity: abs(chosen["young"] - chosen["old"]) <= kappa;
"""
patients = load_diabetes(as_frame=True, scaled=False).frame
patients["fast"] = (patients["target"] > 140).astype(int)
patients["group"] = np.where(patients["age"] >= 55, "old", "young")


def fair(columns):
    spec = {"D": {"x": {"columns": columns, "scale": "standard"}, "y": "fast", "g": "group"}}
    return fc.compile(FAIR).bind(spec=spec, D=patients)


# %% [markdown]
# **Predict**: is it enough not to tell the model the age?

# %%
blood = ["bmi", "bp", "s3", "s5"]
gaps = {}
cases = {"with age": (["age", *blood], 1.0), "without age": (blood, 1.0), "equal chances": (["age", *blood], 0.02)}
for words, (columns, kappa) in cases.items():
    result = fair(columns).with_params(kappa=kappa).solve(seed=0, show=["chosen"])
    young, old = (result.values["chosen"][f"chosen[{k}]"] for k in ("young", "old"))
    gaps[words] = old - young
    print(f"{words:13}  loss {result.objective:.4f}   chosen: young {young:.3f}, old {old:.3f}   difference {old - young:.3f}")

# %%
w = result.variables["w"]
print("weights with equal chances:", dict(zip(["age", *blood], np.round(w, 2).tolist(), strict=True)))
picture = result.plot.groups("chosen")
picture
assert gaps["without age"] > gaps["with age"] > gaps["equal chances"] and w[0] < 0

# %% [markdown]
# It is not: without the age the difference is larger. The other features know the age, and to be fair to the young the model
# needs it, with a negative weight, to make up for what blood pressure and weight say of old people in general. "Unawareness" is
# not fairness.
#
# The price is small: compare the losses. But is it *true of new patients*?

# %%
judged = fair(["age", *blood]).solve(seed=0, holdout=0.3)
gap = judged.heldout.constraints["opportunity"]
print(f"difference on the rows held out, less 0.02: {gap.value:.3f} +- {gap.half:.3f}; holds: {gap.holds}")
assert gap.holds is None and gap.half > 0.08

# %% [markdown]
# `None`: the rows cannot tell. One hundred and thirty patients are far too few to see a difference of two points between groups
# of which only the half with $y = 1$ counts. Whoever promises fairness to two points owes the reader this number.
#
# There is a second gap, between what is written and what is meant. The sigmoid is a stand-in for "score above 0". The report
# judges the problem as written; what happens at the threshold you must count yourself.

# %%
score = np.asarray(result.value("score", patients)).ravel()
for k in ("young", "old"):
    rows = (patients["fast"] == 1) & (patients["group"] == k)
    soft, hard = (1 / (1 + np.exp(-score[rows]))).mean(), (score[rows] > 0).mean()
    print(f"{k:5}: {rows.sum():3} fast, mean sigmoid {soft:.3f}, above 0: {hard:.3f}")

# %% [markdown]
# ## Exercise 8.1
#
# 132 rows were held out, and the difference was known to $\pm 0.128$. How many rows would you need to know it to $\pm 0.02$? (A
# whole number; a few per cent more or less will do.)

# %%
rows_needed = ...
check("8.1", rows_needed)

# %% [markdown]
# ## Exercise 8.2
#
# Change the model of this session, as text, so that the *false alarms* of the groups differ by at most 0.03: among those with
# $y = 0$. Keep the names of data, variables, `score` and the objective.

# %%
alarms = ...
check("8.2", alarms)

# %% [markdown]
# ## Exercise 8.3
#
# Repair a model. The rates of acceptance of the two groups, over *all* their rows, shall differ by at most `kappa`, in either
# direction. The model below does not say that. What does it allow?

# %%
ONE_SIDED = """
dim d;
data D : table(x: real[d], y: {0, 1}, g: {"young", "old"});
param kappa >= 0 default 0.03;
var w[d];
let chosen[k in {"young", "old"}] = E[z ~ D | z.g == k] sigmoid(dot(w, z.x));
minimize loss: E[z ~ D] (log1pexp(dot(w, z.x)) - z.y * dot(w, z.x)) + 0.001 * sumsq(w);
subject to equal: chosen["young"] - chosen["old"] <= kappa;
"""
parity = ...
check("8.3", parity)

# %% [markdown]
# ## What to remember
#
# A constraint that is active on the rows at hand holds for new rows like a coin. Hold rows out, take three verdicts, and buy a
# margin where it must hold. Leaving a feature out does not make a model fair; a constraint does, up to what the rows can tell.
