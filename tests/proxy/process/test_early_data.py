"""A shadow's data that are made before it: one shadow has them, and what nobody took is gone."""

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.process.early_data import EarlyShadowData
from proxy.shadow.address import OWNER
from proxy.shadow.embedded import EmbeddedShadow


def asked(shadow: EmbeddedShadow) -> object:
    with psycopg.connect(shadow.address.make_conninfo(user=OWNER, database="postgres")) as connection:
        return connection.execute("SELECT 1").fetchone()


def test_a_shadow_runs_on_early_data_which_end_with_it() -> None:
    early = EarlyShadowData()
    with early.hand_over_directory() as directory:
        made = (directory / "PG_VERSION").stat().st_ino
        with EmbeddedShadow(directory, connections=20) as shadow:
            assert asked(shadow) == (1,)
        assert (directory / "PG_VERSION").stat().st_ino == made
    assert not directory.parent.exists()
    early.close()


def test_what_no_shadow_took_is_gone() -> None:
    early = EarlyShadowData()
    early.close()
    assert not early._directory.parent.exists()


def test_a_shadow_makes_its_own_data_where_early_ones_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: EmbeddedShadow) -> None:
        raise KeyholeError("KH406", "the shadow database could not be made")

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedShadow, "make_data", fail)
        early = EarlyShadowData()
        early._making.join()
    with early.hand_over_directory() as directory:
        assert not (directory / "PG_VERSION").exists()
        with EmbeddedShadow(directory, connections=20) as shadow:
            assert asked(shadow) == (1,)
