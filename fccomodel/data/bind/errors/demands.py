"""F0504, F0517, F0518, F0530, F0531: what a model needs, and what is given that it does not declare."""

from __future__ import annotations

from collections.abc import Collection

from fccomodel.core import ir
from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean
from fccomodel.core.source import Span
from fccomodel.data.nets.errors import SIZE_UNKNOWN

NO_DATA = Code("F0504", "no data")
UNKNOWN_NAME = Code("F0518", "unknown name")
SAMPLER = Code("F0530", "sampler missing")
ENCODING = Code("F0531", "stored encoding")


# --------------------------------------------------------------------------------------------- data
def no_table(table: ir.Table) -> Diagnostic:
    """Every table has data."""
    return NO_DATA.error(
        f"no data for {table.name}",
        reason=f"{table.name} is a table with columns {', '.join(table.columns)}",
        fix=f'give --data {table.name}=FILE, or [{table.name}] source = "FILE" in the binding file, '
        f"or bind({table.name}=...) in Python",
    )


def no_table_to_prepare() -> Diagnostic:
    """A model whose data are prepared has tables."""
    return NO_DATA.error(
        "the model has no tables to prepare", fix="arrays and params stay in the binding file"
    )


def no_family(name: str, domain: str, example: str) -> Diagnostic:
    """Every family has data; ``example`` is one of its members."""
    return NO_DATA.error(
        f"no data for {name}",
        reason=f"{name} is a family: one table for each element of {domain}",
        fix=f"give --data {name}.{example}=FILE for each, or sections [{name}.{example}], or one source "
        'with family = "column"',
    )


def no_array(name: str) -> Diagnostic:
    """Every array has values."""
    return NO_DATA.error(
        f"no data for {name}",
        reason=f"{name} is an array",
        fix=f'give --data {name}=FILE, or [{name}] source = "FILE" in the binding file, or bind({name}=...)',
    )


def undeclared(kind: str, name: str, declared: Collection[str]) -> Diagnostic:
    """Every name that is given is declared in the model."""
    if declared:
        listed = f"it declares {', '.join(declared)}"
    else:
        listed = "it declares none"
    return UNKNOWN_NAME.error(
        f"the model declares no {kind} named {name}", fix=did_you_mean(name, declared) or listed
    )


def no_sampler(name: str, span: Span) -> Diagnostic:
    """A distribution that the language does not have has a sampler."""
    return SAMPLER.error(
        f"no sampler is bound for {name}",
        span=span,
        reason=f"{name} is no distribution of the language",
        fix=f"in Python bind(..., samplers={{'{name}': function}}), where function(rng, n, *parameters) "
        "returns n draws; else "
        "draw from one of the language (see `fccomodel atoms`), or from a table of draws: E[z ~ Draws]",
    )


def stored_encoding(name: str) -> Diagnostic:
    """An encoding that is used again belongs to the same model."""
    return ENCODING.error(
        f"the stored encoding of {name} does not fit this model",
        reason="it is what an earlier binding of the same model learned from its data",
        fix="evaluate with the model that was solved, or bind without it",
    )


# -------------------------------------------------------------------------------------------- sizes
def dim_unknown(dim: str) -> Diagnostic:
    """Every dim has a size from the data."""
    return SIZE_UNKNOWN.error(
        f"nothing in the data has size {dim}",
        reason="a dim is solved from the columns that are declared with it",
        fix=f"give its size: --param {dim}=10, or [dims] {dim} = 10 in the binding file; or in Python "
        f'bind(..., params={{"{dim}": 10}})',
    )


def labels_unknown(name: str) -> Diagnostic:
    """Every set has labels from the data."""
    return SIZE_UNKNOWN.error(
        f"the labels of set {name} are not known",
        reason="they come with the columns that are declared with it",
        fix=f'list them: [sets] {name} = ["a", "b"] in the binding file; or in Python '
        f'bind(..., spec={{"sets": {{"{name}": ["a", "b"]}}}})',
    )


def size_unknown_here(dim: ir.Dim) -> Diagnostic:
    """An expression that is computed before the data are read has known sizes."""
    return SIZE_UNKNOWN.error(
        f"the size of {dim} is not known here", fix=f"bind data whose columns have size {dim}"
    )


def size_of_param(name: str, dim: ir.Dim) -> Diagnostic:
    """A param has known sizes."""
    return SIZE_UNKNOWN.error(
        f"param {name} has size {dim}, which is not known",
        fix=f"bind data whose columns have size {dim}, or give it: --param {dim}=10",
    )
