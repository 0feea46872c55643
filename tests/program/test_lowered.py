"""A plan is lowered once: emission prints what there is, and adds nothing to it."""

from __future__ import annotations

import pytest
from support.emitted_models import CASES, Made, make

from fccomodel.program import emit
from fccomodel.program.graph import Graph
from fccomodel.program.lower import VectorSteps


def graphs(made: Made) -> list[Graph]:
    """Those of all passes."""
    lowered = made.lowered
    states = [lowered.steps.state, lowered.exact.state]
    states += [lowered.steps.full, lowered.steps.phi] if isinstance(lowered.steps, VectorSteps) else []
    states += [part.state for part in (lowered.whole, lowered.constrained) if part is not None]
    return [state.graph for state in states]


def printed_again(made: Made) -> None:
    values, arrays = [list(graph.vals) for graph in graphs(made)], dict(made.lowered.data)
    again = emit.emit(made.lowered)
    assert again.text == made.program.text
    assert again.data.keys() == made.program.data.keys()
    assert [graph.vals for graph in graphs(made)] == values
    assert made.lowered.data == arrays


@pytest.mark.parametrize("name", list(CASES)[::7])
def test_blocks(name: str) -> None:
    printed_again(make(name))


@pytest.mark.parametrize("algorithm", ["nasa", "civr"])
def test_vectors(algorithm: str) -> None:
    made = make("ratio", algorithm=algorithm)
    assert isinstance(made.lowered.steps, VectorSteps)
    printed_again(made)
