"""Expressions and problems as LaTeX, with the templates of atoms, reductions and sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from fccomodel.core import ir
from fccomodel.core.rewrite import conjuncts, substitute
from fccomodel.library import atoms, reductions, sets, tex
from fccomodel.library.tex import ATOM, PRODUCT, SUM, Tex

#: A row of a block: how it begins, the mathematics, a label.
Row = tuple[str, str, str]
#: Turns a node that only later stages make into LaTeX, or None.
More = Callable[["LatexPrinter", ir.Expr], Tex | None]


class LatexPrinter:
    """Prints expressions.

    more     prints the nodes that only later stages make
    names    by the id of a node, the name that is printed for it
    lets     the quantities met so far, in order
    subsets  the sets of rows met so far, in order
    """

    def __init__(self, problem: ir.Problem, more: More | None = None, names: Mapping[int, Tex] | None = None):
        self.problem, self.more, self.names = problem, more, names or {}
        self.lets: dict[str, ir.Let] = {}
        self.subsets: dict[str, ir.RowSet] = {}
        self._memo: dict[int, tuple[ir.Expr, Tex]] = {}

    def __call__(self, expr: ir.Expr) -> Tex:
        for node in ir.walk(expr, lets=False):
            if id(node) not in self._memo:
                self._memo[id(node)] = node, self._print(node)
        return self._memo[id(expr)][1]

    def _print(self, node: ir.Expr) -> Tex:
        if id(node) in self.names:
            return self.names[id(node)]
        printed = self._leaf(node)
        if printed is None:
            printed = self._operation(node)
        if printed is None and self.more is not None:
            printed = self.more(self, node)
        if printed is None:
            raise NotImplementedError(type(node).__name__)
        return printed

    def _leaf(self, node: ir.Expr) -> Tex | None:
        """A node without children, or None for another one."""
        match node:
            case ir.Const():
                return tex.number(node.value)
            case ir.Label():
                return Tex(rf"\text{{{tex.escaped(node.text)}}}")
            case ir.Size():
                return self.size(node.dim)
            case ir.Param() | ir.Var():
                return tex.name(node.name)
            case ir.Column():
                row = tex.name(node.binder.name)
                if node.name:
                    return _subscripted(tex.name(node.name), [row])
                return row
            case ir.Element():
                return tex.name(node.binder.name)
            case ir.Hole():
                return tex.name(node.name)
        return None

    def _operation(self, node: ir.Expr) -> Tex | None:
        """A node with children, or None for one that only later stages make."""
        match node:
            case ir.Item():
                return _subscripted(self(node.base), [self._index(index) for index in node.indices])
            case ir.NetCall():
                inputs = ", ".join(f"{self(one)}" for one in node.inputs)
                if node.params is not None:
                    inputs = f"{self(node.params)}; {inputs}"
                return Tex(rf"{tex.name(node.net)}\left({inputs}\right)")
            case ir.LetRef():
                self.lets.setdefault(node.let.name, node.let)
                return _member(node.let, [self(arg) for arg in node.args])
            case ir.Exists():
                return Tex(rf"\exists\, {self.over([node.binder], None)} : {self(node.condition)}", 0)
            case ir.Reduce():
                return self._reduce(node)
            case ir.Apply():
                return self._apply(node)
        return None

    def _index(self, index: ir.Expr) -> Tex:
        """An index, counted from 1 as the user counts."""
        if isinstance(index, ir.Const):
            return Tex(f"{int(index.value) + 1}")
        return self(index)

    def _apply(self, node: ir.Apply) -> Tex:
        args, atom = [self(arg) for arg in node.args], atoms.get(node.op)
        if node.op == "diagonal" and isinstance(node.args[0], ir.Const) and node.args[0].value == 1:
            return Tex("I")
        if node.op == "square" and isinstance(node.args[0], ir.Apply) and node.args[0].op == "sqrt":
            return self(node.args[0].args[0])
        if node.op == "mul":
            positive = _without_sign(args[0])
            if positive is not None:
                return Tex("-" + tex.written(_template(atom), positive, *args[1:]), SUM)
        if node.op == "add":
            positive = _without_sign(args[1])
            if positive is not None:
                return tex.written(_template(atoms.get("sub")), args[0], positive)
        return tex.written(_template(atom, node.op), *args)

    def _reduce(self, node: ir.Reduce) -> Tex:
        entry = _entry(node)
        if entry is not None:
            return self(entry)
        kind = reductions.of(node)
        options = {name: self(value) for name, value in node.options.items()}
        unit = all(isinstance(value, ir.Const) and value.value == 1 for value in node.options.values())
        template = (
            (kind.tex_of_one if unit else "")
            or kind.tex
            or rf"\operatorname*{{{tex.escaped(node.kind)}}}_{{<over>}}\left(<body>\right)"
        )
        over = Tex(self.over(node.binders, node.condition))
        return tex.written(template, over=over, body=self(node.body), **options)

    # ----------------------------------------------------------------------------------------- sets
    def over(self, binders: Sequence[ir.Binder], condition: ir.Expr | None) -> str:
        """Binders and the condition on them: ``z \\sim D,\\, k \\in G \\mid condition``."""
        listed = r",\, ".join(f"{tex.name(b.name)} {KINDS[b.kind]} {self.set(b.domain)}" for b in binders)
        if condition is None:
            return listed
        return rf"{listed} \mid {self(condition)}"

    def set(self, domain: ir.Set) -> Tex:
        """A set by its name, or written out if it has none."""
        match domain:
            case ir.Distribution():
                args, power = ", ".join(self(arg) for arg in domain.args), _power(self.shape(domain.shape))
                return Tex(rf"\mathrm{{{tex.escaped(domain.family)}}}\left({args}\right){power}")
            case ir.VectorSet():
                return self.simple_set(domain)
            case ir.RowSet() if domain.name != domain.table and domain.where is not None:
                if domain.name not in self.problem.sets:
                    return self.chosen(domain)
                self.subsets.setdefault(domain.name, domain)
            case ir.ValueSet() if domain.name not in self.problem.sets:
                return self._numbers(domain)
        return tex.name(domain.name)

    def chosen(self, domain: ir.RowSet) -> Tex:
        """Rows of a table under their condition."""
        assert domain.row is not None and domain.where is not None
        row = tex.name(domain.row.name)
        return Tex(rf"\left\{{{row} \in {tex.name(domain.table)} \mid {self(domain.where)}\right\}}")

    def _numbers(self, domain: ir.ValueSet) -> Tex:
        if domain.items is not None:
            return Tex(rf"\left\{{{', '.join(map(self, domain.items))}\right\}}")
        ends = [self(end) for end in (domain.low, domain.high) if end is not None]
        if len(ends) == 2:
            return Tex(rf"\left\{{{ends[0]}, \ldots, {ends[1]}\right\}}")
        return tex.name(domain.name)

    def simple_set(self, domain: ir.VectorSet) -> Tex:
        """A simple set by its template."""
        kind = sets.all()[domain.family]
        args = [self(arg) for arg in domain.args]
        template = kind.tex or rf"\operatorname{{{tex.escaped(domain.family)}}}\left(<...>\right)"
        plain = tex.written(template, *args, shape=Tex(self.shape(domain.shape)))
        if domain.centre is None:
            return plain
        return Tex(rf"{self(domain.centre)} + {plain}")

    def shape(self, shape: ir.Shape) -> str:
        """Sizes with ``\\times`` between them."""
        return r" \times ".join(self.size(dim) for dim in shape)

    def size(self, dim: ir.Dim) -> Tex:
        """A number, a dimension, or the size of a set."""
        if isinstance(dim, int) or dim.isdigit():
            return Tex(str(dim))
        if dim.startswith("params("):
            return Tex(rf"\dim {tex.name(dim[len('params(') : -1])}")
        if " + " in dim:
            return Tex(" + ".join(self.size(part) for part in dim.split(" + ")), SUM)
        named = tex.name(dim)
        if dim in self.problem.sets or dim in self.problem.tables:
            return Tex(rf"\lvert {named} \rvert")
        return named

    # --------------------------------------------------------------------------------- declarations
    def variable(self, variable: ir.Variable) -> str:
        """A variable with its space, ``w \\in \\mathbb{R}^{d}``, or with its simple sets, and its bounds."""
        named, space = tex.name(variable.name), rf"\mathbb{{R}}{_power(self.shape(variable.shape))}"
        bounds = [self._bounded(named, box) for box in variable.sets if box.family == "box"]
        inside = [self.simple_set(simple) for simple in variable.sets if simple.family != "box"]
        within = r" \cap ".join(inside) or space
        return r",\; ".join([rf"{named} \in {within}", *filter(None, bounds)])

    def _bounded(self, named: Tex, box: ir.VectorSet) -> str:
        low, high = (_finite(end) for end in box.args)
        if low is None and high is None:
            return ""
        if high is None:
            return rf"{named} \ge {self(box.args[0])}"
        if low is None:
            return rf"{named} \le {self(box.args[1])}"
        return rf"{self(box.args[0])} \le {named} \le {self(box.args[1])}"


def constraint(printer: LatexPrinter, family: ir.Constraint, *, first: bool = False) -> Row:
    """A row of a problem: a constraint as written, its members, and its label."""
    left, relation, right = family.written
    body = rf"{printer(left)} {RELATIONS[relation]} {printer(right)}"
    if family.binders:
        body += rf",\quad \forall\, {printer.over(family.binders, family.condition)}"
    begin = r"\text{s.t.} \quad" if first else ""
    return begin, body, tex.escaped(family.label)


def quantities(printer: LatexPrinter) -> list[Row]:
    """Rows for the quantities and the sets of rows met so far, and for those in them."""
    rows: list[str] = []
    done = 0
    while done < len(printer.lets):
        let = list(printer.lets.values())[done]
        named = _member(let, [tex.name(b.name) for b in let.binders])
        rows.append(f"{named} = {printer(let.body)}")
        done += 1
    while done < len(printer.lets) + len(printer.subsets):
        subset = list(printer.subsets.values())[done - len(printer.lets)]
        rows.append(f"{tex.name(subset.name)} = {printer.chosen(subset)}")
        done += 1
    return [(r"\text{where} \quad" if not k else "", row, "") for k, row in enumerate(rows)]


#: The signs of binders, by kind.
KINDS = {"in": r"\in", "~": r"\sim"}
#: The signs of relations.
RELATIONS = {"<=": r"\le", ">=": r"\ge", "==": "=", "<<": r"\preceq", ">>": r"\succeq"}


def aligned(rows: Sequence[Row]) -> str:
    """Rows as an ``align*`` block."""
    lines = []
    for begin, body, label in rows:
        if label:
            tag = rf" && \text{{({label})}}"
        else:
            tag = ""
        lines.append(f"  {begin} & {body}{tag}")
    return "\\begin{align*}\n" + " \\\\\n".join(lines) + "\n\\end{align*}\n"


def _entry(node: ir.Reduce) -> ir.Expr | None:
    """The entry ``x[i + 1]`` of a mean over the one index that equals ``i + 1``; None for another node."""
    indices: dict[ir.Binder, ir.Expr] = {}
    for condition in conjuncts(node.condition):
        match condition:
            case ir.Apply(op="eq", args=(ir.Element(binder=binder), value)) if binder in node.binders:
                indices[binder] = value
    alone = len(indices) == len(node.binders) == len(conjuncts(node.condition))
    if node.kind != "mean" or not alone or not all(map(_is_index, indices.values())):
        return None
    return substitute(node.body, indices)


def _is_index(value: ir.Expr) -> bool:
    """Whether a value is a formula of indices, or a row's label; a number would count from 0."""
    if isinstance(value, ir.Const):
        return False
    return all(
        isinstance(part, ir.Element | ir.Column | ir.Const | ir.Size | ir.Apply) for part in ir.walk(value)
    )


def _template(atom: atoms.Atom | None, op: str = "") -> str:
    if atom is not None and atom.tex:
        return atom.tex
    return rf"\operatorname{{{tex.escaped(op)}}}\left(<...>\right)"


def _without_sign(piece: Tex) -> Tex | None:
    """The rest of a product that begins with a minus sign, or None for another piece."""
    if piece.level == SUM and piece.startswith("-") and not _is_sum(piece[1:]):
        return Tex(piece[1:], PRODUCT)
    return None


def _is_sum(text: str) -> bool:
    """Whether a plus or a minus stands outside all brackets."""
    depth = 0
    for character in text:
        depth += (character in "{([") - (character in "})]")
        if character in "+-" and not depth:
            return True
    return False


def _member(let: ir.Let, indices: list[Tex]) -> Tex:
    """A quantity with its indices; the step ``x[3]`` of a recursion has its number as the first."""
    name, _, step = let.name.partition("[")
    if step:
        indices = [Tex(step.removesuffix("]")), *indices]
    return _subscripted(tex.name(name), indices)


def _subscripted(base: Tex, indices: Sequence[str]) -> Tex:
    if not indices:
        return base
    inner = ", ".join(indices)
    if base.level < ATOM:
        return Tex(rf"{base:{ATOM}}[{inner}]")
    if "_" in base:
        return Tex(rf"{{\left[{base}\right]}}_{{{inner}}}")
    return Tex(f"{base}_{{{inner}}}")


def _power(text: str) -> str:
    if text:
        return f"^{{{text}}}"
    return ""


def _finite(end: ir.Expr) -> float | None:
    """The value of a bound, or None if it is infinite; 0 stands for a bound that is no constant."""
    value = end.value if isinstance(end, ir.Const) else 0.0
    if math.isinf(value):
        return None
    return value
