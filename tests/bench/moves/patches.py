"""Exact texts that the moves change by hand: (file, old, new). ``BEFORE``: by old paths; ``AFTER``: by new ones, after the moves;
``LAST``: after imports are sorted. ``checks`` says what is wrong with the tree that comes out."""

# ruff: noqa: E501 - exact texts

from __future__ import annotations

import re
from pathlib import Path

BEFORE: list[tuple[str, str, str]] = [
    # ---- the room and the distribution have different names: no class swap is needed
    (
        "fccomodel/__init__.py",
        '''class _Interface(ModuleType):
    """The package: ``fccomodel.normal`` is the distribution, whether the room of that name has been imported or not."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "normal" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Interface


''',
        "",
    ),
    (
        "fccomodel/__init__.py",
        "import sys\nfrom types import ModuleType\nfrom typing import TYPE_CHECKING, Any\n",
        "from typing import TYPE_CHECKING, Any\n",
    ),
    (
        "tests/language/test_modelling.py",
        '''    assert rooms & words.names() == {"normal"}
    assert callable(fc.normal) and sys.modules["fccomodel.normal"] is not fc.normal
''',
        "    assert not rooms & words.names(), \"a room's name would hide the word\"\n",
    ),
    ("tests/plan/test_plan.py", 'sys.modules["fccomodel.normal"]', 'sys.modules["fccomodel.normal_form"]'),
    # ---- the order of the rooms
    (
        "tests/test_package.py",
        '''    "core", "numerics", "data", "library", "language", "evaluation", "structure", "normal", "algorithms", "plan", "report",
    "solver", "pipeline", "app",
''',
        '''    "core", "numerics", "data", "library", "language", "evaluation", "conic", "structure", "normal_form", "algorithms", "plan",
    "report", "program", "execution", "pipeline", "app",
''',
    ),
    (
        "tests/test_package.py",
        'SOLVING = {"normal", "plan", "algorithms", "solver", "pipeline"}',
        'SOLVING = {"normal_form", "plan", "algorithms", "program", "execution", "pipeline"}',
    ),
    (
        "fccomodel/app/registry.py",
        '''    "normal.reformulations",
    "algorithms",
    "solver.operations",
    "solver.backends",
''',
        '''    "normal_form.reformulations",
    "algorithms",
    "program.operations",
    "execution.backends",
''',
    ),
    # ---- modules of algorithms that are none have no underscore any more
    (
        "fccomodel/app/cli/completion.py",
        '''    """The algorithms by their files: their records need not be read."""
    from importlib.resources import files as inside

    names = (path.name.removesuffix(".py") for path in inside("fccomodel.algorithms").iterdir() if path.name.endswith(".py"))
    yield from sorted(name for name in names if not name.startswith("_"))
''',
        '''    """The algorithms by the texts of their files: importing them all would take longer."""
    from importlib.resources import files as inside

    files = [path for path in inside("fccomodel.algorithms").iterdir() if path.name.endswith(".py")]
    declaring = (path for path in files if "\\nalgorithm = " in path.read_text(encoding="utf-8"))
    yield from sorted(path.name.removesuffix(".py") for path in declaring)
''',
    ),
    # ---- helpers of the tests
    ("tests/bench/replay_models.py", 'tests("emitted_models")', 'tests("support.emitted_models")'),
    (
        "tests/fake_device.py",
        '''if __name__ == "__main__":
    for asked in sys.argv[1:]:
''',
        '''if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    for asked in sys.argv[1:]:
''',
    ),
    ("tests/fake_device.py", "from functools import cache\nfrom typing import Any\n", "from functools import cache\nfrom pathlib import Path\nfrom typing import Any\n"),
    ("tests/places.py", "ROOT = Path(__file__).resolve().parent.parent\n", "ROOT = Path(__file__).resolve().parents[2]\n"),
    # ---- lines that would become too long
    (
        "fccomodel/app/new_rows.py",
        '''Both come from the same answers on resampled rows (``report/population.py``, ``report/margins.py``). An answer is found as the
first one is: by the interior-point method where the problem is a conic program of moderate size, else by a run with its budget.
''',
        '''Both come from the same answers on resampled rows (``report/population.py``, ``report/margins.py``).
An answer is found as the first one is: by the interior-point method where the problem is a conic program of moderate size, else
by a run with its budget.
''',
    ),
    (
        "fccomodel/evaluation/interpret/inner_maximum.py",
        '''def _concave(evaluator: Evaluator, node: ir.Reduce, slope: concave.Slope, start: torch.Tensor, most: float) -> torch.Tensor:
''',
        '''def _concave(
    evaluator: Evaluator, node: ir.Reduce, slope: concave.Slope, start: torch.Tensor, most: float
) -> torch.Tensor:
''',
    ),
    (
        "tests/bench/fake_cuda.py",
        "autograd (``tests/fake_device.py``). It wants no GPU, nor a torch for one. ``--page`` writes ``fake_cuda.md`` from records.\n",
        "autograd (``tests/fake_device.py``). It wants no GPU, nor a torch for one.\n``--page`` writes ``fake_cuda.md`` from records.\n",
    ),
]

PAGE = "tutorials/guide/how_it_is_built.md"
AFTER: list[tuple[str, str, str]] = [
    (
        PAGE,
        "                 run ---- a point                            execution/run/, conic/\n",
        "                 run ---- a point                            execution/; what stalls is ended by conic/\n",
    ),
    (
        PAGE,
        "| `app/` | what people touch: Python, the command line, displays, comparisons, results |\n",
        "| `app/` | what people touch: `cli/`, `python/` with its `sweeps/`; `stored/`: results, comparisons; `shown/`: reports, "
        "explanations, pictures; `scoring/` of new rows; `generated/` from the registries |\n",
    ),
    (
        PAGE,
        "| `program/` | a plan to a point: lowered to graphs of values, emitted as the text of a standalone program, run; `conic/`: "
        "the interior-point end of runs that stall |\n",
        "| `execution/` | programs as they run: `run/`, `backends/`, `checkpoints/`, ranks, races |\n"
        "| `program/` | a plan to the text of a standalone program: `lower/` to a graph of `operations/`, verified, `emit/` its "
        "text |\n",
    ),
    (
        PAGE,
        "| `report/` | KKT residuals, certified gaps, confidence intervals: of problem, data and point, without plan or solver |\n",
        "| `report/` | verdicts about a point, from problem and data alone, without plan or solver: the `point/` and its `kinks/`, "
        "`kkt/` residuals, `certificates/` of the gap, points `around/`, `new_rows/` |\n",
    ),
    (
        PAGE,
        "| `structure/` | facts with their reasons: curvature, monotonicity, smoothness, constants |\n",
        "| `structure/` | facts with their reasons: curvature, monotonicity, smoothness, constants; `rules/`, and `estimates/` from "
        "data |\n"
        "| `conic/` | a problem with its data as a conic program, which an interior-point method solves: the end of runs that "
        "stall |\n",
    ),
    (
        PAGE,
        "| `evaluation/` | values of expressions on data: elements of sets, members of families, the interpreter |\n",
        "| `evaluation/` | values of expressions on data: `sets/` and their members, `interpret/`, its `kernels/`, `checks/` of "
        "domains |\n",
    ),
    (
        PAGE,
        "| `algorithms/` | one file each; `estimators/`; `runtime/`: the loops that programs carry |\n",
        "| `algorithms/` | one file each; `estimators/`; `runtime/`: the loops, the finish and the helpers that programs carry |\n",
    ),
    (
        PAGE,
        "| `numerics/` | methods that know numbers alone: programs over cones, projected gradients, the power method |\n",
        "| `numerics/` | methods that know numbers alone: programs over cones, an interior-point method for `few_columns/`, "
        "projected gradients, least norms, concave maxima |\n",
    ),
]
LAST: list[tuple[str, str, str]] = []


def checks(top: Path) -> list[str]:
    """Old names that are left where nothing rewrites them."""
    wrong = []
    old = re.compile(r"fccomodel\.solver\b|fccomodel/solver\b|fccomodel\.normal\.|fccomodel/normal/|\bsolver/(lower|emit|run|conic)/")
    for path in [*top.glob("fccomodel/**/*"), *top.glob("tests/**/*"), *top.glob("tutorials/**/*"), top / "README.md"]:
        if path.is_relative_to(top / "tests/bench/moves"):
            continue
        if path.suffix in (".py", ".md", ".toml", ".pyi", ".txt", ".yml") and path.is_file():
            for k, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if old.search(line):
                    wrong.append(f"{path.relative_to(top)}:{k}: an old name: {line.strip()[:100]}")
    return wrong
