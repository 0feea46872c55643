# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # 10. Add your own atom, your own algorithm
#
# After this session you can
#
# - say what an atom declares, and what follows from it without another line;
# - check a declaration, which is a small theorem, before anything rests on it;
# - add an algorithm as a step and a list of assumptions, and compare it with the others.
#
# It takes about an hour; the computing takes less than fifteen seconds.

# %% [markdown]
# ## A copy to work in
#
# Every concept of `fccomodel`, an atom, a reduction, a set, an algorithm, is *one file in one folder*, found by itself. So we
# take a copy of the package, put files into it, and import the copy. (In earnest you would work in a clone of the repository,
# where the tests check what you add; [Adding to the library](../03_extending.md) adds one of every kind.)

# %%
import importlib.util
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from checks import check

original = Path(importlib.util.find_spec("fccomodel").origin).parent
home = Path(tempfile.mkdtemp())
for folder in (original, original.parent / "grammar"):
    if folder.is_dir():
        shutil.copytree(folder, home / folder.name, ignore=shutil.ignore_patterns("__pycache__"))


def imported():
    """The package in the copy, read anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "fccomodel"]:
        del sys.modules[name]
    sys.path[:] = [str(home), *(place for place in sys.path if place != str(home))]
    import fccomodel

    return fccomodel


# %% [markdown]
# ## What the rules cannot see
#
# The loss of Geman and McClure, $f(u) = u^2 / (1 + u^2)$, is a square near 0 and never larger than 1: a row that is far off
# counts as one mistake and pulls no more. We can write it out. **Predict**: what can the compiler prove of a quotient of two
# parabolas?

# %%
fc = imported()
ROBUST = """
model robust;
dim d;
data D : table(x: real[d], y: real);
var w[d];
minimize E[z ~ D] (LOSS);
"""
rng = np.random.default_rng(0)
x = rng.normal(size=(100, 2))
y = x @ [1.0, -0.5] + 0.3 * rng.normal(size=100)
y[:10] += 20  # ten rows are wrong
table = {"x": x, "y": y}
written = ROBUST.replace("LOSS", "(dot(w, z.x) - z.y)^2 / (1 + (dot(w, z.x) - z.y)^2)")
print(str(fc.compile(written).bind(D=table).explain().why("objective")))

# %% [markdown]
# Little: no convexity, no Lipschitz constant. It has no rule for this quotient, and it does not guess. But we know more, and
# can tell it.
#
# ## An atom
#
# An atom states its formula, a program for it, its derivative, and its *properties*. These are functions of the interval that
# the argument lies in; here constants will do.

# %%
ATOM = '''
"""The loss of Geman and McClure."""

from fccomodel.library.atoms.base import Properties
from fccomodel.library.atoms.interval import Interval
from fccomodel.library.atoms.scalar import ScalarAtom
from fccomodel.library.atoms.shapes import valley


def _value(u: float) -> float:
    return 1 - 1 / (1 + u * u)


geman_mcclure = ScalarAtom(
    name="geman_mcclure",
    meaning="u^2 / (1 + u^2): u^2 near 0, never above 1",
    arguments=("u",),
    formula="u**2 / (1 + u**2)",
    torch="(1 - 1 / (1 + {0}.square()))",
    derivative=("2 * u / square(1 + square(u))",),
    even=True,
    properties=Properties(
        curvature=lambda u: "convex" if u.mag <= 3**-0.5 else "none",
        monotone=valley,
        lipschitz=3 * 3**0.5 / 8,
        gradient_lipschitz=2.0,
        weak_convexity=0.5,
        range=lambda u: Interval(_value(u.mig), _value(u.mag)),
    ),
    cite="S. Geman, D. McClure, Statistical methods for tomographic image reconstruction, 1987",
)
'''

# %% [markdown]
# ## Check it first
#
# `lipschitz=3 * 3**0.5 / 8` is a theorem: $|f'(u)| = 2 |u| / (1 + u^2)^2$ is largest at $u = 1/\sqrt 3$. So is
# `weak_convexity=0.5`: the least value of $f''(u) = (2 - 6 u^2) / (1 + u^2)^3$ is $-\frac12$, at $u = 1$, and $f + \frac14 u^2$
# is convex. **A wrong declaration is worse than none**: whatever is proved with it is not true. We check ours by brute force,
# as the tests of the library do for every atom that it has.

# %%
u = np.linspace(-20, 20, 400001)
f = u**2 / (1 + u**2)
slope = np.gradient(f, u)
bend = np.gradient(slope, u)[2:-2]
print(f"largest slope {np.abs(slope).max():.4f}, declared {3 * 3**0.5 / 8:.4f}")
print(f"curvature between {bend.min():.4f} and {bend.max():.4f}; declared -0.5 and 2")
assert abs(np.abs(slope).max() - 3 * 3**0.5 / 8) < 1e-4 and abs(bend.min() + 0.5) < 1e-3 and abs(bend.max() - 2) < 1e-3

# %% [markdown]
# ## Use it

# %%
(home / "fccomodel" / "library" / "atoms" / "geman_mcclure.py").write_text(ATOM)
fc = imported()
problem = fc.compile(ROBUST.replace("LOSS", "geman_mcclure(dot(w, z.x) - z.y)")).bind(D=table)
print(str(problem.explain().why("objective")))

# %%
result = problem.solve(seed=0)
least_squares = np.linalg.lstsq(x, y, rcond=None)[0]
print("least squares", np.round(least_squares, 2), "   Geman-McClure", np.round(result.variables["w"], 2), "   truth [1, -0.5]")
assert np.linalg.norm(result.variables["w"] - [1, -0.5]) < 0.2 < np.linalg.norm(least_squares - [1, -0.5])

# %% [markdown]
# From one file came the words of the language and of its errors (try `geman_mclure`), the derivative in the emitted program,
# the proof of weak convexity and of the constants, and with these the choice of an algorithm and what its theorem says. Around
# an expectation it is an outer function like any other:

# %%
squared = ROBUST.replace("E[z ~ D] (LOSS)", "geman_mcclure(E[z ~ D] (dot(w, z.x) - z.y)) + E[z ~ D] huber(dot(w, z.x) - z.y, 1)")
composed = fc.compile(squared).bind(D=table)
print("\n".join(line for line in str(composed.explain()).splitlines() if "tracked:" in line or "composition" in line))

# %% [markdown]
# ## An algorithm
#
# SOX whose steps all have the same length, whatever the gradient's: where an objective is steep in places, a long gradient
# cannot throw the iterate away. Two things are to be written: the step, and what it is for. The step is plain PyTorch on a
# `state` with the iterate `w` and the average gradient `v`; `G` is the stochastic gradient, and `h` has the settings. *The
# source of this function is the text that emitted programs carry.*

# %%
ALGORITHM = '''
"""SOX with normalised steps: moving averages of g, momentum, and steps of one length."""

import dataclasses

from fccomodel.algorithms import sox


def normalised_step(state, G, h):
    """v <- (1 - beta) v + beta G;  w <- w - eta v / |v|. Returns the step size of each coordinate, the same for all."""
    state.v.lerp_(G, h.beta)
    step = (h.eta / (state.v.norm() + h.eps)).expand(state.v.shape)
    state.w.addcmul_(state.v, step, value=-1)
    return step


algorithm = dataclasses.replace(
    sox.algorithm,
    name="normalised_sox",
    title="SOX, normalised",
    steps={"normalised": normalised_step},
    theorem="none: an example",
    better=(),
    variants=(),
    hyper={"gamma": 0.2, "beta": 0.1, "eps": 1e-8},
    cite="A. Cutkosky, H. Mehta, Momentum improves normalized SGD, ICML 2020, for steps of one length",
)
'''
(home / "fccomodel" / "algorithms" / "normalised_sox.py").write_text(ALGORITHM)
fc = imported()

# %% [markdown]
# `requires` is taken over from SOX: the assumptions of its theorem, each with its place in the paper. They are what the plan
# compares with the model, so `explain` already knows where the new one may be used. Its `theorem` is "none", for we have proved
# nothing, and so it is never *chosen*; it must be named.
#
# **Predict**: a steep objective, the cube of session 2, from a start far away, with the same `eta` for all. What happens to
# plain momentum, and what to steps of one length? (SOX's practical step is between the two: Adam-type, it divides by the size
# of past gradients.)

# %%
PUSH = """
model push;
dim d;
data D : table(x: real[d], y: {0, 1});
set P = {z in D | z.y == 1};
set N = {z in D | z.y == 0};
var w[d];
minimize mean[i in P] (E[j ~ N] log1pexp(dot(w, j.x) - dot(w, i.x))) ^ 3 + 0.01 * sumsq(w);
"""
label = (np.arange(200) % 5 == 0).astype(int)
rows = rng.normal(size=(200, 3)) + np.outer(label, [1.0, 0.5, 0.0])
push = fc.compile(PUSH).bind(D={"x": rows, "y": label})
best = push.solve(seed=0).objective
far = {"w": np.array([-10.0, -10.0, 10.0])}
given = {"outer_batch": 8, "inner_batch": 8, "eta": 0.1, "schedule": "decay", "seed": 0, "polish": False, "start": far}
cases = {"sox, momentum": ("sox", {"step": "momentum"}), "sox, adam": ("sox", {}), "normalised": ("normalised_sox", {})}
ends = {}
for words, (name, more) in cases.items():
    try:
        ends[words] = push.solve(algorithm=name, budget="1000it", **given, **more).objective - best
        print(f"{words:14} ends {ends[words]:.4f} above the optimum")
    except fc.FccoError as error:
        ends[words] = np.inf
        print(f"{words:14}", str(error).splitlines()[1].strip())
assert ends["normalised"] < 0.01 < ends["sox, adam"] < ends["sox, momentum"]

# %% [markdown]
# The long gradients of the start throw plain momentum away. Adam-type steps remember them, and are short for some time after.
# Steps of one length do neither; their price is that they do not get shorter by themselves near the optimum, so that `eta` must
# fall (`schedule="decay"`). One comparison is no theorem: this is where the work on a paper begins.
#
# The program that ran is plain PyTorch, with our step in it:

# %%
program = push.solve(algorithm="normalised_sox", budget="10it", polish=False).solver
at = program.index("def normalised_step")
print(program[at : program.index("return step", at) + len("return step")])

# %%
shutil.rmtree(home)

# %% [markdown]
# ## Exercise 10.1
#
# You add the loss of Cauchy, $f(u) = \log(1 + u^2)$. What is its `weak_convexity`, the least $\rho$ for which $f + \frac\rho2
# u^2$ is convex? (Check it by brute force, as above.)

# %%
weak_convexity = ...
check("10.1", weak_convexity)

# %% [markdown]
# ## Exercise 10.2
#
# Write the step of SOX by *signs*: $v \leftarrow (1 - \beta) v + \beta G$, then $w \leftarrow w - \eta\,\mathrm{sign}(v)$, in
# place, as a function of `state`, `G` and `h` that returns the step sizes of the coordinates (here $\eta$ for each).

# %%
sign_step = ...
check("10.2", sign_step)

# %% [markdown]
# ## Exercise 10.3
#
# And how steep does the derivative of $f(u) = \log(1 + u^2)$ get: what is its gradient's Lipschitz constant?

# %%
gradient_constant = ...
check("10.3", gradient_constant)

# %% [markdown]
# ## What to remember
#
# Knowledge of a function belongs in one place, as declarations that can be checked, and everything else is derived from them.
# An algorithm is a step, an estimator and the assumptions of a theorem. That is the course: a composition biases SGD;
# estimates, duals and corrections take the bias away; and a report says, in the words of the problem you wrote, how far you
# came.
