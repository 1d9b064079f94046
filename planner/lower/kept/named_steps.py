"""Named steps of a statement, which several of its relations read, so that each is computed once.

Their rows do not depend on what a question asks, so a source may keep them from one question to the next.

References: docs/decisions/0040-named-steps.md.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from planner.catalog.catalog import NamedStep
from planner.lower.dialects.dialect import Dialect
from planner.question.plan import KeptStep, Rewritten, Rollup

PREFIX = "keyhole_step_"
_NAMED = re.compile(rf"\b{PREFIX}[0-9a-f]{{32}}\b")
_WITH = re.compile(r"WITH\s")


def make_step(build: str, *, asked: bool = False) -> NamedStep:
    """Return a step with this text. Its name follows from the text alone.

    Parameters:
        build: one SELECT, without a WITH clause. It may read other steps by their names.
        asked: True if a question's own conditions decide its rows.
    """
    return NamedStep(f"{PREFIX}{sha256(build.encode()).hexdigest()[:32]}", build, asked)


def merge_steps(*several: Iterable[NamedStep]) -> tuple[NamedStep, ...]:
    """Return the steps of several relations, each once, and each after the steps that it reads."""
    return tuple({step.name: step for steps in several for step in steps}.values())


def define_steps(steps: Sequence[NamedStep], sql: str, *, dialect: Dialect) -> str:
    """Return the statement with the definitions of the steps that it reads, directly or through other steps.

    Parameters:
        sql: a SELECT, or one behind a WITH clause that begins the text.
    """
    needed = list_read_steps(steps, sql)
    if not needed:
        return sql
    return "WITH\n" + ",\n".join(_define(step, dialect) for step in needed) + continue_definitions(sql)


def keep_steps(rewritten: Rewritten, steps: Sequence[NamedStep], *, table: str, dialect: Dialect) -> Rewritten:
    """Return the statement with its steps in a form in which a source can keep their rows.

    Parameters:
        rewritten: its statement without definitions, with the relations that it reads.
        table: the table whose data versions decide how long the steps are kept.
    """
    kept = tuple(
        replace(
            one,
            kept_rows=None
            if step.is_question_specific
            else _keep_rows(rewritten, steps, step, table=table, dialect=dialect),
        )
        for one, step in zip(
            refer_to_steps(steps, rewritten.sql, dialect=dialect), list_read_steps(steps, rewritten.sql), strict=True
        )
    )
    defined = define_steps(steps, rewritten.sql, dialect=dialect)
    return replace(rewritten, sql=defined, steps=kept, body=continue_definitions(rewritten.sql) if kept else "")


def refer_to_steps(steps: Sequence[NamedStep], sql: str, *, dialect: Dialect) -> tuple[KeptStep, ...]:
    """Return the steps that a statement reads, each with the names of the steps that this step reads.

    Their `rows` are None: the statement can read kept rows of these steps, but does not say how to keep them.
    """
    return tuple(
        KeptStep(
            name=step.name,
            definition=_define(step, dialect),
            read_steps=frozenset(one.name for one in list_read_steps(steps, step.build)),
            kept_rows=None,
        )
        for step in list_read_steps(steps, sql)
    )


def _keep_rows(
    rewritten: Rewritten, steps: Sequence[NamedStep], step: NamedStep, *, table: str, dialect: Dialect
) -> Rollup:
    """Return the rows of one step in the form in which a source keeps them."""
    build = define_steps(steps, step.build, dialect=dialect)
    return Rollup(
        table=table,
        name=step.name,
        build=build,
        indexed_column=None,
        sql="",
        relations=rewritten.relations,
        pinned_relations=tuple(one for one in rewritten.pinned_relations if one.name in build),
        steps=refer_to_steps(steps, step.build, dialect=dialect),
        body=continue_definitions(step.build),
    )


def _define(step: NamedStep, dialect: Dialect) -> str:
    return f"{step.name} {dialect.materialized} (\n  {step.build}\n)"


def continue_definitions(sql: str) -> str:
    """Return the text to append to other WITH definitions: a comma and the statement's own ones, then its SELECT."""
    return f",{sql.removeprefix('WITH')}" if _WITH.match(sql) else f"\n{sql}"


def list_read_steps(steps: Sequence[NamedStep], sql: str) -> list[NamedStep]:
    """Return the steps that a statement reads, directly or through other steps, in their order.

    A text constant that contains a step's name counts as a read of that step. So the step may be defined needlessly:
    engines write text constants too differently to recognise them. If the name belongs to no step, it is such a
    constant.
    """
    named = set(_NAMED.findall(sql))
    found: list[NamedStep] = []
    for step in reversed(steps):
        if step.name in named:
            named.update(_NAMED.findall(step.build))
            found.append(step)
    return found[::-1]
