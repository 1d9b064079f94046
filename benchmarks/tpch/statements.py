"""The statements of `questions.sql`, with thresholds that grow with the scale and can be relaxed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_STATEMENT = re.compile(r"^-- (\d+)( instead)?\n(.*?)(?=^-- \d|\Z)", re.MULTILINE | re.DOTALL)
_THRESHOLD = re.compile(r"\{([0-9.]+)(!?)\}")
PUBLIC = frozenset({2, 11, 16})
"""Queries that read public tables alone: they are answered as they stand."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A query by its number, as it is asked; `instead`: as a refusal of the official text proposes it."""

    number: int
    instead: bool
    text: str

    @property
    def private(self) -> bool:
        """Return True if it reads a private table."""
        return self.number not in PUBLIC

    def write_sql(self, scale: float, *, slack: float = 0.0) -> str:
        """Return the SQL at a scale, its thresholds lower by a part of each."""

        def write(found: re.Match[str]) -> str:
            return f"{float(found[1]) * (1 if found[2] else scale) * (1 - slack):.10g}"

        return _THRESHOLD.sub(write, self.text)


def read_statements() -> Iterator[Statement]:
    """Read the statements, in the order of their numbers."""
    text = Path(__file__).with_name("questions.sql").read_text(encoding="utf-8")
    for number, instead, sql in _STATEMENT.findall(text):
        yield Statement(int(number), bool(instead), sql.strip())
