"""Every example, stage by stage: a diff names the stage that changed. ``--update-golden`` rewrites the
expected texts.

Of programs ``emitted.py`` holds what the compiler decided. Their runtime is the source of the
package's own functions, which the test asserts; the expected text only names them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support.ir_text import problem_text
from support.places import GOLDEN, ROOT

import fccomodel
from fccomodel import pipeline, structure
from fccomodel.app.shown import explain
from fccomodel.core.files import model_source
from fccomodel.language import syntax
from fccomodel.program import emit
from fccomodel.program.lower import lower

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
    lines += [
        f"{step.reformulation.title}: {sentence}"
        for step in normal.chain.steps
        for sentence in step.sentences
    ]
    for term in normal.terms:
        lines.append(
            f"{term.label}: {term.kind}, n = {term.n}, d1 = {term.d1}, depth = {term.depth}: {term.text}"
        )
        lines += [f"  outer {term.outer}"] if term.outer else []
        lines += [f"  inner {text}" for text in term.inner]
    lines += [f"{how}: {text} ({why})" for text, how, why in normal.treatment]
    return "\n".join(lines)


def plan_text(made: Any) -> str:
    lines = [*made.summary, ""]
    lines += [f"{name} = {value}   ({origin})" for name, (value, origin) in sorted(made.options.items())]
    lines += [f"rejected {name}: {'; '.join(lacks)}" for name, lacks in sorted(made.rejected.items())]
    return "\n".join(lines)


def own_text(program: Any) -> str:
    """A program without its runtime: a comment names what stands in its place."""
    text = program.text
    for part in program.runtime:
        assert text.count(f"\n{part}\n") == 1
        text = text.replace(f"\n{part}\n", f"\n# the source: {', '.join(defined(part))}\n")
    return re.sub(r"(?:# the source: .*\s*)+", joined, text)


def defined(text: str) -> list[str]:
    """The functions and classes that a text defines at its top."""
    return re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)


def joined(lines: re.Match) -> str:
    """Several lines of names as one, wrapped."""
    names = ", ".join(re.findall(r"# the source: (.*)", lines[0]))
    return (
        "\n".join(textwrap.wrap(names, 116, initial_indent="# the source: ", subsequent_indent="#   "))
        + "\n\n\n"
    )


def sources() -> set[str]:
    """What programs of any model carry: the source of classes, loops and endings, and the command line."""
    from fccomodel.algorithms.runtime import checkpoints
    from fccomodel.algorithms.runtime.finish import ending, finish, restore
    from fccomodel.algorithms.runtime.loops import block_loop, schedules, settings, solver, vector_loop
    from fccomodel.program.emit.carried import carried, source
    from fccomodel.program.emit.template import report

    kinds: list[Any] = [
        settings.BlockSettings,
        settings.VectorSettings,
        solver.BlockSolver,
        solver.VectorSolver,
    ]
    kinds += schedules.SCHEDULES.values()
    block, vector = carried([*kinds, block_loop.solve]), carried([*kinds, vector_loop.solve])
    after = carried(
        [finish.finish, finish.one_pass, restore.restore, ending.solve_then_finish], [*block, *vector]
    )
    kept = carried([checkpoints.FileKeeper, checkpoints.keeper_of_run])
    own = {*block, *vector, *after, *kept}
    return {*map(source, own), report(finishing=False), report(finishing=True)}


def compare(file: Path, text: str, update: bool) -> None:
    """The text is the expected one, or becomes it."""
    text = re.sub(r"[ \t]+$", "", text, flags=re.M).rstrip() + "\n"
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    where = file.relative_to(GOLDEN)
    assert file.read_text() == text, f"{where} has changed; --update-golden rewrites it"


@needs_data
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_stages(path: Path, update_golden: bool) -> None:
    source = model_source(path)
    compiled = pipeline.compile_model(dataclasses.replace(source, name=path.name))
    bound = pipeline.bind(compiled, pipeline.Binding(spec=path.with_suffix(".toml")))
    analysis = structure.analyse(compiled.problem, bound)
    made = pipeline.decide(analysis)
    program = emit.emit(lower(compiled.problem, bound, made))
    assert isinstance(compiled.model, syntax.Model)
    stages = {
        "ast.txt": "\n".join(ast_text(compiled.model)),
        "ir.txt": problem_text(compiled.problem),
        "facts.txt": explain.to_text(analysis),
        "normal.txt": normal_text(made.normal),
        "plan.txt": plan_text(made),
        "emitted.py": own_text(program),
    }
    known = "\n\n\n".join(sources())
    assert all(piece in known for part in program.runtime for piece in part.split("\n\n\n")), (
        "a runtime that is not the source"
    )
    for name, text in stages.items():
        compare(GOLDEN / path.stem / name, text, update_golden)


def test_every_golden_folder_has_an_example() -> None:
    folders = {p.name for p in GOLDEN.iterdir() if p.is_dir()} - {"errors", "facts"}
    assert folders == {p.stem for p in EXAMPLES}
    assert fccomodel.__version__
