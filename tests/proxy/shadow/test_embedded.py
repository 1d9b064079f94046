import re
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.embedded import CONFIGURATION, EmbeddedShadow


def test_the_configuration_is_in_force(shadow_address: ShadowAddress) -> None:
    with psycopg.connect(shadow_address.make_conninfo(user=OWNER, database="postgres")) as owner:
        for name, value in CONFIGURATION.items():
            assert owner.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)
        assert owner.execute("SHOW listen_addresses").fetchone() == ("",)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_every_session_has_its_share_of_memory_and_of_files(shadow_address: ShadowAddress) -> None:
    with psycopg.connect(shadow_address.make_conninfo(user=OWNER, database="postgres")) as owner:
        limits = Path(f"/proc/{owner.info.backend_pid}/limits").read_text()
        assert re.search(rf"Max data size +{512 << 20} +{512 << 20} ", limits)
        assert owner.execute("SHOW temp_file_limit").fetchone() == ("512MB",)


def test_no_list_of_what_holds_memory_is_kept_anywhere(shadow_address: ShadowAddress) -> None:
    """PostgreSQL prints one, with pieces of statements, whenever memory is short: nothing may grow from it."""
    directory = shadow_address.directory
    with psycopg.connect(shadow_address.make_conninfo(user=OWNER, database="postgres"), autocommit=True) as owner:
        for _ in range(3):
            with pytest.raises(psycopg.errors.OutOfMemory):
                owner.execute("SELECT repeat('x', 1000000000)")
        assert owner.execute("SELECT pg_current_logfile()").fetchone() == ("/dev/null",)
    assert (directory / "log").stat().st_size < 1000
    assert not (directory / "pg_log").exists()


def test_only_its_owner_can_reach_the_socket(shadow_address: ShadowAddress) -> None:
    assert shadow_address.directory.stat().st_mode & 0o077 == 0


def test_a_path_too_long_for_a_socket_is_refused() -> None:
    with tempfile.TemporaryDirectory() as parent, pytest.raises(KeyholeError, match="KH406"):
        EmbeddedShadow(Path(parent) / ("x" * 100))


def test_a_shadow_that_cannot_start_says_why() -> None:
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
        shadow = EmbeddedShadow(Path(parent) / "shadow", connections=0)
        with pytest.raises(KeyholeError, match="KH406") as refused:
            shadow.start()
        assert refused.value.detail is not None
        assert "FATAL" in refused.value.detail


def test_a_shadow_that_cannot_be_made_is_refused() -> None:
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
        shadow = EmbeddedShadow(Path(parent) / "shadow")
        (Path(parent) / "shadow" / "of somebody else").touch()
        with pytest.raises(KeyholeError, match="KH406"):
            shadow.start()
