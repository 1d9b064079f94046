"""The place of a released file, and the SQL that makes a public table of it. Every command that writes one uses it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from planner.parser.lexer import quote_identifier
from planner.policy.file import Policy
from planner.policy.sections import SourceKind
from proxy.cli.common import make_unwritable_error
from proxy.release.published_file import FileForm, lock_folder
from proxy.report.terminal import make_visible

_FOLDER = "releases"  # beside the policy
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")  # a table's, which needs no quotes, and a file's, which leads nowhere else
_HINT = "--out"


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The path of the file to be written, and the kind of source in which it will be a table."""

    path: Path
    form: FileForm
    kind: SourceKind

    @property
    def name(self) -> str:
        """Return the name of the table."""
        return self.path.stem

    @property
    def file(self) -> str:
        """The file's path from the policy's folder."""
        return f"{_FOLDER}/{self.path.name}"

    def check_new(self) -> None:
        """Raise `typer.BadParameter` if the file exists already, before anything is charged."""
        if self.path.exists() or self.path.is_symlink():
            raise self._refuse_existing_file()

    def check_folder(self) -> None:
        """Raise `typer.BadParameter` if files cannot be written there, before anything is charged."""
        with self.explain_write_errors(), lock_folder(self.path.parent):
            pass

    @contextmanager
    def explain_write_errors(self) -> Iterator[None]:
        """Turn an error of writing the file into `typer.BadParameter`, which says why."""
        try:
            yield
        except FileExistsError:
            raise self._refuse_existing_file() from None
        except OSError as error:
            raise make_unwritable_error(self.path, error, hint=_HINT) from None

    def _refuse_existing_file(self) -> typer.BadParameter:
        return typer.BadParameter(f"{self.file} exists; name a new file", param_hint=_HINT)


def check_name(name: str) -> None:
    """Raise `typer.BadParameter` for a name that cannot be a file's name."""
    if not _NAME.fullmatch(name):
        raise typer.BadParameter("small letters, digits and _, a letter first, at most 63 of them", param_hint=_HINT)


def find_place(policy: Path, name: str, form: FileForm | None) -> FilePlace:
    """Return the place of a released table of that name.

    Raise KH001 to KH005, and `typer.BadParameter` for a private table's name.
    """
    loaded = Policy.load(policy)
    if name in loaded.private_tables:
        raise typer.BadParameter("the policy has a private table of that name", param_hint=_HINT)
    kind = loaded.source.kind
    written = form or (FileForm.CSV if kind == "postgresql" else FileForm.PARQUET)
    return FilePlace(loaded.directory / _FOLDER / f"{name}.{written}", written, kind)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that was written, or that had been written before. `rows` is None if they were not counted."""

    place: FilePlace
    types: tuple[tuple[str, str], ...]
    file_hash: str
    rows: int | None

    def lines(self) -> Iterator[str]:
        """Yield the lines for a terminal. Text to paste into the policy comes last."""
        yield f"SHA-256 {self.file_hash}"
        yield ""
        yield from (f"# {line}" for line in self._load_table())
        yield from self._write_snippet()
        yield "# then: keyhole check --confirm"

    def make_document(self) -> dict[str, Any]:
        """Return the file's name, hash and rows, and the lines that declare it, as a JSON document."""
        return {
            "file": self.place.file,
            "sha256": self.file_hash,
            "rows": self.rows,
            "load": list(self._load_table()),
            "policy": "\n".join(self._write_snippet()),
        }

    @property
    def _read_by_source(self) -> bool:
        return self.place.kind == "duckdb" or (self.place.kind == "spark" and self.place.form is FileForm.PARQUET)

    def _load_table(self) -> Iterator[str]:
        """Yield lines on loading the file into a table of the source, in SQL if possible; none if it reads files."""
        if self._read_by_source:
            return
        if self.place.kind == "spark":
            yield "Spark would find the types of a CSV file in its rows: make a table of the catalog of it first."
            return
        name = quote_identifier(self.place.name)
        columns = ", ".join(f"{quote_identifier(column)} {type_name}" for column, type_name in self.types)
        yield f"CREATE TABLE {name} ({make_visible(columns)});"
        if self.place.form is FileForm.CSV:
            yield f"\\copy {name} FROM '{self.place.file}' WITH (FORMAT csv, HEADER)"

    def _write_snippet(self) -> Iterator[str]:
        yield f"[tables.{self.place.name}]"
        yield "public = true"
        if self._read_by_source:
            yield f'relation = "{self.place.file}"'
