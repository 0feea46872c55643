"""Answers to the exercises, by their numbers."""


def sign_step(state, G, h):
    """Of exercise 10.2."""
    state.v.lerp_(G, h.beta)
    step = state.v.new_full(state.v.shape, h.eta)
    state.w.sub_(step * state.v.sign())
    return step


ANSWERS = {
    # E[G] = 2 w (1 + 4 / B) - 2 vanishes at w = 1 / (1 + 4 / 4).
    "1.1": 0.5,
    # The function around the expectation must be affine: the square is inside.
    "1.2": "var w >= -2, <= 2; minimize E[x ~ normal(1, 1)] (w - x) ^ 2;",
    # The mean is inside the square, the square is outside the mean.
    "1.3": "var w >= -2, <= 2; minimize (E[x ~ normal(1, 1)] (w * x) - 1) ^ 2;",
    # The variance v of u satisfies v = (1 - gamma)^2 v + gamma^2, so that v = gamma / (2 - gamma).
    "2.1": 0.1 / 1.9,
    # A faster w needs a faster estimate.
    "2.2": [0.05, 0.5],
    # The square takes the place of the cube.
    "2.3": """
        dim d;
        data D : table(x: real[d], y: {0, 1});
        set P = {z in D | z.y == 1};
        set N = {z in D | z.y == 0};
        var w[d];
        minimize mean[i in P] (E[j ~ N] log1pexp(dot(w, j.x) - dot(w, i.x))) ^ 2 + 0.01 * sumsq(w);
    """,
    # At u = 2 > lambda * 3 the envelope has the whole slope, 3, and pays lambda / 2 * 3^2 for it.
    "3.1": 6 - 0.5 / 2 * 3**2,
    # The multiplier: the slope that balances 2 (w - 3) at w = 1.
    "3.2": 4.0,
    # lambda / 2 times the largest slope squared.
    "3.3": 0.5 / 2 * 3**2,
    # The moving average (3 * 1 + 3) / (1 + 3); f' is the identity.
    "4.1": 1.5,
    # The slopes at the optimum w = 2: (w - 1) - (w - 6) = 5, whatever w is.
    "4.2": [1.0, 0.0, -1.0],
    # An absolute value is the larger of two linear functions.
    "4.3": "data D : table(a: real); var w; minimize E[z ~ D] max(w - z.a, z.a - w);",
    # 2 w = y at w = 1.
    "5.1": 2.0,
    # The minimum of the objective lies on the boundary already.
    "5.2": "var w; minimize w ^ 2; subject to touch: w >= 0;",
    # One constraint for the shelves; the signs are part of the variable.
    "5.3": """
        data c : real[3];
        var x[3] >= 0;
        maximize dot(c, x) - sumsq(x);
        subject to shelves: sum(x) <= 1;
    """,
    # The difference is 0: a moving average with gamma = 0.1.
    "6.1": 0.1 / (2 - 0.1),
    # Five passes, and each of the 310 steps asks at two points.
    "6.2": 5 * 1000 + 2 * 310,
    # 1000 = (1000 + 2 m) / 10.
    "6.3": 4500,
    # The two and a half worst of them: (10 + 9 + 8 / 2) / 2.5.
    "7.1": 9.2,
    # The largest of w'd over |d_j| <= 0.1 is 0.1 |w|_1, and it is inside.
    "7.2": """
        dim d;
        data D : table(x: real[d], y: {-1, 1});
        var w[d];
        minimize E[z ~ D] log1pexp(-z.y * dot(w, z.x) + 0.1 * norm1(w));
    """,
    # A tail mean takes the worst tenth.
    "7.3": """
        dim n;
        data R : table(r: real[n]);
        var w[n] in simplex;
        minimize 0.5 * E[z ~ R] (-dot(w, z.r)) + 0.5 * cvar(tail = 0.1)[z in R] (-dot(w, z.r));
    """,
    # Half-widths fall like 1 / sqrt(n).
    "8.1": 132 * (0.128 / 0.02) ** 2,
    # The rows with y = 0 in the place of those with y = 1.
    "8.2": """
        model fair;
        dim d;
        set G = {"young", "old"};
        data D : table(x: real[d], y: {0, 1}, g: G);
        param kappa >= 0 default 0.03;
        var w[d];
        var b;
        def score(x) = dot(w, x) + b;
        let chosen[k in G] = E[z ~ D | z.y == 0 and z.g == k] sigmoid(score(z.x));
        minimize loss: E[z ~ D] (log1pexp(score(z.x)) - z.y * score(z.x)) + 0.001 * sumsq(w);
        subject to opportunity: abs(chosen["young"] - chosen["old"]) <= kappa;
    """,
    # It lets the old be accepted as much more often as one likes.
    "8.3": """
        dim d;
        data D : table(x: real[d], y: {0, 1}, g: {"young", "old"});
        param kappa >= 0 default 0.03;
        var w[d];
        let chosen[k in {"young", "old"}] = E[z ~ D | z.g == k] sigmoid(dot(w, z.x));
        minimize loss: E[z ~ D] (log1pexp(dot(w, z.x)) - z.y * dot(w, z.x)) + 0.001 * sumsq(w);
        subject to equal: abs(chosen["young"] - chosen["old"]) <= kappa;
    """,
    # Three of four pairs are in order; of those with the negative at 2 it is one of two.
    "9.1": [0.75, 0.5],
    # cvar over the positives, around the expectation over the negatives.
    "9.2": """
        dim d;
        data D : table(x: real[d], y: {0, 1});
        set P = {z in D | z.y == 1};
        set N = {z in D | z.y == 0};
        var w[d];
        minimize cvar(tail = 0.5)[p in P] (E[n ~ N] sqhinge(1 + dot(w, n.x) - dot(w, p.x))) + 0.001 * sumsq(w);
    """,
    # The condition on the inner draw names the outer row.
    "9.3": """
        dim d;
        data D : table(x: real[d], y: {0, 1}, g: {"a", "b"});
        set P = {z in D | z.y == 1};
        set N = {z in D | z.y == 0};
        var w[d];
        minimize mean[p in P] E[n ~ N | n.g == p.g] sqhinge(1 + dot(w, n.x) - dot(w, p.x)) + 0.001 * sumsq(w);
    """,
    # f'' = (2 - 2 u^2) / (1 + u^2)^2 is least at u^2 = 3, where it is -4 / 16.
    "10.1": 0.25,
    "10.2": sign_step,
    # f'' is largest at u = 0.
    "10.3": 2.0,
}
