"""When cycles are looked for, and that a program's own settings stand afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

from fccomodel.app import cli
from fccomodel.app.cli import _main
from fccomodel.core import garbage


def collections() -> int:
    """Of the youngest objects, while many are made."""
    before = gc.get_stats()[0]["collections"]
    kept = [[] for _ in range(20_000)]
    return gc.get_stats()[0]["collections"] - before + 0 * len(kept)


def test_cycles_are_looked_for_rarely_in_a_command_and_as_before_after_it(monkeypatch, capsys):
    before, often = gc.get_threshold(), collections()
    with garbage.rarely_collected():
        assert collections() < often / 5
    seen: list[int] = []
    monkeypatch.setattr(_main, "parser", lambda: seen.append(gc.get_threshold()[0]) or 1 / 0)
    assert cli.main([]) == 2 and seen == [garbage.OBJECTS] and gc.get_threshold() == before and capsys.readouterr().err


def test_threads_that_end_in_any_order_and_settings_made_inside_leave_what_was_set():
    before, begun, on = gc.get_threshold(), threading.Event(), threading.Event()

    def other() -> None:
        with garbage.rarely_collected():
            begun.set()
            on.wait()

    thread = threading.Thread(target=other)
    with garbage.rarely_collected():
        thread.start()
        begun.wait()
    assert gc.get_threshold()[0] == garbage.OBJECTS
    on.set()
    thread.join()
    assert gc.get_threshold() == before
    try:
        for own in ((garbage.OBJECTS * 3, 5, 5), (0, 5, 5)):
            gc.set_threshold(*own)
            with garbage.rarely_collected():
                assert gc.get_threshold() == own
            assert gc.get_threshold() == own
        gc.set_threshold(*before)
        with garbage.rarely_collected():
            gc.set_threshold(55)
        assert gc.get_threshold()[0] == 55
    finally:
        gc.set_threshold(*before)


def test_what_a_command_imports_is_never_looked_through_and_a_program_of_ones_own_is():
    text = "import gc\nfrom fccomodel.core import garbage\nfrom fccomodel.core.lazy import Lazy\n"
    text += "{}Lazy('email.message').Message\n    assert gc.isenabled() and bool(gc.get_freeze_count()) is {}\n"
    for opening, frozen in (("with garbage.ours():\n    ", True), ("if True:\n    ", False)):
        subprocess.run([sys.executable, "-c", text.format(opening, frozen)], check=True)
