"""The relations under `keyhole.`: what a client is told of budget, answers, settings, key domains, errors."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class VirtualRelation:
    """A relation whose rows Keyhole supplies at run time; `columns` are (name, declared PostgreSQL type)."""

    name: str
    comment: str
    columns: tuple[tuple[str, str], ...]


VIRTUAL_SCHEMA = "keyhole"
VIRTUAL_RELATIONS: tuple[VirtualRelation, ...] = (
    VirtualRelation(
        "budget",
        "what you have spent at most, and what is left at least",
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
)


def virtual_relation(name: str) -> VirtualRelation | None:
    """The virtual relation of that name, if there is one."""
    return next((relation for relation in VIRTUAL_RELATIONS if relation.name == name), None)
