"""What a run by somebody's optimizer refuses, and what a criterion refuses or warns of."""

from fccomodel.execution.training.errors import criterion, optimizer

__all__ = ["criterion", "optimizer"]
