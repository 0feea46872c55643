"""The command ``fccomodel``.

Exit status: 0 done; 1 ``format --check`` found a file that is not in the canonical layout; 2 something is wrong with what was
given (each finding with its code, on standard error); 130 interrupted twice.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import textwrap
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fccomodel
from fccomodel import diagnostics, files, options, pipeline
from fccomodel.diagnostics import Diagnostic, FccoError
from fccomodel.source import Source

DONE, DIFFERS, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
DEBUG = "FCCOMODEL_DEBUG"

EPILOG = """\
examples:
  fccomodel check   model.fcco
  fccomodel explain model.fcco --bind model.toml
  fccomodel solve   model.fcco --bind model.toml --seed 0 --budget 60s --out out
  fccomodel evaluate out --where "split == 'test'"

`fccomodel COMMAND --help` lists a command's options.
"""


# ----------------------------------------------------------------------------------------------------------- arguments
def parser() -> argparse.ArgumentParser:
    """The command line, one subcommand per function below."""
    top = argparse.ArgumentParser(
        prog="fccomodel",
        allow_abbrev=False,
        description="Write a composed stochastic optimisation problem as mathematics; get a solver, an answer and a KKT report.",
        epilog=EPILOG,
        formatter_class=_Help,
    )
    top.add_argument("--version", action="version", version=f"fccomodel {fccomodel.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str, detail: str = "") -> argparse.ArgumentParser:
        description = f"{summary[0].upper()}{summary[1:]}. {detail}".strip()
        made = commands.add_parser(name, help=summary, description=description, allow_abbrev=False, formatter_class=_Help)
        made.set_defaults(run=run)
        return made

    made = command("check", check, "check a model: syntax, names, shapes, domains", "Every error is reported at once.")
    made.add_argument("models", nargs="+", metavar="MODEL", help="a .fcco file; - reads standard input")
    _quiet(made)

    made = command("explain", explain, "show the structure found, its reasons, and the algorithm chosen", "Works without data.")
    _model(made)
    _binding(made)
    _solving(made)
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--why", metavar="SUBJECT", help="the chain of rules behind `objective` or a constraint's label")
    _quiet(made)

    made = command(
        "solve",
        solve,
        "solve a model and report on the answer",
        "The first Ctrl-C ends with the best point so far and its report; the second ends at once.",
    )
    _model(made)
    _binding(made)
    _solving(made)
    _showing(made)
    made.add_argument("--holdout", metavar="EXPR", help="leave these rows out and judge the answer by them: \"split == 'test'\"")
    made.add_argument("--sensitivity", action="store_true", help="how the optimum moves with each constraint's right side")
    made.add_argument("--out", type=Path, metavar="DIR", help="write result.json, variables.npz, solver.py and data.pt there")
    made.add_argument("--json", action="store_true", help="print result.json in place of the report")
    _quiet(made, "no progress, no lint notes, and one line in place of the report")

    made = command(
        "compare",
        compare,
        "run algorithms side by side on the same oracle budget",
        "Every value is computed from the problem as written. Ctrl-C ends with the runs that are done.",
    )
    _model(made)
    _binding(made)
    group = _solving(made, many=True)
    group.add_argument("--algorithms", required=True, metavar="A,B,C", help="which; see `fccomodel algorithms`")
    group.add_argument("--seeds", default="5", metavar="N|S,S,..", help="how many, or which (default 5)")
    group.add_argument("--jobs", type=int, metavar="N", help="processes (default: as many as there are processors)")
    group = made.add_argument_group("judging")
    group.add_argument("--tune", action="store_true", help="choose hyper-parameters from the papers' grids on held-out rows")
    group.add_argument("--validation", metavar="EXPR|SHARE", help="those rows: \"split == 'val'\", or a share (default 0.2)")
    group.add_argument("--test", metavar="EXPR", help="evaluate the answers on these rows too: \"split == 'test'\"")
    group.add_argument("--reference", type=float, metavar="F", help="the known optimal value: adds the gap to it")
    group.add_argument("--tolerance", type=float, default=1e-3, metavar="V", help="violation that counts as none (default 1e-3)")
    _showing(group)
    made.add_argument("--out", type=Path, metavar="DIR", help="write compare.json and compare.csv there")
    made.add_argument("--plot", action="store_true", help="write the curves there, as PNG and SVG")
    made.add_argument("--json", action="store_true", help="print compare.json in place of the table")
    _quiet(made, "no progress, no lint notes")

    made = command(
        "emit", emit, "write the standalone solver: Python with torch alone", "Its data is written beside it as data.pt."
    )
    _model(made)
    _binding(made)
    _solving(made)
    made.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the solver's file, say solver.py")
    _quiet(made)

    made = command(
        "evaluate",
        evaluate,
        "judge a stored answer, on other rows too",
        "Scaling, categories and groups are those that the answer was solved with.",
    )
    made.add_argument("result", type=Path, metavar="RESULT_DIR", help="a folder that `solve --out` wrote")
    _data(made)
    made.add_argument("--where", metavar="EXPR", help="choose rows, in place of the binding's own `where`: \"split == 'test'\"")
    _showing(made)
    made.add_argument("--json", action="store_true", help="print JSON")
    _quiet(made)

    made = command("format", format_files, "print a model in the canonical layout, comments kept")
    made.add_argument("models", nargs="+", metavar="MODEL", help="a .fcco file; - reads standard input")
    how = made.add_mutually_exclusive_group()
    how.add_argument("-w", "-i", "--write", "--in-place", dest="write", action="store_true", help="rewrite the files")
    how.add_argument("--check", action="store_true", help="change nothing; exit status 1 where a file would change")

    made = command("atoms", atoms, "list the functions of the language, or describe one")
    made.add_argument("name", nargs="?", metavar="NAME")
    made = command(
        "algorithms",
        algorithms,
        "list the algorithms, or describe one: what it needs, gives, and where it is from",
        "With --model, what each would need there.",
    )
    made.add_argument("name", nargs="?", metavar="NAME")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--model", metavar="MODEL", help="a .fcco file: how it meets each requirement")
    _binding(made)
    _quiet(made)
    return top


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help at 80 columns; a description is one paragraph, the examples stay as they are."""

    def __init__(self, prog: str):
        super().__init__(prog, max_help_position=26, width=80)
        self._action_max_length = 14  # argparse leaves the indentation of subcommands out of account

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(text, width, indent) if "\n" in text else textwrap.fill(text, width)


def _model(to: argparse.ArgumentParser) -> None:
    to.add_argument("model", metavar="MODEL", help="a .fcco file; - reads standard input")


def _quiet(to: argparse.ArgumentParser, text: str = "no lint notes") -> None:
    to.add_argument("-q", "--quiet", action="store_true", help=text)


def _showing(to: Any) -> None:
    to.add_argument("--show", action="append", default=[], metavar="NAME", help="report the value of this `let` too (repeatable)")


def _data(to: argparse.ArgumentParser) -> None:
    to.add_argument("--data-dir", type=Path, metavar="DIR", help="the folder that file names in the binding start from")
    to.add_argument("--data", action="append", default=[], metavar="NAME=FILE", help="bind a table or an array (repeatable)")
    to.add_argument(
        "--net", action="append", default=[], metavar="NAME=SPEC", help='"s=mlp(64, 64, activation=elu)" or s=nets.py:Mlp'
    )
    to.add_argument("--allow-python", action="store_true", help="run the Python file that a --net names")


def _binding(to: argparse.ArgumentParser) -> None:
    group = to.add_argument_group("binding")
    group.add_argument("--bind", type=Path, metavar="FILE", help="a binding file (TOML): sources, columns, encoding")
    _data(group)  # type: ignore[arg-type]
    group.add_argument("--param", action="append", default=[], metavar="NAME=VALUE", help="set a parameter (repeatable)")


def _solving(to: argparse.ArgumentParser, *, many: bool = False) -> Any:
    """The options of a run, or of many runs."""
    group = to.add_argument_group("solving")
    if not many:
        group.add_argument("--algorithm", metavar="NAME", help="in place of the one chosen; see `fccomodel algorithms`")
        group.add_argument("--seed", type=_value, metavar="S", help="of every random choice (default 0)")
    group.add_argument("--device", metavar="auto|cpu|cuda", help="where to run (default auto)")
    group.add_argument("--precision", metavar="float32|float64", help="of the steps; reports are always float64")
    group.add_argument("--budget", metavar="60s|5000it|1e6oracles", help="time, iterations or oracle calls")
    group.add_argument("--tol", type=_value, metavar="X", help="KKT residual to stop at (default 1e-6)")
    group.add_argument("--no-polish", dest="polish", action="store_false", default=None, help="no finish by passes over all rows")
    group.add_argument(
        "--unverified", action="store_true", default=None, help="run even where no algorithm's theorem covers the model"
    )
    group.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="any other option of the algorithm")
    return group


# ------------------------------------------------------------------------------------------------------------ commands
def check(args: argparse.Namespace) -> int:
    """``check MODEL...``: all errors of all files."""
    status = DONE
    for name in args.models:
        try:
            compiled = pipeline.compile_model(files.read_model(name))
        except FccoError as error:
            _show(error.diagnostics, error.source)
            status = BAD_INPUT
            continue
        _lint(compiled, args.quiet)
        print(f"{compiled.source.name}: ok ({_contents(compiled)})")
    return status


def _contents(compiled: pipeline.Compiled) -> str:
    """What a model holds, in a few words."""
    problem = compiled.problem
    goal = f"{problem.objective.sense} {problem.objective.label or 'objective'}"
    labels = [c.label for c in problem.constraints]
    return f"{problem.name}: {goal}" + (f" subject to {', '.join(labels)}" if labels else "")


def explain(args: argparse.Namespace) -> int:
    """``explain MODEL [--bind B]``."""
    from fccomodel.api import Explanation

    found = Explanation(planned=_plan(args, explaining=True))
    if args.json:
        _print_json(found.json)
    elif args.why:
        print(found.why(args.why))
    else:
        print(found)
    return DONE


def solve(args: argparse.Namespace) -> int:
    """``solve MODEL --bind B [--out DIR]``."""
    from fccomodel import display, results

    if args.out is not None:
        files.make_folder(args.out)
    planned = _plan(args, holdout=args.holdout)
    with display.progress(_console(sys.stderr), quiet=args.quiet) as progress:
        outcome = pipeline.solve(planned, progress, show=args.show, sensitive=args.sensitivity)
    record = results.save(outcome, args.out) if args.out is not None else None
    if args.json:
        _print_json(record or results.to_json(outcome))
    elif args.quiet:
        if planned.plan.unverified:
            print(display.unverified(planned.plan))
        print(f"{outcome.problem.name}: {outcome.report.objective:.6g}, {outcome.report.verdict}")
    else:
        _console(sys.stdout).print(display.outcome(outcome))
        print(f"\n written: {args.out}" if args.out is not None else "\n not written: --out DIR keeps the answer")
    return DONE


def compare(args: argparse.Namespace) -> int:
    """``compare MODEL --bind B --algorithms A,B --seeds N``."""
    from fccomodel import comparison
    from fccomodel.comparison import display, plots

    if args.plot:
        if args.out is None:
            raise files.fail("F0805", "--plot has nowhere to write", fix="Name a folder: --out DIR.")
        plots.require()
    if args.out is not None:
        files.make_folder(args.out)
    compiled, binding, chosen = _given(args)
    with display.progress(_console(sys.stderr), quiet=args.quiet) as progress:
        found = comparison.compare(
            compiled,
            binding,
            algorithms=[name.strip() for name in args.algorithms.split(",") if name.strip()],
            seeds=_seeds(args.seeds),
            chosen=chosen,
            tuning=args.tune,
            validation=_share(args.validation),
            test=args.test,
            show=args.show,
            reference=args.reference,
            tolerance=args.tolerance,
            jobs=args.jobs,
            progress=progress,
        )
    if args.out is not None:
        found.save(args.out, plot=args.plot)
    if args.json:
        _print_json(found.to_json())
    else:
        _console(sys.stdout).print(display.comparison(found))
        print(f"\n written: {args.out}" if args.out is not None else "\n not written: --out DIR keeps the record")
    return INTERRUPTED if found.interrupted else DONE


def _seeds(text: str) -> int | list[int]:
    """``5`` is how many; ``3,`` and ``0,1,7`` are which."""
    try:
        return [int(part) for part in text.split(",") if part.strip()] if "," in text else int(text)
    except ValueError:
        fix = "Write --seeds 5 or --seeds 0,1,7."
        raise files.fail("F0805", f"--seeds {text} is neither a number nor a list", fix=fix) from None


def _share(text: str | None) -> str | float | None:
    """A number is a share of the rows, all else a condition on them."""
    try:
        share = None if text is None else float(text)
    except ValueError:
        return text
    if share is not None and not 0 < share < 1:
        raise files.fail("F0805", f"--validation {text} is no share of the rows", fix="Write a number between 0 and 1.")
    return share


def emit(args: argparse.Namespace) -> int:
    """``emit MODEL --bind B -o FILE``."""
    from fccomodel import results

    if args.output.is_dir():
        raise files.fail(
            "F0806", f"Cannot write `{args.output}`: it is a folder", fix=f"Name a file: -o {args.output / 'solver.py'}"
        )
    files.make_folder(args.output.parent)
    data = results.write_program(pipeline.emit(_plan(args)), args.output)
    print(f"{args.output} (reads {data}); run it with: python {args.output}")
    return DONE


def evaluate(args: argparse.Namespace) -> int:
    """``evaluate RESULT_DIR [--data NAME=FILE] [--where EXPR]``."""
    from fccomodel import display, results

    found = results.evaluate(
        results.load(args.result),
        data=files.pairs(args.data, "--data"),
        nets=files.pairs(args.net, "--net"),
        data_dir=args.data_dir,
        where=args.where,
        allow_python=args.allow_python,
        show=args.show,
    )
    if args.json:
        _print_json(found.to_json())
    else:
        _console(sys.stdout).print(display.evaluation(found))
    return DONE


def format_files(args: argparse.Namespace) -> int:
    """``format MODEL...``: print, rewrite, or only compare."""
    from fccomodel.format import format as canonical

    status = DONE
    for name in args.models:
        source = files.read_model(name)
        text = canonical(source)
        if args.check:
            if text != source.text:
                print(f"{source.name}: not in the canonical layout", file=sys.stderr)
                status = DIFFERS
        elif args.write and name != "-":
            if text != source.text:
                files.write_text(Path(name), text)
        else:
            sys.stdout.write(text)
    return status


def atoms(args: argparse.Namespace) -> int:
    """``atoms [NAME]``."""
    from fccomodel import catalogue

    print(catalogue.atoms(args.name))
    return DONE


def algorithms(args: argparse.Namespace) -> int:
    """``algorithms [NAME] [--model MODEL]``."""
    from fccomodel import catalogue

    found = None
    if args.model is not None:
        compiled, binding, chosen = _given(args)
        found = pipeline.candidates(compiled, binding, chosen)
    if args.json:
        _print_json(catalogue.algorithms_json(args.name, found))
    else:
        print(catalogue.algorithms(args.name, found))
    return DONE


# -------------------------------------------------------------------------------------------------------------- shared
def _plan(args: argparse.Namespace, *, explaining: bool = False, holdout: str | None = None) -> pipeline.Planned:
    """From the command line to a plan."""
    compiled, binding, chosen = _given(args)
    return pipeline.plan(compiled, binding, chosen, explaining=explaining, holdout=holdout)


def _given(args: argparse.Namespace) -> tuple[pipeline.Compiled, pipeline.Binding, options.Origins]:
    """The model, its binding and the options that the command line names; lint notes are printed on the way."""
    given: dict[str, Any] = {name: _value(text) for name, text in files.pairs(getattr(args, "option", []), "--option").items()}
    names = ("algorithm", "unverified", "polish", "tol", "seed", "device", "precision", "budget")
    own = {name: getattr(args, name, None) for name in names}
    for name, value in own.items():
        if value is not None and given.setdefault(name, value) != value:
            raise files.fail(
                "F0805", f"--{name} {value} and --option {name}={given[name]} contradict each other", fix="Give one of them."
            )
    binding = pipeline.Binding(
        spec=args.bind,
        data=files.pairs(args.data, "--data"),
        params=files.numbers(args.param),
        nets=files.pairs(args.net, "--net"),
        data_dir=args.data_dir,
        allow_python=args.allow_python,
    )
    compiled = pipeline.compile_model(files.read_model(args.model))
    _lint(compiled, args.quiet, getattr(args, "show", ()))
    return compiled, binding, options.resolve(given, compiled.problem.options, options.configuration())


def _value(text: str) -> Any:
    """An option's value as JSON reads it (numbers, true, false), and otherwise the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _lint(compiled: pipeline.Compiled, quiet: bool, shown: Sequence[str] = ()) -> None:
    """The lint notes; a `let` that is to be shown is not unused."""
    found = [note for note in compiled.problem.warnings if note.unused not in shown]
    if found and not quiet:
        _show(found, compiled.problem.source)


def _show(found: Sequence[Diagnostic], source: Source | None) -> None:
    """Diagnostics on standard error, in colour on a terminal."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    print(diagnostics.render(found, source, colour=colour).rstrip("\n"), file=sys.stderr)
    errors = [d for d in found if d.severity == "error"]
    if len(errors) > 1 or errors and not sys.stderr.isatty():
        print(f"\n{_in_a_line(errors, source)}", file=sys.stderr)


def _in_a_line(errors: Sequence[Diagnostic], source: Source | None) -> str:
    """The last line of an error's output, for logs that keep no other."""
    first = errors[0]
    place = ""
    if source is not None and first.span is not None:
        place = "{}:{}:{} ".format(source.name, *source.place(first.span))
    count = "1 error: " if len(errors) == 1 else f"{len(errors)} errors, the first: "
    return f"{count}{first.code} {place}{' '.join(first.message.split())}"


def _print_json(record: dict[str, Any]) -> None:
    print(json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False))


def _console(file: Any) -> Any:
    """A console 80 columns wide at most: a report reads the same in a wide window and in a file."""
    from rich.console import Console

    from fccomodel.display import WIDTH

    console = Console(file=file, highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; whatever goes wrong ends in a message and an exit status, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        args = parser().parse_args(argv)
        status = args.run(args)
        sys.stdout.flush()
        return status
    except FccoError as error:
        _show(error.diagnostics, error.source)
        return BAD_INPUT
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop
        print("fccomodel: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: `fccomodel ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:  # noqa: BLE001  the last resort: a defect of the compiler
        if os.environ.get(DEBUG):
            traceback.print_exc()
        _show([_defect(error)], None)
        return BAD_INPUT


def _defect(error: Exception) -> Diagnostic:
    """The message for what should not have happened."""
    frame = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = f" ({Path(frame.filename).name}:{frame.lineno})" if frame else ""
    return diagnostics.error(
        "F0001",
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}{place}",
        reason="This is a defect of fccomodel, not of your model.",
        fix=f"Please report it with the model and its binding; {DEBUG}=1 shows the traceback.",
    )
