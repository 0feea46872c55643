"""F0527: families of tables and their members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fccomodel.core.diagnostics import Code, Diagnostic, did_you_mean

FAMILY = Code("F0527", "family")


def source_and_members(name: str, members: Iterable[str]) -> Diagnostic:
    """The data of a family are one source, or one source for each member."""
    return FAMILY.error(
        f"{name} has both one source and members {', '.join(members)}",
        fix=f'give each member its section [{name}.MEMBER], or one source with family = "column"',
    )


def no_column(name: str) -> Diagnostic:
    """A family with one source has a column with the members."""
    return FAMILY.error(
        f"{name} is a family, and its data do not say which row belongs to which member",
        fix=f'family = "column" in [{name}] of the binding file, or one section [{name}.MEMBER] for each; '
        "or in Python "
        f'bind(..., spec={{"{name}": {{"family": "column"}}}}), or bind({name}={{"MEMBER": ...}})',
    )


def not_a_member(name: str, label: str, domain: str, elements: Sequence[str]) -> Diagnostic:
    """Members are elements of the family's set."""
    fix = did_you_mean(label, elements) or f"{domain} has {', '.join(elements[:8])}"
    return FAMILY.error(f"{name}: {label} is not an element of {domain}", fix=fix)


def members_without_data(name: str, lacking: Sequence[str], domain: str) -> Diagnostic:
    """Every element of the family's set has rows."""
    return FAMILY.error(
        f"{name} has no data for {', '.join(lacking[:8])}",
        reason=f"{name} is a family: every element of {domain} has its own table",
        fix=f'give [{name}.{lacking[0]}] source = "FILE", or --data {name}.{lacking[0]}=FILE',
    )
