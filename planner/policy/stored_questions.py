"""The parameters of a stored question: named in the policy, numbered for PostgreSQL."""

from collections.abc import Iterable, Mapping
from datetime import date

from planner.catalog.fault import Fault, suggest_nearest_name
from planner.parser.lexer import read_tokens


def number_parameters(sql: str, names: Iterable[str]) -> str:
    """Return the owner's SQL with `$1`, `$2`, ... for `:name` in the order of `names`.

    Raise a `Fault` (KH002) for a name that is not declared or not used, and for a `$n` in the text; KH100.
    """
    return _replace(sql, {name: f"${index}" for index, name in enumerate(names, start=1)})


def spell_parameters(sql: str, values: Mapping[str, bool | int | float | date | str]) -> str:
    """Return the owner's SQL with the parameters' values in their places, for people to read.

    Raises `Fault` as `number_parameters` does.

    >>> spell_parameters("SELECT a FROM t WHERE b > -:least AND c = :of", {"least": -3, "of": "it's"})
    "SELECT a FROM t WHERE b > -(-3) AND c = 'it''s'"
    """
    return _replace(sql, {name: _write_literal(value) for name, value in values.items()})


def _write_literal(value: object) -> str:
    if isinstance(value, str | date):
        return "'" + str(value).replace("'", "''") + "'"
    told = str(value)
    return f"({told})" if told.startswith("-") else told  # two of them begin a comment


def _replace(sql: str, known: Mapping[str, str]) -> str:
    used: set[str] = set()
    parts: list[str] = []
    at = 0
    found = read_tokens(sql)
    for token, after in zip(found, (*found[1:], None), strict=True):
        if token.kind == "parameter":
            raise Fault("KH002", f"has the parameter {token.value}", hint="Name it: :threshold.")
        if not token.is_symbol(":") or after is None or after.kind != "word" or after.start != token.end:
            continue
        if after.value not in known:
            hint = (
                suggest_nearest_name(after.value, known) if known else f"Declare parameters = {{ {after.value} = 40 }}."
            )
            raise Fault("KH002", f"uses :{after.value}, which is not among its parameters", hint=hint)
        used.add(after.value)
        parts.extend((sql[at : token.start], known[after.value]))
        at = after.end
    for name in known:
        if name not in used:
            raise Fault("KH002", f"does not use its parameter {name}", hint=f"Write :{name} where it goes, or drop it.")
    return "".join((*parts, sql[at:]))
