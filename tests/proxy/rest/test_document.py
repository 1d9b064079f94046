"""docs/rest.md: its examples run, its limits are the code's, its statuses are those that OpenAPI announces."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.demo.build import install_demo
from planner.policy.sections import RestSection
from planner.statements.settings import MOST_CHARACTERS
from proxy.cli import check as checking
from proxy.cli.main import app as command
from proxy.open_policy.service import Service
from proxy.rest.answers import MOST_PAGE_KEYS
from proxy.rest.app import create_app
from proxy.rest.gate import ALL_ADDRESSES, SHORT_TOKEN
from proxy.rest.middleware import MOST_BODY_BYTES, MOST_HEAD_BYTES, MOST_HEADERS
from proxy.rest.models import MOST_PARAMETERS, MOST_SQL_CHARACTERS
from proxy.rest.strict_json import MOST_DEPTH, MOST_TEXTS
from tests.children import forked
from tests.in_turn import in_turn
from tests.worlds.rest_house import UNHURRIED, served

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "rest.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.S)
SHELL = re.findall(r"```shell\n(.*?)```", TEXT, re.S)
TOKEN = "demo"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    assert sha256(TOKEN.encode()).hexdigest() in policy.read_text(encoding="utf-8")
    checking.check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


@pytest.fixture(scope="module")
def environment(service: Service) -> Iterator[dict[str, str]]:
    with served(service, UNHURRIED) as port:
        yield {
            "PATH": os.environ["PATH"],
            "KEYHOLE_URL": f"http://127.0.0.1:{port}",
            "KEYHOLE_TOKEN": TOKEN,
            "NO_PROXY": "127.0.0.1",
        }


def test_the_client_in_python_gets_its_answer(environment: dict[str, str]) -> None:
    (script,) = PYTHON
    for size in (1000, 1):  # in one page, and in as many as there are keys
        paged = script.replace("page_size=1000", f"page_size={size}")
        ran = forked.run([sys.executable, "-c", paged], env=environment, capture_output=True, text=True, check=True)
        guarantee, *months = ran.stdout.splitlines()
        assert "missed at most 1 % of the time" in guarantee
        assert len(months) > 1
        assert all(re.fullmatch(r"\d{4}-\d{2}-01", month) for month in months)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl")
@pytest.mark.parametrize("example", SHELL)
def test_the_examples_with_curl_are_answered(environment: dict[str, str], example: str) -> None:
    command = example.replace("$(uuidgen)", "3f2c1d1e-0000-4000-8000-000000000001")
    ran = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
    assert "KH" not in ran.stdout
    assert "month" in ran.stdout or "families" in ran.stdout


def test_every_request_is_in_the_table(service: Service) -> None:
    paths = create_app(service).openapi()["paths"]
    requests = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert requests == set(re.findall(r"`((?:GET|POST) /[\w/{}]+)`", TEXT.split("\n## ")[0]))


def test_every_status_that_is_announced_is_explained(service: Service) -> None:
    operations = [one for methods in create_app(service).openapi()["paths"].values() for one in methods.values()]
    announced = {int(status) for operation in operations for status in operation["responses"]} - {200}
    told = TEXT.split("\n## Refusals\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in told.splitlines() if re.match(r"\| \d", line)]
    assert announced <= {int(status) for row in rows for status in re.findall(r"\d{3}", row)}


@in_turn(
    ("number", "said"),
    [
        (MOST_BODY_BYTES, "at most one megabyte"),
        (MOST_DEPTH, "32 nested levels"),
        (MOST_SQL_CHARACTERS, "`sql` has at most 100,000 characters"),
        (MOST_PARAMETERS, "1,000 parameters"),
        (MOST_TEXTS, "10,000 texts and brackets"),
        (MOST_CHARACTERS, "each setting at most 10,000 characters"),
        (MOST_HEAD_BYTES, "16 kB"),
        (MOST_HEADERS, "100 headers"),
        (MOST_PAGE_KEYS, "at most 100,000"),
        (RestSection().failed_logins_per_minute, "ten a minute of an address"),
        (RestSection().failed_logins_per_minute * ALL_ADDRESSES, "a hundred of all addresses"),
        (RestSection().idempotency_days, "seven by default"),
    ],
)
def test_numbers_are_the_codes(number: int, said: str) -> None:
    words = {"one megabyte": 1_000_000, "ten": 10, "a hundred": 100, "seven": 7, "16 kB": 16_384}
    assert said in " ".join(TEXT.split())
    (named,) = {value for word, value in words.items() if word in said} or {
        int(found.replace(",", "")) for found in re.findall(r"[\d,]+", said)
    }
    assert named == number


def test_a_token_that_keyhole_makes_is_not_short() -> None:
    made = CliRunner().invoke(command, ["passwd", "--token"]).output
    (token,) = {word for word in re.findall(r"[\w-]{20,}", made) if sha256(word.encode()).hexdigest() in made}
    assert len(token) == 43 > SHORT_TOKEN
