"""`keyhole check` and `keyhole simulate --monitor`: what a monitor costs, and why one is refused."""

from pathlib import Path
from typing import Any

MONITOR = """
[monitors.full]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 400"
window = { column = "seen", length = "1 day" }
every = "1 hour"
from = "2026-01-01"
until = "2026-01-28"
"""


def _with_monitor(policy: Path, section: str = MONITOR, *, refresh: str = "live") -> None:
    text = policy.read_text(encoding="utf-8").replace(
        'refresh = "static"', f'refresh = "{refresh}"\nappend_only = true'
    )
    policy.write_text(f"{text}\n[tables.visits.columns.seen]\n{section}", encoding="utf-8")
    data = policy.parent / "visits.csv"
    head, *rows = data.read_text(encoding="ascii").splitlines()
    seen = [f"{row},2026-01-{number % 28 + 1:02} 08:00:00" for number, row in enumerate(rows)]
    data.write_text("\n".join([f"{head},seen", *seen]) + "\n", encoding="ascii")


def test_check_lists_monitors_with_their_price(policy: Path, run: Any) -> None:
    _with_monitor(policy)
    told = run("check")
    assert told.status == 0
    line = next(line for line in told.out.splitlines() if line.startswith("monitor full:"))
    assert line == "monitor full: 3 groups, 28 windows of 1 day, each 24 looks; at most 0.18 epsilon a group and window"
    (found,) = run("check", "--json").document["monitors"]
    assert found["looks_per_window"] == 24
    assert 0.172 < found["epsilon_per_group_and_window"] < 0.173


def test_check_tells_what_keeps_a_monitor_from_being_started(policy: Path, run: Any) -> None:
    _with_monitor(policy, MONITOR.replace("> 400", "> 40") + 'tolerance = "5%"\n')
    (warning,) = [line for line in run("check").out.splitlines() if "monitors.full" in line]
    assert "above budget.epsilon_per_query (0.5): write tolerance = " in warning
    assert 'or  alert = "close"' not in warning
    percent = warning.split('tolerance = "')[1].split("%")[0]
    policy.write_text(policy.read_text().replace('tolerance = "5%"', f'tolerance = "{percent}%"'))
    assert "monitors.full" not in run("check").out


def test_check_tells_of_a_monitor_that_is_refused(policy: Path, run: Any) -> None:
    _with_monitor(policy, refresh="explicit")
    told = run("check")
    assert "monitor full: refused (KH603)" in told.out
    assert 'Write refresh = "live" under [tables.visits].' in told.out


def test_check_warns_of_what_a_monitor_hangs_on(policy: Path, run: Any) -> None:
    """Rows that are told by their own time have to be there when it is looked at."""
    sliding = 'length = "3 hours", sliding = true }\nclears = "at once"\nlateness = "9 minutes"'
    _with_monitor(policy, MONITOR.replace('length = "1 day" }', sliding))
    text = policy.read_text()
    policy.write_text(text.replace('refresh = "live"\n', 'refresh = "live"\narrived = "seen"\n', 1))
    (warning,) = [line for line in run("check").out.splitlines() if line.startswith("warning: monitors.full")]
    assert "must be there within 10 minutes of their seen" in warning


def test_a_duckdb_file_that_is_held_is_no_stream(policy: Path, run: Any) -> None:
    _with_monitor(policy)
    text = policy.read_text().replace('url = "duckdb://"', 'url = "duckdb:///visits.duckdb"')
    policy.write_text(text.replace('relation = "visits.csv"\n', ""))
    told = run("check")
    assert told.status == 1
    assert "KH603" in told.err
    assert "hold = false" in told.err
    assert "parquet" in told.err
    policy.write_text(text)
    assert "KH603" not in run("simulate", "--monitor", "full", "--units", "30").err
    without = text.replace('relation = "visits.csv"\n', "").replace("[source]\n", "[source]\nhold = false\n")
    policy.write_text(without)
    assert "KH603" not in run("check").err


def test_a_monitor_is_simulated_without_data(policy: Path, run: Any) -> None:
    _with_monitor(policy)
    (policy.parent / "visits.csv").unlink()
    told = run("simulate", "--monitor", "full", "--units", "3000")
    assert told.status == 0
    assert told.out.startswith("Monitor full: 3 groups of visits (ward), 3,000 privacy units; no data, no source")
    assert "The caps: it fits" in told.out
    assert "Groups that grow evenly through a window, at count(*) > 400:" in told.out
    assert "progressive = true" in told.out
    document = run("simulate", "--monitor", "full", "--units", "3000", "--json").document
    assert document["exceeded_cap"] is None
    (threshold,) = document["thresholds"]
    assert [course["beyond"] for course in threshold["courses"]] == [-8, -4, -2, -1, 0, 1, 4]
    assert document["plan"]["looks"]["per_window"] == 24


def test_a_simulation_stands_in_for_keys_that_the_policy_does_not_list(policy: Path, run: Any) -> None:
    _with_monitor(policy)
    policy.write_text(policy.read_text().replace('key = { values = ["A", "B", "[bold]C"] }', ""))
    assert "--keys" in run("simulate", "--monitor", "full", "--units", "3000").err
    told = run("simulate", "--monitor", "full", "--units", "3000", "--keys", "60")
    assert "60 groups of visits" in told.out


def test_what_is_no_monitor_is_refused(policy: Path, run: Any) -> None:
    _with_monitor(policy)
    assert "Did you mean full?" in run("simulate", "--monitor", "ful", "--units", "30").err
    assert run("simulate", "--units", "30").status == 2
    assert run("simulate", "SELECT 1", "--monitor", "full", "--units", "30").status == 2
    assert run("simulate", "--monitor", "full", "--units", "30", "--fnr", "0.1").status == 2
