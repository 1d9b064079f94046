"""The tests that `make test` leaves to `make test-thorough`, because of what they take of the processor.

`tests/long_tests.toml` names them: those that start, kill or reload whole processes over and over, that sample, that
ask another engine what a first one was asked, and some that take a third of a second and more. What stays is to reach
every line of the project that all reach, of `mechanisms`, `accountant`, functionals and logins twice; it has every file
by which a mutant of `tests/mutants` is to be noticed, most tests of each folder, and, of what is promised about rows,
budgets, crashes and who may see what, each test on each engine once. Of a test with many cases `make test` runs as many
as its number there, spread over all; where texts stand for the number, those cases are left out that begin so.
`--costs` shows what each test takes.
"""

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.effort import spread

_TESTS = Path(__file__).parent
_NAMED = _TESTS / "long_tests.toml"

LONG: dict[str, dict[str, int | list[str]]] = tomllib.loads(_NAMED.read_text(encoding="utf-8"))


def long_tests(items: Iterable[pytest.Item]) -> list[pytest.Function]:
    """Return those of all collected tests that are left out."""
    named: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function):
            file = item.path.relative_to(_TESTS).as_posix()
            if item.originalname in LONG.get(file, ()):
                named.setdefault((file, item.originalname), []).append(item)
    return [item for (file, name), cases in named.items() for item in _list_left_out(cases, LONG[file][name])]


def _list_left_out(cases: Sequence[pytest.Function], kept: int | list[str]) -> list[pytest.Function]:
    if isinstance(kept, int):
        stay = {one.name for one in spread(cases, kept)}
        return [one for one in cases if one.name not in stay]
    begun = tuple(f"{cases[0].originalname}[{text}" for text in kept)
    return [one for one in cases if one.name.startswith(begun)]
