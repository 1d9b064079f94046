"""Refusals of a statement around questions, and of the form of a question, and what to ask instead."""

from sqlglot import exp

from planner.aggregates.cell_windows import reads_groups
from planner.bind.bind_refusals import APART
from planner.catalog.catalog import Column, PublicTable, StoredQuestion, Table
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.extract.hints.answerable_questions import (
    INSTEAD,
    join_suggestions,
    suggest_by_keys,
    suggest_by_positions,
    suggest_each_grouping,
    suggest_question,
    suggest_whole_table,
    suggest_window_around,
)
from planner.extract.hints.curve_thresholds import ask_by_thresholds
from planner.extract.private_read import ParsedQuestion
from planner.parser.lexer import Token, spell_name
from planner.parser.tree import find_position, read_name, strip_parentheses, write_node, write_short

_CLAUSES = {"windows": "WINDOW", "locks": "FOR UPDATE", "sample": "TABLESAMPLE", "only": "ONLY"}


def refuse_outside_question(table: Table, node: exp.Expr, *, hint: str | None) -> KeyholeError:
    """Return KH103 for a private table that is read outside of a question."""
    return KeyholeError(
        "KH103",
        f'the private table "{table.name}" is used outside a question',
        detail="Only a question may read a private table: GROUP BY keys HAVING a threshold is crossed.",
        hint=hint,
        position=find_position(node),
    )


def write_example_question(table: Table, node: exp.Expr) -> str | None:
    """Return the SQL of an example question about the table.

    It groups by the first key that the SELECT around `node` mentions, or by the table's first key.
    """
    keys = [column for column in table.columns if column.domain is not None]
    if not keys:
        return None
    select = node.find_ancestor(exp.Select)
    named = [] if select is None else [column.name.lower() for column in select.find_all(exp.Column)]
    key = min(keys, key=lambda column: named.index(column.name) if column.name in named else len(named))
    column = spell_name(key.name)
    return f"{INSTEAD}SELECT {column} FROM {spell_name(table.name)} GROUP BY {column} HAVING count(*) > 1000;"


def refuse_reserved_name(alias: exp.Expr) -> KeyholeError:
    """Return KH106 for a WITH query that hides a table of Keyhole."""
    return KeyholeError(
        "KH106",
        f'a WITH query may not be called "{read_name(alias)}", like a table of Keyhole',
        hint="Give it another name.",
        position=find_position(alias),
    )


def refuse_too_many_questions(*, most: int) -> KeyholeError:
    """Return KH107 for a statement with many questions."""
    return KeyholeError("KH107", f"more than {most} questions in one statement", hint="Send several statements.")


def refuse_nested_question(*, at: int) -> KeyholeError:
    """Return KH107 for a question that is nested as a subquery in another question."""
    return KeyholeError(
        "KH107",
        "a question cannot contain another question",
        hint="Ask each by itself, side by side in one statement: the query around them may join their answers by the "
        "keys.",
        position=at,
    )


def hide_stored_text(error: KeyholeError, question: StoredQuestion) -> KeyholeError:
    """Return the refusal of a stored question under its name, without a position: the analyst does not see its text."""
    return KeyholeError(
        error.code, f'the stored question "{question.name}": {error.message}', detail=error.detail, hint=error.hint
    )


def refuse_stored_without_question(question: StoredQuestion) -> KeyholeError:
    """Return KH106 for a stored question whose SQL is not a question."""
    return KeyholeError(
        "KH106",
        f'the SQL of the stored question "{question.name}" is not a question',
        hint="Ask the data owner to correct it in the policy.",
    )


def hide_monitor_text(error: KeyholeError, monitor: Monitor) -> KeyholeError:
    """Return the refusal of a monitor's question under its name, without a position in its hidden text."""
    return KeyholeError(error.code, f'the monitor "{monitor.name}": {error.message}', detail=error.detail)


def refuse_monitor_without_question(monitor: Monitor) -> KeyholeError:
    """Return KH106 for a monitor whose SQL is not one question."""
    return KeyholeError(
        "KH106",
        f'the SQL of the monitor "{monitor.name}" is not one question',
        hint="Ask the data owner to correct it in the policy.",
    )


def refuse_outer_parameter(question: StoredQuestion) -> KeyholeError:
    """Return KH106 for a parameter of a stored question that the statement uses outside the stored question."""
    return KeyholeError(
        "KH106",
        f'the stored question "{question.name}": a parameter stands outside WHERE and HAVING',
        hint="Ask the data owner to correct it in the policy.",
    )


def refuse_shown_size(node: exp.Expr, *, hint: str | None) -> KeyholeError:
    """Return KH101 for an aggregate that the question shows or sorts by."""
    select = node.find_ancestor(exp.Select)
    reads_others = select is not None and any(map(reads_groups, select.find_all(exp.Window)))
    return KeyholeError(
        "KH101",
        "Keyhole answers which groups cross a threshold, not how large they are",
        detail="Sizes of other groups may stand only in comparisons. No answer shows them or is sorted by them."
        if reads_others
        else None,
        hint=hint,
        position=find_position(node),
    )


def refuse_without_threshold(place: ParsedQuestion) -> KeyholeError:
    """Return KH104 for a GROUP BY without a threshold, whose answer would reveal which groups have rows."""
    group = place.select.args.get("group")
    return KeyholeError(
        "KH104",
        "the question has no HAVING",
        detail="Without a threshold it would ask which groups exist.",
        hint=suggest_question(place),
        position=find_position(place.select if group is None else group),
    )


def refuse_partition(item: exp.Expr, keys: tuple[Column, ...], *, is_looked_up: bool) -> KeyholeError:
    """Return KH106 for a ranking in partitions that are no key's values."""
    return KeyholeError(
        "KH106",
        f"the ranking is partitioned by {write_short(item)}, which is no key of the question",
        detail="PARTITION BY takes keys, and groups with the same values of these are ranked together.",
        hint=f"Partition by one or more of: {'; '.join(key.name for key in keys)}."
        + (" A column that a key looks up is allowed for counts in descending order." if is_looked_up else ""),
        position=find_position(item),
    )


def refuse_ties_in_ranking(limit: exp.Expr, count: exp.Expr | None) -> KeyholeError:
    """Return KH106 for WITH TIES in a ranking, and for a ranking that would cut groups which tie."""
    kept = (
        strip_parentheses(count).name
        if count is not None and limit.args["limit_options"].args.get("with_ties")
        else "5"
    )
    return KeyholeError(
        "KH106",
        "WITH TIES would show which groups are equal",
        detail="A ranking has each group at a place of its own, in an order that allows for the tolerance.",
        hint=f"Write FETCH FIRST {kept} ROWS ONLY, or LIMIT {kept}.",
        position=find_position(limit),
    )


def suggest_shown_keys(error: KeyholeError, place: ParsedQuestion) -> KeyholeError:
    """Return the refusal of a shown expression, with a hint that can be asked.

    The hint is the question with only its keys shown, or with the expression under the name of a column.
    """
    clash = suggest_by_positions(place) if error.code == "KH101" else None
    detail, hint = clash or (error.detail, (suggest_question(place) if error.code == "KH101" else None) or error.hint)
    return KeyholeError(
        error.code,
        error.message,
        detail=detail,
        hint=hint,
        position=error.position,
    )


def suggest_known_keys(error: KeyholeError, place: ParsedQuestion) -> KeyholeError:
    """Return the refusal of a grouped expression. Its hint is a question that groups by the keys in the expression.

    For KH105 the hint offers the whole table as well. If the expression names no key, the refusal is unchanged.
    """
    thresholds = ask_by_thresholds(place.select, place.scope) if error.code == "KH202" else None
    shown = (
        (suggest_whole_table(place), suggest_question(place)) if error.code == "KH105" else (suggest_by_keys(place),)
    )
    hint = thresholds or join_suggestions(*shown) or error.hint
    return KeyholeError(error.code, error.message, detail=error.detail, hint=hint, position=error.position)


def suggest_single_groupings(
    error: KeyholeError, place: ParsedQuestion, sets: tuple[tuple[Column, ...], ...]
) -> KeyholeError:
    """Return the refusal of several groupings at once, with a question for each."""
    return KeyholeError(error.code, error.message, hint=suggest_each_grouping(place, sets), position=error.position)


def refuse_window_over_answer(window: exp.Window, place: ParsedQuestion) -> KeyholeError:
    """Return KH101 for a window over the answer's rows. It must be written in a query around the question."""
    spelled = write_node(window)
    return KeyholeError(
        "KH101",
        f"{spelled[:80]} reads the answer's rows, so it cannot stand inside the question",
        detail="Around a question, windows and aggregates work on its answer as in PostgreSQL, for nothing.",
        hint=suggest_window_around(place, window)
        or f"Write {spelled} around the question: SELECT q.*, ... FROM (...) AS q.",
        position=find_position(window),
    )


def refuse_scorecard_comparison(node: exp.Expr, *, at: int, hint: str | None) -> KeyholeError:
    """Return KH106 for INTERSECT or EXCEPT between scorecards."""
    operation = "INTERSECT" if isinstance(node, exp.Intersect) else "EXCEPT"
    return KeyholeError(
        "KH106",
        f"{operation} cannot combine scorecards",
        detail="Two questions would be asked, at the price of both. One question shows all predicates, on shared "
        "noise, and a query around it compares them.",
        hint=hint or "Show the predicates of both in one question, and compare them in a query around it.",
        position=at,
    )


def refuse_inner_subquery(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a subquery, or a table of another kind, in a question."""
    return KeyholeError(
        "KH107", "a question reads one table, without joins or subqueries", hint=APART, position=find_position(node)
    )


def refuse_value_of_all_rows(inner: exp.Query, *, instead: str) -> KeyholeError:
    """Return KH107 for a condition that compares rows with an aggregate over the rows of all privacy units."""
    return KeyholeError(
        "KH107",
        "a condition on rows compares them with a value of everybody's rows",
        detail="That value would cost part of everybody's budget, and decide about every row. Ask for the value in "
        "a separate question, then write it as a number.",
        hint=instead,
        position=find_position(inner),
    )


def refuse_threshold_in_subquery(inner: exp.Query) -> KeyholeError:
    """Return KH208 for a threshold that is a subquery with a constant, such as HAVING count(*) > (SELECT 8000)."""
    select = inner.this if isinstance(inner, exp.Subquery) else inner
    shown = select.expressions[0].unalias() if isinstance(select, exp.Select) and select.expressions else None
    return KeyholeError(
        "KH208",
        "a threshold is a constant, not a subquery",
        hint=f"Write the constant without SELECT{'' if shown is None else f': {write_short(shown)}'}.",
        position=find_position(inner),
    )


def refuse_hidden_alias(column: exp.Column, meant: exp.Expr, *, hint: str | None) -> KeyholeError:
    """Return KH207 for a name in HAVING that is a column's, and that the select list gives to an aggregate."""
    return KeyholeError(
        "KH207",
        f"in HAVING {write_short(column)} is the column, not {write_short(meant)}",
        detail="As in PostgreSQL, HAVING knows no names that the select list gives.",
        hint=hint or f"Write {write_short(meant)}.",
        position=find_position(column),
    )


def refuse_threshold_from_rows(
    node: exp.Expr, *, hint: str, is_statistic: bool = False, is_extreme: bool = False, compares_rows: bool = False
) -> KeyholeError:
    """Return KH107 for a subquery in a threshold that computes a number from rows, such as a total.

    Parameters:
        is_statistic: it reads a quantile or standard deviation of rows, and the hint that of groups.
        is_extreme: it reads the largest or the least of rows, and the hint a percentile.
        compares_rows: it is compared with rows, inside an aggregate or its FILTER.
    """
    if compares_rows:
        detail = (
            "Rows near that number would be counted wrongly, since it is private. How many these are is private too. "
            "So no error rate could be promised. Write a public number in its place."
        )
    elif is_extreme:
        detail = (
            "A single row decides the largest and the least, so that noise must hide them. Others are read off bins."
        )
    elif is_statistic:
        detail = "A quantile or deviation of rows is no sum of groups, but one of the groups' sizes can be asked."
    else:
        detail = (
            "A number of all rows is as private as one of a group. In the place of the subquery write a public "
            "number, such as last year's published one."
        )
    return KeyholeError(
        "KH107",
        "a threshold cannot be computed from other rows by a subquery",
        detail=detail,
        hint=hint,
        position=find_position(node),
    )


def refuse_list_in_having(inner: exp.Query) -> KeyholeError:
    """Return KH107 for a subquery in the FILTER of an aggregate, or elsewhere in HAVING, that lists values.

    An example is `count(*) FILTER (WHERE customer_id IN (SELECT ...)) > 10`.
    """
    return KeyholeError(
        "KH107",
        "HAVING does not support this subquery behind IN or EXISTS",
        detail="WHERE and FILTER take a subquery that lists privacy units or public values.",
        hint="Move the condition to WHERE, and ask about all rows in a separate question.",
        position=find_position(inner),
    )


def refuse_question_in_where(inner: exp.Query, *, together: str) -> KeyholeError:
    """Return KH107 for a question inside WHERE, as in `key IN (question)`.

    Parameters:
        together: the same question as one statement, for the hint.
    """
    return KeyholeError(
        "KH107",
        "the WHERE of a question cannot contain another question",
        detail="Both are asked as one: INTERSECT and EXCEPT between questions with the same keys.",
        hint=together,
        position=find_position(inner),
    )


def refuse_clause(place: ParsedQuestion, key: str) -> KeyholeError:
    """Return KH106 for a clause that no question has.

    Parameters:
        key: sqlglot's name of the clause.
    """
    return KeyholeError(
        "KH106",
        f"{_CLAUSES.get(key, key.strip('_').replace('_', ' ').upper())} is not supported in a question",
        detail="A question is SELECT, FROM, WHERE, GROUP BY, HAVING, and ORDER BY, LIMIT, OFFSET, DISTINCT over it.",
        hint="Leave it out.",
        position=find_position(place.node),
    )


def refuse_operator(operator: Token) -> KeyholeError:
    """Return KH106 for an operator of PostgreSQL that the parser would misread."""
    return KeyholeError(
        "KH106",
        f"the operator {operator.value} is not supported in a question",
        hint="Write a comparison or a function in its place.",
        position=operator.start + 1,
    )


def refuse_public_list() -> KeyholeError:
    """Return KH107 for a public list that does not read the rows of exactly one public table."""
    return KeyholeError(
        "KH107",
        "the WHERE of a list of public values contains a subquery, a parameter or the current time",
        hint="Compare with constants there.",
    )


def refuse_empty_item(select: exp.Select) -> KeyholeError:
    """Return KH106 for a select list with an empty item."""
    return KeyholeError(
        "KH106",
        "an item of the select list is empty",
        hint="Remove the comma before or after it, or write a key there.",
        position=find_position(select),
    )


def refuse_spelling(first: Token) -> KeyholeError:
    """Return KH106 for a derived key written in a way that cannot be replaced by its column."""
    return KeyholeError(
        "KH106",
        "this way of writing a derived key is not supported in a select list",
        hint="Select the derived column by its name.",
        position=first.start + 1,
    )


def refuse_missing_groups(public: PublicTable, column: str, key: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for an outer join that keeps a public row whose group the policy does not declare."""
    values = f"{public.name}.{column}"
    return KeyholeError(
        "KH107",
        f"{values} has values that are no groups of {spell_name(key)}",
        detail="An outer join keeps each public row, and the list of groups is the policy's.",
        hint=f'Write JOIN; or ask the owner to declare {spell_name(key)} with key = {{ values_from = "{values}" }}.',
        position=find_position(node),
    )
