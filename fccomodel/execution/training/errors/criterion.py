"""F0826: what a criterion refuses in a training loop of one's own, and what it warns of."""

from __future__ import annotations

from collections.abc import Sequence

from fccomodel.core.diagnostics import Diagnostic
from fccomodel.program.errors import CRITERION


def criterion_frozen(frozen: Sequence[str], nets: Sequence[str]) -> Diagnostic:
    """Outputs of frozen nets are known."""
    named = ", ".join(f"`{name}`" for name in frozen)
    return CRITERION.error(
        f"{named} has no weights to train, so a criterion takes no outputs of it",
        reason="The criterion computes the outputs of frozen nets itself, on the columns that were bound.",
        fix=f"Leave it out: {', '.join(f'{name}=...' for name in nets)}.",
    )


def criterion_heads(net: str, heads: Sequence[str]) -> Diagnostic:
    """A net with several heads has one tensor of scores."""
    shown = ", ".join(f'out["{head}"]' for head in heads)
    return CRITERION.error(
        f"the scores of `{net}` are a dictionary with {', '.join(heads)}, not a tensor",
        reason="The net is applied to one column, so its scores are one tensor.",
        fix=f"Give the output that the model uses, or all of them in the model's order: "
        f"criterion(rows, {net}=torch.stack([{shown}], -1)).",
    )


def criterion_scores(given: Sequence[str], nets: Sequence[str]) -> Diagnostic:
    """Scores are given under the names of the model's nets."""
    unknown = [name for name in given if name not in nets]
    words = ", ".join(f"`{name}`" for name in unknown or [n for n in nets if n not in given])
    return CRITERION.error(
        f"the model has no net {words}" if unknown else f"the scores of {words} are missing",
        reason=f"Its nets are {', '.join(f'`{name}`' for name in nets)}.",
        fix=f"Call criterion(rows, {', '.join(f'{name}=scores' for name in nets)}).",
    )


def criterion_modules(given: Sequence[str], nets: Sequence[str]) -> Diagnostic:
    """A report is about the weights of all nets."""
    unknown = [name for name in given if name not in nets]
    words = ", ".join(f"`{name}`" for name in unknown or [n for n in nets if n not in given])
    return CRITERION.error(
        f"the model trains no net {words}" if unknown else f"the module of {words} is missing",
        reason=f"The nets that it trains are {', '.join(f'`{name}`' for name in nets)}.",
        fix=f"Call criterion.report({', '.join(f'{name}={name}' for name in nets)}).",
    )


def criterion_inputs(net: str, expected: Sequence[str]) -> Diagnostic:
    """A net on several columns has scores for each."""
    shown = ", ".join(f'"{name}": ...' for name in expected)
    return CRITERION.error(
        f"the net `{net}` is applied to several columns: {', '.join(expected)}",
        reason="Each has scores of its own.",
        fix=f"Give a mapping: criterion(rows, {net}={{{shown}}}).",
    )


def criterion_columns_of_a_batch(net: str, expected: Sequence[str]) -> Diagnostic:
    """A batch of a loader has the input of a net for each of its columns."""
    shown = ", ".join(f'"{name}": ...' for name in expected)
    return CRITERION.error(
        f"a batch of the loader does not have the columns {', '.join(expected)}, which `{net}` is applied to",
        reason="Without `inputs` its entries are the columns of the table, in order or by name.",
        fix=f"Say where they are: inputs=lambda batch: {{{shown}}}.",
    )


def criterion_evaluates_one_table(tables: Sequence[str]) -> Diagnostic:
    """A loader has rows of one table."""
    return CRITERION.error(
        f"nets are applied to rows of several tables: {', '.join(tables)}",
        reason="A loader of `evaluate` has rows of one.",
        fix="Take criterion.report(...), which evaluates the bound rows of all tables.",
    )


def criterion_shape(net: str, shape: Sequence[int], expected: Sequence[int]) -> Diagnostic:
    """There is one score for each row of the batch."""
    return CRITERION.error(
        f"the scores of `{net}` have shape {tuple(shape)}, not {tuple(expected)}",
        reason="A criterion takes one output of the net for each row, in the order of the rows.",
        fix="Compute the scores on the same batch as the row numbers, without averaging or dropping rows.",
    )


def criterion_rows(table: str, row: int, known: int) -> Diagnostic:
    """Rows are numbers of the bound table."""
    return CRITERION.error(
        f"row {row} is not in the table `{table}`, which has {known:,} rows",
        reason="Rows are counted from 0, in the order of the source that was bound; rows that `where`, "
        "`missing` or `holdout` left out have no estimates.",
        fix="Draw batches by criterion.sampler(), and number the dataset by fc.numbered(dataset). Rows of "
        f'another table are evaluated with it: criterion.evaluate(loader, data={{"{table}": frame}}, ...).',
    )


def criterion_row_numbers(table: str, reason: str) -> Diagnostic:
    """A batch names its rows by whole numbers."""
    return CRITERION.error(
        f"these are not row numbers of the table `{table}`: {reason}",
        reason="A batch is a list of at least one row number, counted from 0.",
        fix="Number the dataset by fc.numbered(dataset): its loader yields (rows, batch).",
    )


def criterion_labels(table: str, batches: int, drawn: int, few: int) -> Diagnostic:
    """A batch names its rows by their numbers, not by their labels."""
    return CRITERION.error(
        f"these look like labels, not like row numbers of the table `{table}`",
        reason=f"The first {batches} batches had {drawn:,} rows, but only {few:,} different numbers.",
        fix="Number the dataset by fc.numbered(dataset), and write `for rows, (x, y) in loader`: the first "
        "entry of a batch is then the row numbers.",
    )


def criterion_other_rows(table: str, why: str) -> Diagnostic:
    """Rows without a table of their own are those that were bound."""
    return CRITERION.error(
        f"the loader does not give the bound rows of the table `{table}`",
        reason=f"Without `data` the loader's numbers are rows of the bound table; but {why}.",
        fix=f'Give the table of these rows: criterion.evaluate(loader, data={{"{table}": frame}}, ...). '
        "If they are the bound rows all the same, transformed, say so by data={}.",
    )


def criterion_not_scores(net: str, kind: str) -> Diagnostic:
    """Scores are the outputs of a net, not the net."""
    return CRITERION.error(
        f"the scores of `{net}` are a {kind}, not a tensor",
        reason="A criterion takes outputs of the net, one for each row.",
        fix=f"Call criterion(rows, {net}=net(x)).",
    )


def criterion_not_finite(net: str, count: str, row: int, steps: int) -> Diagnostic:
    """Estimates that took a score that is not a number would keep it."""
    return CRITERION.error(
        f"{count} scores of `{net}` are not finite, after {steps:,} steps (row {row} is the first)",
        reason="Estimates would keep them for ever, so nothing has moved: the criterion is as before.",
        fix="Take a smaller learning rate or clip gradients (torch.nn.utils.clip_grad_norm_); look at the "
        "row; or catch this error and go on with the next batch.",
    )


def criterion_batch(batch: object) -> Diagnostic:
    """A batch has at least one row."""
    return CRITERION.error(
        f"batch={batch!r} is not a number of rows",
        reason="A batch has at least one row.",
        fix="Give a positive whole number: problem.criterion(batch=64).",
    )


def criterion_batch_size() -> Diagnostic:
    """The number of rows in a batch has another name here."""
    return CRITERION.error(
        "a criterion has no option `batch_size`",
        reason="The rows of a batch are counted by `batch`.",
        fix="Write problem.criterion(batch=64).",
    )


def criterion_rate(name: str) -> Diagnostic:
    """The steps of a training loop of your own are those of its optimizer."""
    return CRITERION.error(
        f"a criterion has no option `{name}`",
        reason="The steps are your optimizer's.",
        fix="Give it to the optimizer: torch.optim.AdamW(net.parameters(), lr=1e-3).",
    )


def criterion_precision() -> Diagnostic:
    """A training loop of your own chooses its precision itself: the net runs before the criterion is
    called.
    """
    return CRITERION.error(
        "a criterion has no option `precision`",
        reason="Your loop runs the net, so its precision is yours. The criterion takes scores of any type.",
        fix='Write with torch.autocast("cpu", dtype=torch.bfloat16): scores = net(x); then call the '
        "criterion outside of that block.",
    )


def criterion_sampler() -> Diagnostic:
    """A sampler that gives batches was taken for one that gives rows."""
    return CRITERION.error(
        "a dataset was asked for several rows at once",
        reason="criterion.sampler() gives batches of row numbers, not single ones.",
        fix="Write DataLoader(fc.numbered(data), batch_sampler=criterion.sampler(seed=0)).",
    )


def criterion_tables(tables: Sequence[str]) -> Diagnostic:
    """Each table that the model samples has rows in a batch."""
    shown = ", ".join(f'"{name}": rows' for name in tables)
    return CRITERION.error(
        f"the model draws rows of {', '.join(f'`{name}`' for name in tables)}",
        reason="A batch has rows of each.",
        fix=f"Give a mapping: criterion({{{shown}}}, ...).",
    )


def criterion_kind(net: str, kind: str) -> Diagnostic:
    """Scores have a gradient, so they are real numbers."""
    return CRITERION.error(
        f"the scores of `{net}` are of type {kind}",
        reason="Classes and other whole numbers have no gradient.",
        fix=f"Give the outputs of the net as they are: criterion(rows, {net}=net(x)), without argmax or "
        "rounding.",
    )


def criterion_device(net: str, there: object, here: object) -> Diagnostic:
    """A step reads the estimates and the scores on one device."""
    return CRITERION.error(
        f"the scores of `{net}` are on the device {there}, the criterion is on {here}",
        reason="Estimates, multipliers and data of the criterion are on the device of its buffers.",
        fix=f'Move it before the optimizer is made: criterion.to("{there}").',
    )


def criterion_overflow(steps: int, repaired: bool) -> Diagnostic:
    """A loss that is not a number has no gradient."""
    reason = "The scores are finite, but a formula of them is not: an exponential, a logarithm, a division."
    if repaired:
        reason += " Estimates that were not finite begin anew."
    return CRITERION.error(
        f"the loss is not finite, after {steps:,} steps",
        reason=reason,
        fix="Bound the scores (a tanh at the end of the net, a smaller learning rate, clipped gradients), or "
        "write the formula by `logmeanexp`, `logsumexp` or `log1pexp`; or catch this error and go on with "
        "the next batch.",
    )


def criterion_second_derivative() -> Diagnostic:
    """The gradient of a criterion is made of numbers."""
    return CRITERION.error(
        "the loss of a criterion cannot be differentiated twice",
        reason="Its gradient is the algorithm's: numbers, which go through estimates that are kept from "
        "step to step.",
        fix="Leave out create_graph=True. A penalty on a gradient of the net itself is your own: "
        "loss = criterion(rows, s=net(x)) + penalty. An optimizer that needs Hessians cannot be used.",
    )


def criterion_pickled() -> Diagnostic:
    """A criterion is made anew, and its state is loaded."""
    return CRITERION.error(
        "a criterion cannot be pickled",
        reason="It has compiled functions, and the data that were bound.",
        fix="Save criterion.state_dict(). Later bind the same data, and "
        "problem.criterion(batch=64).load_state_dict(state). A copy in this process is "
        "copy.deepcopy(criterion).",
    )


def criterion_state_of_others(table: str, why: str) -> Diagnostic:
    """Estimates belong to rows."""
    return CRITERION.error(
        f"the state is of other rows of the table `{table}`",
        reason=f"Estimates belong to rows by their numbers; {why}.",
        fix="Bind the rows that the state was saved with, in the same order. For other rows begin with a "
        "new criterion: only the net's weights go over.",
    )


def criterion_beyond_dataset(row: int, items: int) -> Diagnostic:
    """The dataset of a loader has the rows that were bound."""
    return CRITERION.error(
        f"row {row} is not in the dataset, which has {items:,} items",
        reason="criterion.sampler() draws rows of the table that was bound; the dataset has fewer.",
        fix="Number a dataset of the same rows. If you train on a part, bind that part: bind(D=subset, ...).",
    )


def criterion_not_a_dataset(kind: str) -> Diagnostic:
    """A dataset that is numbered has a length and items."""
    return CRITERION.error(
        f"a {kind} cannot be numbered",
        reason="Rows have numbers where a dataset has len() and items, dataset[5]: estimates belong to rows.",
        fix="Give such a dataset, not an iterator over one or a DataLoader: fc.numbered(loader.dataset).",
    )


def criterion_without_step(steps: int) -> Diagnostic:
    """A part of the algorithm is between the steps."""
    return CRITERION.warning(
        f"criterion.step() was not called in {steps:,} batches",
        reason="Multipliers, smoothing and the windows of estimates move there, and variables go back into "
        "their sets.",
        fix="Call criterion.step() after optimizer.step().",
    )


def criterion_in_evaluation(passes: int) -> Diagnostic:
    """Training is in train mode."""
    return CRITERION.warning(
        f"{passes} backward passes in evaluation mode",
        reason="After criterion.eval() estimates and multipliers do not move, so these gradients are those "
        "of old estimates.",
        fix="Call criterion.train() before you train on.",
    )


def criterion_of_constants(nets: Sequence[str], variables: Sequence[str]) -> Diagnostic:
    """A net learns if its scores have a gradient."""
    return CRITERION.warning(
        f"the scores of {', '.join(f'`{name}`' for name in nets)} have no gradient",
        reason=f"The loss moves {', '.join(f'`{name}`' for name in variables)} alone: the scores were "
        "detached, or computed under torch.no_grad().",
        fix="Compute the scores with gradients, or leave the weights out of the optimizer on purpose.",
    )


def criterion_unmoved(variables: Sequence[str], steps: int) -> Diagnostic:
    """Variables beside the nets are moved by an optimizer."""
    named = ", ".join(f"`{name}`" for name in variables)
    return CRITERION.warning(
        f"{named} did not move in {steps} steps",
        reason="A variable of the model beside its nets is a parameter of the criterion, and no optimizer "
        "moves it.",
        fix="Give both to the optimizer: AdamW([*net.parameters(), *criterion.parameters()]).",
    )


def criterion_in_order(table: str, batches: int, rows: Sequence[int]) -> Diagnostic:
    """Row numbers come with the rows of a batch."""
    return CRITERION.warning(
        f"the row numbers of {batches} batches are in the order of the table `{table}`, as in "
        f"{', '.join(map(str, rows))}, ...",
        reason="If the loader shuffles, these are not the numbers of its rows, and the gradient is wrong. If "
        "it does not, batches may lack rows of a set or of a group.",
        fix="Take batches and numbers from one place: DataLoader(fc.numbered(data), "
        "batch_sampler=criterion.sampler(seed=0)), and `for rows, (x, y) in loader`.",
    )


def criterion_never_drawn(table: str, first: int, last: int, drawn: int) -> Diagnostic:
    """Every row of a table is drawn from time to time."""
    return CRITERION.warning(
        f"rows {first:,} to {last:,} of the table `{table}` are in no batch of {drawn:,} rows",
        reason="The objective counts them. A Subset numbers its items from 0, so if the whole dataset was "
        "bound, these are other rows' numbers.",
        fix="Bind the rows that you train on, bind(D=subset, ...), and number the same subset.",
    )
