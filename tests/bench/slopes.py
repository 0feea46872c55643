"""Exponents of the gap in oracle calls, fitted beside proved, by the theorems' own schedules.

python tests/bench/slopes.py [ALGORITHM ...]
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from conformance.slopes import CASES, measured  # noqa: E402


def main() -> None:
    torch.set_num_threads(1)
    for case in CASES:
        if len(sys.argv) == 1 or case.algorithm in sys.argv[1:]:
            slope, points = measured(case)
            print(f"{case.label:32}fitted {slope:6.2f}   proved {case.proved:5.2f}   {case.theorem}")
            print("".join(f"  {calls:12,.0f} calls   gap {gap:.1e}\n" for calls, gap in points), flush=True)


if __name__ == "__main__":
    main()
