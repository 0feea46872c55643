"""Citations for an answer in BibTeX.

They are the papers of the algorithm and of its theorem, the paper of the method that finished the run,
and this library.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fccomodel.algorithms import get
from fccomodel.core.version import __version__

#: Keys of the papers that theorems call by their authors.
NAMED = {
    "Beck and Teboulle 2009": "beck-2009",
    "Wang, Liu and Fang 2017": "wang-liu-fang-2017",
    "Wang, Fang and Liu 2017": "wang-fang-liu-2017",
    "Zhang and Xiao 2019": "zhang-xiao-2019",
    "Ghadimi, Ruszczynski and Wang 2020": "ghadimi-2020",
    "Drusvyatskiy and Paquette 2019": "drusvyatskiy-2019",
    "Huo et al. 2018": "huo-2018",
}
LIBRARY = """@software{{fccomodel,
  title = {{fccomodel: a modelling language and compiler
           for constrained stochastic compositional optimisation}},
  version = {{{version}}}
}}
"""


def papers() -> dict[str, str]:
    """All entries of ``papers.bib`` by their keys."""
    text = files("fccomodel.algorithms").joinpath("papers.bib").read_text(encoding="utf-8")
    entries = re.finditer(r"@\w+\{([\w-]+),\n.*?^\}\n", text, flags=re.M | re.S)
    return {entry[1]: entry[0] for entry in entries}


def keys(theorem: str) -> list[str]:
    """The keys of the papers that the name of a theorem begins with."""
    by_key = [key for key in papers() if theorem.startswith(key)]
    by_authors = [key for name, key in NAMED.items() if theorem.startswith(name)]
    return by_key + by_authors


def cite(record: Mapping[str, Any]) -> str:
    """The BibTeX entries for a record (the content of ``result.json``)."""
    wanted: list[str] = []
    algorithm = get(record["algorithm"])
    if algorithm is not None:
        wanted += keys(algorithm.theorem)
    wanted += keys(record.get("theorem") or "")
    if record.get("paper"):
        wanted.append(record["paper"])
    entries = [papers()[key] for key in dict.fromkeys(wanted)]
    return "\n".join([*entries, LIBRARY.format(version=__version__)])
