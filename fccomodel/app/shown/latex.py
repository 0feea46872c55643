"""A model as LaTeX: the problem as written, its normal form, and the smoothed problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fccomodel.app.shown.explain import normal_of
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.core import ir
from fccomodel.language import latex, statements
from fccomodel.language.latex import LatexPrinter, Row
from fccomodel.library import tex
from fccomodel.library.sums import summands
from fccomodel.library.tex import Tex

if TYPE_CHECKING:
    from fccomodel.normal_form import NormalForm
    from fccomodel.pipeline import Explained

FORMS = ("problem", "normal", "smoothed")
#: Notes on the symbols of the smoothed form.
ENVELOPE = (
    r"$\mathcal{M}_{\lambda}\{\cdot\}$: the Moreau envelope, of parameter $\lambda$, of an outer function"
)
PENALTY = r"$\rho$: the weight of the constraints' penalties"


def written(stated: ir.Problem, explained: Explained | None, which: str) -> str:
    """The LaTeX of one of ``FORMS``: an ``align*`` block below a comment that names it.

    ``normal`` and ``smoothed`` depend on the algorithm: the chosen one, or the nearest one if no
    algorithm covers the model.
    """
    if which == "problem":
        steps = ", with a few steps of its recursions" if stated.counting else ""
        return f"% {stated.name}, as written{steps}\n{statements.latex(stated)}"
    if explained is None:
        normal = None
    else:
        normal = normal_of(explained.plan, explained.candidates)
    if normal is None:
        return f"% {stated.name}: no algorithm has a form for it (fccomodel explain says why)\n"
    if which == "normal":
        return f"% {stated.name}: expectations below outer functions have names\n{_compositions(normal)}"
    return f"% {stated.name}: what is minimised, penalties and envelopes in place\n{_smoothed(normal)}"


class Typeset(Shown):
    """A model that is shown as mathematics. A subclass has ``compiled`` and ``explain``."""

    def latex(self: Any, form: str = "problem") -> str:
        """The model as a LaTeX ``align*`` block.

        form   ``problem`` (as written), ``normal`` (the normal form) or ``smoothed``
        """
        explained = None
        if form != "problem":
            explained = self.explain().explained
        return written(self.compiled.problem, explained, form)

    def _repr_latex_(self: Any) -> str:
        return statements.latex(self.compiled.problem)

    def _repr_html_(self: Any) -> str | None:
        """The model in MathML, or None if latex2mathml is missing (notebooks then show the LaTeX)."""
        from fccomodel.app.shown.notebook import html

        bound = getattr(self, "bound", None)
        rows = None
        if bound:
            rows = {name: table.n for name, table in bound.tables.items()}
        return html.model(self.compiled.problem, rows)


def _compositions(normal: NormalForm) -> str:
    """The problem with a name u_k for each tracked expectation, and a definition of each name.

    Tracked are the expectations below outer functions, and those in constraints.
    """
    means: list[ir.Reduce] = []
    for term in normal.terms:
        if term.kind == "composition" or term.label != "objective":
            means += term.means
    tracked = list(dict.fromkeys(means))
    names = {id(mean): _estimate(k, mean) for k, mean in enumerate(tracked, 1)}
    printer = LatexPrinter(normal.reformed, _later, names=names)
    rows: list[Row] = [
        (rf"\min_{{{_variables(printer, normal)}}} \quad", printer(normal.rest), ""),
        *_regularisers(printer, normal),
    ]
    for k, constraint in enumerate(normal.reformed.constraints):
        rows.append(latex.constraint(printer, constraint, first=k == 0))
    rows += latex.quantities(printer)
    plain = LatexPrinter(normal.reformed, _later)
    definitions: list[Row] = []
    for mean in tracked:
        name = names[id(mean)]
        if any(name in row[1] for row in rows):
            definitions.append(("", f"{name} = {plain(mean)}", "tracked"))
    return latex.aligned(rows + definitions)


def _estimate(k: int, mean: ir.Reduce) -> Tex:
    """The name of a tracked expectation, with the indices that it depends on."""
    indices = [tex.name(binder.name) for binder in ir.free_binders(mean)]
    return Tex(rf"u_{{{', '.join([str(k), *indices])}}}")


def _variables(printer: LatexPrinter, normal: NormalForm) -> str:
    """The variables below ``min``."""
    printed = [printer.variable(variable) for variable in normal.variables.values()]
    return r",\; ".join(text for text in printed if text)


def _smoothed(normal: NormalForm) -> str:
    """The minimised function, with penalties and envelopes in it."""
    printer = LatexPrinter(normal.reformed, _later)
    rows: list[Row] = [(rf"\min_{{{_variables(printer, normal)}}} \quad", printer(normal.objective), "")]
    rows += _regularisers(printer, normal)
    text = latex.aligned(rows + latex.quantities(printer))
    if normal.smoothed:
        text += f"% {ENVELOPE}\n"
    if normal.penalties:
        text += f"% {PENALTY}\n"
    return text


def _regularisers(printer: LatexPrinter, normal: NormalForm) -> list[Row]:
    """The summands of the objective that are handled by their prox."""
    if not normal.prox:
        return []
    rest = {id(part) for part in summands(normal.rest)}
    parts = [part for part in summands(normal.reformed.objective.expr) if id(part) not in rest]
    return [("+", printer(part), "by its prox") for part in parts]


def _later(printer: LatexPrinter, node: ir.Expr) -> Tex | None:
    """LaTeX of envelopes and penalties, which only the smoothed form has; None for other nodes."""
    from fccomodel.normal_form.penalty import Penalty
    from fccomodel.normal_form.smoothing import Smoothed

    if isinstance(node, Penalty):
        if node.scale in tex.GREEK:
            scale = rf"\{node.scale}\, "
        else:
            scale = ""
        return tex.written("2 <0><1:2>", Tex(scale), printer(node.function))
    if isinstance(node, Smoothed):
        if node.bound in tex.GREEK:
            scale = rf"\{node.bound}\, "
        else:
            scale = ""
        below = r"\lambda_g" if node.inner else r"\lambda"
        return tex.written(
            r"\mathcal{M}_{<0>}\left\{<1><2:2>\right\}", Tex(below), Tex(scale), printer(node.original)
        )
    return None
