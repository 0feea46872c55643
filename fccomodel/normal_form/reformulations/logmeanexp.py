"""Functions of one expectation, logmeanexp and pmean among them  ->  an outer function of a mean."""

from fccomodel.library import reductions
from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._by_means import of_one, rewriting

reformulation = Reformulation(
    name="logmeanexp",
    order=40,
    formula="logmeanexp_t e = t log E exp(e/t);  pmean_p e = (E e^p)^(1/p)",
    apply=rewriting(of_one),
    removes=reductions.named(of_one),
    cost=Additions(blocks=1),
    cite="alexr-2025 section 1 (entropic risk)",
)
