"""The demo over Spark Connect, on a hundredth of its lines."""

import pytest

from deploy.spark.show import QUESTIONS, ask_all_questions, scale_questions
from proxy.cli.demo import read_questions


def test_sail_and_duckdb_agree_on_every_integer(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_all_questions(rows=100_000, url=None, engine="spark")
    printed = capsys.readouterr().out
    assert printed.count("the same on both engines") == len(read_questions(QUESTIONS))
    assert "Keyhole on sail" in printed


def test_sizes_grow_with_the_rows_and_means_do_not() -> None:
    first, *_, last = scale_questions(19)
    assert "count(DISTINCT customer_id) > 380 OR sum(amount) > 380000" in first.sql
    assert "avg(amount) > 18 AND count(*) >= 95000" in last.sql
    assert [one.sql for one in scale_questions(1)] == [one.sql for one in read_questions(QUESTIONS)]
