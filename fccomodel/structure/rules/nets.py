"""Networks: facts from the layers of the bound module, and from what the model assumes."""

from __future__ import annotations

from fccomodel.core import ir
from fccomodel.library.amounts import NONE, SOME, ZERO, amount
from fccomodel.structure.declarations import Declarations
from fccomodel.structure.draft import FactsDraft
from fccomodel.structure.facts import NEITHER, Facts, Standing

BOUNDED = "on every bounded set of weights; that the iterates stay in one is assumed"
FIX = (
    "use smooth activations (SiLU, softplus, ELU, tanh); or declare `assume smooth` (reports will say that "
    "it is your assumption)."
)


def call(node: ir.NetCall, args: tuple[Facts, ...], declared: Declarations) -> Facts:
    """The facts of ``s(w; x)`` as a function of w, and of the variables that x depends on."""
    rows = args if node.params is None else args[1:]
    names = {name: NEITHER for a in args for name in a.leaves}
    draft = FactsDraft(
        expr=node,
        args=args,
        entries=declared.entries(node.shape),
        leaves=names,
        random=any(row.random for row in rows),
    )
    moving = [row for row in rows if not row.constant]
    if declared.problem is not None and node.net in declared.problem.nets:
        for name, values in declared.problem.nets[node.net].assume:
            if moving:
                _assume_of_weights(draft, name, node)
            else:
                _assume(draft, name, values, node)
    if declared.bound is not None and node.net in declared.bound.nets:
        if moving:
            _composed(draft, node, moving, declared.bound.nets[node.net])
        else:
            _layers(draft, node, declared.bound.nets[node.net])
    elif moving and draft.facts:
        _take_back_by_inputs(draft, node, moving)
    if not draft.facts:
        fix = (
            f'bind a net with smooth activations, as --net "{node.net}=mlp(64, 64, activation = elu)"; '
            "or declare"
        )
        fix += f" `net {node.net} : ... assume smooth;` (reports will say that it is your assumption)."
        draft.both(
            NONE, "no rule", f"net {node.net} is not bound yet, and the model assumes nothing of it", fix=fix
        )
        draft.propose("differentiable", False, "no rule", f"net {node.net} is not bound yet", fix=fix)
    return draft.finish()


def _composed(draft: FactsDraft, node: ir.NetCall, moving: list[Facts], module: object) -> None:
    """Propose what the layers of a module prove of its composition with inputs that depend on variables.

    A smooth function of weights and inputs together, at inputs that are smooth, is smooth.
    """
    from fccomodel.data.nets import walk

    if all(row.affine for row in moving):
        inputs = "affine"
    else:
        inputs = "smooth"
    layers = walk(module, moving=inputs)  # type: ignore[arg-type]
    reasons = "; ".join(layers.reasons)
    if layers.affine and node.params is None:
        draft.both(ZERO, "network", f"{node.net} is affine in its input", [row.below for row in moving])
        draft.propose("lipschitz", SOME, "finite data")
    elif layers.smooth:
        why = f"{node.net} is applied to a function of the variables, and may bend it either way"
        draft.both(NONE, "no rule", why)
        words = f"{node.net} is smooth in its weights and its input {BOUNDED}"
        reason = f"{node.net}: {reasons}"
        draft.propose(
            "differentiable", True, "network", reason, [row.differentiable for row in moving if row.smooth]
        )
        gradients = [row.gradient for row in moving]
        draft.propose("gradient", SOME, "network", words, gradients, standing=Standing.ASSUMED)
        values = [row.lipschitz for row in moving]
        draft.propose("lipschitz", SOME, "network", words, values, standing=Standing.ASSUMED)
    else:
        draft.propose("differentiable", False, "network", f"{node.net}: {reasons}", fix=FIX)
        draft.both(NONE, "no rule", f"{node.net}: {reasons}", fix=FIX)
    _take_back_by_inputs(draft, node, moving)
    if draft.value("lipschitz").finite:
        draft.parts = {leaf: draft.value("lipschitz") for leaf in draft.leaves}


def _take_back_by_inputs(draft: FactsDraft, node: ir.NetCall, moving: list[Facts]) -> None:
    """Take back what a composition is said to be where its inputs are not smooth, or not Lipschitz."""
    rough = [row.differentiable for row in moving if not row.smooth]
    steep = [row.lipschitz for row in moving if not row.is_lipschitz]
    why = f"an input of {node.net} is not"
    if rough or steep:
        draft.facts.pop("gradient", None)
        draft.facts.pop("below", None)
        draft.facts.pop("above", None)
        draft.both(NONE, "no rule", f"{why} smooth, or not known to be Lipschitz", rough or steep)
    if rough:
        draft.facts.pop("differentiable", None)
        draft.propose("differentiable", False, "kink", f"{why} smooth", rough)
    if steep:
        draft.facts.pop("lipschitz", None)
        draft.propose("lipschitz", NONE, "no rule", f"{why} known to be Lipschitz", steep)


def _assume_of_weights(draft: FactsDraft, name: str, node: ir.NetCall) -> None:
    """Propose what an assumption about the weights says of a net whose input depends on variables too.

    A constant is of the weights alone. A net that is convex in its weights need not be so in both.
    """
    if name in ("smooth", "lipschitz"):
        _assume(draft, name, (), node)
    else:
        property_of_net = name.replace("_", " ")
        words = f"that {node.net} is {property_of_net} is assumed at fixed inputs, and its input varies"
        draft.both(NONE, "no rule", words)


def _assume(draft: FactsDraft, name: str, values: tuple[float, ...], node: ir.NetCall) -> None:
    """Propose what one assumption of the model says, with its constant if ``values`` holds one."""
    rule, standing = "network assumption", Standing.ASSUMED
    words = f"the model assumes that {node.net} is {name.replace('_', ' ')}"
    number = SOME
    if values:
        number = amount(values[0])
        words += f" with constant {values[0]:g}"
    if name in ("smooth", "lipschitz", "weakly_convex"):
        draft.both(NONE, "no rule", f"the model does not assume that {node.net} is convex")
    if name == "smooth":
        draft.propose("differentiable", True, rule, words, standing=standing)
        draft.propose("gradient", number, rule, words, standing=standing)
        draft.propose("lipschitz", SOME, rule, f"{words}, {BOUNDED}", standing=standing)
    elif name == "lipschitz":
        draft.propose("lipschitz", number, rule, words, standing=standing)
    elif name == "weakly_convex":
        draft.propose("below", number, rule, words, standing=standing)
        draft.propose("lipschitz", SOME, rule, f"{words}, {BOUNDED}", standing=standing)
    elif name == "convex":
        draft.propose("below", ZERO, rule, words, standing=standing)
    if draft.value("lipschitz").finite:
        draft.parts = {leaf: draft.value("lipschitz") for leaf in draft.leaves}


def _layers(draft: FactsDraft, node: ir.NetCall, module: object) -> None:
    """Propose what the layers of the bound module prove."""
    from fccomodel.data.nets import walk

    layers = walk(module)  # type: ignore[arg-type]
    reasons = "; ".join(layers.reasons)
    if layers.affine:
        draft.both(ZERO, "network", f"{node.net}: {reasons}")
        draft.propose("lipschitz", SOME, "finite data")
    elif layers.smooth:
        why = f"{node.net} has free weights before free weights, so it is neither convex nor concave in them"
        draft.both(NONE, "no rule", why)
        draft.propose("differentiable", True, "network", f"{node.net}: {reasons}")
        words = f"{node.net} is smooth {BOUNDED}"
        draft.propose("gradient", SOME, "network", words, standing=Standing.ASSUMED)
        draft.propose("lipschitz", SOME, "network", words, standing=Standing.ASSUMED)
    else:
        draft.propose("differentiable", False, "network", f"{node.net}: {reasons}", fix=FIX)
        if layers.kind == "weakly convex":
            words = f"{node.net}: {reasons}, {BOUNDED}"
            draft.propose("below", SOME, "network", words, standing=Standing.ASSUMED)
            words = f"{node.net} is weakly convex {BOUNDED}"
            draft.propose("lipschitz", SOME, "network", words, standing=Standing.ASSUMED)
        else:
            draft.both(NONE, "no rule", f"{node.net}: {reasons}", fix=FIX)
    if draft.value("lipschitz").finite:
        draft.parts = {leaf: draft.value("lipschitz") for leaf in draft.leaves}
