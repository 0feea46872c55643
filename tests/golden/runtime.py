@dataclass(kw_only=True)
class LoopSettings:
    """What all steps and loops go by. A program adds the hyper-parameters of its algorithm and, for each function that it
    smooths, ``lam_`` with the name of the function's centre.

    eta        size of a step                                    rho    largest multiplier that penalties allow
    lam        smoothing to begin with; 0: by the size of arguments        lam_inner    that inside expectations
    tau        weight of a centre in its next value, where steps move it
    stage      steps of the first stage                          longest    of the longest
    gain       of a stage that counts as progress, relative      patience   stages without any before the end
    weight     of violations in the merit of a point
    steep      length of the penalties' gradients that their smoothing was made for
    off        by centre: how far its function's argument is off as steps estimate it
    annealed   steps fall over the budget too, to a tenth
    once       over the budget alone, to a hundredth, and not within stages, which go on from where the one before ended
    kept       smoothing, rho and weight are those that another run ended with
    pass_step  size of a proximal step of full passes, where another run found it
    powers     gradients that an estimate of curvature takes to begin with        halvings   of a first step, at most
    """

    eta: float = 0.0
    rho: float = 10.0
    lam: float = 0.0
    lam_inner: float = 0.0
    tau: float = 0.0
    stage: int = 200
    longest: int = 4000
    gain: float = 1e-4
    patience: int = 12
    weight: float = 0.0
    steep: float = math.inf
    off: dict[str, float] = field(default_factory=dict)
    annealed: bool = False
    once: bool = False
    kept: bool = False
    pass_step: float = 0.0
    powers: int = 8
    halvings: int = 40

    def copy(self) -> Self:
        """The same numbers, to be changed apart from these."""
        return copy.copy(self)

    def smoothing(self, name: str) -> float:
        """The smoothing parameter of a centre's function."""
        return getattr(self, "lam_" + name)

    def smooth(self, name: str, lam: float) -> None:
        """Sets it."""
        setattr(self, "lam_" + name, lam)

    def smoothed(self, change: Callable[[float], float]) -> Self:
        """A copy in which every function's smoothing parameter is changed."""
        changed = self.copy()
        vars(changed).update({key: change(lam) for key, lam in vars(self).items() if key.startswith("lam_y")})
        return changed


@dataclass(kw_only=True)
class BlockSettings(LoopSettings):
    """Those of the loop over blocks.

    peak       size of a stage's first step                      together   batches at one w whose mean gradient moves it
    steady     weights of new inner values stay as they are within a stage
    gamma      weight of new inner values; 0: estimates have none          gamma_prime    of their difference
    """

    peak: float = 0.0
    together: int = 1
    steady: bool = False
    gamma: float = 0.0
    gamma_prime: float = 0.0


@dataclass(kw_only=True)
class VectorSettings(LoopSettings):
    """Those of the loop over all inner expectations as one vector.

    growth     of an epoch's length from one to the next         shrink     of the step size where an epoch gains nothing
    look       steps of an epoch between exact evaluations       probe      samples that the first step size is found by
    matrix     entries of the largest Jacobian that is kept as a matrix
    pass_limit samples above which F is not computed exactly, but by algorithms that are made of full passes
    """

    growth: float = 1.0
    shrink: float = 0.6
    look: int = 1000
    probe: int = 500
    matrix: float = 4e6
    pass_limit: float = 1e7


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Of steps, stages (epochs) and the answer; here nothing changes but what the algorithm says.

    next_stage   what changes between stages: ``next_stage(h, gained, worst)``, whether the last one gained, its violation
    falling      and within them: ``falling(h, share)``, the settings where the step size is at that share of its first
    adapts       what a stage found decides where the next one starts, and on step sizes, centres and penalties
    scales       smoothing and penalties begin by the sizes of arguments and gradients
    pools        the average is that of all iterates, not of each stage's second half
    keeps_last   the answer is the last iterate, not the best
    """

    next_stage: Callable | None = None
    falling: Callable | None = None

    adapts = False
    scales = True
    pools = False
    keeps_last = False

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """Steps of the stage that begins after ``count`` of them."""
        return min(h.stage, (iterations or math.inf) - count)

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """The settings of steps where so much of a stage is left, and so much of the budget is spent."""
        return h

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """The step size, from the ``first`` one, where so much of the budget is spent."""

    def averages(self, done: int, length: float) -> bool:
        """The iterate after so many steps of a stage is part of the average."""
        return self.pools

    def after(self, h: LoopSettings, gained: bool, worst: float) -> None:
        """A stage has ended."""
        if self.next_stage is not None:
            self.next_stage(h, gained, worst)


@dataclass(frozen=True, kw_only=True)
class Solver:
    """A model on data as its program knows it, and the algorithm. w is one flat vector, ``data`` the arrays, c the centres of
    smoothed functions by name, h the settings.

    settings()                 the settings to begin with         schedule   what changes as a run goes
    as_namespace(tensors, device, dtype), prepare(data), prepare_full(data)     the arrays, with what steps and full passes need
    start(rng, device, dtype)  the first w                        centres(device, dtype)   the first c
    draw(data, rng, T)         samples of T steps                 project(w, step)   prox and projections, in place
    begin, update              how the algorithm starts, and its update of w
    evaluate(data, w)          objective, and by label each constraint's kind and values, of the problem itself
    blocks(data, w)            by centre: its cells, the exact argument, the slope there, the largest slope of a penalty
    whole(data, w, c, h)       the smoothed objective on all rows, for autograd; None where no such pass is affordable
    all_blocks(data, w)        ``blocks``, with the functions inside expectations, whose centres have the shapes ``inside``
    regulariser(w)             the terms with a prox              constraint_values(data, w)   the constraints, for autograd
    solve, finish, restore     the loop, and what may come after it; ``one_pass``: counted seconds of its passes
    block      steps whose samples are drawn together             own        entries of w that are the model's own variables
    centred    some function has a centre                         dual       steps move the centres: they are blocks' own y
    curved     centres of functions that are smooth
    thin       rows that evaluations between stages take, by the name of their array; ``heavy``: a full pass takes pairs
    tol        the KKT residual to end at                         direct    passes may come first: nobody asked for the steps
    resume     where another run ended: a finish goes on from there, without a step before
    pairs      pairs(device): by which its quasi-Newton method knew the curvature there
    attained   the objective is known to have a minimum: it does not fall for ever
    biased     gradients of minibatches are, whatever their number, and there is no ``whole``: nothing tells the KKT residual
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
    leaping       ``leaping(solver, step, share)``: the solver with a leap where this pays in so many counted seconds of steps,
                  each of which takes ``step`` of them; what a step takes then, and the leap to begin with; None: there is none
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
    """With all inner expectations as one vector F(w): ``inner(data, w, batch, h)``, exactly ``inner_full(data, w, h)``, and
    ``outer(data, w, u, c, h)`` = phi(u), of w as well.

    outer_part    phi by the samples of a batch: ``outer_part(data, w, u, c, batch, h)``; None where steps have all of it
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


class Practical(Schedule):
    """Stages that adapt: steps fall within each, and the next starts from the better of its last and its average iterate."""

    adapts = True

    def within(self, h: BlockSettings, left: float, spent: float) -> BlockSettings:
        """As the algorithm's steps fall: within each stage, or once, as a cosine does."""
        share = max(left, 0.02) * (1 - 0.9 * min(spent, 1.0) if h.annealed else 1.0)
        if h.once:
            share = 0.505 + 0.495 * math.cos(math.pi * min(spent, 1.0))
        return h if self.falling is None else self.falling(h, share)

    def averages(self, done: int, length: float) -> bool:
        """From the middle on."""
        return 2 * done >= length


class Theory(Schedule):
    """By the constants of a theorem: stages are places to look, and what the theorem itself changes between them."""

    scales = False
    pools = True


class Decay(Schedule):
    """A step size divided by ten at half and at three quarters of the budget (sox-2022, section 4; sonex-alexr2-2025, appendix
    F), all else constant; the answer is the last iterate."""

    keeps_last = True

    def length(self, h: LoopSettings, count: int, iterations: int | None) -> float:
        """A fiftieth of the budget, to look by."""
        return max(h.stage, (iterations or 0) // 50)

    def move(self, h: LoopSettings, first: float, spent: float) -> None:
        """By tenths."""
        h.eta = first * 0.1 ** ((spent >= 0.5) + (spent >= 0.75))


def started(keep, spent=0.0):
    """When a run began, by the clock: as long ago as it took before it was killed, and ``spent`` at least."""
    return time.perf_counter() - (spent if keep is None else max(spent, keep.spent))


def mixed(x):
    """64 bits of which each depends on all of x (the finaliser of splitmix64, Steele, Lea and Flood 2014), without the sign's."""
    x = (x ^ (x >> 30 & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ (x >> 27 & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return (x ^ (x >> 31 & 0x1FFFFFFFF)) & 0x7FFFFFFFFFFFFFFF


def shuffled(places, n, key):
    """Where the places 0 <= k < n go by a permutation of all n that the key stands for; nothing is held but these.

    k = l b + r on a grid of a x b >= n, and six times l or r moves by a hash of the other: a bijection of the grid (Black and
    Rogaway 2002). What leaves the n goes on until it is back; at most a places do.
    """
    a = math.isqrt(n - 1) + 1
    b = -(-n // a)

    def moved(k):
        left, right = k // b, k % b
        for turn in range(0, 6, 2):
            left = (left + mixed(right * 8 + turn + key) % a) % a
            right = (right + mixed(left * 8 + turn + 1 + key) % b) % b
        return left * b + right

    found = moved(places)
    while bool((outside := found >= n).any()):
        found = torch.where(outside, moved(found), found)
    return found


def thinned(solver: Solver, data, seed=1):
    """The same data with fewer rows where pairs are many: evaluations between stages use these, the final one does not."""
    if not solver.thin:
        return data
    quick = SimpleNamespace(**vars(data))
    rng = torch.Generator(device=data.device).manual_seed(seed)
    for key, count in solver.thin.items():
        rows, places = getattr(data, key), torch.arange(count, device=data.device)
        chosen = shuffled(places, len(rows), int(torch.randint(1 << 62, (), generator=rng, device=data.device)))
        setattr(quick, key, rows[chosen.sort().values])
    return quick


def opened(solver: Solver, data, device, dtype, exact=None):
    """The bound data for exact values (float64), for those between stages (thinned where they are dear), and for steps."""
    exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64)) if exact is None else exact
    quick = solver.prepare_full(thinned(solver, solver.as_namespace(data, device, dtype))) if solver.heavy else exact
    return exact, quick, solver.prepare(solver.as_namespace(data, device, dtype))


def drawn(solver: BlockSolver, data, rng, count):
    """So many minibatches, one after another."""
    parts = solver.draw(data, rng, count)
    return list(zip(*(part.unbind() for part in parts), strict=True)) if parts else [()] * count


def spare(h: LoopSettings, few, price, seconds):
    """Fewer gradients before the first step, each of fewer minibatches (``few``, in place), where one takes so many counted
    seconds (``price``) that all which the start asks for would take more than a fifth of the budget, or one more than a
    hundredth; of ``seconds`` None as many as ever."""
    if seconds is None:
        return
    if few and price > 0.01 * seconds:
        kept = max(int(len(few) * 0.01 * seconds / price), 1)
        price *= kept / len(few)
        del few[kept:]
    most = 0.2 * seconds / max(price, 1e-9)
    h.powers, h.halvings = min(h.powers, max(int(most / 3), 2)), min(h.halvings, max(int(most / 2), 3))


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Seconds that one thread takes, as measured once by ``tests/bench/rates.py``.

    call     an operation of torch, its part in differentiation and the Python around it
    byte     read or written            product  a multiplication and addition, in products of matrices and convolutions
    curved   an entry of exp, log and the like        moved    an entry by its index       drawn    a random number
    ordered  an entry that is sorted or searched; to find the largest, without an order, costs what moving does
    """

    call: float = 5e-6
    byte: float = 5e-11
    product: float = 5e-11
    curved: float = 2.5e-9
    moved: float = 5e-9
    drawn: float = 4.5e-9
    ordered: float = 1.2e-7


def operation_price(operation, shapes, sizes, rates):
    """Counted seconds of one operation of torch, by its name, the shapes of its tensors (the result's last), and their bytes."""
    name, each = operation.partition(".")[0].strip("_"), 0.0
    if name in ("index", "index_select", "gather", "take", "embedding", "masked_select"):  # not all of where they take from
        shapes, sizes = shapes[1:], sizes[1:]
    most = max((math.prod(shape) for shape in shapes), default=0)
    if name in ("mm", "mv", "bmm", "addmm", "addmv", "baddbmm", "dot", "vdot", "matmul", "linear", "linalg_vecdot", "addbmm"):
        length = next((shape[-1] for shape in shapes[name.startswith(("add", "badd")) :] if shape), 1)
        return rates.call + rates.byte * sum(sizes) + rates.product * length * math.prod(shapes[-1])
    if name.startswith("conv"):
        inner = [math.prod(shape[1:]) for shape in shapes[1:2]]
        return rates.call + rates.byte * sum(sizes) + rates.product * sum(inner) * math.prod(shapes[-1])
    if name.startswith(("exp", "log", "sigmoid", "tanh", "softplus", "pow", "erf", "sin", "cos", "softmax", "elu", "gelu")):
        each = rates.curved
    elif name.startswith(("index", "gather", "scatter", "take", "embedding", "masked_s", "nonzero", "put", "topk", "kthvalue")):
        each = rates.moved
    elif name.startswith(("rand", "normal", "uniform", "bernoulli", "exponential", "multinomial")):
        each = rates.drawn
    elif name.startswith(("sort", "argsort", "searchsorted", "bucketize", "unique", "cum")):
        each = rates.ordered
    return rates.call + rates.byte * sum(sizes) + each * most


def priced(work, rates=None):
    """What ``work()`` returns, and the counted seconds of its operations of torch, of their differentiation too."""
    from torch.utils._python_dispatch import TorchDispatchMode

    rates, spent = rates or Rates(), [0.0]

    class Counting(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):  # else torch loads its compiler, which takes a second
            return False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            held = [*args, *(kwargs or {}).values(), *(result if isinstance(result, list | tuple) else [result])]
            held = [x for part in held for x in (part if isinstance(part, list | tuple) else [part])]
            held = [x for x in held if isinstance(x, torch.Tensor)]
            if func.is_view:
                spent[0] += 0.3 * rates.call
            else:
                sizes = [x.numel() * x.element_size() for x in held]
                spent[0] += operation_price(func.__name__, [tuple(x.shape) for x in held], sizes, rates)
            return result

    with Counting():
        result = work()
    return result, spent[0]


def summary(values):
    """Objective, summed and largest violation of an evaluation; all infinite where anything is not finite."""
    objective, constraints = values
    violations = [t.abs() if kind == "eq" else t.clamp(min=0) for kind, t in constraints.values()]
    value = float(objective), sum(float(t.sum()) for t in violations), max((float(t.max()) for t in violations), default=0.0)
    return value if all(map(math.isfinite, value)) else (math.inf, math.inf, math.inf)


def value_at(solver: Solver, data, w):
    """The summary of the evaluation at w."""
    return summary(solver.evaluate(data, w.to(data.dtype)))


def starting_value(solver: Solver, data, w, G, rng, most=40):
    """The value at the start, which is moved where steps could not be taken from it. Where the problem or its derivative is not
    finite, as a logarithm at 0: to the first point at which both are, of equal entries and of random ones, of several sizes.
    Where the derivative is exactly zero: by small random numbers, since products of variables have it at zero, which no step
    would ever leave; harmless at a minimum. Where it is so for some of the variables at 0, these move, as factors beside offsets;
    those that have no influence there either stay. At ``most`` so many points are tried."""

    def scattered():
        return torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype)

    value = value_at(solver, data, w)
    slopes = G(w)
    slope = float(slopes.abs().max()) if w.numel() else 1.0
    edge = not math.isfinite(value[0] + slope)
    idle = (slopes == 0) & (w == 0) if slope else torch.ones_like(w, dtype=torch.bool)
    if not edge and not (idle.any() and (solver.nonconvex or not slope)):
        return value
    sizes, ways = (1.0, 0.1, 10.0, 0.01, 100.0, 1000.0), [torch.ones_like(w), -torch.ones_like(w)]
    trials = ((t, way) for t in sizes for way in [*ways, *(scattered() for _ in range(4))])
    if not edge:
        small = scattered() * w.numel() ** -0.5 * idle
        small *= (G(w + small) != 0) | (not slope)
        trials = ((t, small) for t in (1.0, 0.1, 0.01, 0.001))
    for _, (size, way) in zip(range(most), trials, strict=False):
        x = w + size * way
        solver.project(x, 0.0)
        found = value_at(solver, data, x)
        if math.isfinite(found[0]) and bool(G(x).isfinite().all()):
            w.copy_(x)
            return found
    return value


def slope_at(t, slope, centre, h: LoopSettings):
    """The slope of a smoothed function at its argument, 0 where it is not finite: where its centre goes."""
    new = slope(t, centre.to(t.dtype), h)
    return torch.where(new.isfinite(), new, torch.zeros_like(new)).to(centre.dtype)


def smoothness(G, w, times=8):
    """The gradient's Lipschitz constant near w along its steepest direction: power iteration on differences of gradients, so many
    times."""
    base = G(w).clone()
    direction, size, largest = base, 1e-3 * (1.0 + float(w.norm())), 0.0
    for _ in range(times):
        length = float(direction.norm())
        if not math.isfinite(length) or length == 0.0:
            break
        direction = (G(w + direction * (size / length)) - base) / size
        largest = max(largest, float(direction.norm())) if math.isfinite(float(direction.norm())) else largest
    return largest


def steepness(penalties, w, c, h: LoopSettings, G):
    """The length of the constraints' summed gradients at w: that of G with all multipliers at 1, less that with all at 0."""
    kept, held = dict(vars(h)), {name: getattr(c, name).clone() for name in penalties}
    vars(h).update(dict.fromkeys(["rho", *("lam_" + name for name in penalties)], 1e6))
    slopes = []
    for y in (0.0, 1.0):
        for name in penalties:
            getattr(c, name).fill_(y)
        slopes.append(G(w).clone())
    vars(h).update(kept)
    for name in penalties:
        getattr(c, name).copy_(held[name])
    return float((slopes[1] - slopes[0]).norm())


def scale_smoothing(solver: Solver, data, w, c, h: LoopSettings, G, dtype):
    """lam and rho to begin with: a non-smooth objective is smoothed on a tenth of its arguments' size, on all of it where blocks
    keep their y, which a visit then moves by 1 / tau of its range (of smooth functions, by the slope: 1 / (1 + tau) of the way);
    a penalty so that its curvature |grad c|^2 / lam is ten times the objective's (where steps fall once, whose noise is large
    to the end, once), or the largest slope of all at the start a tenth of rho: by its own, a constraint that hardly is violated
    there would have no smoothing. rho is at least ten times |grad g_0| / |grad c|.

    ``G(w)`` is the gradient under the smoothing and the centres as they are.
    """
    penalties, violation, share = [], 0.0, 1.0 if solver.dual else 0.1
    for name, (index, t, slope, bounded) in solver.blocks(data, w).items():
        finite = t[t.isfinite()]
        size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
        if name in solver.curved:
            h.smooth(name, 1e-6)
            size /= max(float(slope(finite, torch.zeros_like(finite), h).square().mean().sqrt()), 1e-6)
        h.smooth(name, 1e6 if bounded else h.lam or max(share * size, 1e-6))
        if bounded:
            penalties.append(name)
            violation = max(violation, 1e6 * float(slope_at(t, slope, getattr(c, name)[index or (...,)], h).abs().max()))
    if not penalties:
        return
    begin = w.to(dtype)
    curvature, free, h.steep = smoothness(G, begin, h.powers), float(G(begin).norm()), steepness(penalties, begin, c, h, G)
    if h.steep > 1e-6 * free and math.isfinite(h.steep):
        if solver.schedule.adapts:
            h.rho *= min(max(1.0, free / h.steep), 1e4)
        lam = (1.0 if h.once else 0.1) * h.steep**2 / curvature if curvature > 0 else 10 * h.steep / h.rho
    else:
        lam = 0.1
    for name in penalties:
        h.smooth(name, h.lam or min(max(lam, 1e-6), 10 * violation / h.rho or 1e4))


def copy_state(state):
    """All that the step keeps, so that a stage can be taken back."""

    def copied(x):
        return x.clone() if torch.is_tensor(x) else copy_state(x) if isinstance(x, SimpleNamespace) else x

    return SimpleNamespace(**{name: copied(x) for name, x in vars(state).items()})


def inverse_smoothness(solver: BlockSolver, G, w, value=None, powers=8, halvings=40):
    """One over the gradient's Lipschitz constant at w, constraints active; no further than a first step goes downhill, by the
    gradient at its end or, where gradients jump, as ``value(w)`` falls in a parabola of this curvature."""
    largest = max(smoothness(G, w, powers), smoothness(lambda x: G(x, 1.0), w, powers) if solver.centred else 0.0)
    step, slope = 1.0 / largest if largest > 0 else 0.05, G(w)
    for _ in range(halvings):
        ahead, fall = w - step * slope, 0.5 * step * float(slope @ slope)
        if float(G(ahead) @ slope) >= 0 or (value is not None and value(ahead) <= value(w) - fall):
            break
        step *= 0.5
    return step


def merit(point, weight):
    """Objective plus exact penalty; the weight follows the multipliers, since the penalty is exact above them alone."""
    return point[0] + weight * point[1] if point[1] else point[0]


def set_out(run, solver: BlockSolver, data, h: BlockSettings, G):
    """Step sizes, smoothing, the penalty's weight and the estimates to begin with."""
    w = run.state.w
    run.state.w_prev.copy_(w)
    if solver.centred and solver.schedule.scales and not h.kept:
        scale_smoothing(solver, data, w.to(data.dtype), run.c, h, G, w.dtype)

    def inverse(jumps=False):
        value = (lambda x: merit(value_at(solver, data, x), h.rho)) if jumps else None
        return inverse_smoothness(solver, lambda x, y=None: G(x, y, 1), w, value, h.powers, h.halvings)

    solver.step_sizes(h, inverse)
    h.peak, h.weight, run.eta = h.eta, h.weight or 0.1 * h.rho, h.eta
    solver.begin(run.state, h)
    run.u, run.average = solver.buffers(w.device, w.dtype), w.clone()
    run.best, run.best_c, run.rho = copy_state(run.state), copy_state(run.c), h.rho


def pricing(look=0.0, step=0.0):
    """What a run's work is counted by: counted seconds of a ``step``, an oracle ``call`` and a ``look`` at the exact values, of
    all looks so far, and before the first step (``start``); ``timed``: the clock ended it."""
    return SimpleNamespace(step=step, call=0.0, look=look, looks=0.0, start=0.0, timed=False)


def step_price(run, solver: BlockSolver, data, h: BlockSettings, few=4):
    """Counted seconds of a step, its draws among them, of a few that are taken with copies."""
    state, u, c, h = copy_state(run.state), copy_state(run.u), copy_state(run.c), h.copy()
    data, rng = SimpleNamespace(**{**vars(data), "waiting": {}}), torch.Generator(device=state.w.device).manual_seed(0)
    batches, draws = priced(lambda: drawn(solver, data, rng, solver.block))
    state.met = 0
    _, steps = priced(lambda: [solver.advance(solver, data, state, u, c, batch, h) for batch in batches[:few]])
    return draws / len(batches) + steps / len(batches[:few])


def passes_first(price, step, slope, tol, room):
    """Passes need no step before: one costs no more than two of them, or, where not even 400 fit into 1.6 times the ``room``, no
    more than forty; and the start, by the ``slope`` there, is far from a stationary point, which noise alone would leave."""
    most = 40 if 400 * price >= 1.6 * room else 2
    return price <= most * step and float(slope.norm()) > 100 * (tol or 0.0)


def worked(work, count, calls=0):
    """Counted seconds of so many steps and oracle calls, of what comes before them, and of the looks between them."""
    return work.start + work.step * count + work.call * calls + work.looks


def ending(began, stop, seconds, iterations, oracles=None, share=None, work=None):
    """``ended(count, calls)``: why a run ends after so many steps and oracle calls, or "" where it goes on. ``share``: counted
    seconds of ``work`` that it may take; ``work.timed`` becomes True where it is the clock that ends it."""

    def ended(count, calls=0):
        if stop is not None and stop():
            return "interrupted"
        spent = (iterations is not None and count >= iterations) or (oracles is not None and calls >= oracles)
        if spent or (share is not None and worked(work, count, calls) > share):
            return "the budget is used up"
        if seconds is not None and time.perf_counter() - began > seconds:
            work.timed = True
            return "the time is used up"
        return ""

    return ended


def watching(tol, look, step, z=1.96, few=8):
    """What ``observe`` keeps, by the counted seconds of a ``look`` at the exact values and of a ``step``; ``cost``: those that
    an estimate takes, at first a guess. Without ``tol`` none is made.

    ``z`` standard errors are what a mean may miss by; a standard error takes ``few`` samples.
    """
    cost = few * max(look, step)
    return SimpleNamespace(tol=tol, z=z, few=few, spent=0.0, cost=cost, look=look, step=step, held=0, kkt=None, error=None)


def open_stage(run, solver: BlockSolver, h: BlockSettings, iterations):
    """The beginning of a stage, and of its average."""
    run.length, run.done, run.ahead = solver.schedule.length(h, run.count, iterations), 0, []
    run.end, run.state.met = run.count + run.length, 0
    run.kept = run.kept if solver.schedule.pools else 0


def one_step(run, solver: BlockSolver, data, h: BlockSettings, now: BlockSettings, iterations):
    """The first of the steps whose samples are drawn ahead, by the settings ``now``, and its part in the average."""
    schedule = solver.schedule
    schedule.move(h, h.peak, run.count / (iterations or math.inf))
    solver.advance(solver, data, run.state, run.u, run.c, run.ahead.pop(0), now)
    if schedule.averages(run.done, run.length):
        run.kept += 1
        run.average.lerp_(run.state.w, 1.0 / run.kept)
    run.done, run.count = run.done + 1, run.count + 1


def take_steps(run, solver: BlockSolver, data, rng, h: BlockSettings, iterations, ended, keep=None, reason=""):
    """To the end of the stage, unless there is a ``reason`` to end before; the average of the second half's iterates, by a
    theorem's constants of all. Why the run ends, or "". ``keep`` has the state after each step, or after those that a backend
    takes in one call."""
    schedule, step = solver.schedule, solver.leap or one_step
    while run.done < run.length and not reason:
        if not run.ahead:
            run.since, run.ahead = (run.done, run.count), drawn(solver, data, rng, min(solver.block, run.length - run.done))
        h.eta = h.peak
        done, count = run.since
        now = schedule.within(h, 1 - done / run.length, count / (iterations or math.inf))
        while run.ahead and not reason:
            step(run, solver, data, h, now, iterations)
            reason = ended(run.count)
            if keep is not None:
                keep("steps", run, reason)
        if run.broken is None and not math.isfinite(float(run.state.w.sum())):
            run.broken = run.count
    return reason


def least(solver: Solver, data, points, weight):
    """The summary of the point whose merit is the least, and that point."""
    return min(((value_at(solver, data, x), x) for x in points), key=lambda pair: merit(pair[0], weight))


def go_back(run, solver: BlockSolver, h: BlockSettings, finite):
    """To the best point; the estimates belong to the one that is left. What reformulations added has no place in the objective
    that points are compared by, and stays."""
    added = run.state.w[solver.own :].clone()
    run.state, run.c, run.u = copy_state(run.best), copy_state(run.best_c), solver.buffers(added.device, added.dtype)
    if finite:
        run.state.w[solver.own :] = added
    solver.begin(run.state, h)


def keep_the_better(run, solver: BlockSolver, data, h: BlockSettings):
    """Of the last iterate and the average, one is the best point so far if it gains, and steps go on from it (where they fall
    once, from the last); else they go back. Returns its violation, whether its value is finite, and whether it gains enough."""
    value, chosen = least(solver, data, [run.state.w, run.average] if run.kept else [run.state.w], h.weight)
    gain, schedule = merit(run.value, h.weight) - merit(value, h.weight), solver.schedule
    if float(chosen.norm()) > 1e8 * (1 + float(run.best.w.norm())):
        gain = -math.inf  # it has run away, to where values are rounding
    finite = math.isfinite(value[0]) and gain > -1e8 * (1 + abs(merit(run.value, h.weight)))
    if finite and schedule.adapts and not h.once:
        run.state.w.copy_(chosen)
    if gain > 0 or schedule.keeps_last or solver.surrogate:
        run.best, run.value, run.best_c, run.rho = copy_state(run.state), value, copy_state(run.c), h.rho
        run.best.w.copy_(chosen)
    elif schedule.adapts and not (finite and (solver.centred or h.once)):
        go_back(run, solver, h, finite)
    gained = solver.surrogate or gain >= h.gain * abs(merit(run.value, h.weight))
    run.calm = 0 if gained else run.calm + 1
    return value[2], finite, gained


def centre_at(solver: Solver, data, w, c, h: LoopSettings):
    """c <- the slope of the smoothed function at the exact argument; where blocks keep their own y, moved in every step, that."""
    cells = solver.blocks(data, w)
    for name, (index, t, slope, _) in cells.items():
        if not solver.dual:
            centre, index = getattr(c, name), index or (...,)
            centre[index] = slope_at(t, slope, centre[index], h)
    return cells


def estimated(name, index, t, u, h: LoopSettings):
    """How far a penalty's argument is off as steps estimate it: root mean square over its cells, of the last stages."""
    if hasattr(u, name):
        off = getattr(u, name)[index or (...,)] - t
        square = float(off[off.isfinite()].square().mean())
        if math.isfinite(square):
            h.off[name] = math.sqrt(0.8 * square + 0.2 * h.off.get(name, math.sqrt(square)) ** 2)
    return h.off.get(name, 0.0)


def move_centres(solver: Solver, data, w, c, h: LoopSettings, worst, before, G, dtype, u=None):
    """Centres move to the slopes at w. Smoothing follows the spread of the arguments, that of penalties the square of their
    gradients where these become smaller, and is reduced where the violation does not fall tenfold, less so where steps do not
    fall within a stage (fall once, or in the loop without estimates ``u``), and not below twice what these are off over the
    multipliers' size (a tenth of rho at least). The merit's weight follows the multipliers, and rho grows where one at its bound
    does not help."""
    saturated, largest, cells = False, 0.0, centre_at(solver, data, w, c, h)
    penalties = {name: bounded for name, (*_, bounded) in cells.items() if bounded}
    if penalties and 0 < (steep := steepness(penalties, w.to(dtype), c, h, G)) < h.steep:
        for name in penalties:
            h.smooth(name, max((steep / h.steep) ** 2 * h.smoothing(name), 1e-6))
        h.steep = steep
    for name, bounded in penalties.items():
        steepest = float(getattr(c, name).abs().max()) / bounded
        largest = max(largest, steepest)
        saturated |= steepest >= 0.99 * h.rho
    for name, (index, t, _, bounded) in cells.items():
        lam, finite = h.smoothing(name), t[t.isfinite()]
        if bounded and not solver.dual:
            falls = u is not None and not h.once
            less = min(max(0.1 * before / worst, 0.25 if falls else 0.7), 1.0) if worst > 1e-5 else 1.0
            lam = max(less * lam, 2 * estimated(name, index, t, u, h) / max(largest, 0.1 * h.rho))
        elif finite.numel() > 1 and not solver.dual:
            spread = float((finite - finite.mean()).square().mean().sqrt())
            lam = min(lam, max(0.3 * spread, 0.25 * lam))
        h.smooth(name, lam)
    h.weight = max(h.weight, 2 * largest)
    if saturated and worst > 1e-3 and worst > 0.5 * before:
        h.rho *= 4


def multipliers(solver: Solver, data, w, c, h: LoopSettings):
    """The slopes of the smoothed functions at w, of penalties their centres; and the most by which they are none there."""
    y, shift = SimpleNamespace(**{name: centre.clone() for name, centre in vars(c).items()}), 0.0
    unit, blocks = h.smoothed(lambda lam: 1.0), solver.blocks if solver.whole is None else solver.all_blocks
    for name, (index, t, slope, bounded) in blocks(data, w.to(data.dtype)).items():
        centre, index = getattr(y, name), index or (...,)
        new = slope_at(t, slope, centre[index], unit if bounded else h)
        length = 1.0 if bounded else h.smoothing(name)
        shift = max(shift, length * float((new - centre[index]).abs().max()))
        if not bounded:
            centre[index] = new
    return y, shift


def fixing(h: LoopSettings):
    """Smoothing so wide that slopes are their centres, and dual steps so short that these stay."""
    held = h.smoothed(lambda lam: 1e9)
    held.tau = 1e9
    return held


def some(solver: Solver, data, seed):
    """The data on random rows, in single precision."""
    part = thinned(solver, data, seed)
    for key, x in vars(part).items():
        if torch.is_tensor(x) and x.is_floating_point():
            setattr(part, key, x.float())
    part.dtype = torch.float32
    return solver.prepare_full(part)


def gradient_of(value, x, keep=False):
    """The gradient of ``value`` by x: 0 where it does not depend on x; ``keep`` what later ones of the same pass need."""
    return torch.autograd.grad(value, x, retain_graph=keep)[0] if value.requires_grad else torch.zeros_like(x)


def slope_of(solver: Solver, data, w, c, h: LoopSettings):
    """The gradient of the smoothed objective, without prox terms."""
    with torch.inference_mode(False), torch.enable_grad():
        x = w.detach().to(data.dtype, copy=True).requires_grad_()
        return gradient_of(solver.whole(data, x, c, h), x).to(w.dtype)


def passes(solver: Solver, data, w, c, h: LoopSettings):
    """Gradients from passes over random rows, and the largest violations there."""
    for k in range(64):
        with torch.inference_mode(False), torch.no_grad():
            part = some(solver, data, 2 + k)
            found = slope_of(solver, part, w, c, h), value_at(solver, part, w)[2]
        yield found


def assess(solver: Solver, w, G, spread, violations, shift, watch):
    """The residual from the mean G of some samples, ``spread`` being the sum of their squared distances from it."""
    count = len(violations)
    violation, times = sum(violations) / count, max(count * (count - 1), 1)
    apart = sum((v - violation) ** 2 for v in violations)
    length = float(G.norm())
    step = min(1.0, 1e-3 * (1 + float(w.norm())) / max(length, 1e-300))
    moved = w - step * G
    solver.project(moved, step)
    size = max(float((w - moved).norm()) / step, violation, shift) if math.isfinite(length) else math.inf
    enough = count >= watch.few or (solver.whole is not None and not solver.heavy)
    return SimpleNamespace(residual=size, error=watch.z * math.sqrt(max(spread, apart) / times), enough=enough, count=count)


def residual(solver: Solver, data, w, value, c, h: LoopSettings, minibatches, watch, most):
    """The residual at w by no more than ``most`` samples (two at least), how far it may be off (0: it is exact), and whether
    they are enough to tell."""
    held = h.copy()
    held.lam_inner = 0.1 * watch.tol
    if solver.whole is None:
        y, shift = multipliers(solver, data, w, c, held)
        samples: Any = ((G, value[2]) for G in minibatches(w, y, fixing(held)))
    else:
        with torch.inference_mode(False), torch.no_grad():
            w = w.double().clone()
            centre = SimpleNamespace(**{name: x.double().clone() for name, x in vars(c).items()})
            for name, shape in solver.inside.items():
                setattr(centre, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
                held.smooth(name, 0.1 * watch.tol)
            y, shift = multipliers(solver, some(solver, data, 1) if solver.heavy else data, w, centre, held)
        held = fixing(held)
        samples = passes(solver, data, w, y, held) if solver.heavy else [(slope_of(solver, data, w, y, held), value[2])]
    mean, spread, violations, count = torch.zeros_like(w), 0.0, [], 0
    for G, violation in samples:
        count += 1
        apart = G - mean
        mean = mean + apart / count
        spread += float(apart @ (G - mean))
        violations.append(violation)
        late = count >= max(most, 2)
        if late or (count >= watch.few and count & (count - 1) == 0):  # at powers of two
            found = assess(solver, w, mean, spread, violations, shift, watch)
            if late or not found.residual - found.error <= watch.tol < found.residual + found.error:
                return found
    return assess(solver, w, mean, spread, violations, shift, watch)


def observe(watch, solver: Solver, data, w, value, c, h: LoopSettings, worked, minibatches):
    """Estimates the residual at w, unless that takes more than 3% of the work so far, in counted seconds (15% where it is likely
    to decide), and counts the stages running in which it is at most ``tol`` with 95% probability. Returns both for the history.

    ``value`` is the summary of the evaluation at w; ``minibatches(w, y, h)`` goes on giving gradients with the multipliers y.
    """
    if watch.tol is None or solver.biased:
        return {}
    likely = watch.tol >= 1e-4 or (watch.kkt is not None and watch.kkt - watch.error <= 3 * watch.tol)
    room, each = (0.15 if likely else 0.03) * worked - watch.spent, watch.step if solver.whole is None else 3 * watch.look
    if watch.cost <= room:
        found = residual(solver, data, w, value, c, h, minibatches, watch, max(room - watch.look, 0.0) / max(each, 1e-9))
        watch.cost = watch.look + found.count * each
        watch.spent += watch.cost
        if math.isfinite(found.residual):
            watch.kkt, watch.error = found.residual, found.error
            watch.held = watch.held + 1 if found.enough and found.residual + found.error <= watch.tol else 0
    return {"kkt": watch.kkt, "kkt_error": watch.error}


def record(history, progress, began, value, weight, **entry):
    """One more stage in the history, by the summary of the best point so far; ``progress`` sees it."""
    point = {"objective": value[0], "violation": value[2], "merit": merit(value, weight), "seconds": time.perf_counter() - began}
    history.append({"stage": len(history) + 1, **entry, **point})
    if progress is not None:
        progress(history[-1])


def reached(watch):
    """Why a run may end by the residual, in words, or ""."""
    if watch.held < 2:
        return ""
    sure = f" +- {watch.error:.1g}" if watch.error else ""
    return f"KKT residual {watch.kkt:.1g}{sure} at most {watch.tol:g}{', 95%' if watch.error else ''}, two stages running"


def status(stop, converged):
    """``converged``, ``interrupted`` or ``stopped``."""
    return "interrupted" if stop is not None and stop() else "converged" if converged else "stopped"


def mean_gradient(solver: BlockSolver, data, x, c, h: BlockSettings, batches):
    """The gradient at x over some minibatches, each with estimates of its own."""

    def at(batch):
        return solver.gradient(data, x, x, solver.buffers(x.device, x.dtype), copy_state(c), batch, h)

    return sum(map(at, batches)) / len(batches)


def gradients(solver: BlockSolver, data, w, c, h: BlockSettings, rng):
    """The gradients at w by one minibatch after another, each with estimates of its own."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    u = solver.buffers(w.device, w.dtype)
    while True:
        for batch in drawn(solver, data, rng, solver.block):
            yield solver.gradient(data, w, w, u, copy_state(c), batch, h)


def solve(
    solver: BlockSolver, data, *, seed=0, device="cpu", dtype=None, seconds=30.0, iterations=None, oracles=None,
    progress=None, stop=None, tol=None, exact=None, share=None, price=None, room=math.inf, planned=None, keep=None,
):  # fmt: skip
    """Run to the end of the budget (``share``: in counted seconds), or until stages gain nothing more, or until the KKT residual
    is at most ``tol`` in two of them running. Returns the best point seen, or as the schedule says the last. ``price``: counted
    seconds of a pass, where passes may come in place of steps (``passes_first``), of which there is so much ``room``.

    A stage that the clock or a person cuts is repeated by ``iterations`` and the number of steps ``planned``: the budget's, or
    where it has none to the stage's end.

    ``oracles`` bounds the values g_i(w; xi) that steps ask for; evaluations between stages are no part of the algorithm.
    ``broken`` is the step by which iterates were not finite (the loop went back to the best point), or None.

    ``keep`` writes the state of a run, and puts it back: everything that changes is in ``run``, and all else is made again.

    ``run`` is where it stands: the algorithm's state, estimates u and centres c; the average of the ``kept`` iterates; the best
    point so far with its value, centres and rho; how many steps (``count``), of the stage so many ``done``, batches drawn
    ``ahead`` of them ``since`` the settings changed; how many stages without a gain (``calm``).
    """
    began, dtype = started(keep), dtype or torch.float32
    if oracles is not None:
        iterations = min(iterations or math.inf, max(1, int(oracles // max(solver.oracles, 1))))
    exact, quick, data = opened(solver, data, device, dtype, exact)
    rng = torch.Generator(device=device).manual_seed(seed)
    h, schedule = solver.settings(), solver.schedule
    w = solver.start(rng, device, dtype)
    state = SimpleNamespace(w=w, w_prev=w.clone())
    run = SimpleNamespace(state=state, c=solver.centres(device, dtype), kept=0, count=0, calm=0, broken=None)
    run.h, run.rng, run.waiting = h, rng, data.waiting
    few = drawn(solver, data, rng, min(8, math.ceil(256 / max(solver.oracles, 1))))

    def G(x, y=None, most=None):
        c = run.c if y is None else SimpleNamespace(**{name: torch.full_like(v, y) for name, v in vars(run.c).items()})
        return mean_gradient(solver, data, x, c, h, few[:most])

    def minibatches(x, y, held):
        return gradients(solver, data, x, y, held, torch.Generator(device=device).manual_seed(seed + 1 + run.count))

    spare(h, few, priced(lambda: G(w))[1], seconds if share is None else share)
    run.value, first = starting_value(solver, quick, w, G, rng, h.halvings), w.clone()
    set_out(run, solver, quick, h, G)
    work = pricing(priced(lambda: value_at(solver, quick, w))[1], step_price(run, solver, data, h))
    if price is not None and passes_first(price, work.step, G(w), tol, room):
        iterations = 0
    elif solver.leaping is not None:
        solver, work.step, work.start = solver.leaping(solver, work.step, share)
    if share is not None and iterations != 0:
        iterations = min(iterations or math.inf, 1 + int((share - work.start) / (work.step + 1.5 * work.look / h.stage)))
    ended = ending(began, stop, seconds, iterations, work=work)
    watch = watching(tol, work.look, work.step)
    history: list = []
    run.watch, run.work, run.history, run.worst, reason = watch, work, history, run.value[2], ""
    inside = keep is not None and keep.again("steps", run)
    while not reason:
        if not inside:
            open_stage(run, solver, h, planned or iterations)
        reason = ended(run.count) if inside or iterations == 0 else ""
        inside, reason = False, take_steps(run, solver, data, rng, h, planned or iterations, ended, keep, reason)
        before, (worst, finite, gained) = run.worst, keep_the_better(run, solver, quick, h)
        run.worst = worst
        schedule.after(h, gained, worst)
        if schedule.adapts:
            run.state.w_prev.copy_(run.state.w)
        if solver.centred and finite and schedule.adapts:
            move_centres(solver, quick, run.state.w.to(quick.dtype), run.c, h, worst, before, G, dtype, run.u)
        entry = {"iteration": run.count, "oracles": run.count * solver.oracles, "eta": h.eta if schedule.keeps_last else h.peak}
        work.looks = watch.spent + 3 * work.look * (len(history) + 1)
        entry |= observe(watch, solver, exact, run.best.w, run.value, run.c, h, worked(work, run.count), minibatches)
        record(history, progress, began, run.value, h.weight, **entry)
        if not reason and schedule.adapts:
            reason = reached(watch) or ("stages gain nothing more" if run.calm >= h.patience else "")
    if solver.centred and not schedule.adapts:
        centre_at(solver, exact, run.best.w.double(), run.c, h)
    h.rho, w = run.rho, run.best.w.double()
    solver.project(w, 0.0)  # to double precision
    return SimpleNamespace(
        w=w, c=run.c, u=run.u, h=h, eta=run.eta, history=history, iterations=run.count, seconds=time.perf_counter() - began,
        reason=reason, status=status(stop, schedule.adapts and watch.held >= 2), broken=run.broken, exact=exact, first=first,
        timed=work.timed, worked=worked(work, run.count), planned=None if schedule.keeps_last else iterations or run.end,
    )  # fmt: skip


def linearised(f, w):
    """f(w) in R^q; ``pull(s)`` = J(w)' s; ``matrix()`` = J(w), q x p; ``push(d)`` = J(w) d, by reverse differentiation."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        value = f(x)
        value = value if value.requires_grad else value + 0 * x.sum()  # constants have a derivative too

    def pull(s):
        with torch.enable_grad():
            return torch.autograd.grad((value * s).sum(), x, retain_graph=True)[0]

    def matrix():
        rows = torch.eye(len(value), dtype=w.dtype, device=w.device)
        if len(rows) <= 8:  # fewer than it pays to batch
            return torch.stack([pull(s) for s in rows])
        rows = rows.split(32)  # so many passes backwards at once
        return torch.cat([torch.autograd.grad(value, x, s, retain_graph=True, is_grads_batched=True)[0] for s in rows])

    def push(d):
        with torch.enable_grad():
            s = torch.zeros_like(value).requires_grad_()
            back = torch.autograd.grad((value * s).sum(), x, create_graph=True)[0]
            return torch.autograd.grad((back * d).sum(), s, retain_graph=True)[0]

    return SimpleNamespace(value=value.detach(), pull=pull, matrix=matrix, push=push, taped=value, x=x)


def oracle_of(solver: VectorSolver, data, rng, c, state, h: VectorSettings, late=lambda: False):
    """What a step may ask for; ``state.oracles`` counts the calls (one: the value and derivative of one g_i at one sample).

    batch()            the next minibatch                       sample(w, batch)   F(w; batch), linearised
    whole(w)           F(w) by a full pass, linearised          value(w)           F(w) alone
    pooled(w, batches) F(w) by several minibatches, linearised  many(w)            F(w) by a full pass, or 100 minibatches
    mean(w, batches)   F(w) by several minibatches, alone
    slope(w, u, gamma) the derivatives of phi in u and in w, its smoothing parameters times gamma; by ``chosen`` samples of phi
    phi(w, u)          its value                                prox(w, step)      prox_{step R}(w), a new vector
    keep               the Jacobian is kept as a q x p matrix; else, and where q > 128, products with it
    smoothing          phi has kinks                             share              of all samples in a minibatch
    partial            phi is had by samples
    late()             the budget is used up               ahead              batches drawn before they are asked for
    """
    ahead: list = []

    def batch():
        if not ahead:
            parts = solver.draw(data, rng, solver.block)
            ahead.extend(zip(*(part.unbind() for part in parts), strict=True) if parts else [()] * solver.block)
        return ahead.pop(0)

    def sample(w, chosen):
        state.oracles += solver.samples
        return linearised(lambda x: solver.inner(data, x, chosen, h), w)

    def pooled(w, batches):
        state.oracles += solver.samples * len(batches)
        return linearised(lambda x: sum(solver.inner(data, x, chosen, h) for chosen in batches) / len(batches), w)

    def mean(w, batches):
        state.oracles += solver.samples * len(batches)
        return sum(solver.inner(data, w, chosen, h) for chosen in batches) / len(batches)

    def whole(w):
        state.oracles += solver.rows
        return linearised(lambda x: solver.inner_full(data, x, h), w)

    def many(w):
        if solver.rows <= h.pass_limit:
            return whole(w)
        return pooled(w, [batch() for _ in range(min(100, math.ceil(h.pass_limit / solver.samples)))])

    def value(w):
        state.oracles += solver.rows
        return solver.inner_full(data, w, h)

    def slope(w, u, gamma=1.0, chosen=None):
        scaled = h if gamma == 1 else h.smoothed(lambda lam: gamma * lam)
        y, x = u.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()
        with torch.enable_grad():
            part = solver.outer_part if chosen is not None else None
            taped = solver.outer(data, x, y, c, scaled) if part is None else part(data, x, y, c, chosen, scaled)
        return torch.autograd.grad(taped, (y, x), allow_unused=True, materialize_grads=True)

    def phi(w, u):
        return solver.outer(data, w, u, c, h)

    def prox(w, step):
        solver.project(w, step)
        return w

    return SimpleNamespace(
        batch=batch, sample=sample, pooled=pooled, mean=mean, many=many, whole=whole, value=value, slope=slope, phi=phi,
        prox=prox, late=late, ahead=ahead, partial=solver.outer_part is not None,
        keep=solver.components <= 128 and solver.components * len(state.w) <= h.matrix, smoothing=solver.centred,
        share=min(1.0, solver.samples / solver.rows) if solver.rows else 1.0,
    )  # fmt: skip


def first_step(G, F, w, powers=8, halvings=40):
    """One over the gradient's Lipschitz constant near w, and along the first step."""
    largest, slope = smoothness(G, w, powers), G(w)
    eta = 1.0 / largest if largest > 0 else 0.05
    for _ in range(halvings):
        ahead = F.prox(w - eta * slope, eta)
        if eta * float((G(ahead) - slope).norm()) <= 1.01 * float((ahead - w).norm()):
            break
        eta *= 0.5
    return eta


def set_out(run, solver: VectorSolver, data, F, h: VectorSettings, c, G):
    """The smoothing, the step size and the penalty's weight to begin with."""
    w = run.state.w
    if solver.centred and solver.schedule.scales and not h.kept:
        scale_smoothing(solver, data, w.to(data.dtype), c, h, G, w.dtype)
    if h.eta <= 0:
        h.eta = first_step(G, F, w, h.powers, h.halvings)
    run.eta, h.weight = h.eta, h.weight or 0.1 * h.rho


def gradients(solver: VectorSolver, data, w, c, h: VectorSettings, rng):
    """The gradients at w by one minibatch after another, the slope of phi at the mean of their values so far."""
    data = SimpleNamespace(**{**vars(data), "waiting": {}})
    F, u, k = oracle_of(solver, data, rng, c, SimpleNamespace(w=w, oracles=0), h), 0.0, 0
    while True:
        at, k = F.sample(w, F.batch()), k + 1
        u = u + (at.value - u) / k
        s, direct = F.slope(w, u)
        yield at.pull(s) + direct


def call_price(solver: VectorSolver, data, w, c, h: VectorSettings):
    """Counted seconds of a step's oracle call, by the gradient of one minibatch."""
    rng = torch.Generator(device=w.device).manual_seed(0)
    return priced(lambda: next(gradients(solver, data, w, c, h, rng)))[1] / solver.samples


def open_epoch(run, solver: VectorSolver, F, h: VectorSettings):
    """The beginning of an epoch, and what its iterates and its gain are measured by."""
    run.state.length, run.average, run.held = run.length, run.state.w.clone(), merit(run.value, h.weight)
    solver.begin(run.state, F, h)
    run.left = run.state.length


def take_steps(run, solver: VectorSolver, F, h: VectorSettings, iterations, oracles, ended, keep=None, reason=""):
    """Steps to the next look or the end of the epoch, unless there is a ``reason`` to end before, and the average of its second
    half's. Why the run ends, or "". ``keep`` has the state after each step."""
    state = run.state
    while run.left > run.pause and not reason:
        solver.schedule.move(h, run.eta, max(run.count / (iterations or math.inf), state.oracles / (oracles or math.inf)))
        solver.update(state, F, h)
        state.t += 1
        run.count += 1
        run.left -= 1
        run.average.lerp_(state.w, 1.0 / max(1, state.length - run.left + 1 - state.length // 2))
        reason = ended(run.count, state.oracles)
        if keep is not None:
            keep("steps", run, reason)
    return reason


def keep_the_better(run, solver: VectorSolver, data, h: VectorSettings):
    """Of the last iterate and the epoch's average: the best point so far if it has a smaller merit, or as the schedule says the
    last. Returns the value of the last, and whether it is finite."""
    w, last = run.state.w, solver.schedule.keeps_last
    value, chosen = least(solver, data, [w] if last else [w, run.average], h.weight)
    if merit(value, h.weight) < merit(run.value, h.weight) or last:
        run.best, run.value = chosen.clone(), value
    finite = math.isfinite(float(w.sum()))
    if run.broken is None and not finite:
        run.broken = run.count
    return value_at(solver, data, w), finite


def close_epoch(run, solver: VectorSolver, last, h: VectorSettings):
    """An epoch that gained nothing shrinks the step; one that diverged, as ``last`` says, is taken back. The next is longer."""
    state, run.left, adapts = run.state, 0, solver.schedule.adapts
    state.epoch += 1
    best = merit(run.value, h.weight)
    run.calm = 0 if run.held - best >= h.gain * abs(best) else run.calm + 1
    if run.calm and adapts:
        h.eta *= h.shrink
    if adapts and not merit(last, h.weight) <= run.first + 0.1 * abs(run.first):
        state.w, state.t, state.epoch = run.best.clone(), 0, 0
        h.eta *= 0.5
    run.length = min(int(run.length * h.growth), h.longest)


def approximate_kkt(solver: VectorSolver, data, F, w, c, h: VectorSettings):
    """hscg-2020, Lemma 3.1: the pair x = prox_{eta R}(w - eta grad), y = y*(F(x)), and a bound on its residual (8):
    dist(0, F'(x)' K y + dR(x)) + dist(0, K' F(x) - dpsi(y)) <= |r| + |lam (y - centre)|, with r as in (46)."""
    at = F.whole(w)
    s, direct = F.slope(w, at.value)
    gradient = at.pull(s) + direct
    x = F.prox(w - h.eta * gradient, h.eta)
    beyond = F.whole(x)
    s, direct = F.slope(x, beyond.value)
    residual = float(((w - x) / h.eta + beyond.pull(s) + direct - gradient).norm())
    gap = 0.0
    for name, (index, t, slope, _) in solver.blocks(data, x.to(torch.float64)).items():
        centre = getattr(c, name)[index if index else (...,)].to(t.dtype)
        moved = h.smoothing(name) * (slope(t, centre, h) - centre)
        gap += float(moved[moved.isfinite()].square().sum())
    return SimpleNamespace(w=x, epsilon=residual + math.sqrt(gap))


def solve(
    solver: VectorSolver, data, *, seed=0, device="cpu", dtype=None, seconds=30.0, iterations=None, oracles=None,
    progress=None, stop=None, tol=None, exact=None, share=None, planned=None, keep=None,
):  # fmt: skip
    """Run to the end of the budget (``share``: in counted seconds), or until epochs gain nothing more, or until the KKT residual
    is at most ``tol`` in two looks running. Returns the best point seen, or as the schedule says the last. Epochs are not
    ``planned`` by the budget.

    ``broken`` is the step by which iterates were not finite (their epoch was taken back), or None. ``keep``: as of the loop over
    blocks.

    ``run`` is where it stands: the algorithm's state; the epoch's length, the steps left in it, and at the next look (``pause``),
    its average and the merit that it began with (``held``); the best point so far and its value; the first merit; steps
    (``count``), epochs without a gain.
    """
    began, dtype = started(keep), dtype or torch.float32
    work = pricing()
    ended = ending(began, stop, seconds, iterations, oracles, share, work)
    exact, quick, data = opened(solver, data, device, dtype, exact)
    rng = torch.Generator(device=device).manual_seed(seed)
    h, c, schedule = solver.settings(), solver.centres(device, dtype), solver.schedule
    state = SimpleNamespace(w=solver.start(rng, device, dtype), oracles=0, t=0, epoch=0)
    run = SimpleNamespace(state=state, left=0, length=h.stage, count=0, calm=0, broken=None)
    F = oracle_of(solver, data, rng, c, state, h, lambda: ended(run.count, state.oracles) != "")
    run.c, run.h, run.rng, run.waiting, run.ahead, run.work = c, h, rng, data.waiting, F.ahead, work
    few = [F.batch() for _ in range(math.ceil(h.probe / solver.samples))] if solver.rows > h.probe else []

    def G(x):
        at = F.pooled(x, few) if few else F.whole(x)
        s, direct = F.slope(x, at.value)
        return at.pull(s) + direct

    def minibatches(x, y, held):
        return gradients(solver, data, x, y, held, torch.Generator(device=device).manual_seed(seed + 1 + run.count))

    spare(h, few, priced(lambda: G(state.w))[1], seconds if share is None else share)
    run.value, first = starting_value(solver, quick, state.w, G, rng, h.halvings), state.w.clone()
    run.best = first.clone()
    set_out(run, solver, quick, F, h, c, G)
    work.look, work.call = priced(lambda: value_at(solver, quick, state.w))[1], call_price(solver, data, state.w, c, h)
    watch = watching(tol, work.look, work.call * solver.samples)
    run.first, run.worst = merit(run.value, h.weight), run.value[2]
    history: list = []
    run.watch, run.history, reason = watch, history, ""
    inside = keep is not None and keep.again("steps", run)
    while not reason:
        if not inside:
            if not run.left:
                open_epoch(run, solver, F, h)
            run.pause = max(run.left - h.look, 0)
        reason = ended(run.count, state.oracles) if inside else ""
        inside, reason = False, take_steps(run, solver, F, h, iterations, oracles, ended, keep, reason)
        last, finite = keep_the_better(run, solver, quick, h)
        if not run.left or not finite:
            close_epoch(run, solver, last, h)
            if solver.centred and schedule.adapts:
                move_centres(solver, quick, state.w.to(quick.dtype), c, h, last[2], run.worst, G, dtype)
            run.worst = last[2]
        entry = {"iteration": run.count, "oracles": state.oracles, "eta": h.eta}
        work.looks = watch.spent + 3 * work.look * (len(history) + 1)
        entry |= observe(watch, solver, exact, run.best, run.value, c, h, worked(work, run.count, state.oracles), minibatches)
        record(history, progress, began, run.value, h.weight, **entry)
        if not reason and schedule.adapts:
            reason = reached(watch) or ("epochs gain nothing more" if run.calm >= h.patience else "")
    pair = approximate_kkt(solver, exact, F, run.best, c, h) if solver.squares and solver.rows <= h.pass_limit else None
    if pair is not None and not schedule.keeps_last:
        if merit(value_at(solver, quick, pair.w), h.weight) <= merit(run.value, h.weight):
            run.best = pair.w
    if solver.centred and not schedule.adapts:
        centre_at(solver, exact, run.best.double(), c, h)
    w = run.best.double()
    solver.project(w, 0.0)  # to double precision
    return SimpleNamespace(
        w=w, c=c, h=h, eta=run.eta, history=history, iterations=run.count, seconds=time.perf_counter() - began,
        reason=reason, status=status(stop, schedule.adapts and watch.held >= 2), broken=run.broken, exact=exact,
        epsilon=pair and pair.epsilon, timed=work.timed, worked=worked(work, run.count, state.oracles),
        planned=None, first=first,
    )  # fmt: skip


def centre_rows(solver: Solver, data, w, c, h: LoopSettings):
    """Centres for the functions inside expectations, one per row, smoothed on a tenth of their arguments' size."""
    cells = solver.all_blocks(data, w) if solver.inside else {}
    for name, shape in solver.inside.items():
        t = cells[name][1]
        setattr(c, name, torch.zeros(shape, device=w.device, dtype=w.dtype))
        h.smooth(name, max(0.1 * float(t[t.isfinite()].square().mean().sqrt()), 1e-6))


def differentiated(solver: Solver, data, c, h: LoopSettings, count):
    """w -> value and gradient of ``whole``; ``count`` has their number, the last value and the size of the last w: of one gone
    ``back`` to, too."""

    def back(value, w):
        count.value, count.size = value, float(w.norm())

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            value = solver.whole(data, x, c, h)
        back(float(value), w)
        return count.value, gradient_of(value, x)

    at.back = back  # type: ignore[attr-defined]
    return at


def full_problem(solver: Solver, outcome, data, *, seconds, passes, tol, stop):
    """What rounds work on, from where ``found`` ended, on ``data`` in float64: the smoothed problem with its centres c and its
    parameters h, ``at`` (value and gradient), ``prox`` (of the rest), ``limit()`` (to stop at), ``endless()`` (w runs away), and
    ``late()`` (asked to stop, or some beyond the time: to tell why there is no solution takes no longer)."""
    began = time.perf_counter()
    h = outcome.h.copy()
    c = SimpleNamespace(**{name: centre.to(data.device).double().clone() for name, centre in vars(outcome.c).items()})
    w = outcome.w.to(data.device).double().clone()
    centre_rows(solver, data, w, c, h)
    count = SimpleNamespace(passes=0, value=0.0, size=0.0, timed=False)
    value = summary(solver.evaluate(data, w))
    floor, ceiling = -1e10 * (1 + abs(value[0])), 1e9 * (1 + float(w.norm()))

    def endless():
        return count.value < floor or count.size > ceiling

    def over(more=0.0):
        if stop is not None and stop():
            return True
        past = seconds is not None and time.perf_counter() - began > seconds + more
        count.timed |= past
        return past

    def limit():
        return (passes is not None and count.passes >= passes) or endless() or over()

    def late():
        return over(0.3 + 0.02 * (seconds or 0.0))

    def prox(x, step):
        solver.project(x, step)
        return solver.regulariser(x)

    at = differentiated(solver, data, c, h, count)
    return SimpleNamespace(
        solver=solver, data=data, c=c, h=h, w=w, value=value, at=at, prox=prox, limit=limit, endless=endless, late=late,
        count=count, tol=tol,
    )  # fmt: skip


def forward_backward(at, prox, w, step, known=None):
    """The proximal gradient step from w, and the forward-backward envelope there (``prox(x, step)`` moves x, in place, to the
    proximal point of the rest, and returns the rest's value there); ``free``: there is no rest where the step ends. ``known``:
    another step from the same w, which spares the pass; who counts passes is told (``at.back``)."""
    value, gradient = at(w) if known is None else (known.value, known.gradient)
    if known is not None and hasattr(at, "back"):
        at.back(value, w)
    while True:
        ahead = w - step * gradient
        new = ahead.clone()
        rest = prox(new, step)
        move, free = new - w, rest == 0 and torch.equal(new, ahead)
        model = float(gradient @ move) + float(move @ move) / (2 * step)
        envelope = value + model + rest
        if math.isfinite(envelope) or step < 1e-14:
            break
        step *= 0.1
    return SimpleNamespace(
        w=w, value=value, gradient=gradient, new=new, move=move, model=model, envelope=envelope, step=step, free=free
    )  # fmt: skip


def at_once(pairs, d):
    """The same as two triangular systems, of the products s.y of earlier changes s with later y."""
    s, y = torch.stack([s for s, _, _ in pairs]), torch.stack([y for _, y, _ in pairs])
    products = (s @ y.T).triu()
    a = torch.linalg.solve_triangular(products, (s @ d)[:, None], upper=True)[:, 0]
    d = (d - a @ y) * (pairs[-1][2] / float(y[-1] @ y[-1]))
    rest = torch.linalg.solve_triangular(products.T, (products.diagonal() * a - y @ d)[:, None], upper=False)[:, 0]
    return d + rest @ s


def direction(pairs, residual, few=8, small=10_000):
    """-H residual, by the two loops of L-BFGS over pairs; of many short ones at once."""
    d, left = -residual.clone(), []
    if len(pairs) > few and len(pairs) * d.numel() <= small:
        return at_once(pairs, d)
    for s, y, product in reversed(pairs):
        a = float(s @ d) / product
        d -= a * y
        left.append(a)
    if pairs:
        _, y, product = pairs[-1]
        d *= product / float(y @ y)
    for (s, y, product), a in zip(pairs, reversed(left), strict=True):
        d += (a - float(y @ d) / product) * s
    return d


def falls(now, tried, size):
    """The function itself and its envelope fall enough where nothing stands beside it: the point that safeguards is not asked."""
    enough = 1e-4 * now.step * size**2
    descends = tried.value <= now.value - enough and tried.envelope <= now.envelope - enough
    return descends and now.free and tried.free and tried.step == now.step


def with_pair(pairs, s, y, most=40, numbers=1e6):
    """The last pairs (change s of w, change y of the residual, s.y) with one more; of many variables fewer are kept. One along
    which the residual does not rise tells nothing."""
    product = float(s @ y)
    if product <= 1e-12 * float(s.norm()) * float(y.norm()):
        return pairs
    kept = int(min(most, max(15, numbers // s.numel())))
    return [*pairs[1 - kept :], (s, y, product)]


def panoc(at, prox, w, step, tol, limit, held=None, bold=False):
    """Minimise the function that ``at`` differentiates, plus the rest that ``prox`` knows, from w until the fixed-point residual
    is ``tol`` or ``limit()`` says stop. ``held`` has where it stands whenever ``limit`` is asked; where it had that before, it
    goes on from there. ``bold``: a direction is tried before the gradient step that safeguards it, which it spares where it does.

    Returns the point, its residual |w - prox(w - step grad)| / step, and the step.
    """
    held = SimpleNamespace(now=None, pairs=[]) if held is None else held
    now, pairs = held.now or forward_backward(at, prox, w, step), held.pairs
    while True:
        size, held.now, held.pairs = float(now.move.norm()) / now.step, now, pairs
        if size <= tol or limit():
            return now.new, size, now.step
        residual, first = -now.move / now.step, None
        if bold and pairs and now.free:
            first = forward_backward(at, prox, now.w + direction(pairs, residual), now.step)
            if falls(now, first, size):
                now, pairs = first, with_pair(pairs, first.w - now.w, -first.move / first.step - residual)
                continue
        while True:  # the step must be below 1/L near w
            ahead = forward_backward(at, prox, now.new, now.step)
            if ahead.value <= now.value + now.model + 1e-12 * abs(now.value) or now.step < 1e-14:
                break
            now, pairs = forward_backward(at, prox, now.w, 0.5 * now.step, now), []
            if limit():
                here = now.w.clone()
                prox(here, 0.0)
                return here, size, now.step
        residual = -now.move / now.step
        d = direction(pairs, residual) if pairs else now.move
        enough, tau, after = now.envelope - 1e-4 * now.step * size**2, 1.0, ahead
        while pairs and tau > 0.05 and not limit():
            tried, first = first or forward_backward(at, prox, now.w + (1 - tau) * now.move + tau * d, now.step), None
            level = now.envelope + 1e-13 * abs(now.envelope)  # where rounding hides the descent, the residual tells
            nearer = tried.envelope <= level and float(tried.move.norm()) <= 0.9 * float(now.move.norm())
            if (tried.envelope <= enough or nearer) and tried.step == now.step:
                after = tried
                break
            tau *= 0.5
        bend = ahead.value - now.value - float(now.gradient @ now.move)
        if after is ahead and bend <= 0.2 * float(now.move @ now.move) / (2 * now.step):  # hardly curved along the move
            now, pairs = forward_backward(at, prox, ahead.w, 2 * ahead.step, ahead), []
            continue
        if after.step == now.step:
            pairs = with_pair(pairs, after.w - now.w, -after.move / after.step - residual)
        now = after


def cautious_step(at, w, times=8):
    """Half of one over the gradient's Lipschitz constant near w, by so many differences of gradients."""
    largest = smoothness(lambda x: at(x)[1], w, times)
    return 0.5 / largest if largest > 0 and math.isfinite(largest) else 1.0


def from_the_first(full, first, most=40):
    """Of a problem that is not convex: goes to what a few passes lead to from the first iterate of all, where the smoothed
    problem is worth less there than at the best point of the steps, and the problem no more."""
    at, count, h, start = full.at, full.count, full.h, first.to(full.w)
    level = at(full.w)[0] + full.prox(full.w.clone(), 0.0)
    enough, last, held = level - 1e-6 * (1 + abs(level)), count.passes + most, (count.value, count.size)

    def limit():
        return full.limit() or count.passes >= last or count.value < enough

    found, _, _ = panoc(at, full.prox, start, 2 * cautious_step(at, start), 0.0, limit, bold=True)
    if at(found)[0] + full.prox(found.clone(), 0.0) < enough:
        value = summary(full.solver.evaluate(full.data, found))
        if merit(value, h.weight) <= merit(full.value, h.weight):
            full.w, full.value = found, value
    count.value, count.size = held


def shift_centres(solver: Solver, data, w, c, h: LoopSettings):
    """Moves the centres to the slopes at w. Returns by how much, in units of the functions' arguments; whether a multiplier is
    at its bound; and the largest one."""
    shifts, saturated, largest = {}, False, 0.0
    for name, (index, t, slope, bounded) in solver.all_blocks(data, w).items():
        centre = getattr(c, name)
        index = index if index else (...,)
        new = slope_at(t, slope, centre[index], h)
        shifts[name] = h.smoothing(name) * float((new - centre[index]).abs().max())
        centre[index] = new
        if bounded:
            steepest = float(centre.abs().max()) / bounded
            largest = max(largest, steepest)
            saturated |= steepest >= 0.99 * h.rho
    return shifts, saturated, largest


def stagnant(history):
    """The violation of the best point has not halved over the second half of the stages."""
    violations = [entry["violation"] for entry in history]
    return len(violations) > 3 and violations[-1] > 0.5 * violations[len(violations) // 2]


def excess(solver: Solver, data, w):
    """By how much each constraint is violated, differentiable in w."""
    return {label: t if kind == "eq" else t.clamp(min=0) for label, (kind, t) in solver.constraint_values(data, w).items()}


def rounding_of(solver: Solver, data, w, weights, times=3, rounding=1.2e-16):
    """What rounding is worth in sum_k v_k c_k(w), by the values at points that differ from w by rounding."""
    rng, worst = torch.Generator(device=w.device).manual_seed(0), 0.0
    sums = []
    for _ in range(times):
        x = w * (1 + 2 * rounding * torch.randn(w.shape, generator=rng, device=w.device, dtype=w.dtype))
        values = excess(solver, data, x)
        sums.append(sum(float((weights[label] * (values[label].abs() - weights[label]).abs()).sum()) for label in weights))
    worst = max(sums, default=0.0)
    return 4 * worst


def least_violation(solver: Solver, data, w, limit, count, most=2000, rounding=1.2e-16):
    """Minimise 1/2 sum_k v_k^2 of the violations v over the simple sets, from w, by at most ``most`` passes.

    Returns the point x, v there by label, the largest, and how near a feasible point can be where constraints are convex: for
    every y of the simple sets sum_k v_k c_k(y) >= |v|^2 - |g| |y - x|, g being the gradient with the nearest normal of the
    sets, which leaves no feasible point nearer than |v|^2 / |g|.
    """

    def at(w):
        count.passes += 1
        x = w.detach().clone().requires_grad_()
        with torch.enable_grad():
            total = 0.5 * sum(t.square().sum() for t in excess(solver, data, x).values())
        return float(total), gradient_of(total, x)

    def prox(x, step):
        solver.project(x, 0.0)
        return 0.0

    last = count.passes + most
    x, _, step = panoc(at, prox, w, cautious_step(at, w), 1e-10, lambda: limit() or count.passes > last)
    moved = forward_backward(at, prox, x, step)
    x, blur = moved.new, rounding * (moved.w.abs() + moved.new.abs()) / moved.step
    inside = moved.new == moved.w - moved.step * moved.gradient  # no set has moved these entries: no normal there
    normal = torch.where(inside, torch.zeros_like(x), -moved.move / moved.step - moved.gradient)
    gradient = at(x)[1]
    off = gradient.abs() * (100 * rounding) + torch.where(inside, torch.zeros_like(x), blur)
    left = float((gradient + normal).norm() + off.norm())
    weights = {label: t.abs() for label, t in excess(solver, data, x).items()}
    squares = sum(float(t.square().sum()) for t in weights.values())
    worst = max((float(t.max()) for t in weights.values()), default=0.0)
    squares = max(squares - rounding_of(solver, data, x, weights), 0.0)
    return SimpleNamespace(w=x, violation=worst, weights=weights, nearest=squares / left if left else math.inf)


def conflict(least, enough, far=0.0):
    """The failure that a point of least violation is evidence of: more than ``enough`` is left, and no feasible point is within
    ``far`` times its size (all where constraints are convex)."""
    if least.violation <= enough or least.nearest < far * (1 + float(least.w.norm())):
        return None
    size = float(least.w.norm())
    return {
        "kind": "infeasible", "violation": least.violation, "weights": least.weights, "nearest": least.nearest, "size": size,
    }  # fmt: skip


def first_point(full, history, step=0.0, times=8):
    """Where rounds start: w, the best point and its value so far, the step, the accuracy of the first round; and the failure of
    constraints that conflict, where the stages before could not lower their violation. ``step``: the first, where it is known;
    else by so many differences of gradients."""
    data, h, w, value, count, tol = full.data, full.h, full.w, full.value, full.count, full.tol
    resumed = full.solver.resume is not None
    if not resumed:  # else the multipliers are nearer than those that a point changed a little would give
        h.weight = 2 * max(0.05 * h.rho, shift_centres(full.solver, data, w, full.c, h)[2])
    step = step or cautious_step(full.at, w, times)
    enough = max(tol, (0.01 if resumed else 0.1) * float(forward_backward(full.at, full.prox, w, step).move.norm()) / step)
    best, failure = w, None
    if value[2] > max(tol, 1e-4) and stagnant(history):
        least = least_violation(full.solver, data, w, full.limit, count, 200)
        failure = conflict(least, max(tol, 1e-3 * value[2]), far=100.0)
        best = w if failure is None else least.w
    return SimpleNamespace(
        w=w, best=best, value=value, step=step, enough=enough, error=math.inf, off=math.inf, failure=failure, shifts={},
        raised=[], searched=False, inner=None, pairs=[], more=0,
    )  # fmt: skip


def unfinished(now, full, most=3):
    """Not at the tolerance yet. Where another run ended some rounds more come cheap, until what is off counts for nothing in the
    objective."""
    if now.error > full.tol:
        return True
    now.more += 1
    counts = full.h.weight * now.off > full.tol * max(abs(now.value[0]), 0.01)
    return full.solver.resume is not None and counts and now.more <= most


def levels_off(full, w, end, most=1e-3, least=1e-9, apart=1.5):
    """That the objective's fall from w to ``end`` is over before, as those of hinges are and those of exponentials are not: from
    where ``most`` of the fall is left to where ``least`` is, it is not far; or that rounding hides it, or that it is too
    ``late`` to tell."""
    here = summary(full.solver.evaluate(full.data, w))

    def fall(t):
        return here[0] - merit(summary(full.solver.evaluate(full.data, w + t * (end - w))), full.h.weight)

    def place(left):
        low, high = 0.0, 1.0
        for _ in range(50):
            if full.late():
                break
            middle = (low + high) / 2
            low, high = (low, middle) if fall(middle) >= (1 - left) * whole else (middle, high)
        return high

    whole = fall(1.0)
    if whole - fall(0.5) > least * whole > 0:
        return False
    least = max(least, 3e-15 * abs(here[0]) / max(whole, 1e-300))
    return least > 0.01 * most or place(least) < apart * place(most) or full.late()


def goes_on(full, w, d, kind, fallen, further=(1e2, 1e4, 1e6, 1e8, 1e10)):
    """The kind of a fall that goes on along a straight way, from the ``fallen`` at its end to ways that are longer by these
    factors, up to |w| = 1e12 at least.

    None where the objective rises again, or a constraint or a set ends the way; ``unattained`` where each unit of the way brings
    less than half of what it brought.
    """
    solver, data, length, size = full.solver, full.data, float(d.norm()), 1 + float(w.norm())
    here, last = summary(solver.evaluate(data, w)), fallen
    for far in further:
        if full.late():
            return None
        way = 100.0 * far * size
        x = w + d * (way / length)
        inside = x.clone()
        solver.project(inside, 0.0)
        value = summary(solver.evaluate(data, x))
        if not math.isfinite(value[0]):  # beyond double precision
            break
        if value[2] > max(full.tol, here[2]) + 1e-6 * way or not torch.allclose(inside, x):
            return None
        now = here[0] - merit(value, full.h.weight)
        if now < (1 - 1e-6) * last - 1e-9 * abs(here[0]):
            return None
        if now < 0.5 * far * fallen:
            kind = "unattained"
        last = max(last, now)
    return kind


def falls_for_ever(full, w, d):
    """How the objective goes on from w along d, as far as 100 (1 + |w|): ``unbounded`` where each tenfold way brings more,
    ``unattained`` where less, and no point of the way as much; None where it rises, or a constraint or a set ends it. Points that
    violate a constraint are moved to the nearest that do so little; what that little may be worth, at ``h.weight`` for each unit,
    is no fall. The model's own variables go on, not those of reformulations alone. None where it is too ``late`` to tell."""
    solver, data, h, tol, length = full.solver, full.data, full.h, full.tol, float(d.norm())
    if not length > 0 or not math.isfinite(length):
        return None
    here, straight = summary(solver.evaluate(data, w)), True
    fallen: list[float] = []
    for far in (1.0, 3.0, 10.0, 100.0):
        if full.late():
            return None
        way = far * (1 + float(w.norm()))
        x = w + d * (way / length)
        inside = x.clone()
        solver.project(inside, 0.0)
        value, allowed = summary(solver.evaluate(data, x)), max(tol, here[2]) + 1e-6 * way
        end = x
        if value[2] > allowed and math.isfinite(value[2]):
            back, straight = least_violation(solver, data, x, full.limit, full.count).w, False
            if float((back - x).norm()) < 0.5 * way:
                end, value = back, summary(solver.evaluate(data, back))
        if float((end - w)[: solver.own].norm()) < 0.1 * way:
            return None
        if len(fallen) > 2 and not math.isfinite(value[0]):  # beyond double precision
            break
        fallen.append(here[0] - merit(value, h.weight))
        if value[2] > allowed or not torch.allclose(inside, x) or not fallen[-1] > 1e-10 * (1e-6 + abs(here[0])):
            return None
        if fallen[-1] < (1 - 1e-6) * max(fallen) - 1e-12 * abs(here[0]):
            return None
    kind = "unattained"
    if fallen[-1] - fallen[-2] > 1.2 * (fallen[-2] - fallen[0]):  # the last tenfold way against the one before
        kind = "unbounded"
    elif straight and levels_off(full, w, w + d * (10 * (1 + float(w.norm())) / length)):
        return None
    return goes_on(full, w, d, kind, fallen[-1]) if straight else kind


def raise_penalty(now, full, violation):
    """A penalty whose multiplier is at its bound becomes stronger. Once that has helped little, the least violation that there is
    tells whether constraints conflict; where they do not, the next round starts there."""
    full.h.rho *= 4
    now.raised.append(violation)
    if now.searched or len(now.raised) <= 3 or violation <= 0.3 * now.raised[0]:
        return
    now.searched, least = True, least_violation(full.solver, full.data, now.w, full.limit, full.count)
    if least.violation > max(1e-2 * full.tol, 1e-3 * violation) and not full.limit():
        now.best, now.failure = least.w, conflict(least, 0.0, far=1.0)
    else:
        now.w = least.w


def next_round(now, full):
    """Minimises the smoothed problem at fixed centres, then moves these; the point is kept if it is the best. False where the
    penalty was too weak to hold the point: it is stronger now."""
    data, h, count, tol = full.data, full.h, full.count, full.tol
    if now.inner is None:  # the curvature of the last round is about that of this one
        now.begin, now.last, now.inner = now.w, count.passes + 500, SimpleNamespace(now=None, pairs=now.pairs)
        now.step = now.step if now.pairs else 2 * now.step

    def limit():
        full.keep()
        return full.limit() or count.passes > now.last

    bold = full.solver.nonconvex
    now.w, residual, now.step = panoc(full.at, full.prox, now.w, now.step, now.enough, limit, now.inner, bold)
    now.pairs, now.inner, value = now.inner.pairs, None, summary(full.solver.evaluate(data, now.w))
    if full.endless() and value[2] > 1e-6 * float(now.w.norm()):
        now.w, count.value, count.size, now.step, now.pairs = now.best.clone(), 0.0, 0.0, 0.1 * now.step, []
        h.rho *= 4
        return False
    shifts, saturated, steepest = shift_centres(full.solver, data, now.w, full.c, h)
    h.weight = max(h.weight, 2 * steepest)
    now.off = max([value[2], *shifts.values()])
    now.error = max(residual, now.off)
    equal = tol if now.error <= tol else 1e-9  # one that converged is the answer before others as good
    if merit(value, h.weight) <= merit(now.value, h.weight) + equal * (1 + abs(now.value[0])):
        now.best, now.value = now.w.clone(), value
    for name, shift in shifts.items():
        if shift > tol and shift > 0.5 * now.shifts.get(name, math.inf):
            h.smooth(name, 0.5 * h.smoothing(name))
    moved = now.w - now.begin
    if count.passes > now.last and not full.solver.attained and falls_for_ever(full, now.w, moved) == "unbounded":
        now.failure = {"kind": "unbounded", "direction": moved, "far": float(now.w.norm())}
    if saturated and value[2] > tol:
        raise_penalty(now, full, value[2])
    now.shifts = shifts
    now.enough = max(tol, min(now.enough, 0.3 * (now.error if full.solver.resume is None else now.off)))
    return True


def allowed_further(full, w, end, times=1e4, share=1e-3):
    """That sets and constraints allow so many ``times`` the way from w to ``end``, up to a share of it."""
    solver, way = full.solver, times * float((end - w).norm())
    x = w + times * (end - w)
    inside = x.clone()
    solver.project(inside, 0.0)
    value = summary(solver.evaluate(full.data, inside))
    return float((x - inside).norm()) <= share * way and not share * way < value[2] < math.inf


def drifts(full, w, d, again):
    """That the objective falls along d for ever where the other variables follow, as ``again(x)`` brings them on; or None, also
    where it is too ``late`` to tell."""
    solver, data, h, tol = full.solver, full.data, full.h, full.tol
    here, length = summary(solver.evaluate(data, w)), float(d.norm())
    last, ends = merit(here, h.weight) - 1e-10 * (1e-6 + abs(here[0])), []
    if not length > 0:  # no way leads on from the best point: it is zero
        return None
    for far in (1.0, 3.0, 10.0):
        if full.late():
            return None
        way = far * (1 + float(w.norm()))
        x = again(w + d * (way / length))
        value = summary(solver.evaluate(data, x))
        gone = float((x - w)[: solver.own] @ d[: solver.own]) / length
        if not merit(value, h.weight) <= last or value[2] > max(tol, here[2]) or gone < 0.5 * way:
            return None
        last = merit(value, h.weight) + 1e-12 * abs(here[0])
        ends.append(x)
    if levels_off(full, w, ends[0]) or not allowed_further(full, w, ends[-1]):
        return None
    return {"kind": "unattained", "direction": d, "far": float(ends[-1].norm())}


def without_end(full, w, further):
    """That the objective falls for ever along w itself or towards a point found ``further`` on, or None."""
    for d in (further - w, w):
        kind = falls_for_ever(full, w, d)
        if kind:
            return {"kind": kind, "direction": d, "far": 1e12 * (1 + float(w.norm()))}
    return None


def descent_without_end(now, full):
    """The failure of an objective that goes on falling from the best point on, or None. Where rounds have converged, a stricter
    one shows in which direction; where it went a long way, one in between has less beside that direction. Or it falls along
    that, or along w, where the other variables follow."""

    def stricter(w, accuracy, most=200):
        end = count.passes + most
        return panoc(full.at, full.prox, w, now.step, accuracy * full.tol, lambda: full.limit() or count.passes > end)[0]

    def judged(w):
        return without_end(full, w, further)

    count, further = full.count, now.best
    if now.error <= full.tol:
        further = stricter(now.best, 1e-3)
    failure = judged(now.best)
    moved = float((further - now.best).norm()) / (1 + float(now.best.norm()))
    if failure is None and moved > 0.01:
        failure = judged(stricter(now.best, 0.03))
    if failure is None and now.error <= full.tol:
        way = further - now.best if moved > 0.1 else now.best
        failure = drifts(full, now.best, way, lambda x: stricter(x, 0.01, 50))
    return failure


def finish(solver: Solver, outcome, data, *, seconds=None, passes=None, tol=1e-6, progress=None, stop=None, keep=None):
    """Continue from what ``solve`` found, on ``data`` in float64; its point is replaced by one of as small a merit.

    ``passes`` bounds the evaluations of ``whole``, ``seconds`` the time; ``tol`` is the stationarity, the violation and the
    shift of the centres to end at. ``outcome.scarce``: few passes fit, of which none is spent on what the first will show.
    ``failure`` of what it returns names why there is no solution, with the evidence, or is None; ``moved``: its point is another.
    """
    began = started(keep, outcome.seconds)
    full = full_problem(solver, outcome, data, seconds=seconds, passes=passes, tol=tol, stop=stop)
    history = list(outcome.history)
    run = SimpleNamespace(c=full.c, h=full.h, count=full.count, history=history, rounds=0, now=None)
    full.keep = (lambda reason="": None) if keep is None else (lambda reason="": keep("finish", run, reason))
    if keep is None or not keep.again("finish", run):
        if solver.nonconvex and outcome.first is not None and outcome.iterations:
            from_the_first(full, outcome.first)
        measured = not outcome.iterations and not solver.settings().eta
        far = solver.nonconvex and not outcome.iterations
        times = 2 if far or getattr(outcome, "scarce", False) else 8  # the first round mends a step far from a minimum
        run.now = first_point(full, history, full.h.pass_step or (0.5 * outcome.eta if measured else 0.0), times)
        run.now.pairs = getattr(outcome, "pairs", [])
    now = run.now
    while now.inner is not None or (unfinished(now, full) and not full.limit() and run.rounds < 100 and now.failure is None):
        run.rounds += now.inner is None
        if next_round(now, full):
            entry = {"iteration": outcome.iterations, "oracles": history[-1]["oracles"], "eta": now.step, "kkt": now.error}
            record(history, progress, began, now.value, full.h.weight, **entry, passes=full.count.passes)
    full.h.pass_step = now.step
    full.keep("ended")
    failure = now.failure or (None if solver.attained else descent_without_end(now, full))
    ended = status(stop, now.error <= tol)
    reason = "the time is used up" if full.count.timed else "the budget is used up"
    if not full.count.timed and (passes is None or full.count.passes < passes):
        reason = "iterates run away" if full.endless() else "rounds of passes gain nothing more"
    if now.error <= tol:
        reason = f"converged: stationarity, violation and shift of the multipliers at most {tol:g}"
    reason = ended if ended == "interrupted" else failure["kind"] if failure else reason
    more = {"w": now.best, "c": full.c, "h": full.h, "history": history, "exact": data, "passes": full.count.passes}
    more |= {"way": "finish", "failure": failure, "reason": reason, "status": ended, "pairs": now.pairs}
    more["timed"] = outcome.timed or full.count.timed
    more["moved"] = not torch.equal(now.best, outcome.w.to(now.best))
    return SimpleNamespace(**{**vars(outcome), **more})


def one_pass(solver: Solver, data, device):
    """Counted seconds that ``whole`` and its gradient take."""
    h, c = solver.settings(), solver.centres(device, torch.float64)
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    centre_rows(solver, data, w, c, h)
    at = differentiated(solver, data, c, h, SimpleNamespace(passes=0))
    return priced(lambda: at(w))[1]


def least_norm(J, values, equal):
    """The shortest d with values + J d <= 0 (= 0 where ``equal``): its dual y by coordinates (Hildreth 1957), d = -J' y. The
    coordinates are the host's: they are few, and each waits for the one before."""
    K, values, equal = (J @ J.T).cpu(), values.cpu(), equal.tolist()
    y = torch.zeros_like(values)
    K.diagonal().add_(1e-10 * float(K.diagonal().max()))
    for _ in range(300):
        for k in range(len(y)):
            new = y[k] + (values[k] - K[k] @ y) / K[k, k]
            y[k] = new if equal[k] else new.clamp(min=0)
    return -(J.T @ y.to(J.device))


def constraint_row(solver: Solver, data, w):
    """All constraints' values as one vector, and which are equalities."""
    constraints = solver.constraint_values(data, w).values()
    values = torch.cat([t.reshape(-1) for _, t in constraints])
    equal = torch.cat([torch.full((t.numel(),), kind == "eq", device=t.device) for kind, t in constraints])
    return values, equal


def jacobian(solver: Solver, data, w, chosen):
    """Gradients of the chosen constraints, one backward pass each."""
    x = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        values = constraint_row(solver, data, x)[0].unbind()
    return torch.stack([gradient_of(values[k], x, keep=True) for k in chosen.tolist()])


def restore(solver: Solver, outcome, data, *, seconds=None, passes=None, tol=1e-6, progress=None, stop=None, keep=None, most=256):
    """Lowers the largest violation of what ``solve`` found, by least-norm steps on the violated constraints and those near.

    A step is kept if the violation falls and the objective (on ``thinned`` rows where pairs are many) rises by no more than the
    multipliers let it. ``passes`` bounds the evaluations of constraints, ``most`` the constraints of a step.
    """
    began, timed, history = time.perf_counter(), False, list(outcome.history)
    quick, weight, w = thinned(solver, data), outcome.h.weight, outcome.w.to(data.device).double().clone()
    run = SimpleNamespace(w=w, count=1, moved=True, history=history)
    if keep is not None:
        keep.again("restore", run)

    def violations(x):
        values, equal = constraint_row(solver, data, x)
        return torch.where(equal, values.abs(), values.clamp(min=0)), values, equal

    def limit():
        nonlocal timed
        if (passes is not None and run.count >= passes) or (stop is not None and stop()):
            return True
        timed |= seconds is not None and time.perf_counter() - began > seconds
        return timed

    amount, values, equal = violations(run.w)
    worst, value = float(amount.max()), summary(solver.evaluate(quick, run.w))
    while run.moved and worst > tol and (run.count == 1 or not limit()):
        near = torch.where(equal, values.abs(), values).topk(min(most, len(values)))
        chosen = near.indices[near.values > -worst]
        d = least_norm(jacobian(solver, data, run.w, chosen), values[chosen], equal[chosen])
        run.count, run.moved, step = run.count + 1, False, 1.0
        while not run.moved and step > 0.05:
            x = run.w + step * d
            solver.project(x, 0.0)
            run.count += 1
            less, new_values, _ = violations(x)
            after = summary(solver.evaluate(quick, x))
            risen = after[0] - value[0] - weight * float(amount.sum() - less.sum())
            run.moved = float(less.max()) < (1 - 0.1 * step) * worst and risen <= 1e-9 * (1 + abs(value[0]))
            if run.moved:
                run.w, amount, values, worst, value = x, less, new_values, float(less.max()), after
            step *= 0.5
        entry = {**history[-1], "stage": len(history) + 1, "objective": value[0], "violation": worst}
        entry |= {"merit": merit(value, weight), "seconds": outcome.seconds + time.perf_counter() - began}
        entry |= {"kkt": None, "kkt_error": None}  # those of the point before
        history.append({**entry, "passes": run.count})
        if progress is not None:
            progress(history[-1])
        if keep is not None:
            keep("restore", run)
    more = {"w": run.w, "history": history, "exact": data, "passes": run.count, "way": "restore", "timed": outcome.timed or timed}
    more["moved"] = not torch.equal(run.w, outcome.w.to(run.w))
    return SimpleNamespace(**{**vars(outcome), **more})


def one_look(solver: Solver, exact, device):
    """Counted seconds that the exact values take."""
    w = solver.start(torch.Generator(device=device).manual_seed(0), device, torch.float64)
    return priced(lambda: solver.evaluate(exact, w))[1]


def allotted(solver: Solver, exact, device, room, patience):
    """What comes after the steps, the steps' share of the work, and passes of what comes after; counted seconds of a pass.

    ``finish`` if a quarter of a typical number of passes (400) fits into the ``room``: after steps for as long as these passes
    take and a second, at most 0.6 of the room; where passes come first, for a quarter of it. If only 25 passes, of a convex
    problem six, fit into three quarters of the room, after steps for the other quarter: curvature gains more by each than a step
    does. Of a smooth problem after none, where a pass costs little more than steps do and 400 are no small part of the room.
    Else ``restore``, with the room for thirty looks at the exact values, at most 0.3 of all. With ``patience`` the run is judged
    after so much work. Steps that are annealed, those of nets, have the room where nothing comes after them; passes do where 400
    take a quarter of it at most.
    """
    way, share, passes, annealed = "", patience, None, solver.settings().annealed
    if patience is None and annealed:
        share = room
    price = solver.one_pass(solver, exact, device) if solver.finish is not None else float("inf")
    needed = 400 * price
    if needed < (0.25 if annealed else 1.6) * room:
        way, share = "finish", needed / 4 if solver.direct and not solver.nonconvex else min(needed + 1.0, 0.6 * room)
        passes = None if patience is None else int(400 * patience / needed) + 1
    elif (25 if solver.nonconvex else 6) * price < 0.75 * room and not annealed:
        way, share = "finish", room / 4
    elif solver.restore is not None:
        way, share = "restore", room - min(30 * one_look(solver, exact, device), 0.3 * room)
    return way, share if patience is None or share is None else min(share, patience), passes, price


def solve_then_finish(
    solver: Solver, data, *, way=None, passes=None, device="cpu", seconds=None, iterations=None, oracles=None, progress=None,
    stop=None, room=None, patience=None, keep=None, **more,
):  # fmt: skip
    """``solve``, then what is ``allotted``. ``seconds`` are those of the clock, which ends a run alone; ``room`` is the budget in
    counted seconds (the same where it is not given).

    ``way`` and ``passes`` ask for one of the ends (or, empty, for none), and for that many passes. A budget of steps or oracle
    calls is the algorithm's alone. ``keep`` has how the steps ended, once something comes after them.
    """
    began, share, price = started(keep), None, 0.0
    with torch.inference_mode(False), torch.no_grad():
        exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        room = seconds if room is None else room
        if way is None:
            way = ""
            if room is not None and iterations is None and oracles is None:
                way, share, passes, price = allotted(solver, exact, device, room, patience)
    clock = seconds if seconds is None or not way else 0.75 * seconds
    limits = {"seconds": clock, "iterations": iterations, "oracles": oracles, "share": share}
    if solver.direct and solver.nonconvex and not solver.centred and 0 < 8 * price < 0.75 * room <= 3000 * price:
        limits |= {"price": price, "room": room}
    given = {"device": device, "progress": progress, "stop": stop, "tol": solver.tol, "exact": exact}
    outcome = keep.outcome("steps", solver, data, device, exact) if keep is not None else None
    if outcome is None and solver.resume is not None and way == "finish":
        with torch.inference_mode(False), torch.no_grad():
            outcome = solver.resume(solver, exact, device, progress)
    if outcome is None or not math.isfinite(outcome.history[-1]["merit"]):
        outcome = solver.solve(solver, data, **given, **limits, keep=keep, **more)
    if "price" in limits and not outcome.iterations:
        way = "finish"
    if not way:
        return outcome
    if keep is not None:
        keep.ended("steps", outcome)
    with torch.inference_mode(False), torch.no_grad():
        left = None if seconds is None else max(seconds - (time.perf_counter() - began), 0.0)
        outcome.scarce = room is not None and way == "finish" and 100 * price > room
        end = solver.finish if way == "finish" else solver.restore
        found = end(solver, outcome, exact, seconds=left, passes=passes, tol=solver.tol, progress=progress, stop=stop, keep=keep)
        found.worked += found.passes * price if way == "finish" else 0.0
        return found


def put_back(held, into, made):
    """What ``held`` says, in the objects that ``into`` has: others hold them too. ``made``: what stands for each object of it."""
    if id(held) in made:
        return made[id(held)]
    if isinstance(held, torch.Generator):
        into = held if into is None else into
        into.set_state(held.get_state())
    elif isinstance(held, list):
        into = into if isinstance(into, list) else []
        into[:] = [put_back(x, None, made) for x in held]
    elif isinstance(held, dict) or hasattr(held, "__dict__") and not torch.is_tensor(held):
        into = into if type(into) is type(held) else copy.copy(held)
        made[id(held)] = into
        entries, there = (x if isinstance(x, dict) else vars(x) for x in (held, into))
        entries = {key: put_back(x, there.get(key), made) for key, x in entries.items()}
        there.clear()
        there.update(entries)
    else:
        into = held
    made[id(held)] = into
    return into


class Keeper:
    """Writes the state of a run every so many seconds, once a person asks to stop, on SIGTERM, and where steps end.

    ``keep(stage, run)`` is called wherever a state is whole; ``again(stage, run)`` puts one back; ``ended(stage, outcome)`` is
    told what a stage came to, and ``outcome(stage, ...)`` gives it. ``spent`` are the seconds that the run took before, and
    ``left`` is the state by stages that it goes on from, until it is put back.

    A state is everything that changes in a run, and what is made of the program, its data and the seed is made anew.
    """

    def __init__(self, folder, every, left=None, spent=0.0, step=0):
        self.folder, self.every, self.left, self.spent, self.step, self.first = folder, every, left or {}, spent, step, step
        self.began, self.base, self.outcomes = time.perf_counter(), 0, {}
        self.due = self.began + every
        self.stopping = self.terminated = False

    def terminate(self, *signalled):
        """The process is asked to end, once the state is written."""
        self.terminated = True

    def asked(self):
        """Whether a person wants the run to end."""
        return False

    def stop(self):
        """What the loops ask: that a person wants them to end, once the state of before is written."""
        return self.stopping

    def __call__(self, stage, run, reason=""):
        """A state that is whole, after a step; ``reason``: why it is the last, where no step was cut."""
        if self.stopping:
            return
        due, stopping, ending = self.word(stage)
        if due or stopping or ending or reason not in ("", "interrupted"):
            self.step = self.base + run.count if isinstance(run.count, int) and stage != "restore" else self.base
            self.write(stage, run)
            self.due = time.perf_counter() + self.every
        self.stopping = stopping
        if ending:
            print(f"terminated at step {self.step:,}: the checkpoint in {self.folder} goes on from there", file=sys.stderr)
            raise SystemExit(128 + signal.SIGTERM)

    def word(self, stage=""):
        """Whether it is time to write, a person wants the run to end, and the process is asked to."""
        return time.perf_counter() >= self.due, self.asked(), self.terminated

    def write(self, stage, run):
        """Puts it into files."""
        raise NotImplementedError

    def again(self, stage, run):
        """Whether the state was written in this stage: then ``run`` stands as it did."""
        if stage not in self.left:
            return False
        self.back(self.left[stage], run)
        self.left = {}
        return True

    def ended(self, stage, outcome):
        """What a stage came to, unless a person ended it, is part of all states from here on."""
        if outcome.status != "interrupted":
            held = SimpleNamespace(**{name: value for name, value in vars(outcome).items() if name != "exact"})
            self.base, self.outcomes = outcome.iterations, self.packed(held, f"after {stage}")

    def outcome(self, stage, solver, data, device, exact=None):
        """What a stage came to before; None where it is not known to have ended."""
        if f"after {stage}" not in self.left:
            return None
        outcome = self.back(self.left[f"after {stage}"])
        if exact is None:
            exact = solver.prepare_full(solver.as_namespace(data, device, torch.float64))
        outcome.exact = exact
        self.ended(stage, outcome)
        return outcome

    def packed(self, held, name):
        """A part of the state as it stands."""
        return {name: copy.deepcopy(held)}

    def back(self, held, into=None):
        """A part of the state again, in the place of what ``into`` holds."""
        return put_back(held, into, {})


class FileKeeper(Keeper):
    """One with a folder that has the last two states, ``000007/state.pt`` beside a manifest, each written beside and renamed.

    identity   what the program, its data and settings are known by, by name: a state of others is refused
    classes    what a state has of beside numbers, texts, lists and tensors; nothing else is unpickled
    """

    def __init__(self, folder, every, identity, classes):
        self.folder, self.identity, self.classes = folder, identity, classes
        super().__init__(folder, every, *(self.newest() or ()))
        signal.signal(signal.SIGTERM, self.terminate)

    def states(self):
        """The states in the folder, the last one first."""
        return sorted((p for p in self.folder.glob("[0-9]*") if p.name.isdecimal()), key=lambda p: -int(p.name))

    def newest(self):
        """The last whole state, the seconds and the steps before it; None where there is none."""
        for place in self.states():
            try:
                manifest = json.loads((place / "manifest.json").read_text())
                whole = hashlib.sha256((place / "state.pt").read_bytes()).hexdigest() == manifest["sha256"]
            except (OSError, ValueError, KeyError):
                whole = False
            if not whole:
                continue
            if differing := [name for name, known in self.identity.items() if manifest["identity"].get(name) != known]:
                raise SystemExit(f"error[F0817] checkpoint: {place} is of another run: {', '.join(differing)}; see --fresh")
            with torch.serialization.safe_globals(self.classes):
                return torch.load(place / "state.pt", weights_only=True), manifest["seconds"], manifest["step"]
        if self.states():
            raise SystemExit(f"error[F0817] checkpoint: what is in {self.folder} is damaged; see --fresh")
        return None

    def write(self, stage, run):
        """One more state, whole or not at all, and those before the last two are removed; where that fails the run goes on, and
        says so, unless it is about to be ended."""
        places = self.states()
        number = f"{1 + max((int(place.name) for place in places), default=0):06d}"
        new = self.folder / f".{number}.{os.getpid()}"
        seconds = self.spent + time.perf_counter() - self.began
        manifest = {"identity": self.identity, "stage": stage, "step": self.step, "seconds": seconds}
        try:
            new.mkdir(parents=True)
            torch.save({**self.outcomes, stage: run}, new / "state.pt")
            digest = hashlib.sha256((new / "state.pt").read_bytes()).hexdigest()
            (new / "manifest.json").write_text(json.dumps({**manifest, "sha256": digest}, indent=1))
            os.replace(new, self.folder / number)
        except (OSError, RuntimeError) as error:  # torch's word for a disk that is full is the latter
            if self.terminated:
                raise SystemExit(f"error[F0806] output: no checkpoint could be written in {self.folder}: {error}") from None
            print(f"no checkpoint could be written in {self.folder}: {error}; the run goes on", file=sys.stderr)
            places = []
        finally:
            shutil.rmtree(new, ignore_errors=True)
        for place in places[1:]:
            shutil.rmtree(place, ignore_errors=True)


def kept(keeper, arguments, identity, settings):
    """What keeps a run's state in the folder that the command line names, None where it names none; ``--fresh``: what is there is
    left aside. A run goes on from the state of the same program (``identity``), data, seed, precision and backend alone."""
    if arguments.checkpoint is None:
        return None
    first = os.environ.get("RANK", "0") == "0"
    if arguments.fresh and first:
        for place in Path(arguments.checkpoint).glob("[0-9]*"):
            shutil.rmtree(place, ignore_errors=True)
    settled = {name: str(getattr(arguments, name, "")) for name in ("seed", "precision", "data", "backend")}
    classes = [SimpleNamespace, type(settings), torch.Generator]
    keep = keeper(Path(arguments.checkpoint), arguments.every, identity | settled, classes)
    if keep.left and first:
        print(f"resumed at step {keep.first:,}", flush=True)
    return keep


# ---- report
def main():
    parser = argparse.ArgumentParser(description="Solve the model at the head of this file.")
    parser.add_argument("--data", type=Path, help=f"the bound data (default: {DATA_FILE} beside this file)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default='cpu', help="cpu, cuda or cuda:1")
    parser.add_argument("--precision", choices=["float32", "float64"], default=PRECISION)
    parser.add_argument("--seconds", type=float, help=f"budget of time (default: {SECONDS}, or none where another is given)")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--oracles", type=float, default=CALLS, help="budget of values g_i(w; xi) that steps ask for")
    parser.add_argument("--checkpoint", metavar="DIR", help="keep the state of the run here, and go on from that which is there")
    parser.add_argument("--every", type=lambda s: float(s.removesuffix("s")), default=60.0, help="time between them (60s)")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever checkpoints there are")
    parser.add_argument("--out", help="write the variables here (torch.save)")
    parser.add_argument("--backend", default='eager', help="any but eager is of fccomodel, which must be installed")
    arguments = parser.parse_args()
    arguments.device = present(arguments.device)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        words = "error[F0616] not over ranks: this program is of one process; write one of several with --option ranks=true"
        raise SystemExit(words if os.environ.get("RANK") == "0" else 1)
    seconds = arguments.seconds
    if seconds is None and arguments.iterations is None and arguments.oracles is None:
        seconds = SECONDS
    torch.set_num_threads(THREADS)
    tensors = read_data(arguments.data or Path(__file__).with_name(DATA_FILE), None if arguments.data else DATA_SHA256)
    if arguments.backend != "eager":
        try:
            from fccomodel.solver.backends import equip_program
        except ImportError:
            raise SystemExit("error[F0818] backend: any but eager is of fccomodel, which is not installed") from None
        equip_program(sys.modules[__name__], tensors, arguments)

    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    keep = kept(FileKeeper, arguments, {"program": program, "arrays": DATA_SHA256}, SOLVER.settings())

    def show(entry):
        line = "stage {stage:>3}  step {iteration:>7}  objective {objective:.6g}  violation {violation:.2e}  {seconds:.1f} s"
        print(line.format(**entry), flush=True)

    with no_grad():
        found = solve(SOLVER, tensors, seed=arguments.seed, device=arguments.device, dtype=getattr(torch, arguments.precision),
                      seconds=seconds, iterations=arguments.iterations, oracles=arguments.oracles, progress=show,
                      planned=PLANNED, keep=keep)
        objective, constraints = evaluate(found.exact, found.w)
    print(f"objective {SIGN * float(objective):.10g}   ({found.reason}, {found.iterations} steps)")
    for label, (_, values) in constraints.items():
        print(f"{label}: largest value {float(values.max()):.6g}")
    if arguments.out:
        torch.save({name: found.w[a:b].view(shape) for name, (a, b, shape) in LAYOUT.items()}, arguments.out)


if __name__ == "__main__":
    main()


# ---- report
def main():
    parser = argparse.ArgumentParser(description="Solve the model at the head of this file.")
    parser.add_argument("--data", type=Path, help=f"the bound data (default: {DATA_FILE} beside this file)")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--device", default='cpu', help="cpu, cuda or cuda:1")
    parser.add_argument("--precision", choices=["float32", "float64"], default=PRECISION)
    parser.add_argument("--seconds", type=float, help=f"budget of time (default: {SECONDS}, or none where another is given)")
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--oracles", type=float, default=CALLS, help="budget of values g_i(w; xi) that steps ask for")
    parser.add_argument("--checkpoint", metavar="DIR", help="keep the state of the run here, and go on from that which is there")
    parser.add_argument("--every", type=lambda s: float(s.removesuffix("s")), default=60.0, help="time between them (60s)")
    parser.add_argument("--fresh", action="store_true", help="begin anew, whatever checkpoints there are")
    parser.add_argument("--out", help="write the variables here (torch.save)")
    parser.add_argument("--backend", default='eager', help="any but eager is of fccomodel, which must be installed")
    arguments = parser.parse_args()
    arguments.device = present(arguments.device)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        words = "error[F0616] not over ranks: this program is of one process; write one of several with --option ranks=true"
        raise SystemExit(words if os.environ.get("RANK") == "0" else 1)
    seconds = arguments.seconds
    if seconds is None and arguments.iterations is None and arguments.oracles is None:
        seconds = SECONDS
    torch.set_num_threads(THREADS)
    tensors = read_data(arguments.data or Path(__file__).with_name(DATA_FILE), None if arguments.data else DATA_SHA256)
    if arguments.backend != "eager":
        try:
            from fccomodel.solver.backends import equip_program
        except ImportError:
            raise SystemExit("error[F0818] backend: any but eager is of fccomodel, which is not installed") from None
        equip_program(sys.modules[__name__], tensors, arguments)

    program = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    keep = kept(FileKeeper, arguments, {"program": program, "arrays": DATA_SHA256}, SOLVER.settings())

    def show(entry):
        line = "stage {stage:>3}  step {iteration:>7}  objective {objective:.6g}  violation {violation:.2e}  {seconds:.1f} s"
        print(line.format(**entry), flush=True)

    with no_grad():
        found = solve_then_finish(SOLVER, tensors, seed=arguments.seed, device=arguments.device, dtype=getattr(torch, arguments.precision),
                      seconds=seconds, iterations=arguments.iterations, oracles=arguments.oracles, progress=show,
                      planned=PLANNED, keep=keep, way=WAY, passes=PASSES)
        objective, constraints = evaluate(found.exact, found.w)
    print(f"objective {SIGN * float(objective):.10g}   ({found.reason}, {found.iterations} steps)")
    for label, (_, values) in constraints.items():
        print(f"{label}: largest value {float(values.max()):.6g}")
    if arguments.out:
        torch.save({name: found.w[a:b].view(shape) for name, (a, b, shape) in LAYOUT.items()}, arguments.out)


if __name__ == "__main__":
    main()
