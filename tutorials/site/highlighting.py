"""Models in colours: the package's own lexer, also where the package is a checkout without entry points."""

from __future__ import annotations

from pygments.lexers import LEXERS

from fccomodel.app.generated.pygments_lexer import FccoLexer


def register() -> None:
    """Make the name ``fcco`` known to Pygments."""
    aliases, filenames = tuple(FccoLexer.aliases), tuple(FccoLexer.filenames)
    LEXERS["FccoLexer"] = (FccoLexer.__module__, FccoLexer.name, aliases, filenames, ())
