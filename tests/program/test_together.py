"""Operations of a step that are made as one: the steps are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from support.emitted_models import HEAD, NET, Case, Made, make, mlp

from fccomodel.program.emit import program

OVER_PAIRS = "minimize mean[p in P] log(E[n ~ N] exp(sqhinge(1 + SCORE(n) - SCORE(p))));"
WRITTEN = {  # what the text of a step has, with the number of times
    HEAD: (
        "dot(w, {}.x)",
        {"torch.stack([w, w_prev])": 1, "data.D_x.index_select": 1, ".relu()": 1, ".t()": 1},
    ),
    NET: ("s(v; {}.x)", {"torch.stack(": 1, "data.D_x.index_select": 1, ".relu()": 1, "net_s": 3}),
}


def stepped(made: Made, count: int = 8) -> list[torch.Tensor]:
    """The iterate and the estimates after some steps in float64, the sets so small that blocks are met
    again."""
    program, state = made.solver, SimpleNamespace(met=0)
    rng, h = torch.Generator().manual_seed(0), program.Settings()
    with program.no_grad():
        data = program.prepare(program.as_namespace(dict(made.program.data), "cpu", torch.float64))
        state.w = program.start(rng, "cpu", torch.float64)
        state.w += 0.1 * torch.randn(state.w.shape, generator=rng, dtype=torch.float64)
        state.w_prev, u, c = (
            state.w.clone(),
            program.buffers("cpu", torch.float64),
            program.centres("cpu", torch.float64),
        )
        program.SOLVER.begin(state, h)
        for batch in program.drawn(program.SOLVER, data, rng, count):
            program.SOLVER.advance(program.SOLVER, data, state, u, c, batch, h)
    return [state.w, *vars(u).values()]


@pytest.mark.parametrize("head", WRITTEN, ids=["linear", "net"])
def test_steps_are_the_same(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    score, expected = WRITTEN[head]
    body = OVER_PAIRS.replace("SCORE(n)", score.format("n")).replace("SCORE(p)", score.format("p"))
    given: dict[str, Any] = {"algorithm": "sonex", "outer_batch": 8, "inner_batch": 6}
    case = Case(text=f"model together;{head}{body}", nets=lambda: {"s": mlp()} if head is NET else {})
    one = make("together", case, **given)
    monkeypatch.setattr(program, "together", lambda steps: steps)
    other = make("apart", case, **given)
    text = one.program.text.partition("def gradient(")[2].partition("\n\n\n")[0]
    assert {part: text.count(part) for part in expected} == expected
    for x, y in zip(stepped(one), stepped(other), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-11, atol=1e-11, equal_nan=True)
