"""Idempotent questions: a question is asked once, however often it is sent under one `Idempotency-Key`.

Guarantee: the requests under one key of one analyst spend once, whatever crashes in between and whatever the data
version of a repetition. A repetition gets the answer of the first request, the refusal that the first one got after it
had spent, or KH432 if neither is known. A refusal that spent nothing makes the key usable again. Key sets are in the
ledger's store, or follow from the question alone, so only short replies are stored under a key.
References: accountant/verbs/idempotency.py, docs/rest.md.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Any

import structlog

from accountant.errors import LedgerError
from accountant.store.attempts import Attempt, AttemptTaken
from accountant.verbs.idempotency import AttemptState, EarlierAttempt, OtherRequest, TooManyKeys
from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.question.plan import Plan
from planner.scorecard.select_list import SelectList, read_select_list
from proxy.concurrency.fair_queue import read_very_long_alone
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import stages as pipeline
from proxy.pipeline.ledger_verbs import restore_answer
from proxy.pipeline.messages import Asked, KeySet
from proxy.pipeline.question_refusals import refuse_computed_keys
from proxy.report.report_refusals import make_internal_error
from proxy.rest import answers
from proxy.rest.answers import Reply
from proxy.rest.models import QuestionIn
from proxy.rest.request_refusals import (
    refuse_other_request,
    refuse_running_request,
    refuse_too_many_keys,
    refuse_unknown_end,
)
from proxy.rest.sorted_keys import show_keys
from proxy.shadow.key_labels import KeyLabels, LabelReader

log = structlog.get_logger("keyhole.rest")

_CHARACTERS = "[A-Za-z0-9._~:/+=-]{1,128}"
KEY_PATTERN = f'^(?:"{_CHARACTERS}"|{_CHARACTERS})$'
_MARGIN = timedelta(seconds=60)  # what an attempt may take before it reserves, beside waiting for the source
_REPLAYED: Mapping[str, str] = MappingProxyType({"Idempotency-Replayed": "true"})


@dataclass(frozen=True, slots=True)
class RequestResult:
    """The result of an idempotent request: the reply or refusal, and the response's headers."""

    outcome: Reply | KeyholeError
    headers: Mapping[str, str]


def ask_once(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    *,
    key: str | None,
    keep_days: int,
    labels: LabelReader | None,
) -> RequestResult:
    """Ask a question once for each idempotency key, and return its reply or refusal.

    Without a `key`, nothing is remembered. `labels` computes the displayed form of computed keys. Raise KH430, KH431,
    KH432, and the pipeline's refusals.
    """
    if key is None:
        return RequestResult(_answer(service, body, analyst, labels, today=_read_clock().date(), attempt=None)[0], {})
    lease = 2 * timedelta(milliseconds=service.catalog.statement_timeout_ms) + _MARGIN
    try:
        begun = service.ledger.idempotency.begin_attempt(
            analyst.name, key.strip('"'), request=_identify_request(body), lease=lease, keep=timedelta(days=keep_days)
        )
    except OtherRequest:
        raise refuse_other_request() from None
    except TooManyKeys:
        raise refuse_too_many_keys() from None
    except LedgerError:
        raise report_unavailable_ledger() from None
    if isinstance(begun, EarlierAttempt):
        return RequestResult(_find_outcome(service, body, analyst, begun, labels), _REPLAYED)
    return RequestResult(_answer_first_request(service, body, analyst, begun, labels), {})


def _answer(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    labels: LabelReader | None,
    *,
    today: date,
    attempt: Attempt | None,
) -> tuple[Reply, KeySet]:
    """Answer a request. Return the reply, and the answer's keys in the key domain's order."""
    asked, plan = _plan(service, body, analyst, today=today, attempt=attempt)
    shown = _read_labels(asked, plan, labels)
    answer = pipeline.answer(service, plan, asked)
    return Reply.from_answer(answer, asked, shown), answer.keys


def _read_labels(asked: Asked, plan: Plan, labels: LabelReader | None) -> KeyLabels | None:
    """Return the displayed forms of computed keys. Raise KH106 without a shadow to compute them, and KH406."""
    question = asked.question
    if labels is not None:
        return labels.read_labels(question, plan.question.keys, analyst=asked.analyst.name)
    if (refused := refuse_computed_keys(question)) is not None:
        raise refused
    return None


def _plan(
    service: Service, body: QuestionIn, analyst: Analyst, *, today: date, attempt: Attempt | None = None
) -> tuple[Asked, Plan]:
    with read_very_long_alone(body.sql, analyst=analyst.name):
        asked = body.make_asked(analyst, service, today=today, attempt=attempt)
        return asked, pipeline.plan_asked_question(service, asked)


def _answer_first_request(
    service: Service, body: QuestionIn, analyst: Analyst, attempt: Attempt, labels: LabelReader | None
) -> Reply:
    """Answer the first request under a key, and store the reply."""
    try:
        reply, released = _answer(service, body, analyst, labels, today=attempt.begun_at.date(), attempt=attempt)
    except AttemptTaken:
        raise refuse_running_request() from None
    except Exception as error:
        refusal = error if isinstance(error, KeyholeError) else make_internal_error()
        with suppress(LedgerError):
            service.ledger.idempotency.store_refusal(
                attempt, response=_pack_document({"refusal": _make_document(refusal)})
            )
        raise
    own: dict[str, Any] = {} if reply.reservation is not None else {"keys": _digest(released)}
    if reply.labels is not None:
        own["labels"] = reply.labels.make_document()
    told = {"head": reply.head, "order": answers.write_order(reply.order), **own}
    try:
        service.ledger.idempotency.store_response(attempt, response=_pack_document(told), answer=reply.reservation)
    except LedgerError:
        log.warning("an idempotency key was not ended")
    return reply


def _find_outcome(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, labels: LabelReader | None
) -> Reply | KeyholeError:
    """Return the reply or refusal of the first request under the key. Raise KH432 if it is unknown, and KH502."""
    match earlier.state:
        case AttemptState.ENDED if earlier.response is not None:
            return _restore_outcome(service, body, analyst, earlier, json.loads(zlib.decompress(earlier.response)))
        case AttemptState.ANSWERED if earlier.answer is not None:
            return _find_stored_answer(service, body, analyst, earlier, earlier.answer, labels)
        case AttemptState.RUNNING:
            raise refuse_running_request()
    raise refuse_unknown_end(
        "The first attempt may have spent: it died after it had reserved its worst case, and stored no answer."
    )


def _restore_outcome(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, document: Mapping[str, Any]
) -> Reply | KeyholeError:
    if "refusal" in document:
        return _restore_refusal(document["refusal"])
    if earlier.answer is None:
        keys: KeySet | None = _restore_constant(service, body, analyst, earlier, digest=document["keys"])
    else:
        keys = answers.find_stored_keys(service, earlier.answer, analyst)
    if keys is None:
        raise report_unavailable_ledger()
    head = document["head"]
    has_list = head["guarantee"].get("predicates") or head.get("numbers")
    shown = _restore_select_list(service, body, analyst) if has_list else None
    order = answers.read_order(document.get("order", ""))  # of an answer from before there were any: none
    labels = KeyLabels.parse(document["labels"]) if "labels" in document else None
    told = show_keys(keys, labels, order)
    return Reply(
        head=document["head"], keys=told, reservation=earlier.answer, select_list=shown, order=order, labels=labels
    )


def _restore_select_list(service: Service, body: QuestionIn, analyst: Analyst) -> SelectList | None:
    """Return the select list of a scorecard. Return None if the policy no longer allows the question."""
    try:
        with read_very_long_alone(body.sql, analyst=analyst.name):
            return read_select_list(body.make_asked(analyst, service, today=_read_clock().date()).question)
    except KeyholeError:
        return None


def _restore_constant(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, *, digest: str
) -> KeySet:
    """Return the keys of a constant answer, if they are the same as in the first reply."""
    _, plan = _plan(service, body, analyst, today=earlier.begun_at.date())
    keys = None if plan.reads_data else KeySet.make_constant(plan)
    if keys is None or _digest(keys) != digest:
        raise refuse_unknown_end("The first attempt spent nothing, and was answered under another policy.")
    return keys


def _find_stored_answer(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    earlier: EarlierAttempt,
    reservation: str,
    labels: LabelReader | None,
) -> Reply | KeyholeError:
    """Return the reply with the answer that the first request stored before it crashed."""
    try:
        stored = service.ledger.idempotency.find_answer(reservation, analyst=analyst.name)
    except LedgerError:
        raise report_unavailable_ledger() from None
    if stored is None:
        raise report_unavailable_ledger()
    try:
        reused = earlier.reservation != reservation
        asked, plan = _plan(service, body, analyst, today=earlier.begun_at.date())
        shown = _read_labels(asked, plan, labels)
        answer = restore_answer(service, plan, asked, stored, reused=reused)
    except KeyholeError as refusal:
        return refusal
    if answer is None:
        raise refuse_unknown_end(
            "The first attempt may have spent: it was answered under another policy, and its answer was not sent."
        )
    return Reply.from_answer(answer, asked, shown)


def _identify_request(body: QuestionIn) -> str:
    """Return the SHA-256 of a request's fields as they were sent. The answer's media type is not included."""
    fields = body.model_dump(exclude_none=True)
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _digest(keys: KeySet) -> str:
    return hashlib.sha256(keys.to_bytes()).hexdigest()


def _pack_document(document: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def _make_document(refusal: KeyholeError) -> dict[str, Any]:
    return {name: getattr(refusal, name) for name in ("code", "message", "detail", "hint", "position")}


def _restore_refusal(document: Mapping[str, Any]) -> KeyholeError:
    return KeyholeError(
        document["code"],
        document["message"],
        detail=document["detail"],
        hint=document["hint"],
        position=document["position"],
    )


def _read_clock() -> datetime:
    return datetime.now(UTC)
