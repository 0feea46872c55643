"""What people write first: small models, with and without data of their own, solved as they stand."""

import itertools

import pytest

import fccomodel
from fccomodel.core.diagnostics import FccoError
from fccomodel.library import atoms

MODELS = {
    "var x; minimize x^2;": 0,
    "var x >= 1; minimize x^2;": 1,
    "var x; minimize abs(x);": 0,
    "var x; minimize 3;": 3,
    "var x; maximize 3 s.t. c: x >= 1;": 3,
    "var x; maximize -(x - 2)^2;": 0,
    "var x in box(0, 1); maximize x;": 1,
    "var x; minimize x^2 s.t. c: x >= 1;": 1,
    "var x; minimize x^2 s.t. c: 1 <= 2;": 0,
    "var x; minimize x s.t. c: x^2 <= 1;": -1,
    "var x; minimize x s.t. c: 1e9*x >= 1e9;": 1,
    "var x; minimize x^4 - x^2;": -0.25,
    "var x; minimize huber(x - 3, 1) + abs(x);": 2.5,
    "var x; minimize abs(x - 1) + abs(x - 2) + abs(x - 4);": 3,
    "var x; minimize logsumexp(concat(x, -x));": 0.6931471805599453,
    "var x; var y; minimize x^2 + y^2 s.t. a: x + y >= 1; b: x - y == 0;": 0.5,
    "var w[3] in simplex(3); minimize sumsq(w);": 1 / 3,
    "var w[3] in simplex(3); minimize norm2(w);": 3**-0.5,
    "var x[2]; minimize norm2(x) s.t. c: sum(x) == 1;": 2**-0.5,
    "var x[2]; minimize norminf(x) s.t. c: sum(x) == 1;": 0.5,
    "var x[2]; minimize x[1] s.t. c: norm1(x) <= 1; d: x[2] >= 0.5;": -0.5,
    "set K = 1 .. 3; var x[K]; minimize sum[k in K] (x[k] - k)^2;": 0,
    "param lambda default 1; var class; minimize lambda*(class - 1)^2;": 0,
    "param p default 2; var x; minimize sqrt(p)*(x - 1)^2;": 0,
    "param p default 2; var x; minimize exp(-p)*abs(x - 1) + log(p);": 0.6931471805599453,
    "param p default 2; var x; minimize sumsq(concat(x, p));": 4,
    "param p default 2; var x; minimize max(p, 1)*abs(x) + min(p, 1);": 1,
    "param p default 2; var x; minimize norm1(concat(p, 1)) + x^2;": 3,
    "set K = 1 .. 3; var x; minimize x^2 + prob[o ~ uniform(0, 1)] (1 <= 2);": 1,
    "param p default 2; set K = 1 .. 3; let f[k in K] = p + 1; var x; minimize max[k in K] f[k] + x^2;": 3,
    "param p default 2; set K = 1 .. 3; var x; minimize x^2 s.t. c[k in K]: p <= 3;": 0,
    "param p default 2; set K = 1 .. 3; var x; minimize (sum[k in K] (p - 1) + max[k in K] 2 * p) * x^2 "
    "+ sum[k in K] p;": 6,
}


@pytest.mark.parametrize("text", MODELS)
def test_its_optimum(text):
    result = fccomodel.compile(text).bind(data={}).solve(budget="10s")
    assert result.objective == pytest.approx(MODELS[text], abs=1e-5)
    assert result.report.verdict.startswith("Solved")


def test_a_number_beyond_the_precision():
    with pytest.raises(FccoError, match="F0711"):
        model = fccomodel.compile("var u in box(-1, 1); var v; minimize max(1e300, u) * sigmoid(v);")
        model.solve(budget="5it", algorithm="msvr", unverified=True)


def calls():
    """Every function of the language at numbers, parameters and a variable, in each place."""
    for name, atom in atoms.all().items():
        if atom.internal or atom.symbol:
            continue
        for count in (
            (max(atom.min_count, 1), atom.min_count + 1) if atom.variadic else (max(atom.min_count, 1),)
        ):
            yield from (
                f"{name}({', '.join(args)})" for args in itertools.product(("x", "p", "0.5"), repeat=count)
            )


@pytest.mark.parametrize("name", sorted({text.partition("(")[0] for text in calls()}))
def test_functions_of_numbers(name):
    """Numbers of the text, parameters and variables alike; an error, where there is one, has a code of
    its own."""
    for text in (text for text in calls() if text.startswith(f"{name}(")):
        try:
            model = fccomodel.compile(f"param p default 0.3; var x; minimize (x - 0.4)^2 + abs({text});")
            model.bind(data={}).solve(budget="5it")
        except FccoError as error:
            assert "F0001" not in str(error), text
