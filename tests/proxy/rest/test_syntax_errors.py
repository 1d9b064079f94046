"""REST says of a text that cannot be parsed what PostgreSQL says of it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background
from proxy.shadow.address import ShadowAddress
from proxy.shadow.grammar import GrammarCheck
from tests.effort import PATIENCE_S
from tests.worlds.house import check_once
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

TEXTS = (
    "SELECT ward FORM visits GROUP BY ward HAVING count(*) > 5",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) >",
    "SELECT ward FROM visits GROUP ward HAVING count(*) > 5",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5)",
    "SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 5",
    "SELECT ward, FROM visits GROUP BY ward HAVING count(*) > 5",
    "SELECT 'Łódź', ward FROM visits WHERE GROUP BY ward HAVING count(*) > 5",
    "SELECT ward FROM visits GROUP BY ward ORDER BY ward HAVING count(*) > 5",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 'x",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 LIMIT LIMIT",
    "SELECT pg_sleep(600) FROM visits WHERE ward = = 'A' GROUP BY ward HAVING count(*) > 5",
    "SELEC ward FROM visits GROUP BY ward HAVING count(*) > 5",
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    path = check_once(install(tmp_path_factory.mktemp("wards")))
    with Service.open(path) as service, serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as found:
        yield found


@pytest.mark.parametrize("path", ["/v1/question", "/v1/explain"])
def test_a_syntax_error_is_postgresqls(addresses: Addresses, path: str) -> None:
    login = f"host=127.0.0.1 port={addresses.port} user=ada password={PASSWORD} dbname={addresses.database}"
    bearer = {"Authorization": f"Bearer {TOKENS['ada']}"}
    with (
        psycopg.connect(login, autocommit=True) as session,
        httpx.Client(base_url=f"http://127.0.0.1:{addresses.rest_port}", headers=bearer, timeout=PATIENCE_S) as rest,
    ):
        for sql in TEXTS:
            with pytest.raises(psycopg.errors.SyntaxError) as caught:
                session.execute(sql.encode())
            told = rest.post(path, json={"sql": sql})
            document = told.json()
            found = (told.status_code, document["code"], document["title"], document["position"])
            assert found == (
                422,
                "KH100",
                caught.value.diag.message_primary,
                int(caught.value.diag.statement_position or 0),
            ), sql


def test_without_a_shadow_the_refusal_is_keyholes(tmp_path: Path) -> None:
    refusal = KeyholeError("KH100", "the statement cannot be parsed", hint="a hint", position=3)
    gone = GrammarCheck(lambda: (ShadowAddress(tmp_path, 5432), "wards"))
    for sql in ("SELECT", "SELECT '\0'", "SELECT '\udc80'"):
        assert gone.prefer_syntax_error(refusal, sql=sql, analyst="ada") is refusal
    other = KeyholeError("KH201", "there is no such column")
    assert gone.prefer_syntax_error(other, sql=QUESTION, analyst="ada") is other
