"""Print the tests that a run of pytest skipped, one a line, from the report that `--junit-xml` wrote."""

import sys
import xml.etree.ElementTree as tree
from pathlib import Path


def test_id(case: tree.Element) -> str:
    """The identifier of a test, or the file that was skipped as a whole."""
    parts = [*case.get("classname", "").split("."), case.get("name", "")]
    if not parts[0]:  # a file: its name is tests.data.test_queries
        return str(Path(*parts[1].split(".")).with_suffix(".py"))
    for end in range(len(parts) - 1, 0, -1):
        file = Path(*parts[:end]).with_suffix(".py")
        if file.is_file():
            return "::".join([str(file), *parts[end:]])
    raise SystemExit(f"no file has the test {'.'.join(parts)}")


cases = tree.parse(sys.argv[1]).iter("testcase")
skipped = sorted({test_id(case) for case in cases if case.find("skipped") is not None})
if not skipped:
    raise SystemExit("no test was skipped")
print("\n".join(skipped))
