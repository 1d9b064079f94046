"""The benchmark of starts runs what it names, and stops at a command that fails. Nothing is timed."""

from pathlib import Path

import pytest

from benchmarks.commands.start import NOTHING, list_commands, measure, write_report


def test_each_command_is_started_and_stands_beside_an_empty_python(tmp_path: Path) -> None:
    everything = list_commands(tmp_path / "keyhole.toml")
    few = {name: everything[name] for name in (NOTHING, "--version")}
    least = measure(few, rounds=1)
    assert min(least.values()) > 0
    empty, version = write_report(least)
    assert empty.startswith(NOTHING)
    assert empty.endswith(" 1.0")
    assert version.startswith("--version ")
    with pytest.raises(RuntimeError, match="ended with 1"):
        measure({"budget": everything["budget"]}, rounds=0)  # there is no policy
