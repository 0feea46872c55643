"""A model text that is being written, with what the compiler knows of it; each part is computed once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from fccomodel.app.editor import names
from fccomodel.app.editor.known import KnownStatements
from fccomodel.core import ir
from fccomodel.core.diagnostics import Diagnostic, FccoError
from fccomodel.core.source import Source, Span
from fccomodel.language import errors, lexer
from fccomodel.language.check import check
from fccomodel.language.parse import parse

if TYPE_CHECKING:
    from fccomodel.structure.analyser import Analyser

#: How the codes of errors of syntax begin.
SYNTAX = "F01"
#: Names in a message.
QUOTED = re.compile(r"`([A-Za-z_]\w*)`")
#: A name that a fix suggests.
MEANT = re.compile(r"Did you mean `([^`]+)`\?")
#: Texts that a fix quotes.
WRITTEN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, kw_only=True)
class LocatedDiagnostic:
    """A diagnostic at its place in this text.

    related  places of the declarations that it names, each with its name
    """

    diagnostic: Diagnostic
    span: Span
    related: tuple[tuple[str, Span], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A change of the text."""

    span: Span
    text: str


@dataclass(frozen=True, kw_only=True)
class Action:
    """A fix that an editor can make: its title, the finding that it mends, and the change."""

    title: str
    finding: LocatedDiagnostic
    edit: Edit


@dataclass(eq=False)
class Document:
    """A text under its name, which is a path if it is a file.

    known  the statements of earlier texts, which are read only once
    """

    text: str
    name: str = "<model>"
    known: KnownStatements = field(default_factory=KnownStatements)

    @cached_property
    def source(self) -> Source:
        """The text with its name."""
        return Source(text=self.text, name=self.name)

    @cached_property
    def names(self) -> names.NameTable:
        """The declarations and the names of the text."""
        return names.read(self.text, self.known.read)

    @cached_property
    def _checked(self) -> ir.Problem | FccoError:
        try:
            return check(parse(self.source, self.known.read), self.source)
        except FccoError as error:
            return error

    @property
    def problem(self) -> ir.Problem | None:
        """The problem, or None if the text has errors."""
        if isinstance(self._checked, FccoError):
            return None
        return self._checked

    @cached_property
    def analyser(self) -> Analyser:
        """What gives the facts of expressions of the problem."""
        from fccomodel.structure.analyser import Analyser
        from fccomodel.structure.declarations import Declarations

        assert self.problem is not None
        return Analyser(Declarations(problem=self.problem))

    @cached_property
    def findings(self) -> tuple[LocatedDiagnostic, ...]:
        """The errors and the lint notes of the text."""
        checked = self._checked
        source = checked.source or self.source
        if isinstance(checked, FccoError):
            diagnostics = checked.diagnostics
        else:
            diagnostics = checked.warnings
        return tuple(self._found(one, source) for one in diagnostics)

    def _found(self, diagnostic: Diagnostic, source: Source) -> LocatedDiagnostic:
        """A diagnostic at its place; one of an included file stands at the beginning."""
        span = Span(start=0, end=0)
        if diagnostic.span is not None:
            own, place = source.at(diagnostic.span)
            if own.name == self.name:
                span = place
        return LocatedDiagnostic(
            diagnostic=diagnostic, span=span, related=tuple(self._related(diagnostic, span))
        )

    def _related(self, diagnostic: Diagnostic, span: Span) -> Iterator[tuple[str, Span]]:
        """The declarations of the names in a message, elsewhere in the text."""
        for name in dict.fromkeys(QUOTED.findall(diagnostic.message)):
            symbol = self.names.symbols.get(name)
            if symbol is not None and not span.start <= symbol.span.start < span.end:
                yield name, symbol.span

    # ---------------------------------------------------------------------------------- fixes
    def actions(self, at: Span) -> Iterator[Action]:
        """The fixes of the findings at a place that are seen to mend them."""
        for finding in self.findings:
            if finding.span.start <= at.end and at.start <= finding.span.end:
                for edit in self._edits(finding):
                    if self._mends(finding, edit):
                        yield Action(title=_title(self.text, edit), finding=finding, edit=edit)
                        break

    def _edits(self, finding: LocatedDiagnostic) -> Iterator[Edit]:
        """The changes that the fix of a finding may mean, the likeliest first."""
        fix, span = finding.diagnostic.fix, finding.span
        meant = MEANT.search(fix)
        if meant:
            yield Edit(span=self._word(span), text=meant[1])
            yield Edit(span=span, text=meant[1])
        if finding.diagnostic.code == errors.statements.SEMICOLON.id:
            end = self._end_of_word_before(span.end)
            yield Edit(span=Span(start=end, end=end), text=";")
        if finding.diagnostic.unused:
            yield Edit(span=self._statement(span), text="")
        for text in WRITTEN.findall(fix):
            yield Edit(span=span, text=text)

    def _mends(self, finding: LocatedDiagnostic, edit: Edit) -> bool:
        """Whether a change takes a finding away and adds no other."""
        changed = replace_in(self.text, edit)
        after = Document(changed, self.name, self.known).findings
        code = finding.diagnostic.code
        stage = code[: len(SYNTAX)]
        if finding.diagnostic.severity != "error":
            return _count(after, "F", "error") == 0 and _count(after, code) < _count(self.findings, code)
        if stage == SYNTAX:  # names and shapes are looked at only in texts without such errors
            return _count(after, SYNTAX) < _count(self.findings, SYNTAX)
        return _count(after, "F", "error") < _count(self.findings, "F", "error")

    def _word(self, span: Span) -> Span:
        """The word at the beginning of a place."""
        match = re.compile(r"\.?\w+").match(self.text, span.start)
        if match is None:
            return span
        start = match.start() + match[0].startswith(".")
        return Span(start=start, end=match.end())

    def _end_of_word_before(self, offset: int) -> int:
        """Where the last word before an offset ends; comments are no words."""
        words = (w for w in lexer.tokens(self.text) if w.type not in lexer.SPACE)
        return max((w.end_pos or 0 for w in words if (w.end_pos or 0) <= offset), default=0)

    def _statement(self, span: Span) -> Span:
        """The statement at a place, with its end and the line break after it."""
        for statement in self.names.statements:
            if statement.span.start <= span.start <= statement.span.end:
                match = re.compile(r"\s*;[ \t]*(#[^\n]*)?\n?").match(self.text, statement.span.end)
                end = match.end() if match else statement.span.end
                return Span(start=statement.span.start, end=end)
        return span


def _count(findings: Iterable[LocatedDiagnostic], code: str, severity: str = "") -> int:
    """The number of findings whose code begins so, of one severity if it is given."""
    diagnostics = [one.diagnostic for one in findings]
    return sum(d.code.startswith(code) and d.severity.startswith(severity) for d in diagnostics)


def replace_in(text: str, edit: Edit) -> str:
    """The text after a change."""
    return text[: edit.span.start] + edit.text + text[edit.span.end :]


def renamed(edits: list[Edit], text: str) -> str:
    """The text after several changes that do not overlap."""
    for edit in sorted(edits, key=lambda one: -one.span.start):
        text = replace_in(text, edit)
    return text


def _title(text: str, edit: Edit) -> str:
    """The title of a change: the text that it replaces and the new one."""
    old = " ".join(text[edit.span.start : edit.span.end].split())
    if not old:
        return f"Insert `{edit.text}`"
    if not edit.text:
        return f"Remove `{old}`"
    return f"Replace `{old}` by `{edit.text}`"


__all__ = ["Action", "Document", "Edit", "LocatedDiagnostic", "renamed", "replace_in"]
