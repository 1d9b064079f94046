"""Expressions and conditions of a row, as an owner types them behind flags.

Errors say which one is no SQL, and how it would be read.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from sqlglot import exp

from planner.catalog.catalog import Catalog, MergedKeys, Table, ValueGroups
from planner.errors import KeyholeError
from planner.parser.lexer import readable
from planner.parser.lexer import tokens as read_tokens
from planner.parser.tree import parse
from planner.scope.embedded import Embedded
from proxy.pipeline.messages import read_bare_question
from proxy.release.release_refusals import refuse_unread_expression


def read_rows(lines: Sequence[str], catalog: Catalog, table: Table, *, typed: Mapping[str, str]) -> Embedded:
    """Return the question made of the text behind each flag of `typed`, on lines of its own.

    Raise KH1xx; a text that is no expression is named by its flag.
    """
    try:
        question = read_bare_question("\n".join(lines), catalog)
    except KeyholeError:
        _check_expressions(typed, table)  # of which the whole may be refused for something else
        raise
    _check_expressions(typed, table)
    computed = next(
        (key.derivation for key in question.keys if isinstance(key.derivation, MergedKeys | ValueGroups)), None
    )
    if computed is not None:
        column = computed.column if isinstance(computed, ValueGroups) else computed.columns[0]
        raise KeyholeError(
            "KH202",
            f'column "{column}" has no public domain',
            detail="A release is by keys that the policy declares.",
            hint=f"Declare a key of [{table.get_policy_key(column)}]: values, values_from or range, in keyhole.toml.",
        )
    return question


def _check_expressions(typed: Mapping[str, str], table: Table) -> None:
    """Refuse the first that is not one expression. Raise KH100."""
    for flag, text in typed.items():
        if not _is_expression(text):
            raise refuse_unread_expression(flag, text, readable=_spell(flag, text, table))


def _is_expression(text: str) -> bool:
    sql = f"SELECT (\n{text}\n)"
    try:
        tree = parse(sql, read_tokens(sql)).tree
    except KeyholeError:
        return False
    return not isinstance(tree.expressions[0], exp.Tuple)  # two of them, as a comma between digits makes


def _spell(flag: str, text: str, table: Table) -> str | None:
    """Return the flag with a readable text, None if there is none.

    Columns whose names need quotes are put into them, whatever stood around them, and a comma between digits is a
    point.
    """
    spelled = text
    for name in sorted((one.name for one in table.columns), key=len, reverse=True):
        quoted = readable(name)
        if quoted != name:
            around = rf"""(?<![\w"])[\[`']?{re.escape(name)}[\]`']?(?![\w"])"""
            spelled = re.sub(around, quoted.replace("\\", r"\\"), spelled, flags=re.IGNORECASE)
    spelled = re.sub(r"(?<=\d),(?=\d)", ".", spelled)
    if spelled == text or not _is_expression(spelled):
        return None
    return f"{flag} {shlex.quote(spelled)}"
