"""What BI tools and clients send around questions and is refused: the hint is run as it stands, or was followed."""

import json
import re
from typing import Any

import psycopg

from tests.planner.hints import INSTEAD, SETTING, is_in_words
from tests.planner.spec import followed_hints, pairs
from tests.worlds.house import House, unchanged

_PARAMETERS = "\n--$ "
# What the owner is asked to declare, of whatever table and column: followed over the hand-made catalog.
_NAMES = re.compile(r"\[tables\.\w+\.columns\.\w+\]")


def _refusal(connection: psycopg.Connection[Any], sql: str) -> psycopg.Error | None:
    text, _, parameters = sql.partition(_PARAMETERS)
    with psycopg.RawCursor(connection) as cursor:
        try:
            cursor.execute(text.encode(), json.loads(parameters) if parameters else None)
        except psycopg.Error as error:
            return error
    return None


def test_every_hint_of_what_tools_and_clients_send_leads_to_an_answer(on_duckdb: House) -> None:
    known = {_NAMES.sub("", one.hint) for one in followed_hints()}
    refused = [
        sql for name in ("outer.sql", "bi_introspection.sql") for sql, wanted in pairs(name) if wanted.startswith("KH")
    ]
    shown: dict[str, str] = {}
    with on_duckdb.connect() as connection:
        with unchanged(on_duckdb):
            for sql in refused:
                error = _refusal(connection, sql)
                assert error is not None, sql
                if hint := error.diag.message_hint:
                    shown.setdefault(hint, sql)
        assert len(shown) >= 12
        for hint, sql in shown.items():
            assert not is_in_words(hint) or _NAMES.sub("", hint) in known, (hint, sql)
            if hint.removeprefix(INSTEAD).lower().startswith("select "):
                for way in hint.removeprefix(INSTEAD).split("  or  "):
                    assert _refusal(connection, way) is None, way
            elif found := SETTING.findall(hint):
                for statement in found:
                    connection.execute(statement)
                assert _refusal(connection, sql) is None, (sql, found)
                connection.execute("RESET keyhole.tolerance")
