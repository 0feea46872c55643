"""Models in colours; the words are those of the grammar."""

from __future__ import annotations

from pygments.lexer import RegexLexer, words
from pygments.lexers import LEXERS
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

from fccomodel.language.lexer import grammar

__all__ = ["Model"]


class Model(RegexLexer):
    """A model file, or a part of one."""

    name, aliases, filenames = "fccomodel", ["fcco"], ["*.fcco"]
    tokens = {
        "root": [
            (r"#[^\n]*", Comment),
            (r'"[^"\n]*"', String),
            (r"\d+(\.\d+)?([eE][+-]?\d+)?", Number),
            (r"subject\s+to\b|s\.t\.", Keyword),
            (words(sorted({*grammar().words} - grammar().reductions), prefix=r"\b", suffix=r"\b"), Keyword),
            (words(sorted(grammar().reductions), prefix=r"\b", suffix=r"(?=[\[(]|_\w\b)"), Name.Function),
            (r"\w+", Name),
            (r"[-+*/@^<>=!~|]+", Operator),
            (r"\s+|.", Text),
        ]
    }


def register() -> None:
    """Make the name ``fcco`` known to Pygments."""
    LEXERS["Model"] = (__name__, Model.name, tuple(Model.aliases), tuple(Model.filenames), ())
