"""Random models over pairs and triples of rows, with their data and the same values by arrays of
NumPy.

A form is one reduction over pairs or triples, or a nest of two of them, with conditions on the
rows; it stands in the objective, in a constraint, or in a family of constraints. Its value by brute
force lays out all pairs (triples), so it is of few rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
#: columns of a row, one axis for each binder of the form
Rows = Mapping[str, Array]

HEAD = """dim d; set G; set H;
data D : table(x: real[d], y: {-1, 1}, t: real, g: G, h: H);
data Z : table(u: real, g: G);
set P = {z in D | z.y == 1};
var w[d] in box(-3, 3);
"""
#: numbers of a row
WIDTH = 4


def tables(rows: int, groups: int, seed: int, *, huge: bool = False) -> dict[str, dict[str, Any]]:
    """Rows of ``D`` in groups (``huge``: half in one) of both classes, and of ``Z``, three for each group."""
    rng = np.random.default_rng(seed)
    g = np.arange(rows) % groups
    if huge:
        g[groups * 4 :: 2] = 0
    y = np.where(rng.random(rows) < 0.5, 1, -1)
    first = np.arange(min(4 * groups, rows))
    y[first] = np.where((first // groups) % 2 == 0, 1, -1)
    x = rng.normal(size=(rows, WIDTH)) + 0.3 * y[:, None]
    names = np.array([f"g{k}" for k in range(groups)])
    d = {
        "x": x,
        "y": y,
        "t": rng.normal(size=rows),
        "g": names[g],
        "h": np.where(rng.random(rows) < 0.5, "a", "b"),
    }
    z = {"u": rng.normal(size=3 * groups), "g": names[np.arange(3 * groups) % groups]}
    return {"D": d, "Z": z}


# --------------------------------------------------------------------------------------- reductions
def weighted(values: Array, mask: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Values and mask with the reduced axes as one, at the end."""
    values, mask = np.broadcast_arrays(values, mask)
    kept = [k for k in range(values.ndim) if k not in axes]
    shape = [values.shape[k] for k in kept]
    order = (*kept, *axes)
    return values.transpose(order).reshape(*shape, -1), mask.transpose(order).reshape(*shape, -1)


def _mean(v: Array, m: Array) -> Array:
    return np.where(m, v, 0).sum(-1) / m.sum(-1)


def _variance(v: Array, m: Array) -> Array:
    return _mean((v - _mean(v, m)[..., None]) ** 2, m)


def _max(v: Array, m: Array) -> Array:
    return np.where(m, v, -np.inf).max(-1)


def _largest_three(v: Array, m: Array) -> Array:
    """The mean of the three largest elements, or of all where there are fewer."""
    ordered = -np.sort(-np.where(m, v, -np.inf), -1)[..., :3]
    counted = np.arange(ordered.shape[-1]) < m.sum(-1, keepdims=True)
    return np.where(counted, ordered, 0).sum(-1) / counted.sum(-1)


def _root_mean_square(v: Array, m: Array) -> Array:
    return np.sqrt(_mean(v**2, m))


def _log_mean_exp(v: Array, m: Array) -> Array:
    top = _max(v, m)
    return top + np.log(_mean(np.exp(np.where(m, v - top[..., None], 0)), m))


def _tail(v: Array, m: Array) -> Array:
    """The mean of the largest 30%, the boundary element counted in part."""
    ordered = -np.sort(-np.where(m, v, -np.inf), -1)
    share = 0.3 * m.sum(-1, keepdims=True)
    weight = np.clip(share - np.arange(v.shape[-1]), 0, 1)
    return (
        np.where(weight > 0, weight * np.where(np.isfinite(ordered), ordered, 0), 0).sum(-1) / share[..., 0]
    )


@dataclass(frozen=True)
class Kind:
    """A reduction: its text (with ``{}`` for binders and condition) and the same of arrays."""

    text: str
    value: Callable[[Array, Array], Array]
    draws: bool


KINDS = {
    "E": Kind("E[{}]", _mean, True),
    "mean": Kind("mean[{}]", _mean, False),
    "variance": Kind("variance[{}]", _variance, True),
    "logmeanexp": Kind("logmeanexp(theta = 1)[{}]", _log_mean_exp, True),
    "max": Kind("max[{}]", _max, False),
    "cvar": Kind("cvar(tail = 0.3)[{}]", _tail, False),
    "topk": Kind("topk(k = 3)[{}]", _largest_three, False),
    "pmean": Kind("pmean(p = 2)[{}]", _root_mean_square, False),
}


# ---------------------------------------------------------------------------------------- the forms
@dataclass
class Form:
    """A form's text, its value by arrays, and which tables its binders range over."""

    text: str
    value: Callable[[Array, Mapping[str, Mapping[str, Any]]], Array]
    place: str = "objective"
    words: list[str] = field(default_factory=list)
    triples: bool = False

    def model(self, least: float = 0.0) -> str:
        """The model with the form in its place. ``least``: the right side of a constraint."""
        if self.place == "objective":
            return f"{HEAD}minimize {self.text} + 0.01 * sumsq(w);\n"
        bound = f"{least!r}"
        if self.place == "constraint":
            return f"{HEAD}minimize sumsq(w - 1) + 0;\nsubject to c: {self.text} <= {bound};\n"
        return f"{HEAD}minimize sumsq(w - 1) + 0;\nsubject to c[q in G]: {self.text} <= {bound};\n"


@dataclass(frozen=True)
class Part:
    """A condition or a body: text and value, from columns by binder with an axis each."""

    text: str
    value: Callable[[Mapping[str, Rows]], Array]


OUTER: dict[str, Callable[[Array], Array]] = {
    "({})": lambda v: v,
    "({})^2": lambda v: v**2,
    "log(1 + ({})^2)": lambda v: np.log(1 + v**2),
    "sqrt(0.01 + ({})^2)": lambda v: np.sqrt(0.01 + v**2),
    "sqhinge({} - 0.2)": lambda v: np.maximum(v - 0.2, 0) ** 2,
    "exp(0.1 * {})": lambda v: np.exp(np.minimum(0.1 * v, 50)),
}


#: Rows of the table for pairs and for triples, and the parts of these that are the number of groups.
PAIRS = (3000, 6000, 12000)
TRIPLES = (1000, 3000)
FEW_GROUPS = (3, 30)
ROWS_OF_GROUPS = (20, 5)


@dataclass(frozen=True)
class Case:
    """A form with tables that it is solved on: the model's text, the data, and their size in words."""

    text: str
    data: dict[str, dict[str, Any]]
    size: str


def case(seed: int, most: int = 12000) -> Case:
    """The form of a seed on tables of at most so many rows; a constraint holds at some points alone."""
    forms = Forms(seed)
    form = forms.form()
    rows = min(forms.pick(*(TRIPLES if form.triples else PAIRS)), most)
    groups = forms.pick(*FEW_GROUPS, *(rows // each for each in ROWS_OF_GROUPS))
    huge = forms.chance(0.2)
    small = tables(16 if form.triples else 30, 3, seed)
    ends = [
        np.nan_to_num(np.nanmax(form.value(w, small)), nan=1.0)
        for w in (np.zeros(WIDTH), np.full(WIDTH, 0.5))
    ]
    size = f"{rows} rows, {groups} groups{', half of the rows in one' if huge else ''}"
    return Case(form.model(float(sum(ends) / 2)), tables(rows, groups, seed, huge=huge), size)


def softplus(u: Array) -> Array:
    return np.logaddexp(0, u)


class Forms:
    """Random forms from a seed."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.products = seed % 3 == 0

    def pick(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # ------------------------------------------------------------------------ bodies and conditions
    def body(self, binders: Sequence[str]) -> Part:
        """A loss of the rows of all binders."""
        a, b = binders[:2] if len(binders) > 1 else (binders[0], binders[0])
        margin = Part(f"dot(w, {a}.x - {b}.x)", lambda r: r[a]["s"] - r[b]["s"])
        if len(binders) == 1:
            margin = Part(f"dot(w, {a}.x)", lambda r: r[a]["s"])
        if len(binders) == 3:
            c, pair = binders[2], margin
            margin = self.pick(
                Part(f"({pair.text} + 0.5 * dot(w, {c}.x))", lambda r: pair.value(r) + 0.5 * r[c]["s"]),
                Part(f"({pair.text} * (1 + 0.3 * {c}.t))", lambda r: pair.value(r) * (1 + 0.3 * r[c]["t"])),
                Part(
                    f"({pair.text} - dot(w, {a}.x - {c}.x))",
                    lambda r: pair.value(r) - (r[a]["s"] - r[c]["s"]),
                ),
            )
        m = margin
        return self.pick(
            Part(f"sqhinge(1 - {m.text})", lambda r: np.maximum(1 - m.value(r), 0) ** 2),
            Part(f"pos(1 - {m.text})", lambda r: np.maximum(1 - m.value(r), 0)),
            Part(f"log1pexp(-{m.text})", lambda r: softplus(-m.value(r))),
            Part(f"log1pexp({a}.t - {m.text})", lambda r: softplus(r[a]["t"] - m.value(r))),
            Part(f"exp(-0.3 * {m.text})", lambda r: np.exp(-0.3 * m.value(r))),
            Part(f"({m.text} - {a}.t + {b}.t)^2", lambda r: (m.value(r) - r[a]["t"] + r[b]["t"]) ** 2),
            Part(f"sigmoid({m.text})", lambda r: 1 / (1 + np.exp(-m.value(r)))),
            Part(f"abs({m.text} - 0.3)", lambda r: np.abs(m.value(r) - 0.3)),
            Part(
                f"pinball({a}.t - {m.text}, 0.7)",
                lambda r: np.maximum(0.7 * (r[a]["t"] - m.value(r)), -0.3 * (r[a]["t"] - m.value(r))),
            ),
            Part(
                f"exp(-0.1 * sumsq({a}.x - {b}.x)) * ({m.text})^2",
                lambda r: np.exp(-0.1 * ((r[a]["x"] - r[b]["x"]) ** 2).sum(-1)) * m.value(r) ** 2,
            ),
            Part(
                f"log1pexp(-{a}.y * {b}.y * {m.text})",
                lambda r: softplus(-r[a]["y"] * r[b]["y"] * m.value(r)),
            ),
        )

    def equal(self, a: str, b: str, column: str = "g") -> Part:
        """Two rows with the same label, in either order."""
        text = f"{a}.{column} == {b}.{column}" if self.chance(0.5) else f"{b}.{column} == {a}.{column}"
        return Part(text, lambda r: r[a][column] == r[b][column])

    def member(self, a: str, q: str) -> Part:
        """A row of a group, in either order."""
        text = f"{a}.g == {q}" if self.chance(0.6) else f"{q} == {a}.g"
        return Part(text, lambda r: r[a]["g"] == r[q]["g"])

    def between(self, a: str, b: str, *, grouped: float = 0.5) -> list[Part]:
        """Conditions on a pair of rows; ``grouped``: how often they are of one group."""
        found = []
        if self.chance(grouped):
            found.append(self.equal(a, b))
            if self.chance(0.25):
                found.append(self.equal(a, b, "h"))
        if self.chance(0.35):
            found.append(Part(f"{a}.t < {b}.t", lambda r: r[a]["t"] < r[b]["t"]))
        if self.chance(0.2):
            found.append(Part(f"{a} != {b}", lambda r: r[a]["row"] != r[b]["row"]))
        if self.chance(0.2):
            found.append(Part(f"abs({a}.t - {b}.t) <= 1.5", lambda r: np.abs(r[a]["t"] - r[b]["t"]) <= 1.5))
        if self.chance(0.15):
            found.append(self.together(a, b))
        return found

    def together(self, a: str, b: str) -> Part:
        """A condition on two rows that an order of the rows decides, or (``products``) none does."""
        if self.products:
            return Part(f"{a}.t * {b}.t <= 1.5", lambda r: r[a]["t"] * r[b]["t"] <= 1.5)
        return Part(f"{a}.t + {b}.t <= 2.5", lambda r: r[a]["t"] + r[b]["t"] <= 2.5)

    def own(self, a: str, share: float = 0.35) -> list[Part]:
        """Conditions on one row."""
        sign = self.pick("1", "-1")
        return [Part(f"{a}.y == {sign}", lambda r: r[a]["y"] == int(sign))] if self.chance(share) else []

    def shuffled(self, parts: list[Part]) -> list[Part]:
        self.random.shuffle(parts)
        return parts

    # ------------------------------------------------------------------------------------ the nests
    def form(self, triples: float = 0.25) -> Form:
        """A form."""
        kinds = [
            self.flat,
            self.flat,
            self.nested,
            self.nested,
            self.grouped,
            self.grouped,
            self.member_of_table,
            self.in_family,
            self.rows_in_family,
        ]
        return self.pick(*kinds)(self.chance(triples))

    def inner_kind(self) -> str:
        return self.pick("E", "E", "E", "E", "mean", "variance", "logmeanexp", "max", "cvar", "topk", "pmean")

    def reduced(
        self, kind: str, binders: Sequence[str], over: str, conditions: list[Part], body: Part
    ) -> Part:
        """A reduction over rows of D."""
        how = KINDS[kind]
        sign = "~" if how.draws else "in"
        listed = ", ".join(f"{b} {sign} {over}" for b in binders)
        where = " and ".join(p.text for p in self.shuffled(conditions))
        text = f"{how.text.format(listed + (f' | {where}' if where else ''))} {body.text}"

        def value(r: Mapping[str, Rows]) -> Array:
            axes = tuple(r[b]["axis"] for b in binders)
            keep = np.ones((1,) * r[binders[0]]["row"].ndim, dtype=bool)
            for part in conditions:
                keep = keep & part.value(r)
            for b in binders:
                keep = keep & np.ones_like(r[b]["row"], dtype=bool)
                if over == "P":
                    keep = keep & (r[b]["y"] == 1)
            return np.expand_dims(how.value(*weighted(body.value(r), keep, axes)), axes)

        return Part(text, value)

    def outside(self, part: Part) -> Part:
        text, f = self.pick(*OUTER.items())
        return Part(text.format(part.text), lambda r: f(part.value(r)))

    def flat(self, triples: bool) -> Form:
        """All pairs or triples under conditions."""
        binders = ["i", "j", "k"] if triples else ["i", "j"]
        conditions = [*self.between("i", "j"), *self.own("i"), *self.own("j")]
        if triples:
            conditions += [*self.between("j", "k", grouped=0.7), *self.own("k")]
        kind, over = self.inner_kind(), self.pick("D", "D", "D", "P")
        part = self.outside(self.reduced(kind, binders, over, conditions, self.body(binders)))
        return self.made(part, binders, self.pick("objective", "objective", "constraint"))

    def nested(self, triples: bool) -> Form:
        """For each row something of a reduction over others."""
        inner = ["j", "k"] if triples else ["j"]
        conditions = [*self.between("i", "j", grouped=0.6), *self.own("j")]
        if triples:
            conditions += [*self.between("j" if self.chance(0.5) else "i", "k", grouped=0.8), *self.own("k")]
        # a row is never without others of its group: no order, no other class alone
        conditions = [
            p for p in conditions if " < " not in p.text and "!=" not in p.text and "<= 2.5" not in p.text
        ]
        part = self.outside(self.reduced(self.inner_kind(), inner, "D", conditions, self.body(["i", *inner])))
        outer = self.pick("mean", "mean", "mean", "max", "cvar", "logmeanexp", "topk")
        part = self.reduced(outer, ["i"], self.pick("D", "P"), self.own("i"), part)
        return self.made(part, ["i", *inner], self.pick("objective", "objective", "constraint"))

    def grouped(self, triples: bool) -> Form:
        """For each group pairs of its rows."""
        binders = ["i", "j", "k"] if triples else ["i", "j"]
        conditions = [self.member(b, "q") for b in binders] + [
            *self.own("i"),
            *self.between("i", "j", grouped=0.0)[:1],
        ]
        kind = self.pick("E", "E", "variance", "logmeanexp", "max", "cvar")
        part = self.outside(self.reduced(kind, binders, "D", conditions, self.body(binders)))
        outer = self.pick("mean", "mean", "max", "cvar")
        how = KINDS[outer]
        q = Part(
            f"{how.text.format('q in G')} {part.text}", lambda r: _along(how, part.value(r), r["q"]["axis"])
        )
        return self.made(q, ["q", *binders], self.pick("objective", "objective", "constraint"))

    def member_of_table(self, triples: bool) -> Form:
        """For each row of another table pairs of the rows of its group."""
        binders = ["i", "j", "k"] if triples else ["i", "j"]
        conditions = [self.equal(b, "z") for b in binders] + self.own("i")
        part = self.outside(
            self.reduced(self.pick("E", "E", "variance", "max"), binders, "D", conditions, self.body(binders))
        )
        how = KINDS[self.pick("mean", "max", "cvar")]
        z = Part(
            f"{how.text.format('z in Z')} {part.text}", lambda r: _along(how, part.value(r), r["z"]["axis"])
        )
        return self.made(z, ["z", *binders], self.pick("objective", "objective", "constraint"))

    def in_family(self, triples: bool) -> Form:
        """A constraint for each group."""
        binders = ["i", "j", "k"] if triples else ["i", "j"]
        conditions = [self.member(b, "q") for b in binders] + self.own("i")
        part = self.reduced(
            self.pick("E", "E", "variance", "max"), binders, "D", conditions, self.body(binders)
        )
        return self.made(part, ["q", *binders], "family")

    def rows_in_family(self, triples: bool) -> Form:
        """A constraint for each group, on its rows: for each something of a reduction over the others."""
        inner = ["j", "k"] if triples else ["j"]
        conditions = [self.equal(b, "i") for b in inner]
        if self.chance(0.3):
            conditions.append(
                Part("abs(i.t - j.t) <= 1.5", lambda r: np.abs(r["i"]["t"] - r["j"]["t"]) <= 1.5)
            )
        part = self.outside(
            self.reduced(self.pick("E", "E", "max", "topk"), inner, "D", conditions, self.body(["i", *inner]))
        )
        outer = self.pick("mean", "max", "cvar")
        part = self.reduced(outer, ["i"], "D", [self.member("i", "q")], part)
        return self.made(part, ["q", "i", *inner], "family")

    def made(self, part: Part, binders: Sequence[str], place: str) -> Form:
        """The part with its binders at all rows."""

        def value(w: Array, data: Mapping[str, Mapping[str, Any]]) -> Array:
            rows: dict[str, Rows] = {}
            for axis, name in enumerate(binders):
                table = (
                    data["Z"]
                    if name == "z"
                    else {"g": np.unique(data["D"]["g"])}
                    if name == "q"
                    else data["D"]
                )
                n = len(table["g"])
                shape = [n if k == axis else 1 for k in range(len(binders))]
                columns = {c: np.asarray(v).reshape(*shape, *np.shape(v)[1:]) for c, v in table.items()}
                if "x" in table:
                    columns["s"] = (np.asarray(table["x"]) @ w).reshape(shape)
                rows[name] = {**columns, "row": np.arange(n).reshape(shape), "axis": axis}  # type: ignore[dict-item]
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                return np.asarray(part.value(rows)).reshape(-1)

        return Form(
            text=part.text, value=value, place=place, triples=len([b for b in binders if b not in "qz"]) == 3
        )


def _along(how: Kind, values: Array, axis: int) -> Array:
    return np.expand_dims(how.value(*weighted(values, np.ones_like(values, dtype=bool), (axis,))), axis)
