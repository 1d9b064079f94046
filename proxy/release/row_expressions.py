"""The parsing of an owner's flags that contain expressions or conditions over one row.

An error names the flag with the invalid text, and shows a corrected form.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from sqlglot import exp

from planner.catalog.catalog import Catalog, MergedKeys, Table, ValueGroups
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens as read_tokens
from planner.parser.lexer import spell_name
from planner.parser.tree import parse
from planner.scope.embedded import EmbeddedQuestion
from proxy.pipeline.messages import read_bare_question
from proxy.release.release_refusals import refuse_unread_expression


def read_rows(lines: Sequence[str], catalog: Catalog, table: Table, *, typed: Mapping[str, str]) -> EmbeddedQuestion:
    """Parse the SQL `lines` with the text of each flag in `typed`, and return the question.

    Each flag's text is on a line of its own, so that an error can name the flag. Raise KH1xx.
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
    """Raise KH100 for the first text that is not one expression."""
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
    """Return the flag with a corrected text, or None if no correction is known.

    Column names are quoted if they need it, and a comma between digits becomes a point.
    """
    spelled = text
    for name in sorted((one.name for one in table.columns), key=len, reverse=True):
        quoted = spell_name(name)
        if quoted != name:
            around = rf"""(?<![\w"])[\[`']?{re.escape(name)}[\]`']?(?![\w"])"""
            spelled = re.sub(around, quoted.replace("\\", r"\\"), spelled, flags=re.IGNORECASE)
    spelled = re.sub(r"(?<=\d),(?=\d)", ".", spelled)
    if spelled == text or not _is_expression(spelled):
        return None
    return f"{flag} {shlex.quote(spelled)}"
