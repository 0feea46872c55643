"""Random texts: sound models, models of random syntax, and both after mutations by words, characters
and repetition."""

from __future__ import annotations

import random
import re
from pathlib import Path

from fuzz.models import Models
from support.random_models import Generator, model_text
from test_first_models import MODELS

from fccomodel.language import lexer

ROOT = Path(__file__).resolve().parents[2]
CORPUS = [
    path.read_text()
    for path in sorted(
        [*ROOT.glob("examples/**/*.fcco"), *(ROOT.parent / "shared" / "models").glob("*.fcco")]
    )
    if path.stat().st_size < 8000
]
SMALL = list(MODELS)
#: words of the language, and what people and machines put in their place
WORDS = [
    *"""dim set data param const net var def let minimize maximize subject to s.t. options include model index in and or not by
        default with assume table real int E mean sum prod max min variance prob cvar topk pmean logmeanexp simplex ball box
        lambda class None True import self data w __debug__ f print e_1 _ __ x1 mean_i E_z
        + - * / ^ @ ( ) [ ] { } , ; : | ~ = == != <= >= < > -> .. . " # .x .E 0 1 007 2.5 1e400 1e-400 .5 5. 1e 1.2.3
        // /* */ % ! && || ** ++ <> => := 'a' ` $x$ \alpha ? ... & \\ abs( {} "a" "\n" """.split(),
    *(
        "9" * 400,
        "9" * 5000,
        "1e999999999",
        "\n",
        "\r\n",
        "\r",
        "\t",
        " ",
        "\x0b",
        "\x0c",
        "\x85",
        "\u2028",
        "\u2029",
        "\ufeff",
    ),
    *(
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u200b",
        "\u00e9",
        "\u0301",
        "\u03b1",
        "\u2264",
        "\u00d7",
        "\u2212",
        "\U0001d465",
        "\ud800",
    ),
    *(
        "E[z ~ D]",
        "[k in G]",
        "| z.y == 1",
        "dot(w, z.x)",
        "z.x",
        "max[q in simplex(G)]",
        "sum[k in 1 .. 3]",
        "s(w; z.x)",
        "# c\n",
    ),
    *(
        "options { seed = 1; }",
        'include "nothing.fcco";',
        "subject to",
        "1 .. 3",
        "1 .. 1e9",
        "0 .. 1 by 1e-9",
        "3 .. 1",
        "{1, 1}",
    ),
    *(
        "1 .. 3 by 0",
        "params(s)",
        "uniform(G)",
        "normal(0, 1)",
        "mean(w)",
        "E[z]",
        "w[1, 2]",
        "w[0]",
        "w[4]",
        "w[-1]",
        "# c",
    ),
]


class Texts:
    """Random texts from a seed."""

    def __init__(self, seed: int):
        self.seed, self.random = seed, random.Random(seed)

    def text(self) -> str:
        """A text of one kind or another."""
        kind = self.random.randrange(20)
        if kind == 0:
            return model_text(Generator(self.seed).model(), self.seed)
        if kind == 1:
            return self.repeated()
        if kind <= 3:
            return " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 60)))
        if kind <= 6:
            return Models(self.seed).text()
        text = (
            self.random.choice(SMALL)
            if kind <= 13
            else self.random.choice(CORPUS)
            if kind <= 15
            else Models(self.seed).text()
        )
        for _ in range(self.random.choice([1, 1, 1, 2, 3, 8])):
            text = self.mutated(text)
        return text[:60_000]

    def mutated(self, text: str) -> str:
        """With one change."""
        r = self.random
        if r.random() < 0.2:
            at, length = r.randrange(len(text) + 1), r.choice([0, 0, 1, 5, 50])
            return text[:at] + r.choice([r.choice(WORDS), chr(r.randrange(0x300)), ""]) + text[at + length :]
        words = [str(token) for token in lexer.tokens(text)] or [""]
        k, j = r.randrange(len(words)), r.randrange(len(words))
        span = slice(min(j, k), min(max(j, k), min(j, k) + 40))
        change = r.randrange(9)
        if change == 0:
            words[k] = r.choice(WORDS)
        elif change == 1:
            words.insert(k, f" {r.choice(WORDS)} ")
        elif change == 2:
            del words[k]
        elif change == 3:
            words[k], words[j] = words[j], words[k]
        elif change == 4:
            words[k:k] = words[span]
        elif change == 5:
            del words[span]
        elif change == 6:
            words[k] = words[j]
        elif change == 7:
            names = [place for place, word in enumerate(words) if re.fullmatch(r"\w+", word)] or [0]
            words[r.choice(names)] = words[r.choice(names)]
        else:
            words[span] = ["(", *words[span], ")"]
        return "".join(words)

    def repeated(self) -> str:
        """One form, many times or deep inside itself."""
        n = self.random.choice([2, 10, 50, 100, 2, 10, 50, 199, 200, 245, 400, 1000])
        head = "dim d; set G; data D : table(x: real[d], y: real, g: G); var x; var w[d]; "
        left, right = self.random.choice(
            [
                ("(", ")"),
                ("-", ""),
                ("abs(", ")"),
                ("[", "]"),
                ("{", "}"),
                ("not ", ""),
                ("E[z ~ D] ", ""),
                ("sum[k in G] ", ""),
            ]
            + [
                ("(1 + ", ")"),
                ("max(0, ", ")"),
                ("1/(1 + ", ")"),
                ("x^", ""),
                ("x * ", ""),
                ("x @ ", ""),
                ("w[", "]"),
                ("exp(", ")"),
            ]
        )
        names = [f"a{k}" for k in range(n)]
        return head + self.random.choice(
            [
                f"minimize {left * n}x{right * n};",
                f"minimize {' + '.join(['x'] * n)};",
                f"minimize {' - '.join(f'abs(x - {k})' for k in range(n))};",
                f"minimize {' * '.join(['x'] * n)};",
                f"minimize max({', '.join(f'{k} * x' for k in range(n))});",
                f"minimize sumsq(concat({', '.join(['x'] * n)}));",
                f"set S = {{{', '.join(map(str, range(n)))}}}; var v[S]; minimize sum[k in S] (v[k] - k)^2;",
                f"minimize x^2; subject to {' '.join(f'x >= {k};' for k in range(n))}",
                f"minimize x^2; subject to {' '.join(f'c{k}: abs(x) + {k} <= 5;' for k in range(n))}",
                "".join(f"let {a} = {b} + 1;" for a, b in zip(names, ["x", *names], strict=False))
                + f"minimize {names[-1]};",
                "".join(f"let {a} = {b} * {b};" for a, b in zip(names, ["x", *names], strict=False))
                + f"minimize {names[-1]};",
                "".join(
                    f"def {a}(t) = {b}(t) + {b}(t);" for a, b in zip(names, ["abs", *names], strict=False)
                )
                + f"minimize {names[min(n - 1, self.random.choice([3, 8, n]))]}(x);",
                "".join(f"var {a};" for a in names) + f"minimize {' + '.join(f'{a}^2' for a in names)};",
                "".join(f"const {a} = {b} * 10;" for a, b in zip(names, ["9", *names], strict=False))
                + f"minimize {names[-1]} * x;",
                "".join(
                    f"set {a} = {{z in {b} | z.y > 0}};" for a, b in zip(names, ["D", *names], strict=False)
                )
                + f"minimize E[z ~ {names[-1]}] abs(x - z.y);",
                f"minimize E[z ~ D | {' and '.join(['z.y > 0'] * n)}] abs(x - z.y);",
                f"minimize x {'-' * n} 1;",
                f"minimize x; subject to x {'<= 1 ' * n};",
                f"options {{ {' '.join(f'{a} = 1;' for a in names)} }} minimize x;",
                "minimize x;" * n,
                "(" * n,
                "#" * n,
                '"' * n,
                ";" * n,
                "\n" * n + "x" + "\n" * n,
            ]
        )
