"""Work beside the making of what it works on: everything, in order, and never far behind."""

from collections.abc import Iterator

import pytest

from mechanisms.side_by_side import work_in_pipeline


class Parts:
    """Parts that count how many of them are made and not worked on yet."""

    def __init__(self, *, failing_at: int | None = None) -> None:
        self.made = 0
        self.done: list[int] = []
        self.waiting: list[int] = []
        self._failing_at = failing_at

    def __iter__(self) -> Iterator[int]:
        for part in range(50):
            self.made += 1
            self.waiting.append(self.made - len(self.done))
            yield part

    def work(self, part: int) -> None:
        if part == self._failing_at:
            raise MemoryError
        self.done.append(part)


def test_each_part_is_worked_on_in_order_and_two_are_there_at_most() -> None:
    parts = Parts()
    work_in_pipeline(parts.work, parts)
    assert parts.done == list(range(50))
    assert max(parts.waiting) <= 2


@pytest.mark.parametrize("failing_at", [0, 7, 49])
def test_work_that_fails_fails_the_whole_and_no_more_than_the_next_is_made(failing_at: int) -> None:
    parts = Parts(failing_at=failing_at)
    with pytest.raises(MemoryError):
        work_in_pipeline(parts.work, parts)
    assert parts.made <= failing_at + 2
    assert parts.done == list(range(failing_at))


def test_what_cannot_be_made_fails_the_whole_once_the_work_before_it_is_done() -> None:
    done: list[int] = []

    def made() -> Iterator[int]:
        yield 1
        raise TimeoutError

    with pytest.raises(TimeoutError):
        work_in_pipeline(done.append, made())
    assert done == [1]


def test_nothing_is_done_where_there_is_nothing() -> None:
    work_in_pipeline(pytest.fail, [])
