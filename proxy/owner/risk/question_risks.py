"""Questions planned for a risk report: the cost of each, and the shares that it compares."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.functionals.said_shares import ShareThreshold, find_shares
from planner.lower.dialects.dialect import Dialect
from planner.plan import build as planning
from planner.question.plan import Plan
from planner.statements import settings
from proxy.dashboard.question_list import read_list
from proxy.open_policy.service import OWNER
from proxy.pipeline.claim import count_groups_of_unit, count_losses_in_cell


@dataclass(frozen=True, slots=True)
class RiskQuestion:
    """One planned question. `name` is the stored question's name, or says where the question was typed."""

    name: str
    plan: Plan
    shares: tuple[ShareThreshold, ...]

    @property
    def epsilon(self) -> float:
        """Return the worst-case loss of one unit in one cell."""
        return count_losses_in_cell(self.plan) * self.plan.worst_case_epsilon

    @property
    def unit_epsilon(self) -> float:
        """The worst-case loss of one whole unit, over all groups that it may be in."""
        return count_groups_of_unit(self.plan) * self.plan.worst_case_epsilon


def plan_questions(name: str, text: str, catalog: Catalog, dialect: Dialect) -> Iterator[RiskQuestion]:
    """Plan the questions of a text, without source or ledger. Raise KH1xx to KH3xx, as asking would."""
    today = datetime.now(UTC).date()
    for listed in read_list(text, catalog, analyst=OWNER, given={}):
        if listed.asked_question is None:
            assert listed.refusal is not None
            raise listed.refusal
        asked = listed.asked_question
        accuracy = settings.read_accuracy(asked.settings, catalog.defaults)
        made = bind_question(
            asked.question, catalog, accuracy=accuracy, parameters=asked.parameters, today=today, is_utc=True
        )
        plan = planning.plan_question(made, dialect=dialect)
        yield RiskQuestion(name, plan, find_shares(plan.question))
