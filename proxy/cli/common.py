"""The parts that all commands share: options, refusals as psql prints them, output, and the owner's open ledger.

Every command imports this file before it reads its arguments. The ledger and rich are therefore imported only when
needed.
"""

import getpass
import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from planner.errors import KeyholeError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from accountant.balances.dependencies import Knowledge
    from accountant.ledger import Ledger
    from proxy.open_policy.service import Service
    from proxy.report.heat_map import HeatMap

PolicyPath = Annotated[Path, typer.Option("--policy", "-p", help="The policy file.", envvar="KEYHOLE_POLICY")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
By = Annotated[str | None, typer.Option("--by", help="Who decides; the operating system's user if not given.")]
Progress = Annotated[
    bool, typer.Option("--progress", help="Report progress on standard error, even if that is no terminal.")
]
Why = Annotated[str, typer.Option("--why", help="Why, for the record.")]
DEFAULT_POLICY = Path("keyhole.toml")
_Read = TypeVar("_Read")
PIPE_WIDTH = 200  # columns where no terminal says how many: nothing wraps in a pipe or a file, so tables may be wide
_HINTS = {"epsilon": "EPSILON", "id": "ID"}  # what is mistyped where it is no flag
_STOPPED = 128 + signal.SIGINT  # as a shell has it
_PICTURES = frozenset({".svg", ".html", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"})  # formats by file name


@contextmanager
def print_refusals(*, as_json: bool, sql: str | None = None) -> Iterator[None]:
    """Print a refusal as psql does, or as a problem document, and exit with status 1.

    For a mistyped argument, print its name. If Ctrl-C stops a release, print what stays charged and exit with status
    130.
    """
    from proxy.owner.mistyped import Mistyped

    try:
        yield
    except KeyboardInterrupt as stopped:
        from proxy.release.release_refusals import StoppedRelease

        if not isinstance(stopped, StoppedRelease):
            raise
        print(stopped, file=sys.stderr)
        raise typer.Exit(_STOPPED) from None
    except KeyholeError as error:
        from proxy.report.report_refusals import write_as_psql
        from proxy.rest.problems import make_problem

        if as_json:
            print(json.dumps(make_problem(error), indent=2, ensure_ascii=False))
        else:
            print(write_as_psql(error, sql=sql), file=sys.stderr)
        raise typer.Exit(1) from None
    except Mistyped as error:
        raise typer.BadParameter(error.problem, param_hint=_HINTS.get(error.field, f"--{error.field}")) from None


@contextmanager
def open_owner_ledger(policy: Path, *, knowledge: "Knowledge | None" = None, trust: bool = False) -> "Iterator[Ledger]":
    """Open the ledger of a policy for its owner, without source and pins.

    `knowledge` is what is publicly known of the tables' columns. With `trust` the ledger is not checked against its
    witness. Raise KH001 to KH005, KH009 and KH016.
    """
    from accountant.balances.dependencies import assume_nothing
    from accountant.errors import LedgerUnavailable
    from planner.policy.file import Policy
    from proxy.open_policy.service import open_ledger
    from proxy.open_policy.service_refusals import report_unreadable_ledger

    with open_ledger(Policy.load(policy), knowledge=knowledge or assume_nothing, is_trusted=trust) as ledger:
        try:
            yield ledger
        except LedgerUnavailable as error:
            raise report_unreadable_ledger(error) from None


@contextmanager
def show_work(what: str) -> Iterator[None]:
    """Show a description of the work on standard error, if that is a terminal, until the block ends."""
    console = _make_error_console()
    with console.status(f"{what} ...") if console.is_terminal else nullcontext():
        yield


@contextmanager
def show_progress(what: str, *, total: int, asked: bool) -> Iterator[Callable[[str], None]]:
    """Show on standard error how many of `total` parts are done: a bar in a terminal, else lines if `asked`.

    Yields a function to call with each part's name when it is done.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    console = _make_error_console()
    if not console.is_terminal:
        numbers = count(1)
        yield lambda part: print(f"{next(numbers)} of {total}: {part}", file=sys.stderr, flush=True) if asked else None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda part: bar.update(task, advance=1, description=f"{what}, done: {part}")


def read_typed_flag(read: Callable[[str], _Read], text: str, flag: str) -> _Read:
    """Return the parsed text of a flag. Raise `typer.BadParameter` if `read` raises ValueError."""
    try:
        return read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


def read_decider(name: str | None) -> str:
    """Return the decider's name for the ledger. Raise `typer.BadParameter` if there is no name."""
    try:
        by = getpass.getuser() if name is None else name.strip()
    except (KeyError, OSError):
        by = ""
    if not by:
        raise typer.BadParameter("say who decides", param_hint="--by")
    return by


def read_reason(why: str) -> str:
    """Return the typed reason. Raise `typer.BadParameter` if it is empty."""
    from proxy.owner.mistyped import Mistyped, read_reason

    try:
        return read_reason(why)
    except Mistyped as error:
        raise typer.BadParameter(error.problem, param_hint="--why") from None


def find_identity(prefix: str, identities: Iterable[str], *, hint: str) -> str:
    """Return the identity that starts with `prefix`. Raise `typer.BadParameter` if no identity does, or several do."""
    found = sorted({identity for identity in identities if prefix and identity.startswith(prefix)})
    if len(found) != 1:
        problem = "there is none of that id" if not found else f"{len(found)} start with that; give more characters"
        raise typer.BadParameter(problem, param_hint=hint)
    return found[0]


def check_new_file(path: Path, *, hint: str) -> Path:
    """Return the path if no file is there. Raise `typer.BadParameter` otherwise, so that no older copy is replaced."""
    if path.exists():
        raise typer.BadParameter(f"{path} exists; name a new file", param_hint=hint)
    return path


def write_svg(path: Path, picture: str) -> None:
    """Write a picture to a file, replacing any existing one.

    Raise KH011 if the file's name ends in another format's suffix, and `typer.BadParameter` if the file cannot be
    written.
    """
    _check_picture_name(path, form="SVG")
    _write_file(path, picture, hint="--svg")


def write_html(path: Path, page: str) -> None:
    """Write a page to a file, replacing it. Raise as `write_svg` does."""
    _check_picture_name(path, form="HTML")
    _write_file(path, page, hint="--html")


def check_page(path: Path | None) -> None:
    """Check that a page can be written there, before anything is charged.

    Raise KH011 for another format's suffix, `typer.BadParameter` if the file cannot be written.
    """
    if path is None:
        return
    _check_picture_name(path, form="HTML")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{path} cannot be written (there is no such folder)", param_hint="--html")


def _check_picture_name(path: Path, *, form: Literal["SVG", "HTML"]) -> None:
    ending = f".{form.lower()}"
    if path.suffix.lower() in _PICTURES - {ending}:
        raise KeyholeError(
            "KH011",
            f"pictures are written as {form}, and {path.name} is the name of another format",
            hint=f"Write --{form.lower()} {path.with_suffix(ending).name}: every browser opens it, and prints or "
            "converts it.",
        )


def _write_file(path: Path, text: str, *, hint: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise make_unwritable_error(path, error, hint=hint) from None


def make_unwritable_error(path: Path, error: OSError, *, hint: str) -> typer.BadParameter:
    """Return the error for a file that cannot be written."""
    return typer.BadParameter(f"{path} cannot be written ({error.strerror})", param_hint=hint)


def print_left_out_tables(service: "Service") -> None:
    """Print on standard error the policy's tables that a read-only service leaves out."""
    catalog = service.catalog
    known = {one.name for one in catalog.tables} | {one.name for one in catalog.public_tables}
    for name in service.policy.tables:
        if name not in known:
            print(f"tables.{name} was never pinned and is left out: run keyhole check", file=sys.stderr)


def print_json(document: Any) -> None:
    """Print a JSON document."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


def print_renderable(*shown: "RenderableType") -> None:
    """Print objects of rich. The width is that of the terminal, or wide if the output is no terminal."""
    _make_console().print(*shown, sep="\n")


def print_heat_maps(maps: "Sequence[HeatMap]", *, most_rows: int) -> None:
    """Print heat maps that fill the width of the terminal."""
    from proxy.report.heat_map_terminal import print_maps

    console = _make_console()
    if not maps:
        console.print("No group was ever asked about.")
        return
    console.print(*print_maps(maps, width=console.width, most_rows=most_rows), sep="\n")


def print_picture(draw: "Callable[[int], Iterator[RenderableType]]") -> None:
    """Print a picture, drawn for the width of the terminal in characters."""
    console = _make_console()
    console.print(*draw(console.width), sep="\n")


def _make_console() -> "Console":
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, markup=False, emoji=False, highlight=False)


def _make_error_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)
