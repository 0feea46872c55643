"""The interface of a modelling language and compiler for finite-sum coupled compositional
stochastic optimisation.

Written by ``fccomodel.app.python.stub``; a test holds it to the library.
"""

# ruff: noqa: I001
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fccomodel.app.python.estimators import (
    FCCOClassifier as FCCOClassifier,
    FCCORegressor as FCCORegressor,
)
from fccomodel.app.python.modelling import (
    Model as Model,
    array as array,
    between as between,
    chain as chain,
    column as column,
    const as const,
    dim as dim,
    draw as draw,
    grid as grid,
    if_else as if_else,
    index as index,
    integer as integer,
    iterate as iterate,
    labels as labels,
    literal as literal,
    net as net,
    param as param,
    params as params,
    real as real,
    sampler as sampler,
    subscript as subscript,
    table as table,
    values as values,
    var as var,
    vector as vector,
)
from fccomodel.app.python.session import (
    BoundModel as BoundModel,
    CompiledModel as CompiledModel,
    Explanation as Explanation,
    Result as Result,
    compare as compare,
    compile as compile,
    evaluate as evaluate,
    grade as grade,
    load as load,
    numbered as numbered,
    track as track,
)
from fccomodel.core.diagnostics import (
    Diagnostic as Diagnostic,
    FccoError as FccoError,
)
from fccomodel.core.source import (
    Source as Source,
)
from fccomodel.language.notation.sets import (
    Set as Set,
)
from fccomodel.language.notation.terms import (
    Formula as Formula,
)

#: What stands in a formula.
Value = Formula | Set | float | str

class _Reduction(Protocol):
    """Called with a comprehension over sets of the model; ``mean[m.i](...)`` for a declared index."""

    def __call__(
        self, comprehension: Iterable[Any] | Value, /, *more: Value, **options: Value
    ) -> Formula: ...
    def __getitem__(self, index: Formula) -> Callable[[Value], Formula]: ...

__all__: list[str]
__version__: str

def load_ipython_extension(shell: Any) -> None: ...

E: _Reduction
"""E(f(z) for z in D)

the mean of the elements drawn, sum e / n

In a file: E[z ~ D] f"""

def abs(u: Value) -> Formula:
    """abs(u)

    |u|"""

def affine(A: Value = ..., b: Value = ...) -> Set:
    """affine(A, b): a simple set, for ``var(..., domain=affine(...))``

    A w == b"""

def atan(u: Value) -> Formula:
    """atan(u)

    the angle in radians, between -pi/2 and pi/2, whose tangent is u"""

def ball(radius: Value = ...) -> Set:
    """ball(radius): a simple set, for ``var(..., domain=ball(...))``

    |w|_2 <= radius"""

def ball1(radius: Value = ...) -> Set:
    """ball1(radius): a simple set, for ``var(..., domain=ball1(...))``

    |w|_1 <= radius"""

def bernoulli(p: Value) -> Set:
    """bernoulli(p): a distribution, for ``E(f(z) for z in bernoulli(...))``

    1 with probability p, else 0"""

bottomk: _Reduction
"""bottomk(f(z) for z in D, k=3)

the mean of the k smallest elements, of all where there are fewer

In a file: bottomk(k = 3)[k in K] f"""

def box(low: Value = ..., high: Value = ...) -> Set:
    """box(low, high): a simple set, for ``var(..., domain=box(...))``

    low <= w <= high"""

def capped_simplex(axis: Value = ..., alpha: Value = ...) -> Set:
    """capped_simplex(K, alpha): a simple set, for ``var(..., domain=capped_simplex(...))``

    0 <= w <= 1/(alpha n), sum(w) == 1, for n entries; of a matrix, each row"""

def chi2(q: Value, p: Value) -> Formula:
    """chi2(q, p)

    the chi-squared divergence, the sum of (q[i] - p[i])^2 / p[i]"""

def clip(u: Value, lo: Value, hi: Value) -> Formula:
    """clip(u, lo, hi)

    u, but lo where it is less and hi where it is more

    Constant: lo, hi must not depend on the decision variables."""

def concat(*u: Value) -> Formula:
    """concat(u1, u2, ...)

    vectors and scalars, one after the other"""

def cos(u: Value) -> Formula:
    """cos(u)

    the cosine of an angle in radians"""

def cumsum(x: Value) -> Formula:
    """cumsum(x)

    the sums of the entries of a vector up to each one"""

cvar: _Reduction
"""cvar(f(z) for z in D, tail=0.1)

the mean of the largest share `tail` of the elements, the boundary element counted in part

In a file: cvar(tail = 0.1)[k in K] f"""

def diag(x: Value) -> Formula:
    """diag(x)

    the matrix with the vector x on its diagonal, or the diagonal of the matrix x"""

def diff(x: Value) -> Formula:
    """diff(x)

    the differences x[2] - x[1], x[3] - x[2], ... of a vector"""

def digamma(u: Value) -> Formula:
    """digamma(u)

    the derivative of lgamma(u), for u > 0"""

def dot(u: Value, v: Value) -> Formula:
    """dot(u, v)

    the inner product of two vectors"""

def elu(u: Value) -> Formula:
    """elu(u)

    u for u > 0, e^u - 1 otherwise"""

def entr(u: Value) -> Formula:
    """entr(u)

    -u log(u), 0 at u = 0"""

def eps_insensitive(u: Value, eps: Value) -> Formula:
    """eps_insensitive(u, eps)

    max(0, |u| - eps)

    Constant: eps must not depend on the decision variables."""

def erf(u: Value) -> Formula:
    """erf(u)

    the error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to u"""

def exp(u: Value) -> Formula:
    """exp(u)

    e^u"""

def expm1(u: Value) -> Formula:
    """expm1(u)

    e^u - 1, exact near 0"""

def exponential(rate: Value) -> Set:
    """exponential(rate): a distribution, for ``E(f(z) for z in exponential(...))``

    density rate exp(-rate z) for z >= 0"""

def eye(n: Value) -> Formula:
    """eye(n)

    the identity matrix"""

def gamma(shape: Value, rate: Value) -> Set:
    """gamma(shape, rate): a distribution, for ``E(f(z) for z in gamma(...))``

    density proportional to z^(shape - 1) exp(-rate z) for z > 0, of mean shape / rate"""

def group_norm(u: Value, size: Value) -> Formula:
    """group_norm(u, size)

    the sum of the Euclidean norms of consecutive groups of `size` entries

    Constant: size must not depend on the decision variables."""

def hinge(u: Value) -> Formula:
    """pos(u)

    max(0, u)"""

def huber(u: Value, delta: Value) -> Formula:
    """huber(u, delta)

    u^2/2 for |u| <= delta, delta (|u| - delta/2) beyond

    Constant: delta must not depend on the decision variables."""

def inv(u: Value) -> Formula:
    """inv(u)

    1/u; of a square matrix its inverse"""

def inverse(u: Value) -> Formula:
    """inverse(u)

    the inverse of a square matrix; `inv(u)` of a matrix is the same"""

def kl(q: Value, p: Value) -> Formula:
    """kl(q, p)

    the Kullback-Leibler divergence, the sum of q[i] log(q[i]/p[i])"""

def lambda_max(u: Value) -> Formula:
    """lambda_max(u)

    the largest eigenvalue of a square matrix, of its symmetric part (u + u')/2"""

def lambda_min(A: Value) -> Formula:
    """lambda_min(A)

    the smallest eigenvalue of a square matrix, -lambda_max(-A)"""

def laplace(mean: Value, scale: Value) -> Set:
    """laplace(mean, scale): a distribution, for ``E(f(z) for z in laplace(...))``

    density exp(-|z - mean| / scale) / (2 scale); scale = 0 is the mean itself"""

def lgamma(u: Value) -> Formula:
    """lgamma(u)

    the logarithm of the gamma function of u > 0, log((u - 1)!) of a whole number"""

def log(u: Value) -> Formula:
    """log(u)

    the natural logarithm of u > 0"""

def log1p(u: Value) -> Formula:
    """log1p(u)

    log(1 + u), exact near 0, for u > -1"""

def log1pexp(u: Value) -> Formula:
    """log1pexp(u)

    log(1 + e^u)"""

def logabsdet(u: Value) -> Formula:
    """logabsdet(u)

    the logarithm of the absolute value of a determinant"""

def logaddexp(u: Value, v: Value) -> Formula:
    """logaddexp(u, v)

    log(e^u + e^v), of numbers of any size"""

def logcosh(u: Value) -> Formula:
    """logcosh(u)

    log((e^u + e^-u) / 2): u^2/2 near 0, |u| - log(2) far away"""

def logdet(u: Value) -> Formula:
    """logdet(u)

    the logarithm of the determinant; of a matrix that is not symmetric, of the determinant's size"""

logmeanexp: _Reduction
"""logmeanexp(f(z) for z in D, theta=1)

theta log of the mean of exp(e / theta)

In a file: logmeanexp(theta = 1)[k in K] f"""

def lognormal(mean: Value, sd: Value) -> Set:
    """lognormal(mean, sd): a distribution, for ``E(f(z) for z in lognormal(...))``

    exp(u) with u normal(mean, sd): mean and sd are those of the logarithm"""

def logsigmoid(u: Value) -> Formula:
    """logsigmoid(u)

    log(sigmoid(u)) = -log(1 + e^-u)"""

def logsumexp(u: Value) -> Formula:
    """logsumexp(u)

    log of the sum of e^u[i]"""

def matrix_frac(x: Value, u: Value) -> Formula:
    """matrix_frac(x, u)

    x' P^-1 x of a vector and a positive definite matrix, of its symmetric part"""

max: _Reduction
"""max(f(z) for z in D)

the largest element

In a file: max[i in I] f

max(u1, u2, ...)

the largest of the arguments"""

def mcp(u: Value, a: Value, l: Value) -> Formula:
    """mcp(u, a, l)

    l |u| - u^2/(2 a) for |u| <= a l, constant a l^2/2 beyond; a > 0

    Constant: a, l must not depend on the decision variables."""

mean: _Reduction
"""mean(f(z) for z in D)

the mean of all elements, sum e / n

In a file: mean[i in I] f

mean(u)

the average of the entries"""

min: _Reduction
"""min(f(z) for z in D)

the least element

In a file: min[i in I] f

min(u1, u2, ...)

the smallest of the arguments"""

def nonneg() -> Set:
    """nonneg: a simple set, for ``var(..., domain=nonneg(...))``

    w >= 0"""

def norm1(u: Value) -> Formula:
    """norm1(u)

    the sum of absolute values"""

def norm2(u: Value) -> Formula:
    """norm2(u)

    the Euclidean norm"""

def norm_fro(u: Value) -> Formula:
    """norm_fro(u)

    the Frobenius norm, the root of the sum of squares"""

def norm_nuc(u: Value) -> Formula:
    """norm_nuc(u)

    the nuclear norm, the sum of the singular values"""

def norm_spec(u: Value) -> Formula:
    """norm_spec(u)

    the spectral norm, the largest singular value"""

def normal(mean: Value, sd: Value) -> Set:
    """normal(mean, sd): a distribution, for ``E(f(z) for z in normal(...))``

    density exp(-(z - mean)^2 / (2 sd^2)) / (sd sqrt(2 pi)); sd = 0 is the mean itself"""

def normcdf(u: Value) -> Formula:
    """normcdf(u)

    the standard normal distribution function"""

def norminf(u: Value) -> Formula:
    """norminf(u)

    the largest absolute value"""

def ones(*sizes: Value) -> Formula:
    """ones(n, m)

    an array of ones with these sizes"""

def outer(u: Value, v: Value) -> Formula:
    """outer(u, v)

    the matrix of products u[i] v[j]"""

def pinball(u: Value, tau: Value) -> Formula:
    """pinball(u, tau)

    tau u for u >= 0, (tau - 1) u for u < 0

    Constant: tau must not depend on the decision variables."""

pmean: _Reduction
"""pmean(f(z) for z in D, p=2)

the power mean, (mean of e^p)^(1/p), of elements that are not negative

In a file: pmean(p = 2)[k in K] f"""

def poisson(rate: Value) -> Set:
    """poisson(rate): a distribution, for ``E(f(z) for z in poisson(...))``

    k = 0, 1, 2, ... with probability rate^k exp(-rate) / k!"""

def pos(u: Value) -> Formula:
    """pos(u)

    max(0, u)"""

prob: _Reduction
"""prob(f(z) for z in D)

the share of the elements drawn that satisfy a condition

In a file: prob[z ~ D] f"""

prod: _Reduction
"""prod(f(z) for z in D)

the product of all elements

In a file: prod[i in I] f"""

def psd() -> Set:
    """psd: a simple set, for ``var(..., domain=psd(...))``

    symmetric matrices without a negative eigenvalue"""

quantile: _Reduction
"""quantile(f(z) for z in D, level=0.05)

the number that a share `level` of the draws is at most, as one side of a constraint

In a file: quantile(level = 0.05)[z ~ D] f"""

def relu(u: Value) -> Formula:
    """pos(u)

    max(0, u)"""

def scad(u: Value, a: Value, l: Value) -> Formula:
    """scad(u, a, l)

    l |u| up to l, then bending (slope (a l - |u|)/(a - 1)), constant l^2 (a + 1)/2 from a l on; a > 2

    Constant: a, l must not depend on the decision variables."""

def sigmoid(u: Value) -> Formula:
    """sigmoid(u)

    1/(1 + e^-u)"""

def sign(u: Value) -> Formula:
    """sign(u)

    -1, 0 or 1, as u < 0, u = 0 or u > 0"""

def silu(u: Value) -> Formula:
    """silu(u)

    u sigmoid(u)"""

def simplex(axis: Value = ...) -> Set:
    """simplex(K): a simple set, for ``var(..., domain=simplex(...))``

    w >= 0, sum(w) == 1; of a matrix, each row"""

def sin(u: Value) -> Formula:
    """sin(u)

    the sine of an angle in radians"""

def smooth_hinge(u: Value, delta: Value) -> Formula:
    """smooth_hinge(u, delta)

    0 for u <= 0, u^2/(2 delta) up to delta, u - delta/2 beyond: the Moreau envelope of pos

    Constant: delta must not depend on the decision variables."""

def softmax(u: Value) -> Formula:
    """softmax(u)

    the vector of e^u[i] / sum of e^u[j]"""

def softplus(u: Value) -> Formula:
    """log1pexp(u)

    log(1 + e^u)"""

def sqhinge(u: Value) -> Formula:
    """sqhinge(u)

    max(0, u)^2"""

def sqrt(u: Value) -> Formula:
    """sqrt(u)

    the square root of u >= 0"""

def square(u: Value) -> Formula:
    """square(u)

    u^2"""

std: _Reduction
"""std(f(z) for z in D)

the root of the variance of the elements drawn

In a file: std[z ~ D] f"""

def step(u: Value) -> Formula:
    """step(u)

    1 if u > 0, else 0"""

sum: _Reduction
"""sum(f(z) for z in D)

the sum of all elements

In a file: sum[i in I] f

sum(u)

the sum of the entries"""

def sum_squares(u: Value) -> Formula:
    """sumsq(u)

    the sum of squares"""

def sumsq(u: Value) -> Formula:
    """sumsq(u)

    the sum of squares"""

def sym() -> Set:
    """sym: a simple set, for ``var(..., domain=sym(...))``

    symmetric matrices"""

def tanh(u: Value) -> Formula:
    """tanh(u)

    the hyperbolic tangent"""

topk: _Reduction
"""topk(f(z) for z in D, k=3)

the mean of the k largest elements, of all where there are fewer

In a file: topk(k = 3)[k in K] f"""

def trace(A: Value) -> Formula:
    """trace(A)

    the sum of the diagonal of a matrix"""

def trace_inv(u: Value) -> Formula:
    """trace_inv(u)

    the trace of the inverse of a positive definite matrix, of its symmetric part"""

def transpose(u: Value) -> Formula:
    """transpose(u)

    the transposed matrix"""

def uniform(low: Value = ..., high: Value = ...) -> Any:
    """uniform(low, high): a distribution, for ``E(f(z) for z in uniform(...))``

    density 1 / (high - low) from low to high"""

variance: _Reduction
"""variance(f(z) for z in D)

the mean of (e - mean)^2 over the elements drawn

In a file: variance[z ~ D] f"""

def weibull(shape: Value, scale: Value) -> Set:
    """weibull(shape, scale): a distribution, for ``E(f(z) for z in weibull(...))``

    scale u^(1 / shape) with u exponential(1), of survival exp(-(z / scale)^shape)"""

def zeros(*sizes: Value) -> Formula:
    """zeros(n, m)

    an array of zeros with these sizes"""
