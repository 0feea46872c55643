"""What a program defines of its model, for the loops: they take all of it in one record. The emitter
copies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fccomodel.algorithms.runtime.loops.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Solver:
    """A model on data as its program knows it, and the algorithm. w is one flat vector, ``data`` the
    arrays, c the centres of smoothed functions by name, h the settings.

    settings()                 the settings to begin with         schedule   what changes as a run goes
    as_namespace(tensors, device, dtype), prepare(data), prepare_full(data)     the arrays, with what steps and full passes need
    start(rng, device, dtype)  the first w                        centres(device, dtype)   the first c
    draw(data, rng, T)         samples of T steps                 project(w, step)   prox and
                               projections, in place
    begin, update              how the algorithm starts, and its update of w
    evaluate(data, w)          objective, and by label each constraint's kind and values, of the
                               problem itself
    blocks(data, w)            by centre: its cells, the exact argument, the slope there, the
                               largest slope of a penalty
    whole(data, w, c, h)       the smoothed objective on all rows, for autograd; None where no such
                               pass is affordable
    all_blocks(data, w)        ``blocks``, with the functions inside expectations, whose centres
                               have the shapes ``inside``
    regulariser(w)             the terms with a prox              constraint_values(data, w)   the
                               constraints, for autograd
    solve, finish, restore     the loop, and what may come after it; ``one_pass``: counted seconds
                               of its passes
    block      steps whose samples are drawn together             own        entries of w that are
               the model's own variables
    centred    some function has a centre                         dual       steps move the centres:
               they are blocks' own y
    curved     centres of functions that are smooth
    thin       rows that evaluations between stages take, by the name of their array; ``heavy``: a
               full pass takes pairs
    tol        the KKT residual to end at                         direct    passes may come first:
               nobody asked for the steps
    resume     where another run ended: a finish goes on from there, without a step before
    pairs      pairs(device): by which its quasi-Newton method knew the curvature there
    attained   the objective is known to have a minimum: it does not fall for ever
    biased     gradients of minibatches are, whatever their number, and there is no ``whole``:
               nothing tells the KKT residual
    nonconvex  where steps come to rest may be far from the best: the finish tries the first iterate too
    """

    settings: Callable
    schedule: Schedule
    as_namespace: Callable
    prepare: Callable
    prepare_full: Callable
    start: Callable
    centres: Callable
    draw: Callable
    project: Callable
    begin: Callable
    update: Callable
    evaluate: Callable
    blocks: Callable
    solve: Callable
    whole: Any = None
    all_blocks: Any = None
    regulariser: Any = None
    constraint_values: Any = None
    finish: Any = None
    one_pass: Any = None
    restore: Any = None
    resume: Any = None
    pairs: Any = None
    block: int = 64
    own: int = 0
    centred: bool = False
    dual: bool = False
    heavy: bool = False
    direct: bool = False
    attained: bool = False
    nonconvex: bool = False
    biased: bool = False
    curved: tuple[str, ...] = ()
    thin: Mapping[str, int] = field(default_factory=dict)
    inside: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tol: float | None = None


@dataclass(frozen=True, kw_only=True)
class BlockSolver(Solver):
    """With a gradient by estimates u of inner expectations, one per block.

    gradient(data, w, w_prev, u, c, batch, h)        buffers(device, dtype)   the first u
    step_sizes(h, inverse), advance(solver, data, state, u, c, batch, h)     the algorithm's: see ``Algorithm``
    oracles       values g_i(w; xi) that a step asks for
    surrogate     steps descend another problem, whose values do not judge theirs
    inequalities  centres that are multipliers of inequalities, moved by the steps
    leap          takes several steps in one call where it can, in the place of ``one_step``; None: one by one
    leaping       ``leaping(solver, step, share)``: the solver with a leap where this pays in so
                  many counted seconds of steps,
                  each of which takes ``step`` of them; what a step takes then, and the leap to
                  begin with; None: there is none
    """

    gradient: Callable
    buffers: Callable
    step_sizes: Callable
    advance: Callable
    oracles: int = 1
    surrogate: bool = False
    inequalities: tuple[str, ...] = ()
    leap: Any = None
    leaping: Any = None


@dataclass(frozen=True, kw_only=True)
class VectorSolver(Solver):
    """With all inner expectations as one vector F(w): ``inner(data, w, batch, h)``, exactly
    ``inner_full(data, w, h)``, and ``outer(data, w, u, c, h)`` = phi(u), of w as well.

    outer_part    phi by the samples of a batch: ``outer_part(data, w, u, c, batch, h)``; None where
                  steps have all of it
    components    length of F(w)           samples, rows   oracle calls of ``inner`` and of ``inner_full``
    squares       phi is smoothed by half squares, which bound the residual of a pair (x, y)
    """

    inner: Callable
    inner_full: Callable
    outer: Callable
    components: int
    samples: int
    rows: int
    outer_part: Callable | None = None
    squares: bool = True
