"""The package as a whole: who imports whom, what is shipped, and that its documents run as they stand."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from support.places import ROOT

import fccomodel

PACKAGE = Path(fccomodel.__file__).resolve().parent
#: The rooms from the ground up: each imports only from those before it, inside functions and for typing too.
ROOMS = (
    "core", "numerics", "data", "library", "language", "evaluation", "conic", "structure", "normal_form", "algorithms", "plan",
    "report", "program", "execution", "pipeline", "app",
)  # fmt: skip
SOLVING = {"normal_form", "plan", "algorithms", "program", "execution", "pipeline"}


@cache
def imports() -> dict[str, set[str]]:
    """For each part of the package (a module, or a folder) the parts that it imports, inside functions
    and for typing too."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE)
        part = inside.parts[0].removesuffix(".py")
        found.setdefault(part, set()).update(_imported(ast.parse(path.read_text())) - {part})
    return found


def _imported(tree: ast.AST) -> set[str]:
    parts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name the package"
            if node.module == "fccomodel":
                parts |= {alias.name for alias in node.names}
            elif (node.module or "").startswith("fccomodel."):
                parts.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            parts |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("fccomodel.")}
    return parts


def reach(part: str) -> set[str]:
    """Everything that a part imports, directly or not."""
    seen: set[str] = set()
    ahead = [part]
    while ahead:
        for other in imports().get(ahead.pop(), ()):
            if other not in seen and other in imports():
                seen.add(other)
                ahead.append(other)
    return seen


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_go_down(room):
    below = ROOMS[: ROOMS.index(room)]
    assert imports()[room] <= {*below}, f"{room} may import {', '.join(below) or 'nothing'}"


def test_every_room_has_its_place():
    assert set(imports()) == {*ROOMS, "__init__", "__main__"}
    assert imports()["__init__"] | imports()["__main__"] <= {"core", "app"}


def test_the_report_cannot_see_the_solver():
    assert not (reach("report") | reach("evaluation")) & SOLVING


def test_only_the_terminal_knows_rich():
    users = [
        path
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^\s*(from|import) rich", path.read_text(), re.MULTILINE)
    ]
    assert all("display" in (path.stem, path.parent.stem) for path in users)


def test_the_package_starts_without_torch():
    code = (
        "import sys, fccomodel, fccomodel.app.cli; sys.exit('torch' in sys.modules or 'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_models_are_written_without_torch():
    """The language's words need their registries alone."""
    code = (
        "import sys; from fccomodel import E, Model; Model('m'); sys.exit('torch' in sys.modules or "
        "'sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_text_is_explained_without_torch():
    """Every example without its data, and every algorithm's card."""
    code = (
        "import sys, fccomodel; from fccomodel import algorithms; from pathlib import Path; "
        "texts = [str(fccomodel.compile(path).explain()) for path in "
        "sorted(Path('examples').glob('*.fcco'))]; "
        "sys.exit('torch' in sys.modules or not algorithms.all() or not (texts and all(texts)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, cwd=ROOT).returncode == 0


def test_the_first_model_is_solved_without_sympy_pandas_and_scikit_learn():
    """Rates are compared as numbers, derivatives along many directions are those of torch, and the
    bundled data are read as the file that they are."""
    code = (
        "import sys, fccomodel; "
        "bound = fccomodel.compile('examples/neyman_pearson.fcco').bind(spec='examples/neyman_pearson.toml'); "
        "r = bound.solve(); str(r); "
        "early = {'sympy', 'pandas', 'pyarrow', 'sklearn', 'torch._dynamo'} & {*sys.modules}; "
        "passes = r.outcome.solution.passes; "  # 126, and 226 where each round finds the curvature anew
        "sys.exit(str((early, passes, r.report.verdict)) if early or passes > 180 or not r.report.solved else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, cwd=ROOT).returncode == 0


def test_derivatives_along_given_ways_are_had_without_sympy():
    """torch imports it where it is given the adjoints of several outputs: of a vector of expectations,
    of a net."""
    code = (
        "import sys, fccomodel, torch, numpy as np; torch.manual_seed(0); "
        "head = 'model m; dim d; data D: table(x: real[d]); '; rows = {'x': "
        "np.random.default_rng(0).normal(size=(40, 3))}; "
        "vector = fccomodel.compile(head + 'var w[d]; minimize log(E[z ~ D] exp(dot(w, z.x))) + "
        "sumsq(w);').bind(D=rows); "
        "vector.solve(algorithm='hscg', budget='20it', unverified=True); "
        "vector.solve(algorithm='ascvrg', budget='20it'); "
        "net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2), torch.nn.Linear(2, 1), "
        "torch.nn.Flatten(0)); "
        "deep = fccomodel.compile(head + 'net s : real[d] -> real; var w = params(s); minimize E[z ~ D] "
        "s(w; z.x)^2;'); "
        "deep.bind(D=rows, nets={'s': net}).solve(budget='20it'); sys.exit('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, cwd=ROOT).returncode == 0


def test_the_version_is_the_installed_one():
    from importlib.metadata import PackageNotFoundError, version

    try:
        assert version("fccomodel") == fccomodel.__version__
    except PackageNotFoundError:
        pytest.skip("run from a checkout that is not installed")


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "fccomodel", "--version"], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.strip() == f"fccomodel {fccomodel.__version__}"


def test_the_grammar_is_shipped():
    from fccomodel.language.lexer import grammar_text

    assert "reduce_subscript" in grammar_text()
    if (ROOT / "pyproject.toml").exists():
        assert '"grammar/fcco.lark" = "fccomodel/grammar/fcco.lark"' in (ROOT / "pyproject.toml").read_text()


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of a document in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("document", "written"),
    [
        ("README.md", "out/solver.py"),
        ("tutorials/01_first_model.md", "out/solver.py"),
        ("tutorials/02_comparing_algorithms.md", "comparison/compare.json"),
    ],
)
def test_the_documents_run_as_they_stand(document, written, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for text in blocks(ROOT / document, "fcco"):
        name = re.search(r"model (\w+);", text)
        assert name is not None
        (tmp_path / f"{name[1]}.fcco").write_text(text)
    scope: dict[str, object] = {}
    for text in blocks(ROOT / document, "python"):
        exec(compile(re.sub(r'budget="\w+"', 'budget="200it"', text), document, "exec"), scope)
    assert (tmp_path / written).exists()


def test_the_readme_names_every_command():
    readme = (ROOT / "README.md").read_text()
    for command in (
        "check",
        "explain",
        "solve",
        "sweep",
        "compare",
        "emit",
        "evaluate",
        "format",
        "atoms",
        "algorithms",
    ):
        assert f"fccomodel {command}" in readme


def test_examples_come_in_pairs():
    from fccomodel import pipeline
    from fccomodel.core import files

    models = sorted((ROOT / "examples").glob("*.fcco"))
    assert len(models) >= 5
    for path in models:
        compiled = pipeline.compile_model(files.read_model(path))
        assert compiled.problem.name == path.stem
        pipeline.bind(compiled, pipeline.Binding(spec=path.with_suffix(".toml")))


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "tutorials").rglob("*.md"))], ids=lambda page: page.stem
)
def test_links_of_the_documents_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
