"""What an editor asks about a text: answers from a text and an offset, and the server with a real client."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest

from fccomodel.app.editor import answers
from fccomodel.app.editor.document import Document, renamed
from fccomodel.app.editor.known import KnownStatements
from fccomodel.app.editor.places import Places
from fccomodel.core.source import Span

TEXT = """\
dim d;
data D : table(x: real[d], y: {0, 1});
param tau >= 0 default 0.05;
var w[d];
def score(x) = dot(w, x);
minimize alarms: E[z ~ D | z.y == 0] log1pexp(score(z.x));
subject to
  misses: E[z ~ D | z.y == 1] log1pexp(-score(z.x)) <= tau;
"""


def at(text: str, mark: str = "|!") -> tuple[str, int]:
    """The text without the mark, and the offset at which it stands."""
    assert mark in text
    return text.replace(mark, ""), text.index(mark)


def labels(text: str) -> list[str]:
    plain, offset = at(text)
    return [one.label for one in answers.completions(Document(plain), offset)]


# -------------------------------------------------------------------------------------- diagnostics
def test_findings_have_code_place_and_related_places() -> None:
    document = Document(TEXT.replace("var w[d]", "var w[3, d]"))
    (finding, *_) = document.findings
    assert finding.diagnostic.code.startswith("F03")
    text = document.text[finding.span.start : finding.span.end]
    assert text and "\n" not in text
    assert all(document.text[span.start : span.end] == name for name, span in finding.related)


def test_a_name_in_a_message_leads_to_its_declaration() -> None:
    document = Document("var w; let w = 2; minimize w^2;")
    related = [name for finding in document.findings for name, _ in finding.related]
    assert document.findings and related == ["w"]


@pytest.mark.parametrize(
    "text, title, mended",
    [
        ("var w; minimze w^2;", "Replace `minimze` by `minimize`", "var w; minimize w^2;"),
        ("var w; minimize w^2", "Insert `;`", "var w; minimize w^2;"),
        ("var w; minimize w**2;", "Replace `**` by `^`", "var w; minimize w^2;"),
        ("var width; minimize wdith^2;", "Replace `wdith` by `width`", "var width; minimize width^2;"),
        ("var w; let u = w; minimize w^2;", "Remove `let u = w;`", "var w; minimize w^2;"),
    ],
)
def test_fixes_are_seen_to_mend(text: str, title: str, mended: str) -> None:
    document = Document(text)
    actions = list(document.actions(Span(start=0, end=len(text))))
    assert title in [one.title for one in actions]
    edit = next(one.edit for one in actions if one.title == title)
    assert " ".join(renamed([edit], text).split()) == mended


def test_no_fix_is_offered_that_does_not_mend() -> None:
    text = "var w; minimize sumsqq(w) + v;"
    assert list(Document(text).actions(Span(start=0, end=0))) == []


# -------------------------------------------------------------------------------------------- hover
@pytest.mark.slow
def test_hover_shows_declaration_facts_and_cards() -> None:
    document = Document(TEXT)
    name = answers.hover(document, TEXT.index("tau;"))
    assert name is not None and "param tau >= 0 default 0.05" in name.text
    atom = answers.hover(document, TEXT.index("log1pexp(-"))
    assert atom is not None and "log(1 + e^u)" in atom.text and "**convex**, smooth" in atom.text
    column = answers.hover(document, TEXT.index("z.y == 1") + 2)
    assert column is not None and "column of `D`" in column.text
    assert answers.hover(document, TEXT.index("\nsubject")) is None
    broken = answers.hover(Document(TEXT.replace("<= tau", "<= tauu")), TEXT.index("w[d]"))
    assert broken is not None and "var w[d]" in broken.text


# --------------------------------------------------------------------------------------- completion
def test_completions() -> None:
    assert labels(TEXT.replace("z.y == 1", "z.|!")) == ["x", "y"]
    assert labels(TEXT + "let more = E[r ~ D] r.|!") == ["x", "y"]
    assert "minimize" in labels("var w; |!") and "huber" not in labels("var w; |!")
    inside = labels(TEXT.replace("score(z.x)) <=", "|!) <="))
    assert {"z", "w", "tau", "score", "huber", "cvar"} <= set(inside) and "alarms" not in inside
    ranges = labels("data D : table(x: real); var w; minimize E[z ~ |!")
    assert {"D", "normal", "box"} <= set(ranges) and "w" not in ranges
    assert "budget" in labels("options { |!") and "alexr2" in labels("options { algorithm = |!")


def test_signature_of_functions() -> None:
    text, offset = at("var w; minimize huber(w, |!")
    call = answers.signature(Document(text), offset)
    assert call is not None and call.arguments == ("u", "delta") and call.active == 1
    text, offset = at("var w; def f(a, b) = a + b; minimize f(|!")
    call = answers.signature(Document(text), offset)
    assert call is not None and call.arguments == ("a", "b") and call.active == 0
    text, offset = at("var w; minimize w + |!")
    assert answers.signature(Document(text), offset) is None


# --------------------------------------------------------------------------------- places and edits
def test_names_in_different_scopes_are_different() -> None:
    document = Document(TEXT)
    inner = answers.references(document, TEXT.index("dot(w, x") + 7)
    assert [TEXT[span.start : span.end] for span in inner] == ["x", "x"]
    column = answers.references(document, TEXT.index("x: real"))
    assert len(column) == 3
    first, second = (answers.references(document, TEXT.index(f"z.y == {k}")) for k in (0, 1))
    assert len(first) == len(second) == 3 and not set(first) & set(second)
    assert answers.definition(document, TEXT.index("score(z.x)")) == Span(
        start=TEXT.index("score(x)"), end=TEXT.index("(x) = ")
    )


@pytest.mark.parametrize(
    "old, new", [("tau", "rate"), ("D :", "rows"), ("w[d]", "weights"), ("score(x)", "f"), ("y:", "ill")]
)
def test_renaming_keeps_the_model(old: str, new: str) -> None:
    document = Document(TEXT)
    edits = answers.rename(document, TEXT.index(old), new)
    assert not isinstance(edits, str) and len(edits) > 1
    after = Document(renamed(edits, TEXT))
    assert after.problem is not None and not after.findings
    assert len(after.names.occurrences) == len(document.names.occurrences)


def test_renaming_is_refused() -> None:
    document, offset = Document(TEXT), TEXT.index("tau")
    assert "already" in str(answers.rename(document, offset, "w"))
    assert "cannot be a name" in str(answers.rename(document, offset, "minimize"))
    assert "no name" in str(answers.rename(document, TEXT.index("log1pexp"), "f"))


def test_outline_folds_and_layout() -> None:
    document = Document(TEXT)
    assert [one.name for one in answers.outline(document)] == [
        "d",
        "D",
        "tau",
        "w",
        "score",
        "alarms",
        "misses",
    ]
    broken = Document(TEXT.replace("def score(x) =", "def score(x) = ="))
    assert "misses" in [one.name for one in answers.outline(broken)]
    assert answers.formatted(document) == TEXT
    assert answers.formatted(broken) is None
    two_lines = Document("var w;\nminimize\n  w^2;")
    assert answers.folds(two_lines) == [(7, len(two_lines.text) - 1)]


def test_colours_do_not_overlap() -> None:
    spans = [span for span, _ in answers.coloured(Document(TEXT))]
    assert all(one.end <= other.start for one, other in pairwise(spans))
    kinds = {TEXT[span.start : span.end]: kind for span, kind in answers.coloured(Document(TEXT))}
    assert kinds["w"] == "variable" and kinds["minimize"] == "keyword" and kinds["log1pexp"] == "function"


def test_places_count_utf16_units() -> None:
    places = Places("# 𝛼 and ä\nvar w;\n")
    assert places.place(3) == (0, 4) and places.offset(0, 4) == 3
    assert places.offset(1, 4) == 14 and places.place(14) == (1, 4)
    assert places.offset(9, 0) == len(places.text)


# ------------------------------------------------------------------------------------- while typing
def test_statements_are_read_once() -> None:
    known = KnownStatements()
    first = Document(TEXT, known=known)
    assert first.problem is not None
    known = known.aged()
    moved = Document("# a comment\n" + TEXT.replace("0.05", "0.5"), known=known)
    fresh = Document(moved.text)
    assert moved.problem is not None and fresh.problem is not None
    places = [(o.span, o.symbol.span) for o in moved.names.occurrences]
    assert places == [(o.span, o.symbol.span) for o in fresh.names.occurrences]
    spans = [node.span for node in moved.problem.expressions()]
    assert spans == [node.span for node in fresh.problem.expressions()]


@pytest.mark.slow
def test_a_client_over_standard_streams() -> None:
    pytest.importorskip("pygls", reason="the extra `editor` is not installed")
    import asyncio

    from lsprotocol import types as lsp
    from pygls.lsp.client import LanguageClient

    uri = "file:///tmp/model.fcco"

    async def session() -> None:
        client = LanguageClient("test", "1")
        published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _(params: lsp.PublishDiagnosticsParams) -> None:
            published.put_nowait(params)

        await client.start_io(sys.executable, "-m", "fccomodel", "lsp")
        capabilities = lsp.ClientCapabilities()
        found = await client.initialize_async(lsp.InitializeParams(capabilities=capabilities))
        assert found.capabilities.rename_provider and found.capabilities.hover_provider
        client.initialized(lsp.InitializedParams())
        item = lsp.TextDocumentItem(
            uri=uri, language_id="fcco", version=1, text=TEXT.replace("tau;", "tauu;")
        )
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))
        (finding,) = (await published.get()).diagnostics
        assert finding.code == "F0201" and "Did you mean `tau`?" in finding.message
        identifier = lsp.TextDocumentIdentifier(uri=uri)
        context = lsp.CodeActionContext(diagnostics=[finding])
        asked = lsp.CodeActionParams(text_document=identifier, range=finding.range, context=context)
        (action,) = await client.text_document_code_action_async(asked)
        assert action.title == "Replace `tauu` by `tau`"
        (edit,) = action.edit.changes[uri]
        change = lsp.TextDocumentContentChangePartial(range=edit.range, text=edit.new_text)
        version = lsp.VersionedTextDocumentIdentifier(uri=uri, version=2)
        changed = lsp.DidChangeTextDocumentParams(text_document=version, content_changes=[change])
        client.text_document_did_change(changed)
        assert not (await published.get()).diagnostics
        place = lsp.Position(line=5, character=40)
        hover = await client.text_document_hover_async(
            lsp.HoverParams(text_document=identifier, position=place)
        )
        assert "**convex**" in hover.contents.value
        tokens = await client.text_document_semantic_tokens_full_async(
            lsp.SemanticTokensParams(text_document=identifier)
        )
        assert len(tokens.data) % 5 == 0 and min(tokens.data) >= 0
        asked_names = lsp.RenameParams(
            text_document=identifier, position=lsp.Position(line=3, character=4), new_name="v"
        )
        renaming = await client.text_document_rename_async(asked_names)
        assert len(renaming.changes[uri]) == 2
        await client.shutdown_async(None)
        client.exit(None)
        await asyncio.wait_for(client.stop(), 5)

    asyncio.run(asyncio.wait_for(session(), 60))
