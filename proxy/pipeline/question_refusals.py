"""The refusals of the pipeline, in words.

They follow from the question, the policy, the ledger and the clock. Only `report_stopped_mechanism` follows from noisy
values, after these were paid for.
"""

import re
from datetime import UTC
from decimal import Decimal
from math import ceil

from accountant.charges import NANO
from accountant.errors import BalanceScope, NotApproved, OverBudget
from planner.catalog.catalog import Catalog
from planner.catalog.fault import suggest_nearest_name
from planner.catalog.pace import LONGEST_TIMEOUT_MS, UNCERTAINTY_FACTOR, ExpectedTime, write_seconds
from planner.catalog.tolerance import quote_literal, widen_tolerances
from planner.errors import KeyholeError
from planner.explain.balances import QuestionBalance
from planner.extract.virtual_relations import VIRTUAL_SCHEMA
from planner.question.plan import Plan
from planner.scope.embedded import EmbeddedQuestion
from proxy.report.limit_names import name_limit, write_distinct_amounts
from proxy.report.terminal import make_visible


def refuse_statement_count() -> KeyholeError:
    """Return the refusal of a text that is not exactly one statement."""
    return KeyholeError("KH108", "one question is expected", hint="Send one SELECT keys ... HAVING ... statement.")


_NAME = r'(?:"([^"]+)"|(\w+))'
_WRITTEN_AROUND = re.compile(r"\bFROM\s*\(|^\s*WITH\b", re.IGNORECASE)
_FROM = re.compile(rf"\bFROM\s+(?:{_NAME}\.)?{_NAME}(?![\w.]|\s*[()])", re.IGNORECASE)  # no EXTRACT(MONTH FROM day)


def refuse_outer_query(text: str, catalog: Catalog) -> KeyholeError:
    """Return the refusal of a statement around a question, or of an unknown table, for callers without a shadow."""
    known = {(schema, name) for name in catalog.names for schema in ("", "public")}
    known |= {(schema, one.name) for one in catalog.source_names for schema in ("", one.schema)}
    if (named := _FROM.search(text)) is not None:
        schema, wanted = (quoted or (plain or "").lower() for quoted, plain in (named.group(1, 2), named.group(3, 4)))
        if schema != VIRTUAL_SCHEMA and (schema, wanted) not in known:
            said = f"{schema}.{wanted}" if schema else wanted
            listed = [f"{schema}.{name}" if schema else name for schema, name in sorted(known) if schema != "public"]
            at = next(at for at in range(1, 5) if named.group(at) is not None)
            position = named.start(at) + 1
            return KeyholeError(
                "KH106", f'there is no table "{said}"', hint=suggest_nearest_name(said, listed), position=position
            )
    return KeyholeError(
        "KH106",
        "this is not a question by itself",
        detail="Without the PostgreSQL endpoint only the keys of one question are returned.",
        hint="Write SELECT keys FROM table GROUP BY keys HAVING ..., or use the PostgreSQL endpoint.",
    )


def refuse_conditions_around(question: EmbeddedQuestion, text: str) -> KeyholeError | None:
    """Return the refusal of conditions on keys that hold around compared groups, for callers without a shadow.

    Return None if the analyst wrote the query around, or there is none.
    """
    if question.origin is None or f"({question.text})" not in question.origin.text or _WRITTEN_AROUND.search(text):
        return None
    return KeyholeError(
        "KH106",
        "conditions on keys do not restrict the groups that this total reads",
        detail="The total reads more groups than the answer shows, which PostgreSQL leaves out around the question.",
        hint="Leave the condition out and drop these groups from the answer, at the same price. Or write it into the "
        "WHERE of the total as well. Or use the PostgreSQL endpoint.",
    )


def refuse_computed_keys(question: EmbeddedQuestion) -> KeyholeError | None:
    """Return the refusal of a question whose keys PostgreSQL would have to compute, for callers without a shadow.

    Return None for any other question.
    """
    if question.shown_keys is None:
        return None
    computed = next(one for one in question.shown_keys.items if one.sql)
    return KeyholeError(
        "KH106",
        f"{computed.name} is computed from a column",
        detail="Its values are computed by PostgreSQL, and only keys that stand in the table are returned here.",
        hint="Ask through the PostgreSQL endpoint.",
    )


def refuse_stored_question(name: str) -> KeyholeError:
    """Return KH106 for a statement over a stored question, for callers without a shadow."""
    return KeyholeError(
        "KH106",
        f'"{name}" is a stored question',
        detail="Without the PostgreSQL endpoint only the keys of one question are returned.",
        hint="Send the SQL that is stored, with its parameters, or use the PostgreSQL endpoint.",
    )


def refuse_ranking_places() -> KeyholeError:
    """Return KH106 for a statement that selects the ranks of a ranking, for callers without a shadow."""
    return KeyholeError(
        "KH106",
        "windows, DISTINCT ON and OFFSET read the places of a ranking",
        detail="Without the PostgreSQL endpoint only the first groups of one ranking are returned, in their order.",
        hint="Instead you can ask: ... GROUP BY keys ORDER BY count(*) DESC LIMIT 5; or use the PostgreSQL endpoint.",
    )


def refuse_uncountable_cost(plan: Plan) -> KeyholeError:
    """Return the refusal of a question that costs more than the ledger can hold."""
    return KeyholeError(
        "KH302",
        f"the question costs {plan.worst_case_epsilon:.2f} epsilon, more than any question may cost",
        detail="A loss of this size protects nobody.",
        hint="Widen keyhole.tolerance, or choose another keyhole.mechanism or a lower keyhole.most_positives.",
    )


def refuse_over_budget(
    over: OverBudget, *, plan: Plan, left: QuestionBalance, short: str, is_session_cap: bool
) -> KeyholeError:
    """Return the refusal of a question that the balances do not cover, with what would fit instead.

    Parameters:
        is_session_cap: True if the cap on one question is the session's own.
        short: the groups that lack budget, in words, or "".
    """
    needed, least = write_distinct_amounts(over.needed_nano, over.left_nano)
    limit = name_limit(over.scope, is_session_cap=is_session_cap)
    keys = f"{over.short_keys} of {over.total_keys} groups"
    amounts = f"(needs {needed}, left {least})"
    code, message, detail = {
        BalanceScope.PER_QUERY: (
            "KH302",
            f"the question costs {needed} epsilon, one question may cost {least}",
            "A wider tolerance or higher error rates make a question cheaper.",
        ),
        BalanceScope.PER_PREDICATE: (
            "KH301",
            f"not enough budget for {keys} {amounts}",
            "The budget of a group protects everyone in it; it does not grow back. New groups bring their own.",
        ),
        BalanceScope.PER_UNIT: (
            "KH305",
            f"not enough budget for the privacy unit {amounts}",
            f"One unit ({plan.question.table.unit_text}) may lose so much over all questions together.",
        ),
        BalanceScope.PER_TABLE: (
            "KH309",
            f"not enough budget for the table {amounts}",
            f"All questions on {plan.question.table.ledger_root.table} together may cost so much.",
        ),
        BalanceScope.ANALYST_PER_PREDICATE: (
            "KH306",
            f"your own cap is reached for {keys} {amounts}",
            "Each analyst has a cap of their own beside the shared budget; stored answers count towards it.",
        ),
        BalanceScope.ANALYST_PER_UNIT: (
            "KH306",
            f"your own cap for the privacy unit is reached {amounts}",
            "Each analyst has a cap of their own beside the shared budget; stored answers count towards it.",
        ),
    }[over.scope]
    detail = f"{detail} The limit is {limit}."
    if short:
        detail = f"{detail} Too little is left for {short}."
    return KeyholeError(code, message, detail=detail, hint=left.hint or None)


def refuse_joint_cost(
    over: OverBudget, *, plan: Plan, left: QuestionBalance, is_session_cap: bool, place: tuple[int, int]
) -> KeyholeError:
    """Return the refusal of a statement whose questions do not fit together.

    The text names the first question that does not fit after the earlier ones.

    Parameters:
        place: the number of that question, counted from 1, and the number of all.
    """
    refused = refuse_over_budget(over, plan=plan, left=left, short="", is_session_cap=is_session_cap)
    number, count = place
    detail = f"It is question {number} of {count} of the statement, behind the others; none of them was asked."
    hint = refused.hint or "Ask them one by one, the most important first, or with a wider keyhole.tolerance."
    return KeyholeError(refused.code, refused.message, detail=f"{refused.detail} {detail}", hint=hint)


def refuse_slow_question(expected: ExpectedTime) -> KeyholeError:
    """Return the refusal of a question that would run into the timeout and still be charged.

    It depends on question, policy and pins alone.
    """
    seconds, limit = write_seconds(expected.seconds), write_seconds(expected.timeout_s)
    return KeyholeError(
        "KH319",
        f"the question is expected to take about {seconds}, and the timeout is {limit}",
        detail="The estimate uses the declared sizes of tables and times measured on generated rows. A question "
        "that runs into the timeout stays charged. Nothing is spent now.",
        hint="Group by fewer or coarser keys, or ask for fewer aggregates at once." + _suggest_timeout(expected),
    )


def _suggest_timeout(expected: ExpectedTime) -> str:
    """Return the sentence of a hint that names the timeout that the owner should set.

    It has a margin for the error of the expected time. Return "" if no allowed timeout is long enough.
    """
    needed_ms = 1000 * ceil(UNCERTAINTY_FACTOR * expected.seconds)
    if needed_ms > LONGEST_TIMEOUT_MS:
        return ""
    return f" The data owner may raise limits.statement_timeout_ms to {needed_ms:_}."


def refuse_unapproved(waiting: NotApproved) -> KeyholeError:
    """Return the refusal of a question that needs the owner's approval, with the owner's command.

    It is KH308, or KH318 if the owner declined. KH318 has the time and the reason, but not who decided it.
    """
    needed, above = waiting.needed_nano / NANO, waiting.above_nano / NANO
    if waiting.declined is not None:
        return KeyholeError(
            "KH318",
            f"the data owner declined the question: {make_visible(waiting.declined.why)}",
            detail=f"That was at {waiting.declined.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC. It costs {needed:.2f} "
            f"epsilon, more than {above:g}. The question's id is {waiting.question}. Nothing is spent.",
            hint="Ask with a wider tolerance, which is another question. Or ask the same again, and the data owner "
            f"may run: keyhole approve {waiting.question}",
        )
    return KeyholeError(
        "KH308",
        f"the question waits for the owner's approval: it costs {needed:.2f} epsilon, more than {above:g}",
        detail=f"The question's id is {waiting.question}. Nothing is spent.",
        hint=f"Ask the data owner to run: keyhole approve {waiting.question}",
    )


def refuse_duplicate() -> KeyholeError:
    """Return the refusal of a question that waited too long for an equal question of its analyst."""
    return KeyholeError(
        "KH501",
        "the same question, which you asked before, is still being answered",
        detail="This one waited for its answer as long as a question may. It has spent nothing.",
        hint="Ask again later: once it is answered, the same question costs nothing.",
    )


def report_unwritten_reading() -> KeyholeError:
    """Return the analyst's error if the ledger fails while the reading of stored noise is charged."""
    return KeyholeError(
        "KH502",
        "the ledger is not available",
        detail="No answer is released without a durable entry. Nothing is reserved. Reading may count towards a cap "
        "of your own.",
        hint="Ask again later, or inform the data owner.",
    )


def refuse_changed_data(*, is_paid: bool) -> KeyholeError:
    """Return the refusal of a question whose table's data version changed while it was being answered."""
    return KeyholeError(
        "KH501",
        "the data version changed while the question was answered",
        detail="An answer is returned only for the data version that it is charged to. "
        + ("The reserved budget stays spent." if is_paid else "Nothing was spent."),
        hint="Ask again: it is another question now. If this error repeats, the owner has to run keyhole refresh.",
    )


def report_stopped_mechanism(plan: Plan) -> KeyholeError:
    """Return the refusal of a question whose mechanism read the data and stopped without an answer.

    It depends on noisy values, and is charged.
    """
    accuracy = plan.asked_question.accuracy
    other, wider = accuracy.other_mechanism, widen_tolerances(accuracy.tolerance, Decimal(2))
    return KeyholeError(
        "KH307",
        f"the mechanism {plan.calibration.mechanism} stopped without an answer",
        detail="It could not keep its bounds on loss and wrong keys with its looks, and the looks so far are spent. "
        "Asking again returns the same and costs nothing.",
        hint=f"SET keyhole.tolerance = '{quote_literal(wider)}';"
        if other is None
        else f"SET keyhole.mechanism = '{other}';",
    )
