"""Whole programs on a GPU, as far as it shows without one: nothing is left on the host, and no step waits for a number."""

from __future__ import annotations

import types

import pytest
from emitted_models import made
from fake_device import MISSING, outcome

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.mark.parametrize("name", ["risk_set", "net_and_more", "cvar_in_constraint", "constraint_family", "noise", "simple_sets"])
def test_a_program_runs_on_fake_tensors(name: str) -> None:
    """All of it, restoration included, which reads the constraints of a step once."""
    case = made(name)
    failed, reads = outcome(case.solver, dict(case.program.data), f"{name}_solver.py")
    assert not any(failed.values()), failed
    assert reads["least_norm"] < 200


@pytest.mark.parametrize(
    "line", ["float(w.sum())", "x_z + torch.zeros(1, 3)", "x_z[x_z > 0]", "data.D_y[torch.zeros(2, dtype=torch.long)]"]
)
def test_what_waits_is_found(line: str) -> None:
    case = made("logistic")
    head, gradient, rest = case.program.text.partition("def gradient(")
    broken = head + gradient + rest.replace("    return t2", f"    {line}\n    return t2", 1)
    assert broken != case.program.text
    solver = types.ModuleType("solver")
    exec(compile(broken, "broken.py", "exec", dont_inherit=True), solver.__dict__)  # noqa: S102
    failed, _ = outcome(solver, dict(case.program.data), "broken.py")
    assert failed["step"], failed
