"""The record in which a program hands its model and its algorithm to the loops. The emitter copies
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fccomodel.algorithms.runtime.loops.schedules import Schedule


@dataclass(frozen=True, kw_only=True)
class Solver:
    """A model on data as its program knows it, and the algorithm.

    w is one flat vector, ``data`` the arrays, c the centres of smoothed functions by name, h the settings.

    The model and its data
        as_namespace(tensors, device, dtype)   the arrays on a device
        prepare(data), prepare_full(data)      the same, with what steps and full passes need
        start(rng, device, dtype)              the first w
        centres(device, dtype)                 the first c
        draw(data, rng, T)                     the samples of T steps
        project(w, step)                       proximal maps and projections, in place
        evaluate(data, w)                      the problem itself: the objective, and by label the kind
                                               and the values of each constraint
        constraint_values(data, w)             the constraints, for autograd
        regulariser(w)                         the terms with a prox
        blocks(data, w)                        by centre: its cells, the exact argument, the slope, and
                                               the largest slope of a penalty (0 of another function)
        whole(data, w, c, h)                   the smoothed objective on all rows, for autograd; None if
                                               such a pass is not affordable
        all_blocks(data, w)                    ``blocks``, with the functions inside expectations
        inside                                 the shapes of the centres of these functions

    The algorithm
        settings(), schedule                   the settings to begin with, and what changes in a run
        begin, update                          how the algorithm starts, and its update of w
        solve                                  the loop
        finish, one_pass                       full passes after it, and what one costs in counted seconds
        restore                                a return to the constraints after it
        resume                                 where another run ended, for a finish without steps before
        pairs(device)                          the curvature that the finish of that run knew
        moments(device, dtype)                 running means of gradients that it ended with, by name

    Facts
        block      steps whose samples are drawn together
        own        entries of w that are variables of the model
        centred    whether some function has a centre
        dual       whether steps move the centres: they are the y of blocks
        curved     the centres of functions that are smooth
        thin       rows that evaluations between stages take, by the name of their array
        heavy      whether a full pass takes pairs of rows
        direct     whether passes may come first, because nobody asked for the steps
        attained   whether the objective is known to have a minimum
        biased     whether means of minibatch gradients are biased and there is no ``whole``: nothing
                   tells the KKT residual
        nonconvex  whether steps may rest far from the best point: the finish tries the first w too
        tol        the KKT residual to end at
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
    moments: Any = None
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
    """A solver whose gradient is by estimates u of inner expectations, one per block.

    gradient(data, w, w_prev, u, c, batch, h)          the stochastic gradient; it moves u
    buffers(device, dtype)                             the first u
    step_sizes(h, inverse)                             the step size, if the settings have none
    advance(solver, data, state, u, c, batch, h)       one step: see ``Algorithm``
    oracles       values g_i(w; xi) that a step asks for
    surrogate     whether steps descend another problem, whose values do not judge theirs
    inequalities  the centres that are multipliers of inequalities, moved by the steps
    leap          takes several steps in one call, in the place of ``one_step``; None: one by one
    leaping       leaping(solver, step, share), or None: the solver with a leap if that pays in ``share``
                  counted seconds of steps of ``step`` seconds each; what a step takes then, and what
                  the leap takes to begin with
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
    """A solver with all inner expectations as one vector F(w).

    inner(data, w, batch, h)              F(w) by a minibatch
    inner_full(data, w, h)                F(w), exactly
    outer(data, w, u, c, h)               phi(u), which may depend on w too
    outer_part(data, w, u, c, batch, h)   phi by the samples of a batch; None if steps take all of it
    components   length of F(w)
    samples      oracle calls of ``inner``
    rows         oracle calls of ``inner_full``
    squares      whether phi is smoothed by half squares, which bound the residual of a pair (x, y)
    """

    inner: Callable
    inner_full: Callable
    outer: Callable
    components: int
    samples: int
    rows: int
    outer_part: Callable | None = None
    squares: bool = True
