"""Cases that assert a line or two: one test goes through all of them in turn. As a test of its own each would cost
some four milliseconds in the processes that collect, run and tell it, more than most of them take."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

Test = Callable[..., None]


def in_turn(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call a test with each row in turn, as `parametrize` makes a test of each; what fails says in which row.

    Fixtures are the same for all rows, so none may keep what a row leaves.
    """
    parted = [one.strip() for one in names.split(",")] if isinstance(names, str) else list(names)
    cells = [dict(zip(parted, row if len(parted) > 1 else (row,), strict=True)) for row in rows]
    assert cells, f"no rows of {names}"

    def go_through(test: Test) -> Test:
        whole = inspect.signature(test)

        @wraps(test)
        def call(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for row in cells:
                try:
                    test(**fixtures, **row)
                except Exception as failure:
                    failure.add_note(f"in the row {row!r}")
                    failures.append(failure)
            if len(failures) > 1:
                raise ExceptionGroup(f"{len(failures)} of {len(cells)} rows", failures)
            if failures:
                raise failures[0]

        left = [one for name, one in whole.parameters.items() if name not in parted]
        assert len(left) + len(parted) == len(whole.parameters), f"{test.__name__} does not take {names}"
        vars(call)["__signature__"] = whole.replace(parameters=left)
        return call

    return go_through
