"""Model files in colours for Pygments, which finds this module by its entry point: ``fcco``."""

from __future__ import annotations

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text

from fccomodel.app.generated.colours import rules

__all__ = ["FccoLexer"]

#: The token of each kind of word.
TOKENS = {
    "comment": Comment.Single,
    "string": String,
    "number": Number,
    "column": Name.Attribute,
    "statement": Keyword,
    "word": Operator.Word,
    "reduction": Name.Function,
    "function": Name.Builtin,
    "type": Keyword.Type,
    "operator": Operator,
}


class FccoLexer(RegexLexer):
    """A model file, or a part of one."""

    name = "fccomodel"
    aliases = ["fcco"]
    filenames = ["*.fcco"]
    tokens = {
        "root": [
            *((rule.pattern, TOKENS[rule.kind]) for rule in rules()),
            (r"[A-Za-z_]\w*", Name),
            (r"\s+|.", Text),
        ]
    }
