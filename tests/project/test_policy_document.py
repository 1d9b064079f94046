"""docs/policy.md documents every key of the policy, and nothing that is not one."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from planner.policy.file import Policy
from planner.policy.sections import (
    AccuracySection,
    AnalystSection,
    BandsSection,
    BudgetSection,
    ColumnSection,
    ConsoleSection,
    GroupingSection,
    KeySection,
    LedgerSection,
    LimitsSection,
    MonitorSection,
    PlaySection,
    RestSection,
    RowCapSection,
    ServerLimitsSection,
    ServerSection,
    ShadowSection,
    SourceSection,
    TableSection,
    TlsSection,
    ViewSection,
    WindowSection,
)
from planner.statements.settings import MECHANISMS

ROOT = Path(__file__).resolve().parents[2]
SECTIONS: dict[str, type[BaseModel]] = {
    "[source]": SourceSection,
    "[ledger]": LedgerSection,
    "[shadow]": ShadowSection,
    "[accuracy]": AccuracySection,
    "[budget]": BudgetSection,
    "[limits]": LimitsSection,
    "[server]": ServerSection,
    "[server.limits]": ServerLimitsSection,
    "[server.rest]": RestSection,
    "[server.console]": ConsoleSection,
    "[server.play]": PlaySection,
    "[server.tls]": TlsSection,
    "[tables.NAME]": TableSection,
    "[tables.NAME.groupings]": GroupingSection,
    "[tables.NAME.columns.COLUMN]": ColumnSection,
    "key": KeySection,
    "bands": BandsSection,
    "max_rows_per_group": RowCapSection,
    "[views.NAME]": ViewSection,
    "[monitors.NAME]": MonitorSection,
    "window": WindowSection,
    "[analysts.NAME]": AnalystSection,
}


def documented() -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    heading = ""
    for line in (ROOT / "docs" / "policy.md").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"##+ `(.+)`", line):
            heading = match[1]
        elif line.startswith("#"):
            heading = ""
        elif heading and (match := re.match(r"\| `(\w+)` \|", line)):
            keys.setdefault(heading, []).append(match[1])
    return keys


def test_every_section_is_documented() -> None:
    assert set(documented()) == set(SECTIONS)
    assert {name.strip("[]").split(".")[0] for name in SECTIONS if name.startswith("[")} == set(Policy.model_fields)


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_is_documented_once(heading: str) -> None:
    assert sorted(documented()[heading]) == sorted(
        known.alias or name for name, known in SECTIONS[heading].model_fields.items()
    )


def test_every_mechanism_can_be_a_default() -> None:
    for name in MECHANISMS:
        assert AccuracySection(mechanism=name).mechanism == name
    with pytest.raises(ValidationError, match="is not a mechanism"):
        AccuracySection(mechanism="laplace")
