"""docs/policy.md documents every key of the policy, and nothing that is not one."""

import re
import tomllib
from decimal import Decimal

import pytest
from pydantic import BaseModel, ValidationError

from docs.generator.policy_keys import PAGE, SECTIONS, read_meanings, write_reference
from planner.policy import sections
from planner.policy.file import Policy
from planner.policy.sections import AccuracySection
from planner.statements.settings import MECHANISMS
from tests.worlds.policies import VERIFIER

TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", TEXT, re.S)


def test_the_page_has_the_keys_types_and_defaults_of_the_code() -> None:
    assert write_reference(TEXT) == TEXT, "run `make pages`"


def test_every_section_is_documented() -> None:
    assert set(read_meanings(TEXT)) == set(SECTIONS)
    assert {name.strip("[]").split(".")[0] for name in SECTIONS if name.startswith("[")} == set(Policy.model_fields)
    known = {one for one in vars(sections).values() if isinstance(one, type) and issubclass(one, BaseModel)}
    assert known - {BaseModel, sections.Section, sections.PolicyDocument} == set(SECTIONS.values())


@pytest.mark.parametrize("heading", SECTIONS)
def test_every_key_has_a_meaning(heading: str) -> None:
    meanings = read_meanings(TEXT)[heading]
    assert list(meanings) == [known.alias or name for name, known in SECTIONS[heading].model_fields.items()]
    assert [key for key, meaning in meanings.items() if not meaning] == []


def test_a_key_that_the_page_lacks_is_written_without_a_meaning() -> None:
    without = TEXT.replace("- `fnr` (above 0, below 0.5; default `0.05`): ", "- `beta`: ", 1)
    assert "- `beta`" in without
    assert "- `fnr` (above 0, below 0.5; default `0.05`):\n" in write_reference(without)
    assert "- `beta`" not in write_reference(without)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_has_known_keys_with_values_that_fit(example: str) -> None:
    written = tomllib.loads(example, parse_float=Decimal)
    rest = {"source": {"url": "duckdb://"}, "budget": {"epsilon_per_predicate": 1, "epsilon_per_query": 1}}
    sections.PolicyDocument.model_validate(rest | written)


def test_the_first_example_is_a_whole_policy() -> None:
    secrets = dict.fromkeys(re.findall(r"\$\{(\w+)\}", EXAMPLES[0]), VERIFIER)
    assert Policy.parse(EXAMPLES[0], path=PAGE, environment=secrets).private_tables


def test_every_mechanism_can_be_a_default() -> None:
    for name in MECHANISMS:
        assert AccuracySection(mechanism=name).mechanism == name
    with pytest.raises(ValidationError, match="is not a mechanism"):
        AccuracySection(mechanism="laplace")
