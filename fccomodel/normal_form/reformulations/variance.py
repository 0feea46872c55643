"""Functions of several expectations over one draw: variance e  ->  E e^2 - (E e)^2."""

from fccomodel.library import reductions
from fccomodel.normal_form.reformulations._base import Additions, Reformulation
from fccomodel.normal_form.reformulations._by_means import of_several, rewriting

reformulation = Reformulation(
    name="variance",
    order=20,
    formula="variance[z] e = E[z] e^2 - (E[z] e)^2",
    apply=rewriting(of_several),
    removes=reductions.named(of_several),
    cost=Additions(blocks=1),
    cite="ascvrg-2021 section 4; hscg-2020 equation (33)",
)
