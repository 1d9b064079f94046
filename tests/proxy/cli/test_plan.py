"""`keyhole plan`: a list of questions held against the budget, and the file that makes all fit."""

from pathlib import Path
from typing import Any

from tests.worlds.wards import QUESTION


def test_a_list_is_planned_and_written_so_that_all_fit(policy: Path, run: Any, tmp_path: Path) -> None:
    listed, written = tmp_path / "board.sql", tmp_path / "fits.sql"
    listed.write_text(
        f"SET keyhole.tolerance = '0.4%';\n{QUESTION.format(1100)};\n\n{QUESTION.format(1200)} -- twice\n"
    )
    run("check")
    told = run("plan", str(listed), "--write", str(written))
    assert (told.status, told.err) == (0, "")
    assert "2 questions, in this order; nothing was asked, nothing is spent." in told.out
    assert "0 of 2 fit as wished. All that are questions fit with every tolerance times" in told.out
    assert max(map(len, told.out.splitlines())) <= 100
    again = run("plan", str(written), "--json").document
    assert [one["fits"] for one in again["questions"]] == [True, True]
    assert again["split"] is None
    assert [one["line"] for one in again["questions"]] == [3, 7]
    narrow = run("plan", str(written), "--max-epsilon", "0.01", "--as", "bob", "--json").document
    assert narrow["max_epsilon"] == 0.01
    assert not any(one["fits"] for one in narrow["questions"])
    assert run("plan", str(listed), "--write", str(written)).status == 2, "no older file is replaced"
    assert run("plan", str(tmp_path / "nothing.sql")).status == 2
    listed.write_text("SELECT 'open")
    assert "KH" in run("plan", str(listed)).err
