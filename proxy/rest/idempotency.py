"""A question that is asked once, however often it is sent under one `Idempotency-Key`.

Guarantee: whatever dies in between, on whichever data version a repetition arrives, the requests under one key of one
analyst spend once. A repetition gets the answer of the first, the refusal that the first met after it had spent, or
KH432 where neither is known. A refusal that spent nothing frees the key. Key sets are in the ledger's store, or follow
from the question alone: nothing long is kept under an idempotency key.
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
from proxy.pipeline.ledger_verbs import answer_again
from proxy.pipeline.messages import Asked, KeySet
from proxy.pipeline.question_refusals import refuse_computed_keys
from proxy.report.report_refusals import make_internal_error
from proxy.rest import answers
from proxy.rest.answers import Reply
from proxy.rest.models import QuestionIn
from proxy.rest.request_refusals import end_unknown, other_request, still_answered, too_many_keys
from proxy.rest.sorted_keys import show_keys
from proxy.shadow.key_labels import KeyLabels, LabelReader

log = structlog.get_logger("keyhole.rest")

_CHARACTERS = "[A-Za-z0-9._~:/+=-]{1,128}"
KEY_PATTERN = f'^(?:"{_CHARACTERS}"|{_CHARACTERS})$'
_MARGIN = timedelta(seconds=60)  # what an attempt may take before it reserves, beside waiting for the source
_REPLAYED: Mapping[str, str] = MappingProxyType({"Idempotency-Replayed": "true"})


@dataclass(frozen=True, slots=True)
class Told:
    """The result of a question, and the headers that describe it."""

    outcome: Reply | KeyholeError
    headers: Mapping[str, str]


def ask(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    *,
    key: str | None,
    keep_days: int,
    labels: LabelReader | None,
) -> Told:
    """Ask a question once for each key, and return its answer.

    `labels` shows computed keys. Raise KeyholeError: KH431, KH432, KH430, and the pipeline's refusals.
    """
    if key is None:
        return Told(_answer(service, body, analyst, labels, today=_now().date(), attempt=None)[0], {})
    lease = 2 * timedelta(milliseconds=service.catalog.statement_timeout_ms) + _MARGIN
    try:
        begun = service.ledger.idempotency.begin(
            analyst.name, key.strip('"'), request=_request(body), lease=lease, keep=timedelta(days=keep_days)
        )
    except OtherRequest:
        raise other_request() from None
    except TooManyKeys:
        raise too_many_keys() from None
    except LedgerError:
        raise report_unavailable_ledger() from None
    if isinstance(begun, EarlierAttempt):
        return Told(_outcome_of(service, body, analyst, begun, labels), _REPLAYED)
    return Told(_first(service, body, analyst, begun, labels), {})


def _answer(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    labels: LabelReader | None,
    *,
    today: date,
    attempt: Attempt | None,
) -> tuple[Reply, KeySet]:
    """Return the reply to a request, and the answer's keys in the key domain's order."""
    asked, plan = _plan(service, body, analyst, today=today, attempt=attempt)
    shown = _read_labels(asked, plan, labels)
    answer = pipeline.answer(service, plan, asked)
    return Reply.of(answer, asked, shown), answer.keys


def _read_labels(asked: Asked, plan: Plan, labels: LabelReader | None) -> KeyLabels | None:
    """Read how computed keys are shown. Raise KH106 if no shadow shows them, and KH406."""
    question = asked.question
    if labels is not None:
        return labels.read(question, plan.question.keys, analyst=asked.analyst.name)
    if (refused := refuse_computed_keys(question)) is not None:
        raise refused
    return None


def _plan(
    service: Service, body: QuestionIn, analyst: Analyst, *, today: date, attempt: Attempt | None = None
) -> tuple[Asked, Plan]:
    with read_very_long_alone(body.sql, analyst=analyst.name):
        asked = body.asked_by(analyst, service, today=today, attempt=attempt)
        return asked, pipeline.prepare(service, asked)


def _first(service: Service, body: QuestionIn, analyst: Analyst, attempt: Attempt, labels: LabelReader | None) -> Reply:
    """Answer, and keep what is told. Where that fails nothing is lost: a repetition finds the answer in the ledger."""
    try:
        reply, released = _answer(service, body, analyst, labels, today=attempt.begun_at.date(), attempt=attempt)
    except AttemptTaken:
        raise still_answered() from None
    except Exception as error:
        refusal = error if isinstance(error, KeyholeError) else make_internal_error()
        with suppress(LedgerError):
            service.ledger.idempotency.fail(attempt, response=_pack_document({"refusal": _as_document(refusal)}))
        raise
    own: dict[str, Any] = {} if reply.stored is not None else {"keys": _digest(released)}
    if reply.labels is not None:
        own["labels"] = reply.labels.document()
    told = {"head": reply.head, "order": answers.write_order(reply.order), **own}
    try:
        service.ledger.idempotency.end(attempt, response=_pack_document(told), answer=reply.stored)
    except LedgerError:
        log.warning("an idempotency key was not ended")
    return reply


def _outcome_of(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, labels: LabelReader | None
) -> Reply | KeyholeError:
    """Return the result of the first request under the key. Raise KH432 if that is not known, KH502."""
    match earlier.state:
        case AttemptState.ENDED if earlier.response is not None:
            return _told_before(service, body, analyst, earlier, json.loads(zlib.decompress(earlier.response)))
        case AttemptState.ANSWERED if earlier.answer is not None:
            return _answered_before(service, body, analyst, earlier, earlier.answer, labels)
        case AttemptState.RUNNING:
            raise still_answered()
    raise end_unknown(
        "The first attempt may have spent: it died after it had reserved its worst case, and stored no answer."
    )


def _told_before(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, document: Mapping[str, Any]
) -> Reply | KeyholeError:
    if "refusal" in document:
        return _refusal_of(document["refusal"])
    if earlier.answer is None:
        keys: KeySet | None = _constant_again(service, body, analyst, earlier, digest=document["keys"])
    else:
        keys = answers.stored_keys(service, earlier.answer, analyst)
    if keys is None:
        raise report_unavailable_ledger()
    head = document["head"]
    has_list = head["guarantee"].get("predicates") or head.get("numbers")
    shown = _shown_again(service, body, analyst) if has_list else None
    order = answers.read_order(document.get("order", ""))  # of an answer from before there were any: none
    labels = KeyLabels.parse(document["labels"]) if "labels" in document else None
    told = show_keys(keys, labels, order)
    return Reply(head=document["head"], keys=told, stored=earlier.answer, shown=shown, order=order, labels=labels)


def _shown_again(service: Service, body: QuestionIn, analyst: Analyst) -> SelectList | None:
    """Return the select list of a scorecard, as far as the policy still reads it."""
    try:
        with read_very_long_alone(body.sql, analyst=analyst.name):
            return read_select_list(body.asked_by(analyst, service, today=_now().date()).question)
    except KeyholeError:
        return None


def _constant_again(
    service: Service, body: QuestionIn, analyst: Analyst, earlier: EarlierAttempt, *, digest: str
) -> KeySet:
    """Return the keys that the question alone decided, if it still decides the same ones."""
    _, plan = _plan(service, body, analyst, today=earlier.begun_at.date())
    keys = None if plan.reads_data else KeySet.make_constant(plan)
    if keys is None or _digest(keys) != digest:
        raise end_unknown("The first attempt spent nothing, and was answered under another policy.")
    return keys


def _answered_before(
    service: Service,
    body: QuestionIn,
    analyst: Analyst,
    earlier: EarlierAttempt,
    reservation: str,
    labels: LabelReader | None,
) -> Reply | KeyholeError:
    """Return the answer that the first request stored before it died."""
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
        answer = answer_again(service, plan, asked, stored, reused=reused)
    except KeyholeError as refusal:
        return refusal
    if answer is None:
        raise end_unknown("The first attempt may have spent: it was answered under another policy, and was not told.")
    return Reply.of(answer, asked, shown)


def _request(body: QuestionIn) -> str:
    """Return the identity of a request: every field, as it was sent. The form of the answer is no part of it."""
    fields = body.model_dump(exclude_none=True)
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _digest(keys: KeySet) -> str:
    return hashlib.sha256(keys.to_bytes()).hexdigest()


def _pack_document(document: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), 1)


def _as_document(refusal: KeyholeError) -> dict[str, Any]:
    return {name: getattr(refusal, name) for name in ("code", "message", "detail", "hint", "position")}


def _refusal_of(document: Mapping[str, Any]) -> KeyholeError:
    return KeyholeError(
        document["code"],
        document["message"],
        detail=document["detail"],
        hint=document["hint"],
        position=document["position"],
    )


def _now() -> datetime:
    return datetime.now(UTC)
