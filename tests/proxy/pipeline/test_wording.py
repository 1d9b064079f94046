"""What stays of a question's text: as much as the policy says, in the ledger's own file, and for whom."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.pipeline.virtual_rows import list_virtual_rows
from tests.worlds.wards import install

NAME = "Annabel"
NAMED = "SELECT day FROM visits GROUP BY day HAVING count(*) FILTER (WHERE ward = 'Annabel') > 1510"
REDACTED = "SELECT day FROM visits GROUP BY day HAVING count(*) FILTER (WHERE ward = ?) > 1510"


@contextmanager
def opened(directory: Path, keep_text: str | None) -> Iterator[Service]:
    path = install(directory)
    if keep_text is not None:
        path.write_text(f'[ledger]\nkeep_text = "{keep_text}"\n{path.read_text()}')
    check(path, confirm=False)
    with Service.open(path) as service:
        yield service


def ask(service: Service, sql: str, *, analyst: str = "ada", **settings: str) -> None:
    asked = Asked(
        question=read_bare_question(sql, service.catalog),
        settings={f"keyhole.{name}": value for name, value in settings.items()},
        parameters={},
        analyst=service.find_analyst(analyst),
        today=datetime.now(UTC).date(),
    )
    pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def bytes_of_ledger(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.rglob("*.db*"))


@pytest.mark.parametrize(
    ("keep_text", "text"), [("full", NAMED), ("redacted", REDACTED), (None, REDACTED), ("none", None)]
)
def test_a_name_is_in_the_ledgers_file_only_where_the_owner_wants_texts_in_full(
    tmp_path: Path, keep_text: str | None, text: str | None
) -> None:
    with opened(tmp_path, keep_text) as service:
        ask(service, NAMED, tolerance="count(*) filter (where ward = 'Annabel') = 20, 10%")
        (asked,) = service.read_questions("ada")
        assert asked.wording is not None
        assert asked.wording.text == text
        assert "is missed at most 5 % of the time" in asked.wording.guarantee
        assert asked.wording.fnr == "0.05"
        (event, _) = service.ledger.owner.export_events()
        assert event.text == text
        service.ledger.verify_everything()
    assert (NAME in bytes_of_ledger(tmp_path).decode(errors="replace")) == (keep_text == "full")


def test_a_filter_is_kept_whatever_the_policy_says_since_balances_need_it(tmp_path: Path) -> None:
    with opened(tmp_path, "none") as service:
        ask(service, "SELECT day FROM visits WHERE ward = 'Annabel' GROUP BY day HAVING count(*) > 1511")
        (asked,) = service.read_questions("ada")
        assert NAME in asked.charge.family.filter


def test_analysts_read_their_own_texts_and_nobody_elses(tmp_path: Path) -> None:
    """One question in two spellings: whoever reads the other's answer is shown the own words."""
    mine = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1512 AND count(*) > 20"
    yours = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1512"
    with opened(tmp_path, "full") as service:
        ask(service, mine)
        ask(service, yours, analyst="bob")
        ask(service, NAMED)
        texts = {
            name: [row[-1] for row in list_virtual_rows(service, "queries", analyst=name, settings={})]
            for name in ("ada", "bob")
        }
        assert texts == {"ada": [mine, NAMED], "bob": [yours]}
        rows = list_virtual_rows(service, "answers", analyst="ada", settings={})
        assert [row[4] for row in rows] == [mine, NAMED]
        first, second = (entry.charge.question for entry in service.ledger.read_history()[:2])
        assert first == second


def test_answers_have_what_was_promised_and_paid(tmp_path: Path) -> None:
    with opened(tmp_path, None) as service:
        ask(service, NAMED, fnr="0.02")
        ask(service, NAMED, fnr="0.02", analyst="bob")
        for name in ("ada", "bob"):
            (row,) = list_virtual_rows(service, "answers", analyst=name, settings={})
            at, table, version, question, text, keys, guarantee, fnr, fpr, epsilon, unit = row
            (entry,) = service.read_questions(name)
            assert (table, version, text) == ("visits", "static", REDACTED)
            assert question == entry.charge.question
            assert int(keys or 0) == entry.charge.cells.key_count
            assert guarantee is not None
            assert "missed at most 2 % of the time" in guarantee
            assert (fnr, fpr) == ("0.02", "0.1")
            assert float(epsilon or 0) == pytest.approx(entry.charge.epsilon_nano / 1e9, abs=1e-4)
            assert unit is None
            assert at == entry.asked_at.isoformat(sep=" ")
