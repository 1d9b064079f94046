"""The counts and log entries of how questions end, for the operator."""

from collections.abc import Callable
from functools import wraps

from planner.errors import KeyholeError
from planner.question.plan import Plan
from proxy.observe.telemetry import QuestionEnding
from proxy.open_policy.service import Service
from proxy.pipeline.claim import identify_question
from proxy.pipeline.messages import Answer, Asked

AnswerStage = Callable[[Service, Plan, Asked], Answer]
_PAID = ("KH307", "KH5", "KH9")


def observe_outcomes(answer: AnswerStage) -> AnswerStage:
    """Return `answer` wrapped so that each question's end is counted and logged. The wrapper changes nothing else."""

    @wraps(answer)
    def answer_observed(service: Service, plan: Plan, asked: Asked) -> Answer:
        ending = QuestionEnding.FAILED
        try:
            told = answer(service, plan, asked)
            ending = QuestionEnding.STORED if told.is_reused else QuestionEnding.ANSWERED
        except KeyholeError as error:
            ending = QuestionEnding.FAILED if error.code.startswith(_PAID) else QuestionEnding.REFUSED
            raise
        finally:
            service.telemetry.count_question(
                ending, analyst=asked.analyst.name, question=identify_question(plan, service.catalog)
            )
        return told

    return answer_observed
