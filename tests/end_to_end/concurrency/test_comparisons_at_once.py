"""Comparisons with other groups asked at once, and killed: what is charged is what was drawn, once and in full.

Two processes ask over one ledger. Each says which noise its questions drew. So for each group the loss is known from
the values themselves: of every chain of noisy values, each finer than the one before, that of the finest.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from proxy.open_policy.service import Service
from proxy.pipeline import noise_reuse
from proxy.pipeline import stages as pipeline
from proxy.pipeline.claim import make_current_claim
from tests.children import forked
from tests.end_to_end.certainty import asked
from tests.end_to_end.concurrency.asking_process import DEATHS
from tests.seeded_noise import SeededNoise
from tests.worlds.house import locked, write_policy

SHARE = "SELECT store FROM sales GROUP BY store HAVING count(*) > {} * (SELECT count(*) FROM sales)"
COUNT = "SELECT store FROM sales GROUP BY store HAVING count(*) > {}"
NEAR = SHARE.format("0.413")  # south has .4138 of all sales: its answer follows from the noise
_ROUNDING = 4  # billionths, of a few losses that are each rounded up

Levels: TypeAlias = tuple[tuple[str, str], ...]
"""The rates of one sum's noise, each with a digest of the noisy values."""


@pytest.fixture
def policy(source_url: str, ledger_url: str, tmp_path: Path) -> Path:
    return write_policy(tmp_path, source=source_url, ledger=ledger_url, bobs=900.0)


def question(sql: str, who: str = "ada", tolerance: str = "100") -> dict[str, Any]:
    return {"sql": sql, "who": who, "settings": {"tolerance": tolerance}}


@contextmanager
def waiting(policy: Path, questions: Sequence[dict[str, Any]], *, death: str = "") -> Iterator[subprocess.Popen[str]]:
    """A process that is ready to ask, killed when the block ends."""
    with forked.Popen(
        [sys.executable, "-m", "tests.end_to_end.concurrency.asking_process", str(policy), death],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(questions) + "\n")
            process.stdin.flush()
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def ask_at_once(
    policy: Path, source_url: str, first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]], *, reading: int
) -> list[dict[str, Any]]:
    """Ask in two processes, so many of whose questions read the data at the same moment."""
    with ExitStack() as stack:
        processes = [stack.enter_context(waiting(policy, one)) for one in (first, second)]
        lock = stack.enter_context(locked(source_url, "sales"))
        for one in processes:
            begin(one)
        lock.wait_for_somebody(reading)
        lock.release()
        return [answer for one in processes for answer in json.loads(one.communicate()[0])]


def ask_and_die(policy: Path, one: dict[str, Any], death: str) -> None:
    with waiting(policy, [one], death=death) as process:
        begin(process)
        assert process.wait() == -signal.SIGKILL


def list_chains(answers: Sequence[dict[str, Any]]) -> list[Levels]:
    """Return the noise that was drawn: every chain of values to its finest, of one sum.

    Raise AssertionError if two runs continued the same values in different ways: a second draw under one charge.
    """
    chains = [tuple(map(tuple, levels)) for one in answers for levels in one["drawn"]]
    continued: dict[Levels, set[tuple[str, str]]] = {}
    for levels in chains:
        for place in range(1, len(levels)):
            continued.setdefault(levels[:place], set()).add(levels[place])
    assert all(len(one) == 1 for one in continued.values())
    return [
        max((levels for levels in chains if levels[0] == root), key=len)
        for root in dict.fromkeys(levels[0] for levels in chains)
    ]


def measure_loss(chains: Sequence[Levels]) -> float:
    """Return what each group has lost, in billionths of epsilon. One row moves its count by 1."""
    return float(sum(Fraction(levels[-1][0]) for levels in chains)) * 1e9


def list_spent(service: Service) -> set[int]:
    """Return the different amounts that groups of sales have lost."""
    service.ledger.verify_everything()
    return {
        lost for one in service.report_balances(None).families if one.family.table == "sales" for lost in one.lost_nano
    }


def assert_spent(service: Service, loss: float) -> None:
    (spent,) = list_spent(service)
    assert loss - 1 <= spent <= loss + _ROUNDING


def decide_again(service: Service, one: dict[str, Any]) -> list[list[str]] | None:
    """Return the groups that a question returns from what the ledger keeps of its noise, or None if it keeps none."""
    asks = replace(asked(service, one["sql"], **one["settings"]), analyst=service.find_analyst(one["who"]))
    claim = make_current_claim(service, pipeline.plan_asked_question(service, asks), asks)
    on_paths = noise_reuse.find_earlier_noise(service, claim)[1]
    outcome = noise_reuse.decide_from_known_values(on_paths, noise=SeededNoise(0))
    if on_paths is None or outcome is None:
        return None
    keys = on_paths.claim.plan.question.keys
    return [[*map(str, keys.get_key(place))] for place, passed in enumerate(outcome.passed) if passed]


def test_of_one_comparison_at_once_every_charge_is_one_draw(policy: Path, source_url: str) -> None:
    """Ada asks in both processes, over two threads each, and bob beside her: hers is drawn once, as is his."""
    hers, his = question(NEAR), question(NEAR, "bob")
    answers = ask_at_once(policy, source_url, [hers, hers, his], [hers, hers], reading=2)
    assert len({json.dumps(one["keys"]) for place, one in enumerate(answers) if place != 2}) == 1
    chains = list_chains(answers)
    assert [bool(one["drawn"]) for one in answers].count(True) == len(chains) == 2
    with Service.open(policy) as service:
        assert service.ledger.list_open_reservations() == ()
        assert_spent(service, measure_loss(chains))
        assert decide_again(service, hers) in (answers[0]["keys"], answers[2]["keys"])


def test_later_comparisons_at_once_on_one_stored_noise_refine_it_once(policy: Path, source_url: str) -> None:
    """Two finer ones, two that it is fine enough for, and a count: one continues the noise, another draws its own."""
    first = question(SHARE.format("0.3"))
    with waiting(policy, [first]) as process:
        begin(process)
        (drawn,) = json.loads(process.communicate()[0])
    finer = [question(NEAR, "ada", "40"), question(NEAR, "bob", "30")]
    coarser = [
        question(NEAR, "bob", "150"),
        question(SHARE.format("0.4"), "ada", "160"),
        question(COUNT.format(2990), "ada", "150"),
    ]
    answers = ask_at_once(policy, source_url, [finer[0], coarser[0]], [finer[1], *coarser[1:]], reading=2)
    asks = [finer[0], coarser[0], finer[1], *coarser[1:]]
    chains = list_chains([drawn, *answers])
    root = drawn["drawn"][0][0]
    assert len(chains) == 2
    with Service.open(policy) as service:
        assert service.ledger.list_open_reservations() == ()
        assert_spent(service, measure_loss(chains))
        for asking, answer in zip(asks, answers, strict=True):
            if not answer["drawn"] or answer["drawn"][0][0] == root:
                assert decide_again(service, asking) == answer["keys"]


@pytest.mark.parametrize("death", DEATHS)
def test_a_comparison_that_dies_between_draw_and_commit_is_paid_and_never_read(policy: Path, death: str) -> None:
    """Noise that was not committed stays spent, and is drawn again. A committed answer is repeated for nothing."""
    near = question(NEAR)
    ask_and_die(policy, near, death)
    with Service.open(policy) as service:
        asks = asked(service, NEAR, tolerance="100")
        loss = 1e9 * pipeline.plan_asked_question(service, asks).worst_case_epsilon
        assert_spent(service, loss)
        is_there = death == DEATHS[2]
        assert len(service.ledger.list_open_reservations()) == (not is_there)
        found = decide_again(service, near)
        assert (found is not None) == is_there
        bobs = replace(asks, analyst=service.find_analyst("bob"))
        answer = pipeline.answer(service, pipeline.plan_asked_question(service, bobs), bobs)
        assert answer.is_reused == is_there
        kept = decide_again(service, near)
        assert kept == [[*map(str, key)] for key in answer.keys.keys]
        assert found is None or found == kept
        assert_spent(service, loss if is_there else 2 * loss)


@pytest.mark.parametrize("death", DEATHS)
def test_a_finer_comparison_that_dies_leaves_the_noise_before_it(policy: Path, death: str) -> None:
    """Nobody refines that noise again if it died before the commit, since finer values of it may have been drawn."""
    first, finer = question(SHARE.format("0.3")), question(NEAR, "ada", "40")
    with waiting(policy, [first]) as process:
        begin(process)
        (drawn,) = json.loads(process.communicate()[0])
    ask_and_die(policy, finer, death)
    with Service.open(policy) as service:
        asks = asked(service, NEAR, tolerance="40")
        loss = 1e9 * pipeline.plan_asked_question(service, asks).worst_case_epsilon
        assert_spent(service, loss)  # of the finest value that may have been drawn, as if it were alone
        assert decide_again(service, question(SHARE.format("0.3"))) == drawn["keys"]
        found = decide_again(service, finer)
        assert (found is not None) == (death == DEATHS[2])
        bobs = replace(asks, analyst=service.find_analyst("bob"))
        answer = pipeline.answer(service, pipeline.plan_asked_question(service, bobs), bobs)
        assert answer.is_reused == (found is not None)
        assert found is None or found == [[*map(str, key)] for key in answer.keys.keys]
        assert_spent(service, loss if found is not None else 2 * loss)
        assert decide_again(service, question(SHARE.format("0.3"))) == drawn["keys"]
