"""Every option with every algorithm is used by the program, or refused: nobody's option is dropped in
silence.

The table is made of the registries: a new algorithm or a new option enters it by itself.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from fccomodel import algorithms, pipeline
from fccomodel.core import options
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.execution.run.loading import BETWEEN
from fccomodel.plan import sizes, used
from fccomodel.plan.settings import OPTIONS, SETTINGS

HEAD = "dim d;\ndata D : table(x: real[d], y: real, g: {0, 1, 2, 3, 4});\nvar w[d];\n"
LOSS = "(dot(w, z.x) - z.y)^2"
#: models such that every algorithm has a form for one of them, those with more to sample and to smooth first
MODELS = {
    "constrained": f"minimize mean[k in {{0, 1, 2}}] (E[z ~ D | z.g == k] {LOSS})^2;\n"
    f"subject to c: E[z ~ D | z.g == 3] {LOSS} <= 1;",
    "worst": f"minimize max[k in {{0, 1, 2, 3, 4}}] (E[z ~ D | z.g == k] {LOSS}) + 0.05 * sumsq(w);",
    "square": f"minimize mean[k in {{0, 1, 2, 3, 4}}] (E[z ~ D | z.g == k] {LOSS})^2 + 0.05 * sumsq(w);",
    "free": "minimize mean[i in D] (E[j ~ D] (dot(w, i.x - j.x) - i.y)^2)^2;",
    "nested": "minimize mean[i in D] E[j ~ D] (dot(w, i.x - j.x) - i.y)^2;",
    "mean": "minimize mean[i in D] (dot(w, i.x) - i.y)^2;",
    "pair": f"minimize (E[z ~ D] {LOSS})^2 + (E[z ~ D] (dot(w, z.x))^2)^2;",
    "plain": f"minimize E[z ~ D] {LOSS} + 0.1 * norm1(w);",
}
#: what every plan of the table has, so that samples are drawn and steps are counted
BASE: dict[str, Any] = {"outer_batch": 2, "inner_batch": 20, "budget": "100it", "unverified": True}
#: options whose use the table does not find in a program: permissions, and what stages after the run read
LATER = {"unverified", "holdout", "margin", "population", "tol", "algorithm"}
#: algorithms of models where the samples of each block are its own in any case, which is what
#: ``per_block`` asks for
OF_THEIR_OWN = {"ooa", "sgd", "sgd_uw"}
REFUSED = {"F0606", "F0607", "F0613", "F0614", "F0616"}


@cache
def analysed(model: str) -> tuple[pipeline.Compiled, Any, Any]:
    rng = np.random.default_rng(0)
    columns = {"x": rng.normal(size=(200, 3)), "y": rng.normal(size=200), "g": np.arange(200) % 5.0}
    compiled = pipeline.compile_model(Source(text=HEAD + MODELS[model], name=model))
    bound = pipeline.bind(compiled, pipeline.Binding(data={"D": columns}))
    return compiled, bound, pipeline.analyse(compiled.problem, bound)


def planned(model: str, algorithm: str, **given: Any) -> pipeline.Planned:
    compiled, bound, analysis = analysed(model)
    record = algorithms.all()[algorithm]
    base = (
        BASE
        if record.oracle == "blocks" or record.samples_outer
        else {k: v for k, v in BASE.items() if k != "outer_batch"}
    )
    chosen = {
        k: (v, options.KEYWORD) for k, v in {**base, "algorithm": algorithm, **given}.items() if v is not None
    }
    made = pipeline.decide(analysis, chosen)
    return pipeline.Planned(
        compiled=compiled, binding=pipeline.Binding(), bound=bound, analysis=analysis, plan=made,
        options=pipeline.with_origins(made, chosen),
    )  # fmt: skip


@cache
def program(model: str, algorithm: str, **given: Any) -> str:
    return pipeline.emit(planned(model, algorithm, **given)).text


@cache
def models(algorithm: str) -> tuple[str, ...]:
    """The models that an algorithm has a program for."""
    found = []
    for model in MODELS:
        try:
            program(model, algorithm)
        except FccoError:
            continue
        found.append(model)
    return tuple(found)


def read(text: str) -> set[str]:
    """The settings that a program reads."""
    return set().union(*(reads_of(part) for part in text.split(BETWEEN)))


def within(text: str, functions: set[str]) -> set[str]:
    """The settings that some functions of a program read."""
    heads = {part: set(re.findall(r"^def (\w+)", part, re.MULTILINE)) for part in text.split(BETWEEN)}
    return set().union(*(reads_of(part) for part, names in heads.items() if names & functions))


@cache
def reads_of(part: str) -> frozenset[str]:
    """The attributes that one part of a program reads: programs have most parts in common."""
    nodes = ast.walk(ast.parse(part))
    return frozenset(
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def other(name: str, value: Any) -> Any:
    """Another value that an option may have than the one it has."""
    if name in options.NUMBERS:
        whole, low, high = options.NUMBERS[name]
        middle = low + 1 if math.isinf(high) else (low + high) / 2
        candidates = [max(low, 2), 3] if whole else [middle, 0.5 * (low + middle)]
        candidates += [low, high]
        return next(int(x) if whole else x for x in candidates if x != value and math.isfinite(x))
    if name in options.WORDS:
        return next(word for word in options.WORDS[name] if word != value)
    return {"seed": 7, "precision": "float64", "budget": "50it", "device": "cuda", "backend": "compiled"}[
        name
    ]


SCHEDULED = [(name, step, kind) for name, record in algorithms.all().items() for step in record.steps
             for kind in options.WORDS["schedule"]]  # fmt: skip


NUMBERS = [
    name
    for name in OPTIONS
    if name in options.NUMBERS and name not in BASE and name not in LATER | {"epsilon"}
]


@pytest.mark.parametrize(("algorithm", "step", "schedule"), SCHEDULED)
def test_a_number_is_read_by_the_program_or_not_used(algorithm: str, step: str, schedule: str) -> None:
    """What plans take for used is what the text of their programs reads."""
    assert models(algorithm), "no model of the table suits it"
    for model in models(algorithm) if schedule == "practical" else models(algorithm)[:1]:
        given = {"step": step, "schedule": schedule}
        try:
            made, text = planned(model, algorithm, **given), program(model, algorithm, **given)
        except (FccoError, ArithmeticError):  # the theorem has no schedule for this model
            continue
        known = read(text) | ({"lam"} if "lam_" in text else set())
        unread = [name for name in NUMBERS if not used.without(parts(made), name) and name not in known]
        assert not unread, f"{model}: {algorithm} would accept options that its program does not read"
        needed = set(NUMBERS) & within(text, {"gradient", "update", "track", "track_log", "extrapolate"})
        refused = [name for name in needed & set(made.plan.hyper) if used.without(parts(made), name)]
        assert not refused, f"{model}: {algorithm} would refuse options that its steps read"


def parts(made: pipeline.Planned) -> used.DecidingFacts:
    """What decides which options a plan uses."""
    plan = made.plan
    return used.DecidingFacts(
        problem=made.problem, record=plan.algorithm_record, normal=plan.normal, step=plan.step, schedule=plan.pace,
        interior=plan.interior, hyper=plan.hyper, rated=True, tracked=used.tracked(plan.normal, made.bound, plan.batch),
        draws=sizes.draws(plan.normal, made.bound, plan.batch), shared=True, polish=plan.polish,
    )  # fmt: skip


@pytest.mark.parametrize("algorithm", sorted(algorithms.all()))
def test_a_number_is_taken_or_refused(algorithm: str) -> None:
    model = models(algorithm)[0]
    made = planned(model, algorithm)
    for name in NUMBERS:
        value = other(name, made.plan.hyper.get(name))
        try:
            assert planned(model, algorithm, **{name: value}).plan.hyper[name] == value
        except FccoError as error:
            refused(error, algorithm, name)


def refused(error: FccoError, algorithm: str, name: str) -> None:
    """An option is refused by its code, with a reason and a fix."""
    for one in error.diagnostics:
        assert one.code in REFUSED | {"F0612"}, f"{algorithm}, {name}: {one}"
        assert one.reason and one.fix, f"{algorithm}, {name}: {one}"


@pytest.mark.parametrize("algorithm", sorted(algorithms.all()))
def test_a_word_changes_the_program_or_is_refused(algorithm: str) -> None:
    names = [
        name for name in (*OPTIONS, *SETTINGS) if name not in options.NUMBERS and name not in LATER | {"step"}
    ]
    names = [name for name in names if name != "inner_sampling" or algorithm not in OF_THEIR_OWN]
    ignored = [name for name in [*names, "outer_batch", "inner_batch"] if not any(changes(algorithm, name))]
    assert not ignored, f"{algorithm} accepts them, and its programs are the same"


def changes(algorithm: str, name: str) -> Iterator[bool]:
    """By model whether another value of an option changes the program, or is refused."""
    for model in models(algorithm):
        given = BASE[name] + 1 if name in BASE and name != "budget" else None
        value = given or other(name, planned(model, algorithm).options.get(name, (None, ""))[0])
        try:
            yield program(model, algorithm, **{name: value}) != program(model, algorithm)
        except FccoError as error:
            refused(error, algorithm, name)
            yield True
        except ArithmeticError:  # the theorem has no schedule for this model
            continue


@pytest.mark.parametrize("algorithm", sorted(algorithms.all()))
def test_a_step_is_one_that_the_algorithm_has(algorithm: str) -> None:
    model, steps = models(algorithm)[0], algorithms.all()[algorithm].steps
    assert len({program(model, algorithm, step=step) for step in steps}) == len(steps)
    with pytest.raises(FccoError, match="F0607"):
        planned(model, algorithm, step="sideways")


def test_the_table_knows_every_option() -> None:
    """Each is a number, a word, or one of those with values of their own."""
    own = {
        "step",
        "algorithm",
        "seed",
        "device",
        "precision",
        "backend",
        "budget",
        "holdout",
        "margin",
        "population",
    }
    assert {*OPTIONS, *SETTINGS} == (set(options.NUMBERS) | set(options.WORDS) | own) & {*OPTIONS, *SETTINGS}
