"""The policies under deploy/: every question that an owner stored there can be asked under that very policy."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.simulate import Sizes, simulate

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


class _Secrets(dict[str, str]):
    """An environment in which every variable is set: to no one's verifier where one belongs, else to a word."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        if not name.endswith("VERIFIER"):
            return "word"
        return f"SCRAM-SHA-256$4096:AAAA${'A' * 43}=:{'A' * 43}="


def _stored() -> list[tuple[Path, str]]:
    paths = sorted(_DEPLOY.rglob("*.toml"))
    policies = {path: Policy.load(path, environment=_Secrets()) for path in paths if "[source]" in path.read_text()}
    return [(path, name) for path, policy in policies.items() for name in policy.views]


@pytest.mark.parametrize(("path", "name"), _stored(), ids=lambda part: part if isinstance(part, str) else part.name)
def test_a_stored_question_fits_its_own_budget(path: Path, name: str) -> None:
    policy = Policy.load(path, environment=_Secrets())
    simulated = simulate(path, policy.views[name].sql, given={}, sizes=Sizes(units=10_000, keys=10, rows=None))
    assert simulated.plan.worst_case_epsilon <= policy.budget.epsilon_per_query
    assert simulated.fitting_questions is None or simulated.fitting_questions >= 1, simulated.lines()


@pytest.mark.parametrize("key", ["epsilon_per_predicate", "epsilon_per_unit", "epsilon_per_query"])
def test_an_amount_of_epsilon_has_the_cap_that_is_documented(key: str, tmp_path: Path) -> None:
    guide = " ".join((_DEPLOY.parent / "docs/policy.md").read_text(encoding="utf-8").split())
    assert "is above 0 and at most 1,000 (KH002)" in guide
    example = (_DEPLOY / "policies/hospital.toml").read_text(encoding="utf-8")
    path = tmp_path / "keyhole.toml"
    for amount, is_taken in (("1000", True), ("1000.5", False), ("0", False)):
        path.write_text(re.sub(rf"^{key} = [\d.]+", f"{key} = {amount}", example, flags=re.MULTILINE), encoding="utf-8")
        with nullcontext() if is_taken else pytest.raises(KeyholeError, match="KH002"):
            assert getattr(Policy.load(path, environment=_Secrets()).budget, key) == 1000


def test_every_example_policy_has_a_stored_question() -> None:
    assert {path.name for path, _ in _stored()} >= {"hospital.toml", "keyhole.toml"}
