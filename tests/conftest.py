"""Options of the test run."""

import gc
import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

#: Processes that tests start keep the code that they compile: each would do so anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

TESTS = Path(__file__).parent
#: Files and folders that a quick lane leaves out (``-m "not slow"``): whole solves, processes,
#: programs of every model.
SLOW = (
    "algorithms/test_estimators.py",
    "algorithms/test_finish.py",
    "algorithms/test_residual.py",
    "app/test_answered.py",
    "app/test_bad_input.py",
    "app/test_cli.py",
    "app/test_compare.py",
    "app/test_completion.py",
    "app/test_criterion.py::test_a_loop_with_batch_norm_and_flips_trains",
    "app/test_criterion.py::test_pairs_of_one_batch_are_unbiased",
    "app/test_criterion.py::test_the_page_runs",
    "app/test_criterion.py::test_the_state_goes_on_to_the_same_bits",
    "app/test_interrupted_start.py",
    "app/test_labelled.py",
    "app/test_new_rows.py",
    "app/test_newcomer.py",
    "app/test_notebook.py",
    "app/test_page.py",
    "app/test_python.py",
    "app/test_scoring.py::test_nets",
    "app/test_silent.py",
    "app/test_sklearn.py",
    "app/test_solve_by_optimizer.py",
    "app/test_start.py",
    "app/test_store.py",
    "app/test_surroundings.py",
    "app/test_sweep.py",
    "app/test_templates.py",
    "conformance",
    "conic/test_conic.py",
    "conic/test_rays.py",
    "core/test_codes.py",
    "data/test_bind.py::test_arrays_need_neither_pandas_nor_pyarrow",
    "data/test_drawn.py::test_a_folder_of_images",
    "data/test_drawn.py::test_rows_that_do_not_change_give_the_answer_of_memory",
    "data/test_hostile_files.py",
    "data/test_prepare.py",
    "data/test_queries.py",
    "evaluation/test_interpret.py",
    "evaluation/test_logarithms.py",
    "evaluation/test_members.py",
    "evaluation/test_memory.py",
    "execution/test_backends.py::test_auto_chooses_by_the_steps_that_seconds_have_room_for",
    "execution/test_backends.py::test_captured_and_traced_steps_are_the_steps_one_by_one",
    "execution/test_backends.py::test_compiled_steps_are_the_steps_one_by_one",
    "execution/test_checkpoints.py",
    "execution/test_dear_nets.py",
    "execution/test_device.py",
    "execution/test_half.py",
    "execution/test_microscope.py",
    "execution/test_race.py",
    "execution/test_ranks.py",
    "execution/test_run.py",
    "execution/test_same.py",
    "execution/test_train_mode.py",
    "execution/test_training_checkpoints.py",
    "execution/test_traps.py",
    "fuzz",
    "language/test_parse.py::test_absurd_text",
    "language/test_statements.py::test_a_new_statement_is_two_files",
    "language/test_statements.py::test_errors_know_a_new_statement",
    "library/test_atoms.py",
    "library/test_new_atom.py",
    "library/test_new_reduction.py",
    "library/test_proximal.py",
    "normal_form/test_reformulations.py",
    "normal_form/test_row_maxima.py",
    "normal_form/test_translations.py",
    "plan/test_coverage.py",
    "plan/test_used.py",
    "program/test_carried.py",
    "program/test_edges.py",
    "program/test_full_pass.py",
    "program/test_gradients.py",
    "program/test_lowered.py",
    "program/test_mapped.py::test_answers_reports_and_programs",
    "program/test_mapped.py::test_groups_and_orders_stay_in_their_files",
    "program/test_modules.py",
    "program/test_penalties.py",
    "program/test_program_text.py",
    "program/test_proximal_solve.py",
    "program/test_runs.py",
    "program/test_samplers.py",
    "program/test_sampling.py",
    "program/test_standalone.py",
    "program/test_verify.py",
    "report/test_by_cones.py",
    "report/test_cautions.py",
    "report/test_cost.py",
    "report/test_gap.py",
    "report/test_intervals.py",
    "report/test_kkt.py",
    "report/test_rounding.py",
    "report/test_row_kinks.py",
    "report/test_second_order.py",
    "report/test_subsample.py",
    "report/test_verdicts.py",
    "structure/test_claims.py",
    "structure/test_estimates.py",
    "structure/test_exchange.py::test_a_mixture_parts_its_centres",
    "structure/test_least.py",
    "structure/test_structure.py::test_deep_sums_do_not_recurse",
    "structure/test_structure_random.py",
    "structure/test_textbook.py",
    "test_coming_from.py",
    "test_extending.py",
    "test_first_models.py",
    "test_first_models.py::test_functions_of_numbers",
    "test_package.py::test_a_model_is_solved_without_sympy",
    "test_package.py::test_a_text_is_explained_without_torch",
    "test_package.py::test_derivatives_along_given_ways",
    "test_package.py::test_the_documents_run_as_they_stand",
    "test_package.py::test_the_first_model_is_solved_without_sympy",
    "test_reasonable_models.py",
    "test_site.py",
)


def pytest_configure() -> None:
    """Collects tests without looking for garbage: what is made then lives as long as the run."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Looks for garbage again, in what the tests make alone."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Gives back what is left, in which libraries look for leaks when the process ends."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that a quick lane leaves out, and puts those that go one by one last, when they fill
    the time of whichever worker is done first."""
    items.sort(key=lambda item: item.nodeid.partition("::")[0] in ONE_BY_ONE)
    for item in items:
        name = (
            f"{item.path.relative_to(TESTS).as_posix()}::{item.name}"
            if item.path.is_relative_to(TESTS)
            else ""
        )
        if name.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


#: Files whose tests of one emitted model (by its name in brackets) go to one worker, which makes its program once.
BY_MODEL = (
    "tests/library/test_identities.py",
    "tests/normal_form/test_separation.py",
    "tests/program/test_carried.py",
    "tests/program/test_full_pass.py",
    "tests/program/test_gradients.py",
    "tests/program/test_verify.py",
)
#: Files of long tests that share nothing: each goes to the next free worker.
ONE_BY_ONE = (
    "tests/app/test_recipes.py",
    "tests/test_coming_from.py",
    "tests/test_course.py",
    "tests/test_package.py",
)


def work_unit(test: str) -> str:
    """The name of the unit of tests that one worker runs: a file, a model, or a test alone."""
    file, _, name = test.partition("::")
    if file in ONE_BY_ONE:
        return test
    if file in BY_MODEL and name.endswith("]"):
        return name[name.index("[") :]
    return file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests by units, in which modules' fixtures and what files keep in memory are made once.

    None if the command line asks for another distribution.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByUnits(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return work_unit(nodeid)

    config.option.loadscopereorder = False
    return ByUnits(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite the expected texts under tests/golden"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether to rewrite expected texts instead of comparing with them."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path, list[str]], str]:
    """What a folder's program prints when it runs in this process, from which the package is not to be
    had."""
    import torch

    def run(folder: Path, given: list[str]) -> str:
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.setitem(sys.modules, "fccomodel", None)
            patch.setattr(sys, "argv", ["solver.py", *given])
            patch.setattr(torch, "set_num_threads", lambda count: None)
            runpy.run_path("solver.py", run_name="__main__")
        return capsys.readouterr().out

    return run
