"""The input and output values of the pipeline."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from operator import itemgetter
from threading import Event
from typing import Any

import numpy as np

from accountant.store.attempts import Attempt
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.ranking.run import Ranking
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Analyst, Catalog
from planner.catalog.key_space import WHOLE_TABLE, KeySpace
from planner.catalog.listed_values import format_values
from planner.errors import KeyholeError
from planner.explain.guarantee import write_guarantee_json
from planner.explain.payment import Payment
from planner.extract.outer_query import Asking
from planner.parser.lexer import split_statements
from planner.question.plan import Plan
from planner.question.question import Accuracy, Question
from planner.scope.embedded import RANK_COLUMN, EmbeddedQuestion, name_predicate_column
from planner.scorecard.key_order import KeyOrder, read_key_order
from planner.statements import settings
from planner.statements.classify import CopiedQuery, ExecuteStatement, classify
from planner.statements.key_parameters import classify_bound
from planner.values.constant import ParameterCast, ParameterValue
from proxy.concurrency.cancellation import make_cancellation_error
from proxy.pipeline.key_rows import FEWEST, Key, KeyRows, unpack_rows
from proxy.pipeline.question_refusals import (
    refuse_conditions_around,
    refuse_outer_query,
    refuse_ranking_places,
    refuse_statement_count,
    refuse_stored_question,
)
from proxy.pipeline.ranking import rank_without_data
from proxy.pipeline.text_cache import SHORT_CHARACTERS, ObjectCache

KEY_SET_FORMAT = 2  # of an answer's bytes in the ledger; 1, with a list for each key, is read as well
PACKED_FORMAT = 3  # of the bytes of very many keys
_TRUTHS = ("false", "true", None)  # as PostgreSQL prints them in full; the last is NULL
_WORD = re.compile(r"[A-Za-z]+")
_bound_questions: ObjectCache[Question] = ObjectCache(128)  # as many as plans, which begin with the same questions


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as an analyst asked it, with everything that affects its answer.

    `settings` are the `keyhole.*` settings in force. `casts` are the values of casts of `parameters`. `today` is the
    day for current_date, and `is_utc` is True if the session's TimeZone is UTC. Its clocks jump over midnight on
    `skipped_midnights`. `attempt` identifies a retried HTTP request: the question can spend only while this attempt
    holds the request. `withdrawn` is set once nobody waits for the answer. `order` is the order of the answer's keys,
    if no shadow sorts them.
    """

    question: EmbeddedQuestion
    settings: Mapping[str, str | None]
    parameters: Mapping[int, ParameterValue | None]
    analyst: Analyst
    today: date
    is_utc: bool = False
    skipped_midnights: tuple[date, ...] = ()
    casts: Mapping[ParameterCast, ParameterValue | None] = field(default_factory=dict)
    attempt: Attempt | None = None
    withdrawn: Event | None = None
    order: KeyOrder = ()

    def read_accuracy(self, catalog: Catalog) -> Accuracy:
        """Return the accuracy that the settings promise. Raise KH404."""
        return settings.read_accuracy(self.settings, catalog.defaults)

    def read_question(self, catalog: Catalog, accuracy: Accuracy) -> Question:
        """Bind the question to a catalog at the given accuracy, and return it. Raise KH1xx to KH4xx.

        A statement that is asked again has the same `EmbeddedQuestion`, and is not bound again.
        """
        bind = partial(
            bind_question,
            self.question,
            catalog,
            accuracy=accuracy,
            parameters=self.parameters,
            today=self.today,
            is_utc=self.is_utc,
            skipped_midnights=self.skipped_midnights,
            casts=self.casts,
        )
        if len(self.question.text) > SHORT_CHARACTERS:
            return bind()
        zone = (self.is_utc, self.skipped_midnights)
        given = repr((accuracy, self.parameters, self.today, zone, self.casts))  # 1, 1.0 and true are not equal
        return _bound_questions.find_or_make(self.question, catalog, given, bind)

    def check_not_withdrawn(self) -> None:
        """Raise KH409 if nobody waits for the answer any more."""
        if self.withdrawn is not None and self.withdrawn.is_set():
            raise make_cancellation_error()


def read_bare_question(sql: str, catalog: Catalog) -> EmbeddedQuestion:
    """Parse a text that is one question without an outer query. Raise KH1xx for any other text."""
    question, order = read_ordered_question(sql, catalog)
    if order:
        raise refuse_outer_query(sql, catalog)
    return question


def read_ordered_question(
    sql: str, catalog: Catalog, parameters: Mapping[int, ParameterValue | None] | None = None
) -> tuple[EmbeddedQuestion, KeyOrder]:
    """Parse a text that is one question, and return it with the order of its ORDER BY over keys.

    `parameters` are the values of parameters in the text. Raise KH1xx and KH2xx.
    """
    statements = split_statements(sql)
    if len(statements) != 1:
        raise refuse_statement_count()
    text, offset = statements[0].text, statements[0].offset
    try:
        try:
            statement = classify(text, catalog)
        except KeyholeError as refusal:
            text, statement = classify_bound(text, catalog, parameters or {}, refusal=refusal)
        match statement:
            case Asking(embedded=(EmbeddedQuestion(stored_question=str(name)),)):
                raise refuse_stored_question(name)
            case Asking(embedded=(EmbeddedQuestion() as question,)):
                order = read_key_order(question, text)
                if question.ranked is not None and not question.ranked.is_self_contained:
                    raise refuse_ranking_places()
                if order is not None:
                    return question.shift_by(offset=offset), order
                if (refused := refuse_conditions_around(question, text)) is not None:
                    raise refused
        raise refuse_outer_query(text, catalog)
    except KeyholeError as error:
        is_written = text != statements[0].text  # positions are those of another text
        raise error.drop_position() if is_written else error.shift_position(offset=offset) from None


@dataclass(frozen=True, slots=True)
class KeySet:
    """The only answer that is ever released: the keys that passed, as PostgreSQL's text, in the key space's order.

    Each row has a key, and then the truth values of the question's selected predicates, None for NULL. The rows of a
    ranking are in ranking order, with the rank right after the key.
    """

    columns: tuple[str, ...]
    keys: Sequence[Key]

    @staticmethod
    def from_passed(
        plan: Plan,
        passed: Booleans,
        predicates: Sequence[Booleans] = (),
        ranking: Ranking | None = None,
        *,
        unknown: Sequence[Booleans] = (),
    ) -> "KeySet":
        """Return the key set of all keys for which `passed` is true.

        `passed` has a value per key of the plan's key space. `predicates` has an array of truth values for each
        selected predicate. If there is `unknown`, it has for each predicate the keys for which it is NULL. With a
        `ranking`, the keys are in ranking order.
        """
        space = plan.question.keys
        where, places = (np.flatnonzero(passed), ()) if ranking is None else _list_ranked_keys(plan, passed, ranking)
        nulls = unknown or [np.zeros(passed.size, dtype=np.bool_)] * len(predicates)
        known = [
            _number_truths(plan, number, truth, null)
            for number, (truth, null) in enumerate(zip(predicates, nulls, strict=True))
        ]
        if len(where) >= FEWEST and space.columns and ranking is None:
            return KeySet._from_places(space, where, known)
        truths: list[list[str | None]] = [[_TRUTHS[number] for number in truth[where].tolist()] for truth in known]
        names = tuple(name_predicate_column(number) for number in range(len(truths)))
        if ranking is not None:
            truths.insert(0, list(map(str, places)))
            names = (RANK_COLUMN, *names)
        if not space.columns:
            columns: list[list[str | None]] = [["true"] * len(where), *truths]
            return KeySet(columns=(WHOLE_TABLE, *names), keys=tuple(zip(*columns, strict=True)))
        texts = [np.array(format_values(values), dtype=object) for values in space.values]
        coordinates = np.unravel_index(where, space.shape)
        columns = [column[index].tolist() for column, index in zip(texts, coordinates, strict=True)]
        return KeySet(columns=(*space.names, *names), keys=tuple(zip(*columns, *truths, strict=True)))

    @staticmethod
    def _from_places(space: KeySpace, where: Integers, truths: Sequence[Integers]) -> "KeySet":
        texts = (*map(format_values, space.values), *(_TRUTHS for _ in truths))
        places = (*np.unravel_index(where, space.shape), *(truth[where] for truth in truths))
        names = (*space.names, *(name_predicate_column(number) for number in range(len(truths))))
        return KeySet(columns=names, keys=KeyRows(texts, tuple(at.astype(np.uint32) for at in places)))

    @staticmethod
    def make_constant(plan: Plan) -> "KeySet":
        """Return the answer to a formula that is always true (all keys) or never true (none). No data is read."""
        size = plan.question.keys.size
        passed, *predicates = (evaluate_formula(one, _no_literal, keys=size) for one in plan.question.formulas)
        return KeySet.from_passed(plan, passed, predicates, rank_without_data(plan, passed))

    @property
    def arrays(self) -> tuple[tuple[str | None, ...], ...]:
        """The rows by column, one tuple for each column, in the form in which the shadow receives them."""
        if isinstance(self.keys, KeyRows):
            return self.keys.arrays
        return tuple(tuple(map(itemgetter(place), self.keys)) for place in range(len(self.columns)))

    def to_bytes(self) -> bytes:
        """Return the answer as bytes for the ledger."""
        document: dict[str, Any] = {"format": KEY_SET_FORMAT, "columns": self.columns, "count": len(self.keys)}
        if isinstance(self.keys, KeyRows):
            document |= {"format": PACKED_FORMAT, **self.keys.pack()}
        else:
            document["values"] = self.arrays  # by column: a list for each key would take ten times as long to read
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _list_ranked_keys(plan: Plan, passed: Booleans, ranking: Ranking) -> tuple[Integers, list[int]]:
    """Return the keys of a ranking in ranking order, and their ranks.

    If every key that passed is in the answer, the unranked keys follow with the rank after the last one.
    """
    ranked = plan.question.ranked
    places = ranking.places.tolist()
    if ranked is None or not ranked.keeps_every_row:
        return ranking.ranked_keys, places
    beyond = passed.copy()
    beyond[ranking.ranked_keys] = False
    others = np.flatnonzero(beyond)
    return np.concatenate([ranking.ranked_keys, others]), places + [(ranked.most_returned or 0) + 1] * others.size


def _number_truths(plan: Plan, number: int, truth: Booleans, null: Booleans) -> Integers:
    """Return a predicate's truth values as indices into `_TRUTHS`.

    The predicate is false for each key where public values already make it so, and NULL where they make it NULL.
    """
    space, question = plan.question.keys, plan.question
    if question.null_predicates and question.null_predicates[number]:
        return np.where(truth, 1, 2).astype(np.int64)
    found = np.where(null, 2, truth).astype(np.int64).reshape(space.shape)
    for known, said in ((question.publicly_false_keys, 0), (question.publicly_null_keys, 2)):
        for key, places in known[number] if known else ():
            found[(slice(None),) * space.names.index(key) + (list(places),)] = said
    return found.reshape(-1)


def _no_literal(_: Cut) -> Booleans:
    raise ValueError("a constant formula has no literals")


@dataclass(frozen=True, slots=True)
class Denial:
    """The result of a mechanism that read the data and stopped without an answer."""

    def to_bytes(self) -> bytes:
        """Return the denial as bytes for the ledger. Asking again returns the same denial at no cost."""
        return json.dumps({"format": KEY_SET_FORMAT, "denied": True}, separators=(",", ":")).encode()


def from_bytes(stored: bytes) -> KeySet | Denial:
    """Parse a key set or a denial from the bytes of `to_bytes`."""
    document = json.loads(stored)
    if document["format"] not in (1, KEY_SET_FORMAT, PACKED_FORMAT):
        raise ValueError("a stored answer of an unknown format")
    if document.get("denied"):
        return Denial()
    columns = tuple(document["columns"])
    if document["format"] == 1:
        return KeySet(columns=columns, keys=tuple(map(tuple, document["keys"])))
    if document["format"] == PACKED_FORMAT:
        rows = unpack_rows(document, count=document["count"])
        if len(rows.texts) != len(columns):
            raise ValueError("a stored answer has lost columns")
        return KeySet(columns=columns, keys=rows)
    keys = tuple(zip(*document["values"], strict=True)) if columns else ((),) * document["count"]
    if len(keys) != document["count"]:
        raise ValueError("a stored answer has lost keys")
    return KeySet(columns=columns, keys=keys)


@dataclass(frozen=True, slots=True)
class Answer:
    """A released key set, with its plan and its public data version.

    `is_reused` is True if the key set was released before, so that the shared balances were not charged now.
    `noise_notice` is a sentence about earlier questions that share its noise. `reservation` is the one under which the
    ledger stores the key set, or None for a constant answer. `payment` is the cost this time, or None if no balance
    counts it.
    """

    plan: Plan
    keys: KeySet
    version: str
    is_reused: bool
    noise_notice: str | None = None
    reservation: str | None = None
    payment: Payment | None = None

    @staticmethod
    def make_constant(plan: Plan, *, version: str) -> "Answer":
        """Return the answer that follows from the question alone, without reading data."""
        return Answer(plan=plan, keys=KeySet.make_constant(plan), version=version, is_reused=False)

    def make_head(self) -> dict[str, Any]:
        """Return the answer's JSON document without the keys: promise, cost, data version, reuse.

        The promise is the error rates of the keys. Reuse says if the answer is a repetition, or shares noise with
        earlier questions.
        """
        return {
            "guarantee": write_guarantee_json(self.plan),
            "cost": None if self.payment is None else self.payment.to_json(was_charged=True),
            "data_version": self.version,
            "reused": self.is_reused,
            "shared_noise": self.noise_notice,
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the key set's columns for people. Predicates have the names that the question gave them."""
        names = self.plan.asked_question.predicate_names
        return self.keys.columns[: len(self.keys.columns) - len(names)] + names

    def make_document(self) -> dict[str, Any]:
        """Return the answer as a JSON document: columns, keys, and the head."""
        return {"columns": list(self.columns), "keys": [list(key) for key in self.keys.keys], **self.make_head()}


@dataclass(frozen=True, slots=True)
class StatementPart:
    """One statement of a text, starting at character `offset`. `is_intercepted` means that Keyhole answers it.

    `prepared_name` is the name that a PREPARE gives to a question; its text must then be sent alone.
    `execute_statement` is set for an EXECUTE: the statement that the shadow has under its name decides who answers.
    `statements_before` are statements without effect that must first succeed in the shadow. `copied_query` is the
    answered query inside a COPY. `listened_channel` is the channel of a LISTEN, which the shadow runs. `rewritten_text`
    is the text for the shadow, if it differs from the client's.
    """

    text: str
    offset: int
    is_intercepted: bool
    prepared_name: str | None = None
    execute_statement: ExecuteStatement | None = None
    statements_before: tuple[str, ...] = ()
    copied_query: CopiedQuery | None = None
    listened_channel: str | None = None
    rewritten_text: str = ""

    @property
    def shadow_text(self) -> str:
        """The text that is sent to the shadow to find the statement's types."""
        return self.rewritten_text or self.text

    @property
    def first_word(self) -> str:
        """The first word of the statement, in lower case."""
        found = _WORD.match(self.text)
        return "" if found is None else found.group().lower()


@dataclass(frozen=True, slots=True)
class Request:
    """One statement to plan, with everything in the session that affects its meaning.

    `settings` are the `keyhole.*` settings in force. `parameters` are numbered from 1. `is_utc` is True if the
    session's TimeZone is UTC. Its clocks jump over midnight on `skipped_midnights`.
    `casts` are the values of casts of parameters, as PostgreSQL computed them.
    """

    statement: str
    settings: Mapping[str, str | None]
    parameters: Mapping[int, ParameterValue | None]
    analyst: str
    is_utc: bool
    skipped_midnights: tuple[date, ...] = ()
    casts: Mapping[ParameterCast, ParameterValue | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A planned statement: the SQL for the shadow, and the plan by which its answer is released.

    `sql` takes the client's parameters under their own numbers, followed by `arrays` parameters of type text[]. Its
    columns have the names and types of the client's statement. `tag`, if set, replaces the shadow's command tag, as for
    EXPLAIN. Before anything is released, `sql` must run in the shadow without keys, and then the statements of
    `rehearsal`.
    """

    sql: str
    arrays: int
    tag: str | None
    plan: object
    rehearsal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleasedArrays:
    """The array parameters for `PreparedRequest.sql`, in order, and the sentences that the client gets as NOTICEs."""

    arrays: tuple[tuple[str | None, ...], ...]
    notices: tuple[str, ...]
