"""The parameters of a stored question: named in the policy, numbered for PostgreSQL."""

from collections.abc import Iterable

from planner.catalog.fault import Fault, nearest
from planner.parser.lexer import tokens


def number_parameters(sql: str, names: Iterable[str]) -> str:
    """The owner's SQL with `$1`, `$2`, ... for `:name` in the order of `names`.

    Raises `Fault` KH002 for a name that is not declared, one that is not used, and a `$n` of its own; KH100.
    """
    known = {name: index for index, name in enumerate(names, start=1)}
    used: set[str] = set()
    parts: list[str] = []
    at = 0
    found = tokens(sql)
    for token, after in zip(found, (*found[1:], None), strict=True):
        if token.kind == "parameter":
            raise Fault("KH002", f"has the parameter {token.value}", hint="Name it: :threshold.")
        if not token.is_symbol(":") or after is None or after.kind != "word" or after.start != token.end:
            continue
        if after.value not in known:
            hint = nearest(after.value, known) if known else f"Declare parameters = {{ {after.value} = 40 }}."
            raise Fault("KH002", f"uses :{after.value}, which is not among its parameters", hint=hint)
        used.add(after.value)
        parts.extend((sql[at : token.start], f"${known[after.value]}"))
        at = after.end
    for name in known:
        if name not in used:
            raise Fault("KH002", f"does not use its parameter {name}", hint=f"Write :{name} where it goes, or drop it.")
    return "".join((*parts, sql[at:]))
