"""State that all threads share, changed for a time."""

from __future__ import annotations

import gc

from fccomodel.app import cli
from fccomodel.core import process


def collections() -> int:
    """Of the youngest objects, while many are made."""
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(20_000)]
    return gc.get_stats()[0]["collections"] - before + 0 * len(kept)


def test_cycles_are_looked_for_rarely_in_a_command_and_as_before_after_it(monkeypatch, capsys):
    before, often = gc.get_threshold(), collections()
    with process.rarely_collected():
        assert collections() < often / 5
    seen: list[int] = []
    monkeypatch.setattr(cli, "parser", lambda: seen.append(gc.get_threshold()[0]) or 1 / 0)
    assert cli.main([]) == 2 and seen == [process.OBJECTS] and gc.get_threshold() == before and capsys.readouterr().err
