"""Ten exercises, each with its key, right answers in other words, and wrong answers with what is wrong.

An answer is the key with some texts replaced, or a model of its own. A wrong answer has the kind of its
difference, and the part that has it.
"""

from __future__ import annotations

HEAD = "dim d; data D : table(x: real[d], y: {0, 1}); "
KEYS = {
    "least squares": "dim d; data D : table(x: real[d], y: real); param mu >= 0 default 0.1; var w[d]; var b; "
    "minimize E[z ~ D] (dot(w, z.x) + b - z.y)^2 + mu * sumsq(w);",
    "neyman pearson": HEAD + "param tau >= 0 default 0.3; var w[d]; def score(x) = dot(w, x); "
    "minimize alarms: E[z ~ D | z.y == 0] log1pexp(score(z.x)) + 0.01 * sumsq(w); "
    "subject to misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau;",
    "portfolio": "dim n; data R : table(r: real[n]); param goal default 0.02; var w[n] in simplex; "
    "minimize risk: cvar(tail = 0.2)[z in R] (-dot(w, z.r)); subject to income: E[z ~ R] dot(w, z.r) >= goal;",
    "groups": 'dim d; set G = {"a", "b", "c"}; data D : table(x: real[d], y: real, g: G); var w[d]; '
    "let loss[k in G] = E[z ~ D | z.g == k] (dot(w, z.x) - z.y)^2; minimize max[k in G] loss[k] + 0.01 * sumsq(w);",
    "partial auc": HEAD + "set P = {z in D | z.y == 1}; set N = {z in D | z.y == 0}; var w[d]; "
    "minimize mean[p in P] cvar(tail = 0.3)[n in N] sqhinge(1 + dot(w, n.x) - dot(w, p.x)) + 0.001 * sumsq(w);",
    "fair": HEAD.replace("y: {0, 1}", 'y: {0, 1}, g: {"m", "f"}') + "var w[d]; "
    'let rate[k in {"m", "f"}] = E[z ~ D | z.g == k] sigmoid(dot(w, z.x)); '
    "minimize E[z ~ D] log1pexp((1 - 2 * z.y) * dot(w, z.x)) + 0.01 * sumsq(w); "
    'subject to parity: abs(rate["m"] - rate["f"]) <= 0.1;',
    "diet": "dim n, m; data c : real[n]; data A : real[m, n]; data need : real[m]; var x[n] >= 0; "
    "minimize dot(c, x) + 0.5 * sumsq(x); subject to enough: A @ x >= need; total: sum(x) <= 10;",
    "lasso": "dim d; data D : table(x: real[d], y: real); var w[d] >= -1, <= 1; "
    "minimize 0.5 * E[z ~ D] (dot(w, z.x) - z.y)^2 + 0.05 * norm1(w); subject to size: sumsq(w) <= 4;",
    "late": "data D : table(t: real, v: real, s: real); var a; var b; "
    "minimize E[z ~ D | z.t > 1] (a * z.v + b - z.s)^2 + 0.1 * a^2; subject to order: a + b <= 2;",
    "entropy": "dim n; data q : real[n]; var p[n] in simplex; "
    "minimize dot(q, p) + 0.2 * sum[i in 1..n] p[i] * log(p[i] + 0.01); subject to first: p[1] <= 0.5;",
}

#: (exercise, replacements, or a whole model)
RIGHT = [
    ("least squares", {"w[d]": "beta[d]", "w,": "beta,", "(w)": "(beta)", "var b;": "var c;", "+ b": "+ c"}),
    ("least squares", {"(dot(w, z.x) + b - z.y)^2": "square(z.y - b - dot(z.x, w))", "E[z ~ D]": "mean[z in D]"}),
    ("least squares", {"minimize": "maximize -(", "sumsq(w);": "norm2(w)^2);"}),
    ("neyman pearson", {"E[z ~ D | z.y == 1]": "mean[r in D | r.y > 0.5]", "-score(z.x)": "-score(r.x)"}),
    ("neyman pearson", {"log1pexp(-score(z.x)) <= tau": "(log1pexp(score(z.x)) - score(z.x)) - tau <= 0"}),
    ("neyman pearson", {"minimize alarms: ": "minimize other: 3 * (", "0.01 * sumsq(w)": "0.01 * sumsq(w)) + 7", "misses": "m"}),
    ("portfolio", {"-dot(w, z.r)": "-sum[i in 1..n] w[i] * z.r[i]", "E[z ~ R] dot(w, z.r) >= goal": "goal - E[z ~ R] dot(w, z.r) <= 0"}),
    ("portfolio", {"var w[n] in simplex": "var w[n] >= 0", ">= goal;": ">= goal; sum(w) == 1;"}),
    ("groups", {"max[k in G] loss[k]": 'max(loss["a"], loss["b"], loss["c"])', "0.01 * sumsq(w)": "dot(w, w) / 100"}),
    ("groups", {"(dot(w, z.x) - z.y)^2": "(dot(w, z.x)^2 - 2 * z.y * dot(w, z.x) + z.y^2)"}),
    ("partial auc", {"mean[p in P] cvar(tail = 0.3)[n in N]": "E[a ~ P] cvar(tail = 0.3)[b in N]", "n.x": "b.x", "p.x": "a.x"}),
    ("partial auc", {"sqhinge(1 + dot(w, n.x) - dot(w, p.x))": "max(0, 1 - dot(w, p.x - n.x))^2"}),
    ("fair", {'parity: abs(rate["m"] - rate["f"]) <= 0.1': '-0.1 <= rate["f"] - rate["m"] <= 0.1'}),
    ("fair", {"log1pexp((1 - 2 * z.y) * dot(w, z.x))": "(log1pexp(dot(w, z.x)) - z.y * dot(w, z.x))"}),
    ("diet", {"var x[n] >= 0": "var x[n]", "total:": "x >= 0; total:"}),
    ("diet", {"enough: A @ x >= need": "enough[j in 1..m]: need[j] - sum[i in 1..n] A[j, i] * x[i] <= 0"}),
    ("lasso", {"size: sumsq(w) <= 4": "size: norm2(w) <= 2", "norm1(w)": "sum[i in 1..d] abs(w[i])"}),
    ("lasso", {"var w[d] >= -1, <= 1": "var w[d]", "size: sumsq(w) <= 4": "size: sumsq(w) <= 4; box[i in 1..d]: abs(w[i]) <= 1"}),
    ("late", {"var a; var b;": "var b; var a;", "z.t > 1": "1 < z.t", "0.1 * a^2": "a^2 / 10", "a + b <= 2": "2 - b - a >= 0"}),
    ("entropy", {"minimize dot(q, p) + 0.2 * sum[i in 1..n] p[i] * log(p[i] + 0.01)": "minimize sum[k in 1..n] (5 * q[k] * p[k] + p[k] * log(0.01 + p[k]))"}),
]

#: (exercise, replacements, kind of the difference, part)
WRONG = [
    ("least squares", {"+ b - z.y": "- z.y", "var b; ": ""}, "missing declaration", "variable b"),
    ("least squares", {" + mu * sumsq(w)": ""}, "missing term", "objective"),
    ("least squares", {"+ b - z.y": "+ b + z.y"}, "sign", "objective"),
    ("least squares", {"sumsq(w)": "norm1(w)"}, "function", "objective"),
    ("neyman pearson", {"z.y == 0": "z.y == 1"}, "condition", "objective"),
    ("neyman pearson", {"z.y == 1": "z.y == 0"}, "condition", "misses"),
    ("neyman pearson", {"(-score": "(score"}, "sign", "misses"),
    ("neyman pearson", {"<= tau": ">= tau"}, "reversed", "misses"),
    ("neyman pearson", {"<= tau": "<= 0.1"}, "number", "misses"),
    ("portfolio", {"(-dot(w, z.r))": "(dot(w, z.r))"}, "sign", "objective"),
    ("portfolio", {"tail = 0.2": "tail = 0.8"}, "option", "objective"),
    ("portfolio", {"in simplex": ">= 0"}, "set of a variable", "variable w"),
    ("portfolio", {" subject to income: E[z ~ R] dot(w, z.r) >= goal;": ""}, "missing constraint", "income"),
    ("groups", {"max[k in G]": "mean[k in G]"}, "reduction", "objective"),
    ("groups", {" | z.g == k": ""}, "missing condition", "objective"),
    ("groups", {"minimize max": "maximize max"}, "sense", "objective"),
    ("partial auc", {"dot(w, n.x) - dot(w, p.x)": "dot(w, p.x) - dot(w, n.x)"}, "sign", "objective"),
    ("partial auc", {"cvar(tail = 0.3)": "mean"}, "reduction", "objective"),
    ("partial auc", {"set N = {z in D | z.y == 0}": "set N = {z in D | z.y == 1}"}, "condition", "objective"),
    ("fair", {'abs(rate["m"] - rate["f"])': 'rate["m"] - rate["f"]'}, "formula", "parity"),
    ("fair", {'rate["f"]) <=': 'rate["m"] + rate["f"]) <='}, "extra term", "parity"),
    ("diet", {"A @ x >= need": "A @ x == need"}, "equation", "enough"),
    ("diet", {" total: sum(x) <= 10;": ""}, "missing constraint", "total"),
    ("diet", {">= 0; minimize": "; minimize"}, "set of a variable", "variable x"),
    ("lasso", {"0.05": "0.5"}, "number", "objective"),
    ("lasso", {"sumsq(w) <= 4": "norm2(w) <= 4"}, "function", "size"),
    ("late", {"z.t > 1": "z.t >= 1"}, "strictness", "objective"),
    ("late", {"a * z.v": "a * z.t"}, "column", "objective"),
    ("late", {"a + b <= 2": "a + b <= 2; later: a <= 1"}, "extra constraint", "later"),
    ("entropy", {"p[1] <= 0.5": "p[2] <= 0.5"}, "index", "first"),
]
