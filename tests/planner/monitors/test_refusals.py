"""What no monitor can watch: questions (KH602), tables (KH603), contracts (KH303); each with a hint that works."""

import pytest

from planner.errors import KeyholeError
from planner.monitors.monitor_question_refusals import write_as_policy
from tests.in_turn import in_turn
from tests.worlds.monitored import BY_WARD, OF_A_DAY, SQL, TABLES, planned

MEAN = "SELECT ward, day FROM visits GROUP BY ward, day HAVING avg(cost) > 400"
OF_STAYS = "SELECT ward, day FROM stays GROUP BY ward, day HAVING count(DISTINCT patient_id) > 100"


def _refused(sql: str = SQL, *, tables: str = TABLES, **keys: str) -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        planned(sql, tables=tables, **keys)
    assert caught.value.hint
    assert caught.value.message.startswith("[monitors.crowded]: ")
    return caught.value


QUESTIONS = [
    (SQL + " ORDER BY ward", "nothing around it"),
    (SQL + " LIMIT 5", "nothing around it"),
    (SQL + " OFFSET 5", "nothing around it"),
    (f"SELECT * FROM ({SQL}) AS q", "nothing around it"),
    ("SELECT ward FROM visits", "it lists public values"),
    ("SELECT 1", "nothing around it"),
    (SQL.replace("400", "$1"), "has the parameter $1"),
    (SQL.replace("GROUP BY", "WHERE seen_at < now() GROUP BY"), "change from look to look"),
    (SQL.replace("GROUP BY", "WHERE day = current_date GROUP BY"), "change from look to look"),
    ("SELECT ward, day, count(*) > 400 AS full FROM visits GROUP BY ward, day", "it is a scorecard"),
    ("SELECT ward, day FROM visits GROUP BY ward, day ORDER BY count(*) DESC LIMIT 3", "it ranks groups"),
    (SQL.replace("count(*)", "count(DISTINCT severity)"), "counts different values"),
    (SQL.replace("> 400", ">= 0"), "the condition does not depend on data"),
    (
        "SELECT ward, day FROM (SELECT patient_id, ward, day, sum(cost) AS c FROM stays "
        "GROUP BY patient_id, ward, day) s GROUP BY ward, day HAVING count(*) > 40",
        "it asks per privacy unit",
    ),
    (SQL.replace("GROUP BY", "WHERE ward = 'nowhere' GROUP BY"), "WHERE leaves no groups"),
]


@in_turn(("sql", "message"), QUESTIONS)
def test_what_is_no_standing_question_is_refused(sql: str, message: str) -> None:
    error = _refused(sql)
    assert error.code == "KH602"
    assert message in error.message


@pytest.mark.parametrize(
    ("key", "name", "window"),
    [
        ("day", "alerted_at", '"alerted_at"'),
        ("day", "window_closes", '"window_closes"'),
        ("month", "window_start", OF_A_DAY),
        ("month", "alerted_at", OF_A_DAY),
    ],
)
def test_a_key_is_not_called_like_a_time_of_the_relation(key: str, name: str, window: str) -> None:
    tables = TABLES.replace(f"[tables.visits.columns.{key}]", f"[tables.visits.columns.{name}]", 1)
    error = _refused(SQL.replace("day", name), tables=tables, window=window)
    assert (error.code, f'would be called "{name}"' in error.message) == ("KH602", True)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (SQL.replace("ward", "wrd"), "KH201"),
        (SQL.replace("400", "'many'"), "KH212"),
        (SQL.replace("HAVING", "HAVNG"), "KH100"),
        (SQL.replace("count(*)", "sum(severity)"), "KH203"),
        (SQL.replace("visits", "nowhere"), "KH602"),
    ],
)
def test_a_question_is_refused_as_any_other_with_its_monitor(sql: str, code: str) -> None:
    with pytest.raises(KeyholeError) as caught:
        planned(sql)
    assert caught.value.code == code
    assert "[monitors.crowded]" in caught.value.message


@pytest.mark.parametrize(
    "having",
    ["count(*) < 400", "avg(cost) > 400", "sum(change) > 100", "count(*) BETWEEN 100 AND 400", "count(*) = 400"],
)
def test_what_may_become_false_again_does_not_alert_early(having: str) -> None:
    sql = f"SELECT ward, day FROM visits GROUP BY ward, day HAVING {having}"
    error = _refused(sql, alert='"early"', tolerance='"10"')
    assert error.code in ("KH602", "KH206")
    if error.code == "KH602":
        assert "may become false again" in error.message
        assert 'alert = "close"' in (error.hint or "")
        assert "early_any = true" in (error.hint or "")


@pytest.mark.parametrize("having", ["count(*) < 400", "avg(cost) > 400", "count(*) BETWEEN 100 AND 400"])
def test_early_any_is_for_windows_that_do_not_slide(having: str) -> None:
    sql, sliding = f"SELECT ward FROM visits GROUP BY ward HAVING {having}", '{ column = "seen_at", length = "1 day"'
    error = _refused(sql, early_any="true", window=sliding + ", sliding = true }")
    assert error.code == "KH602"
    assert error.hint == "Write a hop instead of sliding."
    assert planned(sql, early_any="true", window=sliding + ', hop = "6 hours" }').alerts_early


def test_a_mixed_condition_that_no_alarm_keeps_is_told_the_tolerance_that_would_do() -> None:
    sql = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) BETWEEN 4 AND 40"
    error = _refused(sql, early_any="true", fnr="1e-30", fpr="1e-30", tolerance='"0"')
    assert error.code == "KH303"
    tolerance = (error.hint or "").removeprefix("Write tolerance = ").removesuffix(".")
    assert planned(sql, early_any="true", fnr="1e-30", fpr="1e-30", tolerance=tolerance).alerts_early


def test_a_conjunction_does_not_slide() -> None:
    sql = BY_WARD + " AND sum(cost) > 20000"
    error = _refused(sql, window='{ column = "seen_at", length = "1 day", sliding = true }')
    assert error.code == "KH602"
    assert planned(sql, window='{ column = "seen_at", length = "1 day", hop = "12 hours" }').alerts_early


def test_tables_that_do_not_change_all_the_time_are_refused() -> None:
    for refresh in ("static", "explicit", "daily 02:00", "hourly"):
        error = _refused(tables=TABLES.replace('refresh = "live"', f'refresh = "{refresh}"', 1))
        assert error.code == "KH603"
        assert error.hint == 'Write refresh = "live" under [tables.visits].'


def test_units_whose_rows_are_chosen_need_the_order_in_which_they_came() -> None:
    without = TABLES.replace('arrived = "recorded_at"\n', "")
    error = _refused(OF_STAYS, tables=without)
    assert error.code == "KH603"
    assert 'arrived = "recorded_at"' in (error.hint or "")
    assert planned(OF_STAYS).time_column == "recorded_at"


def test_units_that_are_in_all_groups_that_there_are_need_none() -> None:
    """Nothing is chosen where as many groups of the horizon count as there are, and totals are clipped."""
    roomy = TABLES.replace('arrived = "recorded_at"\n', "").replace(
        "max_groups_per_unit = 20", "max_groups_per_unit = 2000"
    )
    plan = planned(OF_STAYS, tables=roomy)
    assert (plan.time_column, plan.counts_by_arrival) == ("recorded_at", False)


def test_units_whose_groups_are_chosen_need_rows_that_stay() -> None:
    """Were a row taken away, another group of its unit would count from then on: more of them than are paid for."""
    head, stays = TABLES.split("[tables.stays]")
    passing = f"{head}[tables.stays]{stays.replace('append_only = true', '', 1)}"
    error = _refused(OF_STAYS, tables=passing)
    assert error.code == "KH603"
    assert "append_only = true under [tables.stays]" in (error.hint or "")
    roomy = passing.replace("max_groups_per_unit = 20", "max_groups_per_unit = 1095")
    assert "max_groups_per_unit = 1095" in (error.hint or "")
    assert planned(OF_STAYS, tables=roomy).epsilon_per_unit > 0


def test_units_do_not_slide() -> None:
    sql = "SELECT ward FROM stays GROUP BY ward HAVING count(DISTINCT patient_id) > 100"
    error = _refused(sql, window='{ column = "recorded_at", length = "1 day", sliding = true }')
    assert error.code == "KH603"
    assert "hop" in (error.hint or "")


def test_sliding_windows_need_rows_that_stay() -> None:
    sliding = '{ column = "seen_at", length = "1 day", sliding = true }'
    unchanging = TABLES.replace("append_only = true\n", 'immutable = ["ward", "seen_at"]\n', 1)
    error = _refused(BY_WARD, tables=unchanging, window=sliding)
    assert error.code == "KH602"
    assert "append_only = true" in (error.hint or "")
    error = _refused(BY_WARD, window=sliding, alert='"close"')
    assert "closes at every look" in error.message


def test_a_contract_that_no_alarm_keeps_is_refused_with_a_tolerance_that_does() -> None:
    error = _refused(SQL.replace("400", "4"), fnr="1e-30", fpr="1e-30", tolerance='"0"')
    assert error.code == "KH303"
    hinted = (error.hint or "").split('"')[1]
    assert planned(SQL.replace("400", "4"), fnr="1e-30", fpr="1e-30", tolerance=f'"{hinted}"').epsilon_per_cell > 0


def test_a_threshold_of_nothing_needs_an_absolute_tolerance_as_the_policy_writes_it() -> None:
    error = _refused("SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 0 AND sum(change) > 0")
    assert "SET keyhole" not in f"{error.hint} {error.message}"


def test_settings_in_hints_are_keys_of_the_policy() -> None:
    assert write_as_policy("SET keyhole.tolerance = '10%, 25'; SET keyhole.fnr = '0.1';") == (
        'tolerance = "10%, 25"  and  fnr = 0.1'
    )


def test_windows_of_a_length_are_refused_for_the_same() -> None:
    assert _refused(MEAN.replace("ward, day", "ward"), window=OF_A_DAY, alert='"early"').code in ("KH602", "KH206")


@pytest.mark.parametrize(("immutable", "moving"), [("[]", "ward or day"), ('["ward"]', "day"), ('["day"]', "ward")])
def test_rows_that_may_move_to_another_group_are_not_watched(immutable: str, moving: str) -> None:
    """They would count in two, one after the other, and pay for one."""
    tables = TABLES.replace("append_only = true\n", f"immutable = {immutable}\n", 1)
    error = _refused(tables=tables)
    assert error.code == "KH603"
    assert f"whose {moving} changes" in error.message
    assert 'immutable = ["day", "ward"]' in (error.hint or "")


def test_rows_that_may_move_from_one_stretch_of_time_to_another_are_not_watched() -> None:
    tables = TABLES.replace("append_only = true\n", 'immutable = ["ward"]\n', 1)
    error = _refused(BY_WARD, tables=tables, window='{ column = "seen_at", length = "1 day" }')
    assert error.code == "KH603"
    assert 'immutable = ["seen_at", "ward"]' in (error.hint or "")
