"""A model as LaTeX: the problem as written, its normal form, and what is minimised once kinks are
smoothed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fccomodel.app.shown.explain import normal_of
from fccomodel.app.shown.notebook.shown import Shown
from fccomodel.core import ir
from fccomodel.language import latex, statements
from fccomodel.language.latex import Printer, Row
from fccomodel.library import tex
from fccomodel.library.sums import summands
from fccomodel.library.tex import Tex

if TYPE_CHECKING:
    from fccomodel.normal_form import NormalForm
    from fccomodel.pipeline import Explained

FORMS = ("problem", "normal", "smoothed")
#: What a form's symbols mean.
ENVELOPE = (
    r"$\mathcal{M}_{\lambda}\{\cdot\}$: the Moreau envelope, of parameter $\lambda$, of an outer function"
)
PENALTY = r"$\rho$: the weight of the constraints' penalties"


def written(stated: ir.Problem, explained: Explained | None, which: str) -> str:
    """One of ``FORMS`` as an ``align*`` block under a comment that names it; the latter two are of the
    algorithm chosen, or of the nearest where none covers the model."""
    if which == "problem":
        return f"% {stated.name}, as written\n{statements.latex(stated)}"
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
    """Models that are shown as mathematics; they have ``compiled`` and ``explain``."""

    def latex(self: Any, form: str = "problem") -> str:
        """The model as a LaTeX ``align*`` block: as written (``problem``), in ``normal`` form, or
        ``smoothed``."""
        return written(self.compiled.problem, None if form == "problem" else self.explain().explained, form)

    def _repr_latex_(self: Any) -> str:
        return statements.latex(self.compiled.problem)

    def _repr_html_(self: Any) -> str | None:
        """Mathematics that browsers show by themselves; None where latex2mathml is missing: then the
        LaTeX is shown."""
        from fccomodel.app.shown.notebook import html

        bound = getattr(self, "bound", None)
        return html.model(
            self.compiled.problem, bound and {name: table.n for name, table in bound.tables.items()}
        )


def _compositions(normal: NormalForm) -> str:
    """The problem with a name u_k for each expectation that is tracked, and what these stand for: all
    below outer functions, penalties of constraints among them."""
    tracked = [
        mean
        for term in normal.terms
        if term.kind == "composition" or term.label != "objective"
        for mean in term.means
    ]
    names = {id(mean): _estimate(k, mean) for k, mean in enumerate(dict.fromkeys(tracked), 1)}
    printer = Printer(normal.reformed, _later, names=names)
    rows: list[Row] = [
        (rf"\min_{{{_over(printer, normal)}}} \quad", printer(normal.rest), ""),
        *_regularisers(printer, normal),
    ]
    rows += [
        latex.constraint(printer, one, first=k == 0) for k, one in enumerate(normal.reformed.constraints)
    ]
    rows += latex.quantities(printer)
    plain = Printer(normal.reformed, _later)
    seen = [mean for mean in dict.fromkeys(tracked) if any(names[id(mean)] in row[1] for row in rows)]
    return latex.aligned(rows + [("", f"{names[id(mean)]} = {plain(mean)}", "tracked") for mean in seen])


def _estimate(k: int, mean: ir.Reduce) -> Tex:
    """The name of a tracked expectation: with the indices that it depends on."""
    return Tex(rf"u_{{{', '.join([str(k), *(tex.name(binder.name) for binder in ir.free_binders(mean))])}}}")


def _over(printer: Printer, normal: NormalForm) -> str:
    return r",\; ".join(filter(None, (printer.variable(variable) for variable in normal.variables.values())))


def _smoothed(normal: NormalForm) -> str:
    """The minimised function: penalties and envelopes in place."""
    printer = Printer(normal.reformed, _later)
    rows: list[Row] = [(rf"\min_{{{_over(printer, normal)}}} \quad", printer(normal.objective), "")]
    rows += _regularisers(printer, normal)
    notes = [note for note, used in ((ENVELOPE, normal.smoothed), (PENALTY, normal.penalties)) if used]
    return latex.aligned(rows + latex.quantities(printer)) + "".join(f"% {note}\n" for note in notes)


def _regularisers(printer: Printer, normal: NormalForm) -> list[Row]:
    """The summands of the objective that are no part of the compositions."""
    rest = {id(part) for part in summands(normal.rest)}
    if normal.prox:
        parts = [part for part in summands(normal.reformed.objective.expr) if id(part) not in rest]
    else:
        parts = []
    return [("+", printer(part), "by its prox") for part in parts]


def _later(printer: Printer, node: ir.Expr) -> Tex | None:
    """LaTeX of nodes that only smoothing makes, envelopes and penalties; None for all others."""
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
