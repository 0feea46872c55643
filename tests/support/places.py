"""Where things lie: the checkout, its examples and golden texts, and the larger data sets beside it,
which may be absent."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
SHARED = ROOT.parent / "shared"
