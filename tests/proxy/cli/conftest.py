"""The `keyhole` command in this process, on the wards."""

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.cli import main as cli
from tests.worlds.house import check_once
from tests.worlds.wards import install


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = install(tmp_path)
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    return path


@pytest.fixture
def checked(policy: Path) -> Path:
    """The wards as `keyhole check` leaves them."""
    return check_once(policy)


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status = status
        self.out = out
        self.err = err

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Any:
    def running(*arguments: str) -> Ran:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        status = ended.value.code
        assert isinstance(status, int)
        assert "Traceback" not in out + err
        return Ran(status, out, err)

    return running
