"""Products of names that stand for products: each is taken apart once."""

from __future__ import annotations

import time

import fccomodel

#: Seconds of the processor for 40 names, each the square of the one before, which have 2^40 factors
#: written out.
SECONDS = 20.0


def test_a_chain_of_squares() -> None:
    names = "".join(f"let l{k + 1} = l{k} * l{k};" for k in range(40))
    began = time.process_time()
    assert str(fccomodel.compile(f"var x in box(0, 1); let l0 = x; {names} minimize l40;").bind().explain())
    assert time.process_time() - began < SECONDS
