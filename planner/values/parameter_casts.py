"""Casts of parameters, which PostgreSQL itself computes: `$1::int`, `CAST ($2 AS text)`, `$3::inet::text`."""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from planner.parser.tree import strip_parentheses
from planner.values.constant import ParameterCast

TYPES: dict[str, tuple[str, int]] = {
    "BOOLEAN": ("bool", 16),
    "BIGINT": ("int8", 20),
    "SMALLINT": ("int2", 21),
    "INT": ("int4", 23),
    "FLOAT": ("float4", 700),
    "DOUBLE": ("float8", 701),
    "DECIMAL": ("numeric", 1700),
    "TEXT": ("text", 25),
    "VARCHAR": ("varchar", 1043),
    "BPCHAR": ("bpchar", 1042),
    "NAME": ("name", 19),
    "UUID": ("uuid", 2950),
    "DATE": ("date", 1082),
    "TIMESTAMP": ("timestamp", 1114),
    "TIMESTAMPTZ": ("timestamptz", 1184),
    "INTERVAL": ("interval", 1186),
    "TIME": ("time", 1083),
    "TIMETZ": ("timetz", 1266),
    "JSON": ("json", 114),
    "JSONB": ("jsonb", 3802),
    "INET": ("inet", 869),
    "MONEY": ("money", 790),
    "XML": ("xml", 142),
    "BOOLEAN[]": ("bool[]", 1000),
    "BIGINT[]": ("int8[]", 1016),
    "SMALLINT[]": ("int2[]", 1005),
    "INT[]": ("int4[]", 1007),
    "FLOAT[]": ("float4[]", 1021),
    "DOUBLE[]": ("float8[]", 1022),
    "DECIMAL[]": ("numeric[]", 1231),
    "TEXT[]": ("text[]", 1009),
    "VARCHAR[]": ("varchar[]", 1015),
    "BPCHAR[]": ("bpchar[]", 1014),
    "NAME[]": ("name[]", 1003),
    "UUID[]": ("uuid[]", 2951),
    "DATE[]": ("date[]", 1182),
    "TIMESTAMP[]": ("timestamp[]", 1115),
    "TIMESTAMPTZ[]": ("timestamptz[]", 1185),
}
"""By the parser's name of a type, PostgreSQL's name and oid of it; those with which no cast is written are left out."""


def read_parameter_cast(node: exp.Expr) -> ParameterCast | None:
    """Return the parameter in a chain of casts, and the types in their order. Return None for other expressions.

    >>> import sqlglot
    >>> read_parameter_cast(sqlglot.parse_one("$1::inet::text", dialect="postgres"))
    (1, ('INET', 'TEXT'))
    """
    kinds: list[str] = []
    node = strip_parentheses(node)
    while isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        kind = _name_type(node.to)
        if kind is None:
            return None
        kinds.append(kind)
        node = strip_parentheses(node.this)
    if not kinds or not isinstance(node, exp.Parameter) or not str(node.this.this).isdecimal():
        return None
    return int(str(node.this.this)), tuple(reversed(kinds))


def find_parameter_casts(trees: Iterable[exp.Expr]) -> tuple[ParameterCast, ...]:
    """Return each chain of casts over a parameter once, without the shorter chains that it contains."""
    return tuple(dict.fromkeys(_find_outermost_casts(trees)))


def _find_outermost_casts(trees: Iterable[exp.Expr]) -> Iterator[ParameterCast]:
    for tree in trees:
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            found = read_parameter_cast(node) if isinstance(node, exp.Cast) else None
            if found is not None:
                yield found
            else:
                waiting.extend(node.iter_expressions())


def _name_type(to: exp.DataType) -> str | None:
    member, array = to, to.this == exp.DType.ARRAY
    if array and len(to.expressions) == 1 and isinstance(to.expressions[0], exp.DataType):
        member = to.expressions[0]
    if member.expressions or not isinstance(member.this, exp.DataType.Type):
        return None
    kind = f"{member.this.value}[]" if array else str(member.this.value)
    return kind if kind in TYPES else None
