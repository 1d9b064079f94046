"""Keys among the cells that they are charged to, however the ledger orders its columns."""

from itertools import product

import numpy as np
import pytest

from proxy.monitors.places import CellMapping

# the question's keys b, a; the ledger's columns a, b, and c, which WHERE narrows to three values
_PLACES = CellMapping(shape=(2, 4, 3), axes=(1, 0), sizes=(4, 2))


def test_a_key_is_told_by_the_first_of_its_cells() -> None:
    marked = np.zeros((4, 2), dtype=np.bool_)
    marked[3, 0] = marked[1, 1] = True
    cells = {(0, 3, 0), (1, 1, 0)}
    places = [place for place, at in enumerate(product(range(2), range(4), range(3))) if at in cells]
    assert list(_PLACES.find_cells(marked.reshape(-1))) == places
    assert _PLACES.mark_keys(places).tolist() == marked.reshape(-1).tolist()


def test_what_a_key_lost_all_its_cells_lost() -> None:
    losses = np.arange(8) / 4
    laid = _PLACES.expand_to_cells(losses)
    for at, (a, b, _) in enumerate(product(range(2), range(4), range(3))):
        assert laid[at] == losses.reshape(4, 2)[b, a] * 10**9


def test_losses_are_rounded_up() -> None:
    assert CellMapping((1,), (0,), (1,)).expand_to_cells(np.array([1e-9 + 1e-15])).tolist() == [2]


@pytest.mark.parametrize("marked", [True, False])
def test_without_keys_the_whole_table_is_one(marked: bool) -> None:
    places = CellMapping(shape=(), axes=(), sizes=())
    assert places.find_cells(np.array([marked])) == ((0,) if marked else ())
    assert places.mark_keys([0] if marked else []).tolist() == [marked]
    assert places.expand_to_cells(np.array([0.5])).tolist() == [500_000_000]
