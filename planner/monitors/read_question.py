"""From a monitor's text to the question about each window, or to a refusal if the question cannot be watched."""

from collections import Counter
from datetime import date

from mechanisms.formula import list_literals
from mechanisms.registry import DEFAULT
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.catalog.monitor import Monitor
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError, cut_at_word
from planner.extract.extract import declare_monitor
from planner.monitors.monitor_question_refusals import (
    add_monitor_name,
    refuse_condition,
    refuse_table,
)
from planner.monitors.sole_question import find_sole_question
from planner.plan.reduce import reduce_question
from planner.question.question import Accuracy, Measure, Question

_NO_DAY = date(2000, 1, 1)  # what current_date would mean, if it were allowed

_LONGEST_NAME = 63  # bytes of a name that PostgreSQL keeps


def read_question(catalog: Catalog, monitor: Monitor) -> Question:
    """Return the monitor's question in canonical form: minimal formula, functionals in canonical order.

    Raises:
        KeyholeError: as any question does, KH602 for questions and KH603 for tables that no monitor can watch.
    """
    try:
        embedded = find_sole_question(catalog, monitor)
        question = bind_question(
            embedded, catalog, accuracy=_make_accuracy(catalog, monitor), parameters={}, today=_NO_DAY, is_utc=True
        )
    except KeyholeError as error:
        if error.code in ("KH602", "KH603"):
            raise
        raise add_monitor_name(monitor, error) from None
    _check_table(question, monitor)
    _check_form(question, monitor)
    if not question.keys.size:
        hint = "Widen what WHERE says of the keys."
        raise refuse_condition(monitor, "WHERE leaves no groups", hint=hint)
    reduced, _, _ = reduce_question(question)
    if not any(True for _ in list_literals(reduced.formula)):
        hint = "Compare an aggregate of each group with a threshold, such as HAVING count(*) > 400."
        raise refuse_condition(monitor, "the condition does not depend on data", hint=hint)
    _check_names(catalog, monitor)
    return reduced


def _check_names(catalog: Catalog, monitor: Monitor) -> None:
    """Raise KH602 if a key has the name of one of the relation's own time columns, or too long a name."""
    relation = declare_monitor(monitor, catalog)
    for names in (relation.names, tuple(name for name, _ in relation.columns)):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            hint = "Call the key something else: a derived column in the policy, any other in a view of the source."
            raise refuse_condition(monitor, f'two columns of its relation would be called "{twice}"', hint=hint)
    long = next((name for name in relation.keys if len(name.encode()) > _LONGEST_NAME), None)
    if long is not None:
        hint = "Give it a name: SELECT ... AS name."
        raise refuse_condition(
            monitor,
            f"its key {cut_at_word(long)} is too long for the name of a column, {_LONGEST_NAME} bytes",
            hint=hint,
        )


def _make_accuracy(catalog: Catalog, monitor: Monitor) -> Accuracy:
    """Return the contract. The policy's values fill in what the monitor leaves out."""
    defaults = catalog.defaults
    tolerance = monitor.tolerance or defaults.tolerance
    usual = parse_tolerances(defaults.tolerance).default_tolerance
    if parse_tolerances(tolerance).default_tolerance is None and usual is not None:
        tolerance = f"{usual.text}, {tolerance}"
    return Accuracy(
        fnr=defaults.fnr if monitor.fnr is None else monitor.fnr,
        fpr=defaults.fpr if monitor.fpr is None else monitor.fpr,
        tolerance=tolerance,
        min_rows=defaults.min_rows,
        mechanism=DEFAULT,
        allows_reuse=False,
        allowed_mechanisms=(DEFAULT,),
    )


def _check_table(question: Question, monitor: Monitor) -> None:
    table = question.table
    if table.members:
        hint = "Watch one of the tables, or let the source join them in a view."
        raise refuse_table(monitor, "it joins private tables", hint=hint)
    if table.lists:
        hint = "Watch all rows, or let the source have the condition as a column of a view."
        raise refuse_table(monitor, "a list of privacy units says whose rows count", hint=hint)
    if table.own:
        hint = "Watch what single rows say, or let the source have the value as a column of a view."
        raise refuse_table(monitor, "it asks for values of a unit's own rows", hint=hint)
    if table.path is not None:
        hint = "Watch a table that has the unit's own column, or let the source join them in a view."
        raise refuse_table(monitor, f'it finds its units by a path, in "{table.path.table.name}"', hint=hint)
    if table.refresh != "live":
        raise refuse_table(
            monitor,
            f'the table "{table.name}" has refresh = "{table.refresh}": it is not one to which rows are added all the '
            "time",
            hint=f'Write refresh = "live" under [tables.{table.name}].',
        )


def _check_form(question: Question, monitor: Monitor) -> None:
    if question.lists_domain:
        hint = "Add HAVING with a threshold, such as HAVING count(*) > 400."
        raise refuse_condition(monitor, "it lists public values and asks nothing of data", hint=hint)
    for functional in question.functionals:
        if functional.measure is Measure.VALUES:
            units = ", ".join(question.table.unit)
            hint = f"Count rows, or privacy units: count(DISTINCT {units})." if units else "Count rows: count(*)."
            raise refuse_condition(monitor, f"{functional.name} counts different values", hint=hint)
