"""Every hint of every refusal in the corpus: what it shows can be typed and planned, or it is known to be prose."""

import re

import pytest

from planner.asking import ask
from planner.catalog import Catalog
from planner.errors import KeyholeError
from planner.outer import Asking
from planner.planning import plan
from planner.settings import accuracy
from planner.statement import PassThrough, SetKeyhole, Statement, classify
from tests.planner.asked import TODAY
from tests.planner.catalogs import retail
from tests.planner.spec import pairs

_FILES = ("aggregates.sql", "wrappings.sql", "joined.sql", "questions.sql", "refused.sql", "written_by_tools.sql")
_SETTING = re.compile(r"(?:SET|RESET) keyhole\.[^;]*;")
_ATOM = re.compile(
    r"(?:Ask|ask|middle:|for example) "
    r"(count\(.+?\)(?: >=? \d+)?|max\(\w+\) > \d+ AND min\(\w+\) < \d+|percentile_disc.*? > t|count\(\*\))"
    r"(?:\.$|[;,] | or |$)"
)
_LETTERS = {"x > t": "age > 65", "ORDER BY x) > t": "ORDER BY age) > 65", ">= m": ">= 40"}

# Hints that show nothing to type, by how they begin, each with what is to be done instead.
PROSE = (
    "Add the same FILTER (WHERE x IS NOT NULL AND y IS NOT NULL) to both",
    "Ask for example count(*) FILTER (WHERE ...) >= m, sum(x) > t or avg(x) > t.",
    "Ask one question per grouping; UNION ALL may join them.",
    "Ask the owner to expose",
    "Bind a value, or write the constant into the statement.",
    "Combine comparisons like count(*) > 100, sum(x) >= 5, avg(x) < 2 with AND, OR and NOT.",
    "Compare ",
    "Connect as another analyst.",
    "Declare ",
    "Divide by count(*), or ask the owner to declare bounds above 0 for the column.",
    "EXPLAIN (FORMAT JSON) ...",
    "Give ",
    "Group by ",
    "Join ",
    "Leave ",
    "Move ",
    "Order ascending and take 1 - p:",
    "Put the question into a subquery and join its keys:",
    "Qualify its columns with ",
    "Rename it, or write public.",
    "Run other statements on the source itself, with the owner's rights.",
    "Send ",
    "Settings: ",
    "Use ",
    "Write ",
)


def _refused(sql: str, settings: dict[str, str]) -> KeyholeError | None:
    """The refusal of a statement, of a question in it or of its plan."""
    catalog = retail()
    try:
        statement: Statement = classify(sql, catalog)
        for part in statement.questions if isinstance(statement, Asking) else ():
            wanted = accuracy(settings, catalog.defaults)
            question = ask(part, catalog, accuracy=wanted, parameters={}, today=TODAY)
            plan(question, dialect="postgres")
    except KeyholeError as error:
        return error
    return None


def _refusals() -> list[tuple[str, KeyholeError]]:
    statements = dict.fromkeys(sql for name in _FILES for sql, outcome in pairs(name) if outcome.startswith("KH"))
    return [(sql, error) for sql in statements if (error := _refused(sql, {})) is not None]


_REFUSALS = _refusals()


def _shown(hint: str) -> list[str]:
    """The whole statements in a hint: what begins with SELECT and has no placeholders, and settings."""
    settings = _SETTING.findall(hint)
    _, select, rest = hint.partition("SELECT ")
    if select and "..." not in rest:
        return [*settings, f"SELECT {rest}"]
    return settings


def _around(sql: str) -> str:
    """The refused question's table and key, for an atom that a hint shows."""
    found = re.search(r"FROM\s+(\w+)", sql)
    table = found.group(1) if found else "visits"
    key = {"visits": "ward"}.get(table, "month")
    return f"SELECT {key} FROM {table} GROUP BY {key} HAVING "


def _with_setting(shown: str, catalog: Catalog) -> dict[str, str]:
    statement = classify(shown.rstrip(";"), catalog)
    if isinstance(statement, PassThrough):
        assert shown.startswith("RESET")
        return {}
    assert isinstance(statement, SetKeyhole)
    assert statement.value_text is not None
    return {statement.name: statement.value_text}


@pytest.mark.parametrize(("sql", "error"), [(sql, error) for sql, error in _REFUSALS if _shown(error.hint or "")])
def test_a_shown_statement_is_accepted_and_a_shown_setting_is_the_way_out(sql: str, error: KeyholeError) -> None:
    """A setting leaves no refusal of the same code in the refused statement; a SET that was itself refused is valid."""
    for shown in _shown(error.hint or ""):
        if shown.startswith("SELECT"):
            assert _refused(shown.rstrip(";"), {}) is None, shown
            continue
        settings = _with_setting(shown, retail())
        accuracy(settings, retail().defaults)
        if not sql.upper().startswith(("SET ", "RESET ")):
            again = _refused(sql, settings)
            assert again is None, (shown, again)


_ADDED = [(sql, error) for sql, error in _REFUSALS if (error.hint or "").startswith("Add: ")]


@pytest.mark.parametrize(("sql", "error"), _ADDED)
def test_what_a_hint_says_to_add_guards_the_question(sql: str, error: KeyholeError) -> None:
    """One hint after the other, until the question is accepted."""
    for _ in range(4):
        guard = (error.hint or "").removeprefix("Add: AND ")
        before, having, formula = sql.rpartition(" HAVING ")
        sql = f"{before}{having}{guard} AND ({formula})"
        again = _refused(sql, {})
        if again is None:
            return
        assert again.code == "KH206", (sql, again)
        error = again
    pytest.fail(sql)


def _atoms(hint: str) -> list[str]:
    """The atoms in a hint: `1.0 * a / b`, `count(...) > 40`."""
    ratio = hint.partition("Make one side a decimal: ")[2]
    if ratio:
        return [f"{ratio} > 0.5"]
    if "..." in hint:
        return []
    atoms = [atom if ">" in atom else f"{atom} > 40" for atom in _ATOM.findall(hint)]
    for letters, written in _LETTERS.items():
        atoms = [atom.replace(letters, written) for atom in atoms]
    return atoms


_WITH_ATOMS = [(sql, error) for sql, error in _REFUSALS if _atoms(error.hint or "")]


@pytest.mark.parametrize(("sql", "error"), _WITH_ATOMS)
def test_a_shown_atom_is_accepted_on_the_same_table(sql: str, error: KeyholeError) -> None:
    for atom in _atoms(error.hint or ""):
        again = _refused(_around(sql) + atom, {})
        assert again is None, (atom, again)


def test_every_other_hint_is_known_to_be_prose() -> None:
    shown = {id(error) for _, error in (*_ADDED, *_WITH_ATOMS)}
    prose = {e.hint for _, e in _REFUSALS if e.hint and id(e) not in shown and not _shown(e.hint)}
    unknown = sorted(hint for hint in prose if not hint.startswith(PROSE))
    assert not unknown, unknown
    idle = [start for start in PROSE if not any(hint.startswith(start) for hint in prose)]
    assert not idle, idle


def test_few_refusals_say_nothing_to_do() -> None:
    """Where the message alone says it: a constant of the wrong type, text that cannot be parsed."""
    silent = {error.code for _, error in _REFUSALS if error.hint is None}
    assert silent <= {"KH100", "KH103", "KH201", "KH202", "KH204", "KH208", "KH212"}, silent


def test_the_corpus_shows_hints_of_every_kind() -> None:
    assert len(_ADDED) >= 12
    assert len(_WITH_ATOMS) >= 12
    assert sum(bool(_shown(error.hint or "")) for _, error in _REFUSALS) >= 25
