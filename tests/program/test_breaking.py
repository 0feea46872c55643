"""Long statements of programs are broken where they have brackets, and stay the same statements."""

import ast

import pytest

from fccomodel.program.emit.breaking import broken

STATEMENTS = [
    "x = f(aaaaaaaaaaaa, bbbbbbbbbbbb[1:2, None], 'a, (b', key=(ccccccccc, ddddddddd))",
    "    w.copy_(prox(w.view(3, 14), step if isinstance(step, float) else step[0:42], mu=0.1).reshape(-1))",
    "return spread((3, 14), (data.rows,), t7).reshape(42) - spread((3, 14), (data.y,), -data.t12) + t11",
    "return t1, {'one': ('le', torch.as_tensor(t1)), 'another': ('le', torch.as_tensor(t2 - t3))}",
    "    t5 = (lambda factor, failed: (2 * factor.log().sum(-1)).masked_fill(failed > 0, nan))(*cholesky(P + P.mT))",
    "u.y1[data.all_K] = (t2.square().mean() - data.t3 * t2.square().mean() + data.t4) / data.some_number_of_rows",
]


@pytest.mark.parametrize("line", STATEMENTS)
@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_long_statement_stays_the_same(line: str, width: int) -> None:
    lines = broken(line, width)
    assert len(lines) > 1 and max(map(len, lines)) < len(line)
    indent = line[: len(line) - len(line.lstrip())]
    assert all(part.startswith(indent) for part in lines)
    text = "\n".join(part.removeprefix(indent) for part in lines)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(line.strip()))


@pytest.mark.parametrize("line", ["x = 1", f"x = {'1' * 90}", f"x = f(a, b)  # {'words ' * 20}"])
def test_what_is_short_or_has_no_place_stays(line: str) -> None:
    assert broken(line, 80) == [line]
