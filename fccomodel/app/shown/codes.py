"""What each error code stands for: its stage, its topic, and the rules that its errors tell, by the
functions that make them."""

from __future__ import annotations

import inspect
import textwrap

from fccomodel.app import errors, registry
from fccomodel.core.diagnostics import Code, refuse, registered

WIDTH = 80
STAGES = {
    "00": "a defect of the compiler",
    "01": "reading the text",
    "02": "names",
    "03": "shapes and types",
    "04": "domains and structure",
    "05": "binding data",
    "06": "choosing an algorithm",
    "07": "running and reporting",
    "08": "files and options",
}


def card(code: str) -> str:
    """One code, at 80 columns; F0805 for one that there is not."""
    rules = catalogue()
    known = {one.id: one for one in rules}
    if code not in known:
        refuse(errors.no_code(code, list(known)))
    lines = [f"{code}  {known[code].topic}", f"Stage: {STAGES[code[1:3]]}.", ""]
    for rule in rules[known[code]]:
        lines += textwrap.wrap(rule, WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return "\n".join(lines)


def catalogue() -> dict[Code, list[str]]:
    """Every code with its rules, sorted by code."""
    rules: dict[str, list[str]] = {}
    for module in registry.error_modules():
        codes = {name: value.id for name, value in vars(module).items() if isinstance(value, Code)}
        for function in (value for value in vars(module).values() if inspect.isfunction(value)):
            told = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].partition(";")[0]
            rule = " ".join(told.split()).replace("``", "`").rstrip(".")
            for name in set(function.__code__.co_names) & set(codes):
                rules.setdefault(codes[name], []).append(f"{rule}." if rule else "")
    return {code: list(dict.fromkeys(filter(None, rules.get(code.id, [])))) for code in registered()}
