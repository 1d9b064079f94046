"""What docker-compose.yml's profile for Spark offers, without Docker and on Sail: the same lake, the same policy."""

import subprocess
import sys
import tomllib
from pathlib import Path

from deploy.spark.show import QUESTIONS
from proxy.cli.check import check
from tests.proxy.sources.spark.engines import Sail
from tests.worlds.house import opened
from tests.worlds.served import ROOT

_LINES = "100000"  # a tenth of what the file says


def test_the_lake_can_be_asked_as_the_file_says(sail: Sail, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    told = [
        subprocess.run(
            [sys.executable, "-m", "deploy.spark.lake", str(lake), _LINES],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)  # as on the first start, and on every further one
    ]
    assert told == ["the lake is filled\n", "the lake was filled before\n"]
    text = (ROOT / "deploy/spark/keyhole.toml").read_text(encoding="utf-8").replace("`/lake/", f"`{lake}/")
    source = f'url = "{sail.url}"\nengine = "sail"\nskip_blocks = true'
    text = text.replace('url = "sc://127.0.0.1:15002"\nengine = "spark"', source)
    policy = tmp_path / "keyhole.toml"
    policy.write_text(text, encoding="utf-8")
    check(policy, confirm=False)
    abroad = tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))["questions"][1]["sql"]
    with opened(policy) as house, house.connect("demo", "demo") as connection:
        connection.execute("SET keyhole.tolerance = '60%'")
        assert connection.execute("SELECT count(*) FROM countries").fetchone() == (38,)
        assert connection.execute(abroad.replace("50000", "2000")).fetchall()
