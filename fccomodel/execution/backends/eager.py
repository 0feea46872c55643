"""Steps one by one, as the program's text has them."""

from fccomodel.execution.backends._base import Backend, Unfit


def leap(several):
    """Raises ``Unfit``: the loop's own steps are eager."""
    raise Unfit("it is what runs without a backend")


backend = Backend(name="eager", meaning="torch, operation by operation: starts at once", leap=leap)
