"""A typed problem as text, for comparisons in tests: one line per declaration, binders numbered in the
order they are met."""

from collections.abc import Callable

from fccomodel.core import ir

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "pow": "^",
    "matmul": "@",
    "le": "<=",
    "lt": "<",
    "ge": ">=",
    "gt": ">",
}
SYMBOLS |= {"eq": "==", "ne": "!=", "and": "and", "or": "or"}


class Printer:
    """Prints expressions; the same binder has the same name everywhere: its own, with a number where
    that is taken."""

    def __init__(self) -> None:
        self.known: dict[ir.Binder, str] = {}

    def binder(self, binder: ir.Binder) -> str:
        if binder not in self.known:
            taken = set(self.known.values())
            names = (f"{binder.name}{k or ''}" for k in range(len(taken) + 1))
            self.known[binder] = next(n for n in names if n not in taken)
        return self.known[binder]

    def bound(self, binders: tuple[ir.Binder, ...], condition: ir.Expr | None = None) -> str:
        text = ", ".join(f"{self.binder(b)} {b.kind} {self.set(b.domain)}" for b in binders)
        return f"[{text} | {self(condition)}]" if condition is not None else f"[{text}]"

    def set(self, domain: ir.Set) -> str:
        match domain:
            case ir.Distribution() | ir.VectorSet():
                shape = "".join(f"[{', '.join(map(str, domain.shape))}]" if domain.shape else "")
                return f"{domain.family}({', '.join(map(self, domain.args))}){shape}"
        return domain.name

    def __call__(self, node: ir.Expr) -> str:
        match node:
            case ir.Const():
                return (
                    f"{node.value:g}"
                    if not node.shape
                    else f"{node.value:g}[{', '.join(map(str, node.shape))}]"
                )
            case ir.Label():
                return f'"{node.text}"'
            case ir.Size():
                return f"|{node.dim}|"
            case ir.Param() | ir.Var():
                return node.name
            case ir.Column(name=None) | ir.Element():
                return self.binder(node.binder)
            case ir.Column():
                return f"{self.binder(node.binder)}.{node.name}"
            case ir.Item():
                return f"{self(node.base)}[{', '.join(map(self, node.indices))}]"
            case ir.NetCall():
                inputs = ", ".join(map(self, node.inputs))
                if node.params is None:
                    return f"{node.net}({inputs})"
                return f"{node.net}({self(node.params)}; {inputs})"
            case ir.LetRef():
                return node.let.name + (f"<{', '.join(map(self, node.args))}>" if node.args else "")
            case ir.Apply() if node.op in SYMBOLS:
                return f"({f' {SYMBOLS[node.op]} '.join(map(self, node.args))})"
            case ir.Apply():
                return f"{node.op}({', '.join(map(self, node.args))})"
            case ir.Reduce():
                options = ", ".join(f"{name} = {self(value)}" for name, value in node.options.items())
                head = (
                    node.kind + (f"({options})" if options else "") + self.bound(node.binders, node.condition)
                )
                return f"{head} {self(node.body)}"
        raise TypeError(type(node))


def problem_text(problem: ir.Problem) -> str:
    """Sets, lets, objective and constraints, one line each."""
    show = Printer()
    lines: list[str] = []
    line: Callable[[str], None] = lines.append
    for name, domain in problem.sets.items():
        if isinstance(domain, ir.RowSet) and domain.where is not None and domain.row is not None:
            line(f"set {name} = rows {show.binder(domain.row)} of {domain.table} | {show(domain.where)}")
    for let in problem.lets.values():
        line(f"let {let.name}{show.bound(let.binders) if let.binders else ''} = {show(let.body)}")
    line(f"{problem.objective.sense} {problem.objective.label}: {show(problem.objective.expr)}")
    for c in problem.constraints:
        head = show.bound(c.binders, c.condition) if c.binders else ""
        line(f"{c.label}{head}: {show(c.body)} {'<=' if c.kind == 'le' else '=='} 0")
    return "\n".join(lines)
