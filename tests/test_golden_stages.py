"""Every example, stage by stage: a diff names the stage that changed. ``--update-golden`` rewrites the expected texts."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from ir_text import problem_text
from places import GOLDEN, ROOT

import fccomodel
from fccomodel import pipeline, plan, structure
from fccomodel.app import explain
from fccomodel.core.files import model_source
from fccomodel.language import syntax
from fccomodel.solver import emit

EXAMPLES = sorted((ROOT / "examples").glob("*.fcco"))
needs_data = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("sklearn", "pandas", "pyarrow")),
    reason="the examples' data: install the extra `data`",
)


def ast_text(node: Any, depth: int = 0) -> list[str]:
    """One line per node, fields of plain values beside its class."""
    plain, nested = [], []
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if field.name == "span" or value is None or value == ():
            continue
        items = value if isinstance(value, tuple) else (value,)
        if any(dataclasses.is_dataclass(item) for item in items):
            nested.extend((field.name, item) for item in items)
        else:
            plain.append(f"{field.name}={value!r}")
    lines = ["  " * depth + f"{type(node).__name__}({', '.join(plain)})"]
    for _, item in nested:
        lines += ast_text(item, depth + 1)
    return lines


def normal_text(normal: Any) -> str:
    lines = [f"via: {', '.join(normal.via) or 'nothing'}"]
    lines += [f"{step.reformulation.title}: {sentence}" for step in normal.chain.steps for sentence in step.sentences]
    for term in normal.terms:
        lines.append(f"{term.label}: {term.kind}, n = {term.n}, d1 = {term.d1}, depth = {term.depth}: {term.text}")
        lines += [f"  outer {term.outer}"] if term.outer else []
        lines += [f"  inner {text}" for text in term.inner]
    lines += [f"{how}: {text} ({why})" for text, how, why in normal.treatment]
    return "\n".join(lines)


def plan_text(made: Any) -> str:
    lines = [*made.summary, ""]
    lines += [f"{name} = {value}   ({origin})" for name, (value, origin) in sorted(made.options.items())]
    lines += [f"rejected {name}: {'; '.join(lacks)}" for name, lacks in sorted(made.rejected.items())]
    return "\n".join(lines)


@needs_data
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_stages(path: Path, update_golden: bool) -> None:
    source = model_source(path)
    compiled = pipeline.compile_model(dataclasses.replace(source, name=path.name))
    bound = pipeline.bind(compiled, pipeline.Binding(spec=path.with_suffix(".toml")))
    analysis = structure.analyse(compiled.problem, bound)
    made = plan.make(compiled.problem, bound=bound, analysis=analysis, options={})
    program = emit.emit(compiled.problem, bound, made)
    assert isinstance(compiled.model, syntax.Model)
    stages = {
        "ast.txt": "\n".join(ast_text(compiled.model)),
        "ir.txt": problem_text(compiled.problem),
        "facts.txt": explain.to_text(analysis),
        "normal.txt": normal_text(made.normal),
        "plan.txt": plan_text(made),
        "emitted.py": program.text,
    }
    folder = GOLDEN / path.stem
    if update_golden:
        folder.mkdir(exist_ok=True)
    for name, text in stages.items():
        text = re.sub(r"[ \t]+$", "", text, flags=re.M).rstrip() + "\n"
        file = folder / name
        if update_golden:
            file.write_text(text)
        assert file.read_text() == text, f"stage {name} of {path.stem} has changed; --update-golden rewrites it"


def test_every_golden_folder_has_an_example() -> None:
    folders = {p.name for p in GOLDEN.iterdir() if p.is_dir()} - {"errors", "facts"}
    assert folders == {p.stem for p in EXAMPLES}
    assert fccomodel.__version__
