"""The canonical layout: what it looks like, and that it changes nothing but the layout."""

from pathlib import Path
from random import Random

import pytest
from support.random_models import Generator, model_text, statement

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language import lexer
from fccomodel.language.format import WIDTH, format
from fccomodel.language.parse import parse

HERE = Path(__file__).parent
MODELS = sorted(
    [*(HERE.parent / "examples").glob("*.fcco"), *(HERE.parents[1] / "shared" / "models").glob("*.fcco")]
)


def laid_out(text: str) -> str:
    """A text's layout, checked: the same syntax, the same comments in order, and no second thoughts."""
    result = format(Source(text=text))
    assert parse(Source(text=result)) == parse(Source(text=text))
    assert format(Source(text=result)) == result
    assert comments(result) == comments(text)
    return result


def comments(text: str) -> list[str]:
    return [token.rstrip() for token in lexer.tokens(text) if token.type == "COMMENT"]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_models(path: Path) -> None:
    laid_out(path.read_text())


def test_layout() -> None:
    text = """
# first
model  m ;   # name


dim d;data D:table(x:real[ d ],y:{ -1,+1 });  set T=-3..3 by 1;
# about w
var   w[d]>=0,in  box( -1,1 );net s:real[d]->real assume smooth,lipschitz( 2 );
def g(w,i)=sqhinge( 1+dot(w , i.x) )-( 2*-w[1] )^-2;

minimize  risk :mean[i in D|i.y==1]-g(w,i)+E[ z~D ] s( w;z.x )@x
subject   to
# all of them
cap[ t in T ]:w[t]<=1 with a.b=2;   # each

w[1]==-1;
# after
options{seed=1;  # luck

algorithm=sonex;
# the end
};
"""
    assert (
        laid_out(text)
        == """\
# first
model m;  # name

dim d;
data D : table(x: real[d], y: {-1, +1});
set T = -3 .. 3 by 1;
# about w
var w[d] >= 0, in box(-1, 1);
net s : real[d] -> real assume smooth, lipschitz(2);
def g(w, i) = sqhinge(1 + dot(w, i.x)) - (2 * -w[1])^-2;

minimize risk: mean[i in D | i.y == 1] -g(w, i) + E[z ~ D] s(w; z.x) @ x
subject to
  # all of them
  cap[t in T]: w[t] <= 1 with a.b = 2;  # each

  w[1] == -1;
# after
options {
  seed = 1;  # luck

  algorithm = sonex;
  # the end
}
"""
    )


def test_comments_inside_a_statement() -> None:
    text = "minimize a # one\n  + b\n  # two\n  + c # three\n  ; # four\n"
    assert laid_out(text) == "minimize a  # one\n    + b\n    # two\n    + c;  # three\n# four\n"


def test_long_lines_break_at_the_loosest_operator() -> None:
    term = "E[z ~ D | z.group == {0}] log1pexp(-z.label * dot(weights, z.features))"
    text = "minimize risk: " + " + ".join(term.format(k) for k in range(3)) + ";"
    lines = laid_out(text).splitlines()
    assert [line[:6] for line in lines] == ["minimi", "    + ", "    + "]
    table = "data D : table(" + ", ".join(f"column_{k}: real[d]" for k in range(12)) + ");"
    lines = laid_out(table).splitlines()
    assert len(lines) == 3 and all(len(line) <= WIDTH for line in lines) and lines[0].endswith(",")


def test_what_cannot_be_broken_stays_whole() -> None:
    assert laid_out(f"var {'x' * 150};") == f"var {'x' * 150};\n"


def test_subscripts_are_reductions() -> None:
    text = "index i in P, j ~ N;minimize mean_i(f(i))-E_j  -g(j)+mean_x(1);"
    assert laid_out(text).splitlines()[1] == "minimize mean_i (f(i)) - E_j -g(j) + mean_x(1);"


def test_headings_keep_their_spelling() -> None:
    assert laid_out("minimize x s.t. x>=1;") == "minimize x\ns.t.\n  x >= 1;\n"
    assert laid_out("minimize x;subject\tto x>=1;") == "minimize x;\nsubject to\n  x >= 1;\n"


def test_a_model_with_errors_is_left_alone() -> None:
    with pytest.raises(FccoError, match="F0105"):
        format(Source(text="minimize x"))


@pytest.mark.parametrize("seed", range(40))
def test_random_models(seed: int) -> None:
    laid_out(model_text(Generator(seed).model(), seed))


@pytest.mark.parametrize("seed", range(40))
def test_comments_anywhere(seed: int) -> None:
    random = Random(seed)
    text = ""
    for token in lexer.tokens("\n".join(map(statement, Generator(seed).model().statements))):
        if random.random() < 0.08 and token.type != "WS":
            text += random.choice((" # a\n", "\n# b\n", "\n\n  # c;\n\n\n"))
        text += token
    laid_out(text)
