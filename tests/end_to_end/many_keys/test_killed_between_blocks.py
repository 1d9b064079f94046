"""A process that dies between two blocks of keys leaves its reservation spent and nothing else."""

import sys
from pathlib import Path

from proxy.open_policy.service import Service
from proxy.pipeline import stages
from tests.children import forked
from tests.end_to_end.certainty import asked
from tests.end_to_end.many_keys.lines import QUESTION, lay_out

_DIES = """
import os, sys
from dataclasses import replace
from pathlib import Path
from planner.lower.dialects.duckdb import DUCKDB
from proxy.pipeline import stages
from proxy.open_policy.service import Service
from proxy.sources import duckdb_source
from tests.end_to_end.certainty import asked
from tests.end_to_end.many_keys.lines import QUESTION

spread, blocks = duckdb_source.write_groups, []

def spread_or_die(*given, **more):
    blocks.append(None)
    if len(blocks) == 3:
        os.kill(os.getpid(), 9)
    return spread(*given, **more)

duckdb_source.write_groups = spread_or_die
with Service.open(Path(sys.argv[1])) as service:
    service.source.dialect = replace(DUCKDB, keys_at_once=100)
    question = asked(service, QUESTION, tolerance="50%")
    stages.answer(service, stages.plan_asked_question(service, question), question)
"""


def test_dying_between_blocks_leaves_the_worst_case_spent_and_no_answer(tmp_path: Path) -> None:
    path = lay_out(tmp_path, places=20, products=25, rows=2_000)
    child = forked.run(
        [sys.executable, "-c", _DIES, str(path)], capture_output=True, text=True, cwd=Path(__file__).parents[3]
    )
    assert child.returncode == -9, child.stderr
    with Service.open(path) as service:
        assert service.ledger.verify_everything() == 1  # the reservation alone
        question = asked(service, QUESTION, tolerance="50%")
        plan = stages.plan_asked_question(service, question)
        families = service.report_balances(None).families
        assert [round(max(one.spent_nano) / 1e9, 6) for one in families] == [round(plan.worst_case_epsilon, 6)]
        other = asked(service, QUESTION.replace("> 9", "> 8"), tolerance="50%")  # the same waits for who may be at work
        assert not stages.answer(service, stages.plan_asked_question(service, other), other).is_reused
        assert service.ledger.verify_everything() == 3
