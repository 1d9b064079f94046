import tempfile
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.shadow.embedded import CONFIGURATION, OWNER, EmbeddedShadow


def test_the_configuration_is_in_force(shadow_address: ShadowAddress) -> None:
    with psycopg.connect(shadow_address.conninfo(user=OWNER, database="postgres")) as owner:
        for name, value in CONFIGURATION.items():
            assert owner.execute("SELECT current_setting(%s)", [name]).fetchone() == (value,)
        assert owner.execute("SHOW listen_addresses").fetchone() == ("",)


def test_only_its_owner_can_reach_the_socket(shadow_address: ShadowAddress) -> None:
    assert shadow_address.directory.stat().st_mode & 0o077 == 0


def test_a_path_too_long_for_a_socket_is_refused() -> None:
    with tempfile.TemporaryDirectory() as parent, pytest.raises(KeyholeError, match="KH406"):
        EmbeddedShadow(Path(parent) / ("x" * 100))
