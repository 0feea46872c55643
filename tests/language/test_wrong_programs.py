"""Wrong models in Python: each error has its code, and the line and the column where the fault stands,
in files and in cells."""

from __future__ import annotations

import linecache
import re

import pytest

from fccomodel.core.diagnostics import FccoError

#: What every program begins with.
HEAD = """\
import builtins
import math
import numpy as np
import fccomodel as fc
from fccomodel import E, cvar, dot, log1pexp, mean, normal, real, sigmoid, simplex, sumsq

m = fc.Model("wrong")
m.d = fc.dim()
m.G = fc.labels()
m.D = fc.table(x=real[m.d], y={-1, 1}, g=m.G)
m.mu = fc.param(ge=0, default=0.1)
m.w = fc.var(m.d)
d, D, G, mu, w = m.d, m.D, m.G, m.mu, m.w


@m.define
def score(x):
    return dot(w, x)


"""
#: A program to the code of its error; the fault begins at the sign ``«``.
WRONG = {
    # truth values
    "m.minimize(E(log1pexp(score(z.x)) for z in D if «z.y == 1))": "F0120",
    "m.minimize(E(log1pexp(score(z.x)) for z in D.where(«(D.y == 1) and (D.g == 'a'))))": "F0120",
    "m.minimize(E(log1pexp(score(z.x)) for z in D.where(«not (D.y == 1))))": "F0120",
    "m.minimize(sumsq(w))\nm.subject_to(band=«0 <= E(score(z.x) for z in D) <= 1)": "F0120",
    "m.let(r=E(score(z.x) for z in D))\nif «m.r > 0:\n    pass": "F0120",
    "rate = 1 if «mu > 0 else 2": "F0120",
    "m.minimize(E(score(z.x) for z in D.where(lambda z: «z.y in (1, -1))))": "F0120",
    "assert «mu == 0.1": "F0120",
    "print(«len(w))": "F0120",
    "while «mu < 1:\n    pass": "F0120",
    # Python's own functions
    "m.minimize(«builtins.sum(score(z.x) for z in D))": "F0121",
    "m.minimize(«max(score(z.x) for z in D))": "F0121",
    "rows = [score(z.x) for z in «D]": "F0121",
    "for z in «D:\n    print(z.x)": "F0121",
    "m.minimize(E([score(z.x) for z in «D]))": "F0121",
    "x = «list(D)": "F0121",
    "m.minimize(«math.exp(mu))": "F0121",
    "m.minimize(«np.exp(sumsq(w)))": "F0121",
    "x = «float(mu)": "F0121",
    "x = «np.array([1.0, 2.0]) * w": "F0126",
    # comprehensions
    "m.minimize(«E(score(z.x) * k for z in D for k in [1, 2]))": "F0122",
    "m.minimize(«E(sumsq(w) for _ in []))": "F0122",
    "«m.subject_to(c=(w[k] >= 0 for k in [1, 2]))": "F0122",
    "«m.let(r=(w[k] * 2 for k in range(1, 3)))": "F0122",
    "g = (score(z.x) for z in D)\na = E(g)\nm.minimize(«E(g))": "F0122",
    "kept = []\nr = E(kept.append(z) or score(z.x) for z in D)\nm.minimize(«kept[0].y * sumsq(w))": "F0122",
    "«a, b = w": "F0122",
    "m.minimize(«cvar(score(w), tail=0.1))": "F0122",
    "m.minimize(«E())": "F0122",
    # several models
    "n = fc.Model('other')\nn.v = fc.var()\nm.minimize(«sumsq(w) + n.v)": "F0123",
    "n = fc.Model('other')\nn.v = fc.var()\n«m.minimize(n.v)": "F0123",
    "n = fc.Model('other')\nn.K = fc.labels()\n«m.v = fc.var(n.K)": "F0123",
    # names and statements
    "m.minimize(risk=E(score(z.x) for z in D) + «mu * sumsq(w))\ndel m.mu\nm.check()": "F0124",
    "del «m.gamma": "F0124",
    "m.minimize(sumsq(w) * «m.gamma)": "F0124",
    "del «m.constraints['gap']": "F0124",
    "«m.check = fc.param()": "F0125",
    "«m.data = fc.param()": "F0125",
    "«m['größe'] = fc.param()": "F0125",
    "m.minimize(E(score(z.x) for z in «D.wher(D.y == 1)))": "F0125",
    "m.minimize(E(«z.x.dot(w) for z in D))": "F0125",
    "m.minimize(«w(1))": "F0125",
    "v = fc.var()\nm.minimize(«sumsq(w) + v)": "F0127",
    "«m.c = [1, 2, 3]": "F0127",
    "«m.c = 4": "F0127",
    "m.b = «fc.var(d, min=0)": "F0127",
    "m.b = «fc.table()": "F0127",
    "m.b = «fc.table(x=[1, 2])": "F0127",
    "m.b = «fc.table(x='real')": "F0127",
    "P = «D.where(True)": "F0127",
    "«m.subject_to(gap=True)": "F0126",
    "«m.subject_to(w[i] <= 1 for i in d)": "F0127",
    "m.minimize(E(«z.y ^ 2 for z in D))": "F0126",
    "m.minimize(E(«z.y % 2 for z in D))": "F0126",
    "m.minimize(«sumsq(w) + None)": "F0126",
    "m.minimize(«float('inf') * sumsq(w))": "F0126",
    "u = w\nfor _ in range(40):\n    u = «u + u": "F0126",
    # what the language itself refuses, at the line and the column of Python
    "m.minimize(E(log1pexp(«z.label) for z in D))\nm.check()": "F0208",
    "m.minimize(E(«dot(w, z.y) for z in D))\nm.check()": "F0301",
    "m.minimize(E(score(z.x) for z in D))\nm.subject_to(low=«sumsq(w) + 1 <= 0)\nm.check()": "F0423",
    "m.minimize(E(score(z.x) for z in D) * «D.y)\nm.check()": "F0311",
    "m = fc.Model('empty')\n«m.w = fc.var()\nm.check()": "F0401",
    "m.minimize(sumsq(w))\nm.subject_to(a=«sumsq(w) < 1)\nm.check()": "F0109",
    "m.minimize(E(score(z.x) * «fc.log(-1) for z in D))\nm.check()": "F0413",
    "m.t = fc.var(domain=«simplex(3))\nm.minimize(sumsq(w) + m.t)\nm.check()": "F0301",
    "m.T = «fc.grid(1, 0)\nm.minimize(sumsq(w))\nm.check()": "F0409",
    "m.let(r=(E(score(z.x) for z in D.where(D.g == k)) for k in G))\nm.minimize(«m.r + 1)\nm.check()": "F0303",
    "m.minimize(«sumsq(m.w))\nm.w = fc.var()\nm.check()": "F0301",
}


def split(program: str) -> tuple[str, tuple[int, int]]:
    """The program without the sign, and the line and the column where that stood."""
    text = HEAD + program + "\n"
    at = text.index("«")
    return text.replace("«", ""), (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


def run(text: str, name: str) -> tuple[str, str, tuple[int, int]]:
    """The code of the error, the name of its text and the place, as its message shows it."""
    with pytest.raises(FccoError) as raised:
        exec(compile(text, name, "exec"), {"__name__": "user"})
    shown = re.search(r"error\[(\w+)\].*?  (\S+):(\d+):(\d+)\n", str(raised.value))
    assert shown is not None, str(raised.value)
    assert f"{shown[3]} | " in str(raised.value), "the line is shown"
    return shown[1], shown[2], (int(shown[3]), int(shown[4]))


@pytest.mark.parametrize("program", WRONG)
def test_in_a_file(program, tmp_path):
    text, place = split(program)
    path = tmp_path / "model.py"
    path.write_text(text)
    assert run(text, str(path)) == (WRONG[program], str(path), place)


@pytest.mark.parametrize("program", WRONG)
def test_in_a_cell(program):
    """A cell of a notebook has no file: its text is where Python looks for the lines of tracebacks."""
    text, place = split(program)
    name = f"<cell-{abs(hash(program))}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    assert run(text, name) == (WRONG[program], name, place)


@pytest.mark.parametrize("program", WRONG)
def test_without_the_text(program):
    """Line and column are those of the code; the model's own text stands for the line."""
    text, place = split(program)
    code, name, shown = run(text, "<none>")
    assert (code, name, shown[0]) == (WRONG[program], "<none>", place[0])


def test_there_are_enough():
    assert len(WRONG) >= 40
