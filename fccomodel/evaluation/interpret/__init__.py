"""The value of any expression of a bound problem, in float64, differentiable in the variables: the
reference for all else.

``evaluate`` is the way in. ``evaluator`` walks expressions; ``ranging`` says where a reduction goes
(``spaces``), ``reductions`` what it makes of its elements, ``pairs`` and ``inner_maximum`` know
closed forms.
"""

from fccomodel.evaluation.interpret.evaluator import Evaluator, combinations, evaluate
from fccomodel.evaluation.kernels.net_rows import net_apply

__all__ = ["Evaluator", "combinations", "evaluate", "net_apply"]
