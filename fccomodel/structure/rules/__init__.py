"""The rules of the analysis: a name, and one sentence that says why it is true."""

from __future__ import annotations

from fccomodel.library import reductions

RULES: dict[str, str] = {
    # ---- leaves
    "constant": "What depends on no decision variable is constant.",
    "variable": "A decision variable is an affine function of itself.",
    "argument": "An argument of an outer function is affine in itself.",
    "declared range": "The declaration says where the value lies.",
    "data range": "The bound data say where the value lies.",
    "finite data": "A finite table holds finite numbers, so their norms have a bound, known once the "
    "data are bound.",
    "interval arithmetic": "The value lies in the range of the function over where its arguments lie.",
    "least value": "A convex function is nowhere below its least value, and the bound data give a lower "
    "bound of that.",
    "inside the domain": "The value is assumed to stay inside the domain of a function, away from its ends.",
    "bounded value": "A value within finite ends has a bounded norm.",
    "compact domain": "A continuous function on a bounded closed set is bounded, and so are its "
    "continuous derivatives.",
    # ---- composition
    "affine": "A function that is convex and concave is affine, so its gradient is constant.",
    "affine argument": "A function keeps its curvature under an affine argument.",
    "composition": "A convex function that is non-decreasing in its convex arguments and non-increasing "
    "in its concave ones is"
    " convex (and a concave one the other way round).",
    "weak composition": "f(g) is weakly convex with the constant C_f L_g + rho_f C_g^2 "
    "(sonex-alexr2-2025, Lemma A.1).",
    "monotone over weakly convex": "A convex non-decreasing function with constant C_f of a rho_g-weakly "
    "convex one is"
    " C_f rho_g-weakly convex (sonex-alexr2-2025, Assumption 3.2, A3).",
    "self-bounded argument": "A smooth g that stays above m has |grad g|^2 <= 2 L_g (g - m), so f(g) "
    "bends no more than"
    " sup |f''(u)| 2 L_g (u - m) allows.",
    "smooth": "A function whose gradient has Lipschitz constant L is L-weakly convex and L-weakly concave.",
    "smooth of smooth": "A continuously differentiable function of continuously differentiable ones is one;"
    " its gradient has the constant C_f L_g + L_f C_g^2.",
    "chain of constants": "The Lipschitz constant of f(g) is at most C_f C_g.",
    "kink": "A function is not differentiable where one it is made of has a kink.",
    # ---- arithmetic
    "sum": "Convex functions sum to a convex one; weak convexity and Lipschitz constants add.",
    "scaling": "A nonnegative factor keeps curvature, a nonpositive one turns it round; constants scale "
    "with its size.",
    "linear map": "A linear map with constant coefficients keeps affine functions affine; constants "
    "scale with its norm.",
    "product": "A product of two varying factors has the gradient constant |a| L_b + |b| L_a + 2 C_a C_b.",
    "square": "A product of an expression with itself, or with a multiple of it, is a square.",
    "quadratic form": "x' A x is convex exactly where A is positive semidefinite.",
    "ratio": "a/b is the product of a and 1/b, which is smooth where b stays away from 0.",
    # ---- what only the whole has
    "log-convex": "The logarithm of a sum or average of e^h is convex where every h is (log-sum-exp), so "
    "the sum is convex too.",
    "power sums": "(c + sum of g^p)^q is a power pq >= 1 of a p-norm, so it is convex where every g is "
    "convex and"
    " nonnegative (or affine).",
    "quadratic over linear": "g^p / b is convex for convex g >= 0 (or affine g and even p), p >= 2, and "
    "concave b > 0:"
    " a perspective.",
    "positive part": "max(0, u)^p is convex, non-decreasing and continuously differentiable for p > 1, "
    "though max(0, u) is not.",
    "square of a norm": "The square of the Euclidean norm is the sum of squares, which is smooth.",
    "radial": "A smooth function with slope 0 at 0, of |u|, a Euclidean norm or max(0, u), is smooth in "
    "u: its curvatures are"
    " f''(r) and f'(r)/r.",
    "entropy": "c log c is convex for c >= 0; its slope is not bounded at 0.",
    "perspective": "y g(x/y) is jointly convex in x and y > 0 where g is convex: the perspective of g.",
    "shifted square": "(r + a)(r + b) is the square of r + (a + b)/2, less that of (a - b)/2.",
    "geometric mean": "A product of powers of nonnegative concave functions is concave where the "
    "exponents are nonnegative and"
    " add up to at most 1.",
    "kinks under a density": "An average of Lipschitz functions, each with kinks that a draw with a "
    "density meets with"
    " probability 0, is continuously differentiable.",
    # ---- reductions
    **{kind.rule: kind.law for kind in reductions.all().values()},
    "worst distribution": "The largest over q of averages of the risks, less a cost of q alone, is "
    "convex and non-decreasing in"
    " the risks; with a strongly convex cost it is smooth in them.",
    # ---- nets
    "network": "A network's layers decide whether it is smooth; what is smooth on bounded sets of "
    "weights has constants as"
    " long as the iterates stay bounded.",
    "network assumption": "What the model assumes of a network is taken as given.",
    # ---- estimates
    "sampling": "The largest seen at points and draws chosen at random: a lower bound of the true constant.",
    # ---- none
    "no rule": "No rule gives this property.",
}
