"""Is a changed example ever called the same problem? ``python tests/bench/grading.py SECONDS [SEED]``

One number, sign, relation or function of an example is changed, and the grader compares it with the example. It prints
each change that it calls the same, to be judged by a reader, and the number of verdicts.
"""

from __future__ import annotations

import collections
import random
import sys
import time
import warnings
from pathlib import Path

from lark import Token

from fccomodel import pipeline
from fccomodel.app import grading
from fccomodel.core.diagnostics import FccoError
from fccomodel.core.source import Source
from fccomodel.language import lexer

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
EXCHANGED = {
    "<=": ">=", ">=": "<=", "==": "!=", "minimize": "maximize", "maximize": "minimize", "+": "-", "-": "+", "*": "/",
    "mean": "sum", "sum": "mean", "E": "variance", "max": "min", "cvar": "mean", "log1pexp": "sqhinge", "sqhinge": "hinge",
    "hinge": "sqhinge", "sumsq": "norm1", "norm1": "sumsq", "norm2": "norm1", "abs": "square", "square": "abs", "exp": "log",
}  # fmt: skip


def other(word: Token) -> str:
    """What takes the place of a word: another function or relation, or another number."""
    text = str(word)
    if text in EXCHANGED:
        return EXCHANGED[text]
    if "." in text or "e" in text:
        return repr(round(float(text) * 1.37 + 0.11, 4))
    return str(int(text) + 1)


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    random.seed(seed)
    warnings.simplefilter("ignore")
    verdicts: collections.Counter[str] = collections.Counter()
    paths = sorted(EXAMPLES.rglob("*.fcco"))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        path = random.choice(paths)
        text = path.read_text(encoding="utf-8")
        words = [w for w in lexer.tokens(text) if w.type == "NUMBER" or str(w) in EXCHANGED]
        try:
            key = pipeline.compile_model(Source(text=text, name=str(path)))
        except FccoError:  # it includes another file
            continue
        word = random.choice(words)
        changed = text[: word.start_pos] + other(word) + text[word.end_pos :]
        verdict = grading.grade(Source(text=changed, name=str(path)), key).verdict
        verdicts[verdict] += 1
        if verdict == "same":
            line = text[text.rfind("\n", 0, word.start_pos) + 1 :].partition("\n")[0]
            print(f"{path.name}: `{word}` -> `{other(word)}` in {line.strip()}")
    print(dict(verdicts))


if __name__ == "__main__":
    main()
