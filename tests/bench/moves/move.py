#!/usr/bin/env python3
"""Move the modules of a checkout by a table, and rewrite every import and mention of them.

    python move.py [--table moves.toml] CHECKOUT        (the checkout is clean; nothing is committed)

Steps: the table is laid over the tracked files; imports, dotted names, and paths in texts are rewritten; files move by
``git mv``; modules are split; new ``__init__`` files are written; patches of ``patches.py`` replace exact texts; ruff sorts
imports. It ends with status 1, and says why, where a patch does not fit or a name is ambiguous.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import io
import re
import subprocess
import symtable
import sys
import time
import tokenize
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBLEMS: list[str] = []
NOTES: list[str] = []


def problem(text: str) -> None:
    PROBLEMS.append(text)
    print("PROBLEM", text)


def note(text: str) -> None:
    NOTES.append(text)
    print("note   ", text)


def git(top: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(top), *words], check=True, capture_output=True, text=True).stdout


# ------------------------------------------------------------------------------------------------------------ the table
class Moves:
    """Old path -> new path of every tracked file, and old dotted name -> new dotted name of every module."""

    def __init__(self, top: Path, table: dict):
        self.top, self.table = top, table
        self.files = [f for f in git(top, "ls-files").splitlines() if (top / f).is_file()]
        tracked = set(self.files)
        self.gone = set(table.get("gone", []))
        for old in [*table["files"], *self.gone]:
            if old not in tracked:
                note(f"table names {old}, which is not there (any more)")
        self.new: dict[str, str | None] = {f: self._new(f) for f in self.files}
        self.modules: dict[str, str | None] = {}
        for root, prefix in (("fccomodel", True), ("tests", False)):
            for f in self.files:
                if f.startswith(root + "/") and f.endswith(".py") and "/golden/" not in f:
                    new = self.new[f]
                    self.modules[dotted(f, prefix)] = None if new is None else dotted(new, prefix)
        self.folders = {d for f in self.files for d in parents(f)}
        self.splits: dict[str, dict[str, str]] = {}  # old module -> name -> new module
        self.defined: dict[str, set[str]] = {}  # old module that is split -> all names of its own
        for old, parts in table.get("splits", {}).items():
            self.splits[old] = {name: to for to, names in parts.items() for name in names}
            body = ast.parse((top / (old.replace(".", "/") + ".py")).read_text()).body
            self.defined[old] = {n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
            self.defined[old] |= {n.targets[0].id for n in body if isinstance(n, ast.Assign)}
        targets: dict[str, str] = {}
        for old, new in self.new.items():
            if new in targets:
                problem(f"{old} and {targets[new]} both become {new}")
            if new is not None:
                targets[new] = old
        for f in self.files:
            home = next((h for h in table.get("sorted", []) if f.startswith(h + "/") and f.count("/") == h.count("/") + 1), None)
            if home and f not in table["files"] and f not in self.gone and f not in table.get("stay", []) and f.endswith(".py"):
                note(f"NEW FILE without a place: {f} (becomes {self.new[f]}): give it one in moves.toml")

    def _new(self, f: str) -> str | None:
        if f in self.gone:
            return None
        if f in self.table["files"]:
            return self.table["files"][f]
        for old in sorted(self.table["folders"], key=len, reverse=True):
            if f.startswith(old + "/"):
                return self.table["folders"][old] + f[len(old) :]
        return f

    def module(self, name: str) -> str | None:
        return self.modules.get(name)

    def folder(self, old: str) -> str | None:
        """The new name of a folder that moves as a whole (None: it does not, or it is split)."""
        for known in sorted(self.table["folders"], key=len, reverse=True):
            if old == known or old.startswith(known + "/"):
                return self.table["folders"][known] + old[len(known) :]
        return None


def dotted(path: str, whole: bool) -> str:
    parts = path.removesuffix(".py").split("/")
    parts = parts if whole else parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def parents(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: k + 1]) for k in range(len(parts))]


# ---------------------------------------------------------------------------------------------------------- python files
class Edit:
    """Replacements in a text by (start, end) offsets in characters."""

    def __init__(self, text: str):
        self.text, self.done = text, []
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines(keepends=True)

    def at(self, line: int, byte: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:byte].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def replace(self, start: int, end: int, new: str) -> None:
        self.done.append((start, end, new))

    def result(self) -> str:
        out, at, last = [], 0, None
        for start, end, new in sorted(self.done):
            if (start, end, new) == last:
                continue
            last = (start, end, new)
            if start < at:
                problem(f"overlapping edits: {self.text[start:end]!r} -> {new!r}")
                continue
            out += [self.text[at:start], new]
            at = end
        return "".join([*out, self.text[at:]])


class Scopes:
    """In which scopes a name is the module's own."""

    def __init__(self, text: str, tree: ast.Module):
        self.table = symtable.symtable(text, "x", "exec")
        self.bound: dict[ast.AST, set[str]] = {}

    def own_locals(self, name: str) -> list[tuple[str, int]]:
        found = []

        def walk(table: symtable.SymbolTable) -> None:
            if table.get_type() != "module" and name in table.get_identifiers():
                symbol = table.lookup(name)
                if symbol.is_local() or symbol.is_parameter():
                    found.append((table.get_name(), table.get_lineno()))
            for child in table.get_children():
                walk(child)

        walk(self.table)
        return found


def identifiers(tree: ast.Module) -> set[str]:
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    names |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    for n in ast.walk(tree):
        if isinstance(n, ast.ImportFrom | ast.Import):
            names |= {a.asname or a.name.split(".")[0] for a in n.names}
    return names


def enclosing(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """For each import statement and name, the innermost function (or the module) around it."""
    where: dict[ast.AST, ast.AST] = {}

    def walk(node: ast.AST, scope: ast.AST) -> None:
        where[node] = scope
        inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else scope
        for child in ast.iter_child_nodes(node):
            walk(child, inner)

    walk(tree, tree)
    return where


def rewrite_python(path: str, text: str, moves: Moves) -> str:
    tree = ast.parse(text)
    edit = Edit(text)
    renames: list[tuple[ast.AST, str, str]] = []  # (scope, old binding, new binding)
    mixed: list[tuple[ast.AST, str, dict[str, str]]] = []  # (scope, binding, attribute -> binding)
    names = identifiers(tree)
    where = enclosing(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            _import_from(node, path, tree, edit, moves, names, where, renames, mixed)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                new = moves.module(alias.name)
                if new and new != alias.name:
                    start, end = edit.span(alias)
                    own = not alias.name.startswith("fccomodel")  # a helper of the tests
                    head, _, last = new.rpartition(".")
                    if own and not alias.asname:
                        s, e = edit.span(node)
                        if len(node.names) > 1:
                            problem(f"{path}:{node.lineno}: import of several names of which one moves: {alias.name}")
                        edit.replace(s, e, f"from {head} import {last}")
                    else:
                        edit.replace(start, end, new + (f" as {alias.asname}" if alias.asname else ""))
                elif alias.name in moves.modules and new is None:
                    problem(f"{path}:{node.lineno}: imports {alias.name}, which goes")
        elif isinstance(node, ast.Attribute):
            chain = _chain(node)
            if chain and chain[0] == "fccomodel":
                new = moves.module(".".join(chain))
                if new and new != ".".join(chain) and len(chain) > 1:
                    parent_longer = False
                    for other in ast.walk(tree):
                        if isinstance(other, ast.Attribute) and other.value is node:
                            longer = ".".join(_chain(other) or [])
                            parent_longer = longer in moves.modules
                    if not parent_longer:
                        edit.replace(*edit.span(node), new)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            start = edit.starts[token.start[0] - 1] + token.start[1]
            new = rewrite_text(path, token.string, moves)
            if new != token.string:
                edit.replace(start, start + len(token.string), new)
    for scope, old, new in renames:
        for node in ast.walk(scope):
            if isinstance(node, ast.Name) and node.id == old:
                edit.replace(*edit.span(node), new)
    for scope, old, by in mixed:
        for node in ast.walk(scope):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == old and node.attr in by:
                if by[node.attr] != old:
                    edit.replace(*edit.span(node.value), by[node.attr])
    return edit.result()


def _chain(node: ast.expr) -> list[str] | None:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return None if before is None else [*before, node.attr]
    return None


def _import_from(node, path, tree, edit, moves, names, where, renames, mixed) -> None:
    groups: dict[str, list[str]] = {}
    changed = False
    scope = where[node]
    for alias in node.names:
        full = f"{node.module}.{alias.name}"
        if full in moves.splits and full in moves.modules:
            used = {
                n.attr
                for n in ast.walk(scope)
                if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == (alias.asname or alias.name)
            }
            used &= moves.defined[full]
            by_home: dict[str, set[str]] = {}
            for name in used:
                by_home.setdefault(moves.splits[full].get(name, moves.modules[full]), set()).add(name)
            if not used:
                by_home[moves.modules[full]] = set()
            changed = True
            first = True
            rename: dict[str, str] = {}
            for home in sorted(by_home, key=lambda h: -len(by_home[h])):
                package, _, last = home.rpartition(".")
                binding = alias.asname or alias.name
                if first:
                    groups.setdefault(package, []).append(last if last == binding else f"{last} as {binding}")
                else:
                    other = f"{package.rpartition('.')[2]}_{last}"
                    groups.setdefault(package, []).append(f"{last} as {other}")
                    rename |= {name: other for name in by_home[home]}
                first = False
            if rename:
                mixed.append((scope, alias.asname or alias.name, rename))
        elif full in moves.modules and full not in moves.table["not_names"]:  # a module
            new = moves.modules[full]
            if new is None:
                problem(f"{path}:{node.lineno}: imports {full}, which goes")
                continue
            package, _, last = new.rpartition(".")
            changed |= new != full
            if alias.asname or last == alias.name:
                groups.setdefault(package, []).append(last + (f" as {alias.asname}" if alias.asname else ""))
                continue
            holder = scope if scope is not tree else tree
            taken = last in names
            shadowed = [s for s in Scopes(edit.text, tree).own_locals(alias.name)] if scope is tree else []
            others = [
                n
                for n in ast.walk(tree)
                if isinstance(n, ast.ImportFrom | ast.Import) and n is not node
                for a in n.names
                if (a.asname or a.name) == alias.name
                and not (isinstance(n, ast.ImportFrom) and f"{n.module}.{a.name}" == full)
            ]
            chosen = moves.table.get("bindings", {}).get(f"{path}:{alias.name}")
            if chosen:
                groups.setdefault(package, []).append(last if last == chosen else f"{last} as {chosen}")
                renames.append((holder, alias.name, chosen))
            elif taken or shadowed or others:
                groups.setdefault(package, []).append(f"{last} as {alias.name}")
                why = "its new name is taken" if taken else "its old name is bound elsewhere too"
                note(f"{path}:{node.lineno}: {last} as {alias.name} ({why})")
            else:
                groups.setdefault(package, []).append(last)
                renames.append((holder, alias.name, last))
        else:
            home = moves.splits.get(node.module, {}).get(alias.name) or moves.modules.get(node.module, node.module)
            if home is None:
                problem(f"{path}:{node.lineno}: imports from {node.module}, which goes")
                continue
            changed |= home != node.module
            groups.setdefault(home, []).append(alias.name + (f" as {alias.asname}" if alias.asname else ""))
    if not changed:
        return
    start, end = edit.span(node)
    indent = " " * node.col_offset
    lines = [f"from {home} import {', '.join(found)}" for home, found in groups.items()]
    edit.replace(start, end, f"\n{indent}".join(lines))


# ---------------------------------------------------------------------------------------------------------------- texts
DOTTED = re.compile(r"\bfccomodel(?:\.[A-Za-z_]\w*)+")
FROM = re.compile(r"(?<![\w.])from (fccomodel(?:\.\w+)*) import (\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)")
PATH = re.compile(r"(?<![\w/.\-])(?:[A-Za-z_]\w*/)+(?:\w+(?:\.\w+)?)?(?![\w/])")
MARK = "\x00"  # keeps what is rewritten from being rewritten again


def rewrite_text(path: str, text: str, moves: Moves) -> str:
    """Dotted names and paths, wherever they stand: strings, comments, documents."""

    renamed: dict[str, str] = {}

    def imported(found: re.Match[str]) -> str:
        module, listed = found.groups()
        groups: dict[str, list[str]] = {}
        for word in (w.strip() for w in listed.split(",")):
            name, _, alias = word.partition(" as ")
            full = f"{module}.{name}"
            if full in moves.table["not_names"]:
                groups.setdefault(module, []).append(word)
            elif full in moves.modules and moves.modules[full]:
                package, _, last = moves.modules[full].rpartition(".")
                groups.setdefault(package, []).append(word if last == name else f"{last} as {alias or name}")
                if last != name and not alias and name == f"_{last}":
                    groups[package][-1] = last
                    renamed[name] = last
                elif last != name and not alias:
                    note(f"{path}: in a text, {name} is now {last}: written `{last} as {name}`")
            else:
                home = moves.splits.get(module, {}).get(name) or moves.modules.get(module, module) or module
                groups.setdefault(home, []).append(word)
        if [*groups] == [module]:
            return found[0]
        lines = [f"from {home} import {', '.join(names)}" for home, names in groups.items()]
        if len(lines) > 1:
            note(f"{path}: in a text, an import becomes {len(lines)}: {lines}")
        return "; ".join(lines).replace("fccomodel", f"fcco{MARK}model")

    def name(found: re.Match[str]) -> str:
        parts = found[0].split(".")
        for k in range(len(parts), 1, -1):
            old = ".".join(parts[:k])
            if old in moves.modules:
                new = moves.modules[old]
                if (old in moves.table["not_names"] and k == len(parts)) or new is None:
                    return found[0]
                return ".".join([new, *parts[k:]])
        return found[0]

    def place(found: re.Match[str]) -> str:
        written = found[0]
        here = moves.table.get("roots", {}).get(path, ["", "fccomodel/", "tests/", "fccomodel/solver/"])
        for root in here:
            old = root + written
            if old in moves.new:
                new = moves.new[old]
            elif old.endswith("/") and old[:-1] in moves.folders:
                new = moves.folder(old[:-1])
                new = None if new is None else new + "/"
            elif "." not in old and old + ".py" in moves.new:
                new = moves.new[old + ".py"]
                new = new and new.removesuffix(".py")
            else:  # a file that is not there, in a folder that moves
                parts = old.split("/")
                least = root.count("/")  # of the folder, more is written than where paths begin
                kept = [k for k in range(len(parts) - 1, least, -1) if "/".join(parts[:k]) in moves.table["folders"]]
                if not kept:
                    continue
                folder = "/".join(parts[: kept[0]])
                new = moves.table["folders"][folder] + old[len(folder) :]
            if new is None or new == old:
                return written
            base = root if root != "fccomodel/solver/" else "fccomodel/"
            return new.removeprefix(base) if new.startswith(base) else new
        return written

    text = FROM.sub(imported, text)
    for old, last in renamed.items():
        text = re.sub(rf"(?<![\w.]){old}\.", f"{last}.", text)
    text = DOTTED.sub(name, text)
    if path not in moves.table.get("no_paths", []):
        text = PATH.sub(place, text)
    return text.replace(MARK, "")


# ---------------------------------------------------------------------------------------------------------------- splits
def split(text: str, module: str, own: str, parts: dict[str, list[str]], abouts: dict[str, str]) -> dict[str, str]:
    """A module's text as several: by the new module, its text. What is listed nowhere stays in ``own``."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    home = {name: to for to, names in parts.items() for name in names}
    body = tree.body
    head_end = 0
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom) or node is body[0]:
            head_end = node.end_lineno
        else:
            break
    pieces: dict[str, list[str]] = {own: [], **{to: [] for to in parts}}
    defined: dict[str, str] = {}
    last = head_end
    nodes = [n for n in body if n.lineno > head_end]
    needs: dict[str, set[str]] = {to: set() for to in pieces}
    found = set()
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else ""
        else:
            name = getattr(node, "name", "")
        to = home.get(name, own)
        found.add(name)
        pieces[to].append("".join(lines[last : node.end_lineno]))
        last = node.end_lineno
        defined[name] = to
        own_names = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        needs[to] |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - own_names
    for name in home:
        if name not in found:
            note(f"{module} has no {name} to put into {home[name]}")
    result = {}
    doc_end = body[0].end_lineno if ast.get_docstring(tree) else 0
    imports = "".join(lines[doc_end:head_end])
    for to, texts in pieces.items():
        cross: dict[str, list[str]] = {}
        for name in sorted(needs[to]):
            if defined.get(name, to) != to:
                cross.setdefault(defined[name], []).append(name)
        for other in cross:
            if other != own:
                problem(f"{to} would need {cross[other]} of {other}, which is above it")
        extra = "".join(f"from {other} import {', '.join(names)}\n" for other, names in cross.items())
        if to == own:
            about = "".join(lines[:doc_end])
        else:
            about = f'"""{abouts[to]}"""\n'
        result[to] = about + imports + extra + "\n" + "".join(texts).strip("\n") + "\n"
    return result


# ----------------------------------------------------------------------------------------------------------------- whole
TEXTS = (".md", ".toml", ".pyi", ".lark", ".yml", ".cfg", ".txt", ".bib", ".j2", ".json", ".css")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--table", type=Path, default=HERE / "moves.toml")
    parser.add_argument("--ruff", default="ruff", help="the program ruff")
    given = parser.parse_args()
    began = time.perf_counter()
    top = given.checkout.resolve()
    if git(top, "status", "--porcelain", "--untracked-files=no").strip():
        print("the checkout is not clean")
        return 2
    table = tomllib.loads(given.table.read_text())
    table["files"] = {
        f"{old}.py": f"{folder}/{new}.py" for folder, placed in table["into"].items() for new, old in placed.items()
    }
    moves = Moves(top, table)
    if PROBLEMS:
        return 1
    spec = importlib.util.spec_from_file_location("patches", HERE / "patches.py")
    patches = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(patches)
    # 1. patches that make a text fit for the move (before names change)
    apply(top, patches.BEFORE)
    # 2. texts
    skip = tuple(table.get("untouched", []))
    written: dict[str, str] = {}
    for f in moves.files:
        if moves.new[f] is None or f.startswith(skip):
            continue
        path = top / f
        if path.is_symlink():
            continue
        if f.endswith(".py"):
            old = path.read_text(encoding="utf-8")
            new = rewrite_text(f, old, moves) if f.startswith("tests/golden/") else rewrite_python(f, old, moves)
        elif f.endswith(TEXTS) or f in (".ci/run", ".ci/fuzz"):
            old = path.read_text(encoding="utf-8")
            new = rewrite_text(f, old, moves)
        else:
            continue
        if new != old:
            path.write_text(new, encoding="utf-8")
            written[f] = new
    # 3. moves
    for old, new in moves.new.items():
        if new is None:
            (top / old).unlink()
        elif new != old:
            (top / new).parent.mkdir(parents=True, exist_ok=True)
            (top / old).rename(top / new)  # git finds the renames by itself
    # 4. splits
    for old, parts in table.get("splits", {}).items():
        if old not in moves.modules:
            problem(f"no module {old} to split")
            continue
        own = moves.modules[old]
        place = top / (own.replace(".", "/") + ".py")
        made = split(place.read_text(), old, own, parts, table["abouts"])
        for module, text in made.items():
            file = top / (module.replace(".", "/") + ".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            if file.exists() and module != own:
                problem(f"{file} is there already")
            file.write_text(text)
    # 5. packages
    for path, text in table.get("inits", {}).items():
        if (top / path).exists():
            problem(f"{path} is there already")
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(text.rstrip("\n") + "\n")
    # 6. patches by exact text
    apply(top, patches.AFTER)
    for text in patches.checks(top):
        problem(text)
    # 7. empty folders go; imports are sorted
    for folder in sorted((p for p in (top / "fccomodel").rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)):
        inside = [p for p in folder.iterdir() if p.name != "__pycache__"]
        if not inside:
            subprocess.run(["rm", "-rf", str(folder)], check=True)
        elif folder.name != "__pycache__" and any(p.suffix == ".py" for p in inside) and not (folder / "__init__.py").exists():
            problem(f"{folder.relative_to(top)} has no __init__.py")
    for folder in sorted((p for p in (top / "tests").rglob("*") if p.is_dir()), key=lambda p: -len(p.parts)):
        if not [p for p in folder.iterdir() if p.name != "__pycache__"]:
            subprocess.run(["rm", "-rf", str(folder)], check=True)
    git(top, "add", "-A")
    ruff = [given.ruff, "check", "--quiet", "--select", "I,F401", "--fix", "."]
    subprocess.run(ruff, cwd=top, check=False)
    git(top, "add", "-A")
    apply(top, patches.LAST)
    in_order(top / "tests/conftest.py")
    git(top, "add", "-A")
    moved = sum(old != new for old, new in moves.new.items())
    print(f"{moved} files moved, {len(written)} rewritten, {time.perf_counter() - began:.1f} s")
    print(f"{len(PROBLEMS)} problems, {len(NOTES)} notes")
    return 1 if PROBLEMS else 0


def in_order(conftest: Path) -> None:
    """The list of slow tests, sorted again."""
    text = conftest.read_text()
    listed = re.search(r"^SLOW = \(\n((?:    \".*\",\n)+)\)", text, re.MULTILINE)
    if listed is None:
        problem("tests/conftest.py has no list SLOW")
        return
    lines = sorted(set(listed[1].splitlines(keepends=True)))
    conftest.write_text(text[: listed.start(1)] + "".join(lines) + text[listed.end(1) :])


def apply(top: Path, patches: list[tuple[str, str, str]]) -> None:
    for path, old, new in patches:
        file = top / path
        if not file.exists():
            problem(f"patch: there is no {path}")
            continue
        text = file.read_text(encoding="utf-8")
        count = text.count(old)
        if count != 1:
            problem(f"patch of {path} does not fit ({count} times): {old[:90]!r}")
            continue
        file.write_text(text.replace(old, new), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
