"""Text to abstract syntax: every form of the language, and every way to get it wrong."""

import sys
import time
from pathlib import Path
from random import Random

import pytest
from lark import Lark
from support.places import SHARED
from support.random_models import Generator, model_text

from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source, Span
from fccomodel.language import lexer, syntax
from fccomodel.language.parse import MAX_CHARACTERS, MAX_ERRORS, grammar_text, parse
from fccomodel.language.statements.constraint import Constraint
from fccomodel.language.statements.data import DataDecl
from fccomodel.language.statements.dim import DimDecl
from fccomodel.language.statements.heading import SubjectTo
from fccomodel.language.statements.include import Include
from fccomodel.language.statements.let import LetDecl
from fccomodel.language.statements.net import NetDecl
from fccomodel.language.statements.objective import Objective
from fccomodel.language.statements.options import Options
from fccomodel.language.statements.sets import SetDecl

MODELS = SHARED / "models"
AT = Span(start=0, end=0)
INDICES = "index i in P, j ~ N, k in K, my_k in K; "


def read(text: str) -> syntax.Model:
    return parse(Source(text=text))


def expr(text: str) -> syntax.Expr:
    """What a formula reads as, with some indices declared."""
    last = read(f"{INDICES} let q = {text};").statements[-1]
    assert isinstance(last, LetDecl)
    return last.value


def statement(text: str) -> syntax.Statement:
    return read(text).statements[-1]


def name(text: str) -> syntax.Name:
    return syntax.Name(id=text, span=AT)


def number(text: str) -> syntax.Number:
    return syntax.Number(value=float(text), text=text, span=AT)


def codes(text: str) -> list[str]:
    with pytest.raises(FccoError) as found:
        read(text)
    return [d.code for d in found.value.diagnostics]


def test_the_grammar_has_no_conflict() -> None:
    pytest.importorskip("interegular")
    Lark(grammar_text(), parser="lalr", strict=True, lexer="basic", start=["statement", "constraint"])


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.fcco")) or [None], ids=lambda path: path and path.stem)
def test_shared_models(path: Path | None) -> None:
    if path is None:
        pytest.skip("no shared/models beside the repository")
    model = read(path.read_text())
    assert sum(isinstance(s, Objective) for s in model.statements) == 1


# -------------------------------------------------------------------------------------- expressions
@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c", "(a / b) * c"),
        ("a @ b @ c", "(a @ b) @ c"),
        ("a ^ b ^ c", "a ^ (b ^ c)"),
        ("-a ^ 2", "-(a ^ 2)"),
        ("a ^ -b", "a ^ (-b)"),
        ("-a * b", "(-a) * b"),
        ("a - -b", "a - (-b)"),
        ("not a == b and c or d", "((not (a == b)) and c) or d"),
        ("a + 1 .. b * 2 by c", "(a + 1) .. (b * 2) by c"),
        ("mean[i in I] a*b + c", "(mean[i in I] (a*b)) + c"),
        ("mean[i in I] a/b", "mean[i in I] (a/b)"),
        ("mean[i in I] -a * b", "mean[i in I] ((-a) * b)"),
        ("mean[i in I] a^2", "mean[i in I] (a^2)"),
        ("-mean[i in I] a * b", "-(mean[i in I] (a * b))"),
        ("2 * mean[i in I] a * b", "2 * (mean[i in I] (a * b))"),
        ("c - mean[i in I] a * b - d", "(c - (mean[i in I] (a * b))) - d"),
        ("2 * -mean[i in I] a", "2 * (-(mean[i in I] a))"),
        ("mean[i in I] sum[j in J] a * b + c", "(mean[i in I] (sum[j in J] (a * b))) + c"),
        ("mean_i a*b + c", "(mean_i (a*b)) + c"),
        ("mean_i f(E_j g(i, j)) + c", "(mean_i (f((E_j (g(i, j)))))) + c"),
        ("E[h] * 2 + 1", "((E[h]) * 2) + 1"),
        ("E[h]^2", "(E[h])^2"),
        ("-E[h] + 1", "(-(E[h])) + 1"),
        ("max(a, b)^2", "(max(a, b))^2"),
        ("a <= b <= c", "(a) <= (b) <= (c)"),
        ("x[1, 2][3].y", "((x[1, 2])[3]).y"),
    ],
)
def test_precedence(text: str, same: str) -> None:
    assert expr(text) == expr(same)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("mean[i in I] a*b + c", "mean[i in I] (a*b + c)"),
        ("a <= b <= c", "(a <= b) <= c"),
        ("-a ^ 2", "(-a) ^ 2"),
        ("max[i in I] (a)", "max(a)"),
        ("E[h] * 2", "E[h * 2]"),
        ("s(w; x)", "s(w, x)"),
    ],
)
def test_brackets_matter(text: str, other: str) -> None:
    assert expr(text) != expr(other)


def test_forms_of_reductions() -> None:
    family = syntax.Indexing(
        binders=(syntax.Binder(name="k", kind="in", domain=name("G"), span=AT),), span=AT
    )
    tail = syntax.Keyword(name="tail", value=name("a"), span=AT)
    assert expr("cvar(tail = a)[k in G] e") == syntax.Reduce(
        kind="cvar", body=name("e"), indexing=family, keywords=(tail,), span=AT
    )
    assert expr("E[e]") == syntax.Reduce(kind="E", body=name("e"), span=AT)
    assert expr("sum(v)") == syntax.Call(func="sum", args=(name("v"),), span=AT)
    drop = expr("E(empty = drop)[z ~ D | z.g == k] e")
    assert (
        isinstance(drop, syntax.Reduce)
        and drop.keywords[0].name == "empty"
        and drop.indexing.condition is not None
    )
    robust = expr("max[q in simplex(K)] (sum[k in K] q[k] * risk[k] - mu * kl(q, uniform(K)))")
    assert (
        isinstance(robust, syntax.Reduce) and isinstance(robust.body, syntax.Binary) and robust.body.op == "-"
    )


def test_a_subscript_is_a_declared_index() -> None:
    assert expr("mean_i e") == syntax.Reduce(kind="mean", body=name("e"), subscript="i", span=AT)
    assert expr("sum_my_k e") == syntax.Reduce(kind="sum", body=name("e"), subscript="my_k", span=AT)
    assert expr("mean_x + 1") == syntax.Binary(op="+", left=name("mean_x"), right=number("1"), span=AT)
    assert expr("h_k(w)") == syntax.Call(func="h_k", args=(name("w"),), span=AT)
    late = read("let q = mean_i i.x; index i in P;").statements[0]
    assert isinstance(late, LetDecl) and isinstance(late.value, syntax.Reduce)


def test_a_subscripted_reduction_begins_a_constraint() -> None:
    assert isinstance(statement(INDICES + "minimize 0; s.t. mean_i x <= 0;"), Constraint)


def test_calls() -> None:
    assert expr("s(w; z.x)") == syntax.Call(
        func="s", args=(name("w"), syntax.Field(obj=name("z"), name="x", span=AT)), semicolon=1, span=AT
    )
    call = expr("huber(u, delta = 1)")
    assert isinstance(call, syntax.Call) and len(call.args) == 1 and call.keywords[0].name == "delta"
    assert expr("f()") == syntax.Call(func="f", span=AT)


def test_sets() -> None:
    assert expr('{"a", "b;]#"}').items[1].value == "b;]#"
    assert expr("{-1, 1}").items[0] == syntax.Unary(op="-", arg=number("1"), span=AT)
    assert expr("-3..3") == syntax.Range(
        low=syntax.Unary(op="-", arg=number("3"), span=AT), high=number("3"), span=AT
    )
    both = expr("{z in D}"), expr('{z in D | z.y == 1 and z.s != "F"}')
    assert all(isinstance(x, syntax.SetComprehension) for x in both)
    draw = expr("E[z ~ normal(0, 0.1)[d], y ~ N] z")
    assert isinstance(draw, syntax.Reduce) and isinstance(draw.indexing.binders[0].domain, syntax.Index)


@pytest.mark.parametrize("count", [199, 200, 1000])
def test_long_lists(count: int) -> None:
    """Of numbers, arguments, names and options alike."""
    names = [f"a{k}" for k in range(count)]
    assert len(expr(f"{{{', '.join(names)}}}").items) == count
    assert len(expr(f"max({', '.join(names)})").args) == count
    assert len(expr(f"w[{', '.join(names)}]").items) == count
    assert len(statement(f"dim {', '.join(names)};").names) == count
    assert len(statement("options {" + "".join(f"{name} = 1;" for name in names) + "}").items) == count
    assert len(statement(f"def f({', '.join(names)}) = 1;").params) == count
    assert len(expr(" < ".join(names)).operands) == count


# --------------------------------------------------------------------------------------- statements
def test_declarations() -> None:
    assert statement("dim d, m;") == DimDecl(names=("d", "m"), span=AT)
    assert statement("set G;") == SetDecl(name="G", span=AT)
    family = statement("set N[i in P] = {z in D | z.g == i.g};")
    assert isinstance(family, SetDecl) and family.family is not None and family.family.binders[0].name == "i"
    assert statement('include "other.fcco";') == Include(path="other.fcco", span=AT)
    table = statement("data S[k in K] : table(x: real[d, 3], y: {-1, 1}, g: G, data: int, mean: real);")
    assert isinstance(table, DataDecl) and table.fields is not None
    assert [f.name for f in table.fields] == ["x", "y", "g", "data", "mean"]
    assert statement("data c : real[A];").type == syntax.TypeExpr(name="real", shape=(name("A"),), span=AT)
    assert [b.op for b in statement("param a > 0, <= 1 default 0.5;").bounds] == [">", "<="]
    assert [b.op for b in statement("var w[A, d] >= 0, in ball(2);").bounds] == [">=", "in"]
    assert isinstance(statement("var w = params(s);").value, syntax.Call)
    net = statement("net s : real[d] -> real assume smooth, lipschitz(2);")
    assert isinstance(net, NetDecl) and net.assume[0] == name("smooth") and net.assume[1].func == "lipschitz"
    assert statement("def f(u, v) = u + v;").params == ("u", "v")
    assert [b.kind for b in statement(INDICES).binders] == ["in", "~", "in", "in"]


def test_objective_and_constraints() -> None:
    model = read(
        """minimize risk: f(x) + 0.001 * sumsq(w)
        s.t. E[h_k(w)] <= 0;
          gap[t in T, c in {0, 1} | t > 0]: -1 <= x[t] <= 1 with penalty = 2, smooth.width = 0.1;
          x[1] == 2;
          let late = 3;
        options { algorithm = sonex; sonex.step = 1e-2; }"""
    )
    objective, heading, first, second, third, late, options = model.statements
    assert isinstance(objective, Objective) and (objective.sense, objective.label) == (
        "minimize",
        "risk",
    )
    assert isinstance(heading, SubjectTo) and isinstance(late, LetDecl)
    assert isinstance(first, Constraint) and first.label is None and first.family is None
    assert isinstance(second, Constraint) and second.label == "gap" and second.family is not None
    assert len(second.family.binders) == 2 and second.family.condition is not None
    assert [option.name for option in second.options] == ["penalty", "smooth.width"]
    assert isinstance(third, Constraint) and third.relation.ops == ("==",)
    assert isinstance(options, Options) and [o.name for o in options.items] == [
        "algorithm",
        "sonex.step",
    ]


@pytest.mark.parametrize("heading", ["subject to", "s.t.", "subject   to", "subject\tto"])
def test_both_headings(heading: str) -> None:
    assert read(f"minimize x;{heading} x <= 1;") == read("minimize x; subject to x <= 1;")
    assert read(f"minimize x {heading} x <= 1;") == read("minimize x; subject to x <= 1;")


def test_an_optional_semicolon_after_options() -> None:
    assert read("minimize x; options { seed = 1; };") == read("minimize x; options {seed = 1;}")


@pytest.mark.parametrize("text", ["\ufeffvar x;\r\n\tminimize x;\r\n", "var x ;# 1;\n\n minimize\nx\n;"])
def test_spaces(text: str) -> None:
    assert read(text) == read("var x; minimize x;")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_models(seed: int) -> None:
    model = Generator(seed).model()
    assert read(model_text(model, seed)) == model


def test_spans() -> None:
    text = INDICES + "let q = 2 * (a + mean_i f(i)) - x[1]; minimize q; s.t. c[k in K]: (a) <= (b);"
    model = read(text)

    def said(node: syntax.Node) -> str:
        return text[node.span.start : node.span.end]

    let, _, _, constraint = model.statements[1:]
    assert said(let) == "let q = 2 * (a + mean_i f(i)) - x[1]"
    assert said(let.value.left) == "2 * (a + mean_i f(i))"
    assert said(let.value.left.right) == "a + mean_i f(i)"
    assert said(let.value.left.right.right) == "mean_i f(i)"
    assert said(let.value.right) == "x[1]"
    assert said(constraint) == "c[k in K]: (a) <= (b)"
    assert said(constraint.relation) == "(a) <= (b)"
    assert said(constraint.family.binders[0]) == "k in K"
    assert model.span == Span(start=0, end=len(text))


# ------------------------------------------------------------------------------------------- errors
def test_one_slip_does_not_hide_another() -> None:
    text = (
        "dim d\nvra x;\nvar w[d;\nlet a = (1 + 2;\nlet b = 1 +;\nlet c = ≤;\nminimize w;\ns.t. w < 1; 3 == ];"
    )
    assert codes(text) == ["F0105", "F0106", "F0104", "F0104", "F0101", "F0102", "F0109", "F0104"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("minimize " + "1+" * 10_000_000 + "1;", "F0108"),
        ("#" + "x" * MAX_CHARACTERS, "F0108"),
        ("minimize " + "1+" * 100_000 + "1;", "F0108"),
        ("minimize " + "exp(" * 201 + "x" + ")" * 201 + ";", "F0107"),
        ("minimize " + "(" * 10_000 + "x" + ")" * 10_000 + ";", "F0107"),
        ("minimize " + "(" * 10_000, "F0107"),
        ("minimize " + "f(" * 10_000 + "x" + ")" * 10_000 + ";", "F0107"),
        ("minimize " + "{" * 10_000 + "[" * 10_000, "F0107"),
        ("minimize " + "-" * 10_000 + "x;", "F0107"),
        ("let a = " + "not " * 10_000 + "x;", "F0107"),
        ("let a = " + "x^" * 10_000 + "x;", "F0107"),
        ("minimize " + "E[z ~ D] " * 5_000 + "x;", "F0107"),
        (")" * 10_000, "F0104"),
        (";" * 10_000, "F0105"),
        ("a b;" * 10_000, "F0106"),
        ("var " * 10_000, "F0110"),
        ("é" * 100_000, "F0102"),
        ('"' * 10_001, "F0103"),
        ("\x00\x01\xff" * 100, "F0116"),
        ("\x01\x7f\ufffd" * 100, "F0102"),
        ("var x\ud800;", "F0102"),
        ("", "F0117"),
        (" \n# nothing\n", "F0117"),
    ],
    ids=lambda value: value[:24].strip() if value.startswith("F") else "",
)
def test_absurd_text(text: str, code: str) -> None:
    limit, start = sys.getrecursionlimit(), time.perf_counter()
    with pytest.raises(FccoError) as found:
        read(text)
    assert code in {d.code for d in found.value.diagnostics}
    assert len(found.value.diagnostics) <= MAX_ERRORS + 1
    assert len(str(found.value)) < 20_000 and sys.getrecursionlimit() == limit
    assert time.perf_counter() - start < 20


def test_the_deepest_formula_can_be_compared_and_shown() -> None:
    text = "let a = " + "-" * 199 + "x;"
    assert read(text) == read(text)
    assert repr(read(text)).count("Unary") == 199
    assert codes("let a = " + "-" * 200 + "x;") == ["F0107"]


@pytest.mark.parametrize(
    ("ops", "start"), [("+-", 0.0), ("-+--", 7.0), ("*/", 1.5), ("/", 1e300), ("-", 0.0)]
)
def test_a_long_chain_is_a_shallow_tree(ops: str, start: float) -> None:
    """Its value, its places and its operands in order are those of the text read from left to right."""
    terms = [1 + (7 * k % 10) / 1000 for k in range(1500)]
    text = f"{start:g}" + "".join(f" {ops[k % len(ops)]} {term}" for k, term in enumerate(terms))
    value = start
    for k, term in enumerate(terms):
        value = {"+": value + term, "-": value - term, "*": value * term, "/": value / term}[
            ops[k % len(ops)]
        ]
    node = read(f"let a = {text};").statements[0].value
    assert evaluated(node) == pytest.approx(value, rel=1e-9, abs=1e-9)
    assert node.span.end - node.span.start == len(text)
    levels, seen, deepest = [(node, 1)], [], 0
    while levels:
        part, level = levels.pop()
        deepest = max(deepest, level)
        if isinstance(part, syntax.Binary):
            levels += [(part.right, level + 1), (part.left, level + 1)]
        else:
            seen.append(part.value)
    assert seen == [start, *terms] and deepest <= 12


def test_matrix_products_keep_their_order_in_a_long_chain() -> None:
    assert codes("let a = x" + " @ x" * 201 + ";") == ["F0107"]
    node = read("let a = b @ c" + " * 2" * 300 + ";").statements[0].value
    while isinstance(node, syntax.Binary) and node.op != "@":
        node = node.left
    assert (node.left.id, node.right.id) == ("b", "c")


def evaluated(node: syntax.Expr) -> float:
    if not isinstance(node, syntax.Binary):
        return node.value
    left, right = evaluated(node.left), evaluated(node.right)
    return {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else 0.0}[
        node.op
    ]


def test_errors_have_an_end() -> None:
    assert codes("vra x;\n" * 1000) == ["F0106"] * MAX_ERRORS + ["F0118"]


@pytest.mark.parametrize("seed", range(150))
def test_damaged_models(seed: int) -> None:
    """Words taken out, doubled or swapped: a model still, or errors of this stage that point into the
    text."""
    random = Random(seed)
    words = lexer.tokens(model_text(Generator(seed).model(), seed))
    for _ in range(random.randint(1, 4)):
        k = random.randrange(len(words))
        words[k : k + 1] = random.choice(
            ([], [words[k]] * 2, [random.choice(words)], [random.choice("()[]{};:=<~|.\"'#@é")])
        )
    text = "".join(words)
    try:
        read(text)
    except FccoError as found:
        for d in found.diagnostics:
            assert d.code.startswith("F01") and d.message and d.reason
            assert d.span is None or 0 <= d.span.start <= d.span.end <= len(text) + 1


def test_damage_is_found_where_it_is() -> None:
    with pytest.raises(FccoError) as found:
        read("var x;\nvar y;\nminimize x + * y;\n")
    (d,) = found.value.diagnostics
    assert d.span is not None and Source(text="var x;\nvar y;\nminimize x + * y;\n").place(d.span) == (3, 14)


def test_a_carriage_return_ends_a_comment() -> None:
    assert read("var x;# 1\rminimize x;\r") == read("var x; minimize x;")


def test_tables_of_the_parser_are_kept(tmp_path, monkeypatch):
    """Made once, read again, made anew where they are damaged; nothing is kept where nothing can be
    written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build = lexer.grammar.__wrapped__
    first = build()
    (kept,) = (tmp_path / "fccomodel").iterdir()
    assert build().words == first.words
    kept.write_bytes(b"damaged")
    assert build().words == first.words
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert lexer._kept() is None and build().words == first.words
