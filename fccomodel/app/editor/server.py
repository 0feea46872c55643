"""The language server: what editors ask in the protocol, answered by ``answers``; it needs pygls.

A text is read again after each change. Its answers come from one ``Document``, kept until the next change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Thread
from urllib.parse import unquote, urlparse

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from fccomodel.app.editor import answers
from fccomodel.app.editor.document import Document, Edit, LocatedDiagnostic
from fccomodel.app.editor.known import KnownStatements
from fccomodel.app.editor.places import Places
from fccomodel.core.source import Span
from fccomodel.core.version import __version__

#: The kinds of words that are coloured, in the order of their numbers in the protocol.
COLOURS = (
    "keyword",
    "function",
    "variable",
    "parameter",
    "class",
    "type",
    "property",
    "number",
    "string",
    "comment",
)
#: The protocol's kind of a completion, by ours.
ITEM_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "function": lsp.CompletionItemKind.Function,
    "reduction": lsp.CompletionItemKind.Function,
    "def": lsp.CompletionItemKind.Function,
    "net": lsp.CompletionItemKind.Function,
    "distribution": lsp.CompletionItemKind.Class,
    "data": lsp.CompletionItemKind.Class,
    "set": lsp.CompletionItemKind.Class,
    "column": lsp.CompletionItemKind.Field,
    "option": lsp.CompletionItemKind.Property,
    "param": lsp.CompletionItemKind.Constant,
}
#: The protocol's kind of an entry of the outline, by ours.
ENTRY_KINDS = {
    "data": lsp.SymbolKind.Struct,
    "def": lsp.SymbolKind.Function,
    "net": lsp.SymbolKind.Function,
    "set": lsp.SymbolKind.Enum,
    "dim": lsp.SymbolKind.TypeParameter,
    "param": lsp.SymbolKind.Constant,
    "const": lsp.SymbolKind.Constant,
    "objective": lsp.SymbolKind.Event,
    "constraint": lsp.SymbolKind.Boolean,
}
#: Characters after which an editor asks for completions, and for the form of a call.
COMPLETE_AFTER = [".", "[", "{", "~"]
CALL_AFTER = ["(", ","]


@dataclass(eq=False)
class Open:
    """A text that is open in the editor."""

    document: Document
    places: Places

    def range(self, span: Span) -> lsp.Range:
        """A span as the protocol writes it."""
        start, end = self.places.ends(span)
        return lsp.Range(start=lsp.Position(*start), end=lsp.Position(*end))

    def offset(self, position: lsp.Position) -> int:
        """The offset of a position."""
        return self.places.offset(position.line, position.character)

    def span(self, area: lsp.Range) -> Span:
        """The span of a range."""
        return Span(start=self.offset(area.start), end=self.offset(area.end))

    def edit(self, change: Edit) -> lsp.TextEdit:
        """A change as the protocol writes it."""
        return lsp.TextEdit(range=self.range(change.span), new_text=change.text)


def made() -> LanguageServer:
    """The server, ready to be started."""
    server = LanguageServer("fccomodel", __version__)
    texts = _Texts(server)
    for register in (_changes, _about_places, _about_texts):
        register(server, texts)
    Thread(target=_warm, daemon=True).start()
    return server


def _warm() -> None:
    """Load what the first hover needs while nobody waits for it."""
    text = "var w; minimize w ^ 2;"
    answers.hover(Document(text), len(text) - 2)


class _Texts:
    """The open texts of a server, by their addresses."""

    def __init__(self, server: LanguageServer):
        self.server = server
        self.known: dict[str, tuple[str, Open]] = {}

    def __call__(self, uri: str) -> Open:
        text = self.server.workspace.get_text_document(uri).source
        if uri not in self.known or self.known[uri][0] != text:
            before = self.known.get(uri)
            known = before[1].document.known if before else KnownStatements()
            document = Document(text, _path(uri), known.aged())
            self.known[uri] = text, Open(document=document, places=Places(text))
        return self.known[uri][1]


def _path(uri: str) -> str:
    """The path of a file's address; any other address as it is."""
    parsed = urlparse(uri)
    if parsed.scheme == "file":
        return unquote(parsed.path)
    return uri


# ------------------------------------------------------------------------------------- diagnostics
def _changes(server: LanguageServer, texts: _Texts) -> None:
    """Publish the diagnostics of a text when it is opened and after each change."""

    def publish(uri: str) -> None:
        """Send the diagnostics of a text."""
        found = texts(uri)
        listed = [_diagnostic(found, uri, one) for one in found.document.findings]
        server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri=uri, diagnostics=listed))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def _opened(params: lsp.DidOpenTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def _changed(params: lsp.DidChangeTextDocumentParams) -> None:
        publish(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(params: lsp.DidCloseTextDocumentParams) -> None:
        texts.known.pop(params.text_document.uri, None)


def _diagnostic(found: Open, uri: str, finding: LocatedDiagnostic) -> lsp.Diagnostic:
    """A finding as the protocol writes it: message, reason and fix in one text."""
    one = finding.diagnostic
    severity = lsp.DiagnosticSeverity.Error
    if one.severity != "error":
        severity = lsp.DiagnosticSeverity.Warning
    parts = [one.message, one.reason, f"Fix: {one.fix}" if one.fix else ""]
    related = [
        lsp.DiagnosticRelatedInformation(
            location=lsp.Location(uri=uri, range=found.range(span)), message=f"`{name}` is declared here"
        )
        for name, span in finding.related
    ]
    return lsp.Diagnostic(
        range=found.range(finding.span),
        message="\n".join(part for part in parts if part),
        severity=severity,
        code=one.code,
        source="fccomodel",
        related_information=related,
        tags=[lsp.DiagnosticTag.Unnecessary] if one.unused else None,
    )


# -------------------------------------------------------------------------------- about one place
def _about_places(server: LanguageServer, texts: _Texts) -> None:
    """Answer what is asked about a place of a text."""

    def asked(params: lsp.TextDocumentPositionParams) -> tuple[Open, int]:
        """The text and the offset of a request."""
        found = texts(params.text_document.uri)
        return found, found.offset(params.position)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def _hover(params: lsp.HoverParams) -> lsp.Hover | None:
        found, offset = asked(params)
        shown = answers.hover(found.document, offset)
        if shown is None:
            return None
        text = lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=shown.text)
        return lsp.Hover(contents=text, range=found.range(shown.span))

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=COMPLETE_AFTER))
    def _complete(params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        found, offset = asked(params)
        return [
            lsp.CompletionItem(
                label=one.label,
                kind=ITEM_KINDS.get(one.kind, lsp.CompletionItemKind.Variable),
                detail=one.detail,
            )
            for one in answers.completions(found.document, offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=CALL_AFTER))
    def _signature(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        found, offset = asked(params)
        call = answers.signature(found.document, offset)
        if call is None:
            return None
        listed = [lsp.ParameterInformation(label=name) for name in call.arguments]
        form = lsp.SignatureInformation(label=call.label, documentation=call.meaning, parameters=listed)
        return lsp.SignatureHelp(signatures=[form], active_signature=0, active_parameter=call.active)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    def _definition(params: lsp.DefinitionParams) -> lsp.Location | None:
        found, offset = asked(params)
        span = answers.definition(found.document, offset)
        if span is None:
            return None
        return lsp.Location(uri=params.text_document.uri, range=found.range(span))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    def _references(params: lsp.ReferenceParams) -> list[lsp.Location]:
        found, offset = asked(params)
        spans = answers.references(found.document, offset)
        return [lsp.Location(uri=params.text_document.uri, range=found.range(span)) for span in spans]

    @server.feature(lsp.TEXT_DOCUMENT_RENAME)
    def _rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        found, offset = asked(params)
        changes = answers.rename(found.document, offset, params.new_name)
        if isinstance(changes, str):
            message = f"Cannot rename: {changes}."
            server.window_show_message(lsp.ShowMessageParams(type=lsp.MessageType.Error, message=message))
            return None
        return lsp.WorkspaceEdit(changes={params.text_document.uri: [found.edit(one) for one in changes]})


# --------------------------------------------------------------------------------- about one text
def _about_texts(server: LanguageServer, texts: _Texts) -> None:
    """Answer what is asked about a whole text."""

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def _outline(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        found = texts(params.text_document.uri)
        return [
            lsp.DocumentSymbol(
                name=one.name,
                kind=ENTRY_KINDS.get(one.kind, lsp.SymbolKind.Variable),
                detail=one.detail,
                range=found.range(one.whole),
                selection_range=found.range(one.span),
            )
            for one in answers.outline(found.document)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    def _folds(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        found = texts(params.text_document.uri)
        lines: Callable[[int], int] = lambda offset: found.places.place(offset)[0]  # noqa: E731
        return [
            lsp.FoldingRange(start_line=lines(start), end_line=lines(end))
            for start, end in answers.folds(found.document)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    def _formatting(params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
        found = texts(params.text_document.uri)
        text = answers.formatted(found.document)
        if text is None:
            return None
        whole = Span(start=0, end=len(found.document.text))
        return [found.edit(Edit(span=whole, text=text))]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    def _actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        found = texts(uri)
        return [
            lsp.CodeAction(
                title=one.title,
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=[_diagnostic(found, uri, one.finding)],
                edit=lsp.WorkspaceEdit(changes={uri: [found.edit(one.edit)]}),
            )
            for one in found.document.actions(found.span(params.range))
        ]

    legend = lsp.SemanticTokensLegend(token_types=list(COLOURS), token_modifiers=[])

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    def _coloured(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        found = texts(params.text_document.uri)
        return lsp.SemanticTokens(data=_relative(found))


def _relative(found: Open) -> list[int]:
    """The coloured words as the protocol writes them: each place relative to the one before."""
    data: list[int] = []
    last_line = last_column = 0
    for span, colour in answers.coloured(found.document):
        (line, column), (end_line, end_column) = found.places.ends(span)
        if line != end_line:
            continue
        moved = column if line != last_line else column - last_column
        data += [line - last_line, moved, end_column - column, COLOURS.index(colour), 0]
        last_line, last_column = line, column
    return data
