"""The relations that Keyhole fills at run time.

Those under `keyhole.` show a client budget, answers, settings, key domains, errors and monitors. There is one more for
each monitor, with its alerts.
"""

from dataclasses import dataclass, field

from planner.catalog.monitor import Monitor
from planner.parser.lexer import quote_identifier
from planner.scope.embedded import EmbeddedQuestion


@dataclass(frozen=True, slots=True)
class VirtualRelation:
    """A relation whose rows Keyhole supplies at run time. `columns` are pairs of name and PostgreSQL type."""

    name: str
    comment: str
    columns: tuple[tuple[str, str], ...]


VIRTUAL_SCHEMA = "keyhole"
VIRTUAL_RELATIONS: tuple[VirtualRelation, ...] = (
    VirtualRelation(
        "budget",
        "what you have spent at most, and what is left at least",
        (
            ("what", "text"),
            ("table_name", "text"),
            ("budget", "numeric"),
            ("spent_at_most", "numeric"),
            ("left_at_least", "numeric"),
            ("limit_name", "text"),
            ("scope", "text"),
        ),
    ),
    VirtualRelation(
        "budget_details",
        "the same, and every group by the condition and data version that it was asked with",
        (
            ("table_name", "text"),
            ("privacy_unit", "text"),
            ("scope", "text"),
            ("family", "text"),
            ("filter", "text"),
            ("data_version", "text"),
            ("budget", "numeric"),
            ("spent_at_most", "numeric"),
            ("left_at_least", "numeric"),
        ),
    ),
    VirtualRelation(
        "queries",
        "what you asked, and what it cost at most",
        (
            ("asked_at", "timestamp"),
            ("table_name", "text"),
            ("question", "text"),
            ("keys", "bigint"),
            ("epsilon", "numeric"),
            ("status", "text"),
            ("unit_epsilon", "numeric"),
            ("text", "text"),
        ),
    ),
    VirtualRelation(
        "answers",
        "what your answers promise, for dashboards",
        (
            ("asked_at", "timestamp"),
            ("table_name", "text"),
            ("data_version", "text"),
            ("question", "text"),
            ("text", "text"),
            ("keys", "bigint"),
            ("guarantee", "text"),
            ("fnr", "numeric"),
            ("fpr", "numeric"),
            ("epsilon", "numeric"),
            ("unit_epsilon", "numeric"),
        ),
    ),
    VirtualRelation(
        "settings",
        "the settings of keyhole.*, their values and defaults",
        (("name", "text"), ("setting", "text"), ("default_setting", "text"), ("meaning", "text")),
    ),
    VirtualRelation(
        "domains",
        "the public values of keys, with rows or without; of a key with very many, how many",
        (
            ("table_name", "text"),
            ("key_name", "text"),
            ("data_type", "text"),
            ("size", "bigint"),
            ("place", "bigint"),
            ("value", "text"),
        ),
    ),
    VirtualRelation(
        "errors",
        "what the codes of refusals mean",
        (("code", "text"), ("sqlstate", "text"), ("meaning", "text")),
    ),
    VirtualRelation(
        "monitors",
        "the monitors that you may read, how far they are, and what they promise",
        (
            ("name", "text"),
            ("state", "text"),
            ("every", "interval"),
            ("window_length", "interval"),
            ("looks_made", "bigint"),
            ("looks_planned", "bigint"),
            ("next_look", "timestamptz"),
            ("last_look", "timestamptz"),
            ("fnr", "numeric"),
            ("fpr", "numeric"),
            ("tolerance", "text"),
            ("epsilon_per_group", "numeric"),
            ("epsilon_per_unit", "numeric"),
            ("reason", "text"),
        ),
    ),
    VirtualRelation(
        "alerts",
        "what the monitors that you may read have alerted, by look",
        (
            ("monitor", "text"),
            ("key", "jsonb"),
            ("window_start", "timestamptz"),
            ("alerted_at", "timestamptz"),
            ("look", "bigint"),
            ("cleared_at", "timestamptz"),
        ),
    ),
)
WINDOW_START, ALERTED_AT, WINDOW_CLOSES, CLEARED_AT = "window_start", "alerted_at", "window_closes", "cleared_at"


def find_virtual_relation(name: str) -> VirtualRelation | None:
    """Return the virtual relation of that name, if there is one."""
    return next((relation for relation in VIRTUAL_RELATIONS if relation.name == name), None)


@dataclass(frozen=True, slots=True)
class MonitorRelation:
    """The relation of a monitor, whose rows Keyhole supplies with the `columns` (name, declared PostgreSQL type).

    Clients see other names for them: the keys of `question` as it shows them, then `time_columns`.
    """

    name: str
    comment: str
    columns: tuple[tuple[str, str], ...]
    keys: tuple[str, ...]
    time_columns: tuple[str, ...]
    question: EmbeddedQuestion = field(compare=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that clients see."""
        return self.keys + self.time_columns

    @property
    def wrapping_sql(self) -> tuple[str, str]:
        """The SQL before and after a relation with the `columns` that computes the shown keys.

        Both are empty if no key is computed. Empty without any.
        """
        shown = self.question.shown_keys
        if shown is None:
            return "", ""
        stored = [name for name, _ in self.columns]
        items = [
            f"{item.sql or quote_identifier(stored[item.key_places[0]])} AS {quote_identifier(item.name)}"
            for item in shown.items
        ]
        selected = ", ".join([*items, *map(quote_identifier, self.time_columns)])
        return f"(SELECT {selected} FROM {shown.prefix}", f"{shown.suffix})"


def make_monitor_relation(monitor: Monitor, question: EmbeddedQuestion) -> MonitorRelation:
    """Return the relation of a monitor that asks the question. The times of `list_time_columns` follow its keys."""
    stored = question.columns if question.keys else ()
    shown = question.shown_keys
    keys = tuple(name for name, _ in stored) if shown is None else tuple(item.name for item in shown.items)
    times = list_time_columns(monitor, keys)
    columns = (*stored, *((name, "timestamptz") for name in times))
    return MonitorRelation(monitor.name, monitor.comment or "monitor", columns, keys, times, question)


def list_time_columns(monitor: Monitor, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of times that follow the keys in a monitor's relation.

    These are the window's start, the alert and the window's close. The start is left out if a key is the window. A
    monitor that clears at once has the times of alert and clearing instead, because its windows slide.
    """
    if monitor.clears_at_once:
        return ALERTED_AT, CLEARED_AT
    return (ALERTED_AT, WINDOW_CLOSES) if monitor.windows.column in keys else (WINDOW_START, ALERTED_AT, WINDOW_CLOSES)
