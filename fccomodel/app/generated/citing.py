"""What to cite for an answer, as BibTeX: the papers of the algorithm and its theorem, what finished
the run, this library."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fccomodel.algorithms import get
from fccomodel.core.version import __version__

#: How theorems name papers that have no key of their own.
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
    """Every entry by its key."""
    text = files("fccomodel.algorithms").joinpath("papers.bib").read_text(encoding="utf-8")
    return {
        entry[1]: entry[0] for entry in re.finditer(r"@\w+\{([\w-]+),\n.*?^\}\n", text, flags=re.M | re.S)
    }


def keys(theorem: str) -> list[str]:
    """The papers that the name of a theorem begins with."""
    return [key for key in papers() if theorem.startswith(key)] + [
        key for name, key in NAMED.items() if theorem.startswith(name)
    ]


def cite(record: Mapping[str, Any]) -> str:
    """The entries for what ``result.json`` holds."""
    algorithm = get(record["algorithm"])
    theorems = [*([algorithm.theorem] if algorithm is not None else []), record.get("theorem") or ""]
    wanted = dict.fromkeys(key for theorem in theorems for key in keys(theorem))
    if paper := record.get("paper"):
        wanted |= {paper: None}
    else:
        wanted |= {}
    return "\n".join([*(papers()[key] for key in wanted), LIBRARY.format(version=__version__)])
