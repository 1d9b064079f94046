"""The run of `keyhole demo`: real questions about real customers, asked through the PostgreSQL endpoint with psycopg.

The demo may read the true data, which no analyst can. It compares each answer with the exact aggregates and says so.
"""

import math
import shutil
import signal
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg
from psycopg import sql
from rich.console import Console

from accountant.charges import NANO
from deploy.demo import build
from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula, relax_formula
from mechanisms.keyhole.common_sums import read_functionals
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.protocol import CommonSums
from mechanisms.registry import MECHANISMS
from planner.catalog.key_space import format_value
from planner.extract.outer_query import Asking
from planner.functionals.per_key_offsets import subtract_offsets
from planner.question.plan import Plan
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import classify
from proxy.cli import check as checking
from proxy.cli.common import check_page, write_html
from proxy.cli.pictures import draw_answer, render_answer_page
from proxy.observe.logs import log_to_standard_error
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Answer, Asked
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background
from proxy.report.terminal import write_psql_table, write_row_count

USER = PASSWORD = "demo"  # noqa: S105 (the demo policy's analyst, on loopback alone)
ROWS_SHOWN = 4  # of an answer: enough to see what its rows are, so few that the demo stays readable
PIPE_WIDTH = 120  # columns where no terminal says how many, so that the demo looks the same in every file and pipe
# Notices that the demo leaves out: the comparison with the truth says how many came wrongly, and the rest is in
# asking.md.
PASSED_OVER = (
    "wrong groups", "every value of ", "the ranking has ", "windows run over ", "groups without rows lie "
)  # fmt: skip
TRUTH = "truth"
REFUSED = "SELECT country, count(*) FROM sales GROUP BY country"
TOO_SHARP = "SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT customer_id) > 20"
# Noise of its own, since groups far below the first question's thresholds need not much of it; so the budget is enough
# after the questions, whatever noise they drew.
SCORECARD_SETTINGS = {"tolerance": "65%", "reuse": "off"}
SCORECARD = """SELECT country, month, width_bucket(sum(amount), ARRAY[20000, 40000, 80000]) AS sales,
       width_bucket(count(DISTINCT customer_id), ARRAY[20, 40, 80]) AS customers
FROM sales GROUP BY country, month"""
PICTURE_WIDTH = 80  # characters: as wide as the narrowest terminals are
PICTURE_ROWS = 8  # countries of a picture in the terminal: so many have something to see
WRAPPED = """SELECT region, count(*) AS country_months
FROM ({question}) AS busy
JOIN countries ON name = country
GROUP BY region ORDER BY 2 DESC"""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """One of the demo's questions, with the settings under which it is asked."""

    title: str
    sql: str
    settings: dict[str, str]


def read_questions(path: Path = build.HERE / "questions.toml") -> tuple[DemoQuestion, ...]:
    """Read a demo's questions, in order."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
    return tuple(
        DemoQuestion(title=each["title"], sql=each["sql"].strip(), settings=each.get("settings", {})) for each in listed
    )


def run_demo(*, keep: bool, html: Path | None = None, show_monitor: Callable[[], None] | None = None) -> None:
    """Ask all questions and print the answers. With `keep` the endpoints run on until interrupted.

    The scorecard is also written to the file `html`. `show_monitor` is called after all questions. Raise KH011 for
    another format's name, and `typer.BadParameter` if the file cannot be written.
    """
    check_page(html)
    console = make_demo_console()
    with tempfile.TemporaryDirectory(prefix="keyhole-demo-") as folder:
        console.print("[bold]Keyhole demo[/]: Online Retail (UCI), sale lines of real customers.")
        with time_step(console, "data loaded into DuckDB, public tables pinned"):
            policy = build.install_demo(Path(folder))
            checking.check(policy, confirm=False)
            truth = Path(shutil.copyfile(policy.with_name("retail.duckdb"), policy.with_name(f"{TRUTH}.duckdb")))
        _introduce(console, truth)
        with Service.open(policy) as service, _serve(console, service, keep=keep) as addresses:
            conninfo = f"host={addresses.host} port={addresses.port} user={USER} dbname={addresses.database}"
            with psycopg.connect(f"{conninfo} password={PASSWORD}", autocommit=True) as connection:
                _Demonstration(console, connection, service, truth, html).show()
            if show_monitor is not None:
                show_monitor()
            if not keep:
                console.print(
                    "\n[bold]Try it[/]: KEEP=1 make demo stays up, so that psql, a BI tool or a browser can connect."
                )
                return
            console.print(f'\n[bold]Try it[/]: psql "{conninfo}"   password {PASSWORD}', soft_wrap=True)
            console.print(f"        in a browser: {addresses.rest}/console   name {USER}, password {PASSWORD}")
            console.print(f"        REST and its documentation: {addresses.rest}/api/docs   bearer token {USER}")
            console.print("        Ctrl-C ends it.")
            _wait_for_interrupt()


def make_demo_console() -> Console:
    """Return the console of a demo, which prints the same to every file and pipe.

    The log is for operators, and has only warnings.
    """
    log_to_standard_error("warning")
    console = Console(highlight=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, emoji=False, width=PIPE_WIDTH)


def _wait_for_interrupt() -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    told.wait()


@contextmanager
def _serve(console: Console, service: Service, *, keep: bool) -> Iterator[Addresses]:
    ports = (6432, 8432) if keep else (0, 0)
    started = time.perf_counter()
    with serve_in_background(service, host="127.0.0.1", port=ports[0], rest_port=ports[1]) as addresses:
        console.print(
            f"  [green]ok[/] endpoint {addresses.postgresql}, REST and docs {addresses.rest}/docs"
            f"   {time.perf_counter() - started:.1f} s",
            soft_wrap=True,
        )
        yield addresses


@contextmanager
def time_step(console: Console, what: str) -> Iterator[None]:
    """Print a line that says what the block does, and after the block the time that it took."""
    started = time.perf_counter()
    with console.status(what):
        yield
    console.print(f"  [green]ok[/] {what}   {time.perf_counter() - started:.1f} s")


def _introduce(console: Console, database: Path) -> None:
    with duckdb.connect(str(database), read_only=True) as connection:
        found = connection.execute(
            "SELECT count(*), count(DISTINCT customer_id), count(*) - count(customer_id) FROM sales"
        ).fetchone()
    lines, customers, nameless = found or (0, 0, 0)
    console.print(
        f"{lines:,} sale lines, {customers:,} customers; {nameless:,} lines without a customer are left out.\n"
        "[bold]Protected[/]: each customer's month. One customer's whole month of shopping changes the probability of "
        "any answer by at most a factor e^epsilon (0.5 epsilon: a factor of 1.65).\n"
        "[bold]Not protected[/]: a customer over many months. Each month has a budget of its own, and their losses add "
        "up."
    )


class _Demonstration:
    """A demonstration that asks through the endpoint, and compares the answers with the true data."""

    def __init__(
        self,
        console: Console,
        connection: "psycopg.Connection[tuple[Any, ...]]",
        service: Service,
        database: Path,
        html: Path | None,
    ) -> None:
        self._console = console
        self._html = html
        self._connection = connection
        self._service = service
        self._database = database
        self._notices: list[str] = []
        self._seen: dict[str, list[tuple[Any, ...]]] = {}
        connection.add_notice_handler(lambda notice: self._notices.append(notice.message_primary or ""))

    def show(self) -> None:
        """Ask the demonstration's questions one after the other, and print their answers and costs."""
        asked = read_questions()
        self._show_budget("Budget before")
        for number, question in enumerate(asked, start=1):
            self._print_title(number, question.title)
            self._ask(question)
        number = len(asked) + 1
        self._print_title(
            number, "A scorecard: how much each country bought in each month, and how many customers did, in bands"
        )
        self._show_scorecard()
        self._print_title(number + 1, "The first question again")
        self._show_repeat(asked[0])
        self._print_title(number + 2, "The same inside a larger query: what surrounds a question is free")
        self._show_query_around(asked[0])
        self._print_title(number + 3, "What Keyhole does not tell: refused, and nothing is spent")
        self._show_refusal(REFUSED, {})
        self._print_title(number + 4, "A question sharper than what is left: refused, and nothing is spent")
        self._show_refusal(TOO_SHARP, {"tolerance": "5%"})
        self._show_budget("Budget after")

    def _print_title(self, number: int, title: str) -> None:
        self._console.print(f"\n[bold]{number}. {title}[/]")

    def _set_settings(self, settings: dict[str, str]) -> None:
        self._connection.execute("RESET ALL")
        for name, value in settings.items():
            statement = sql.SQL("SET {} = {}").format(sql.Identifier("keyhole", name), sql.Literal(value))
            self._connection.execute(statement)

    def _run_text(self, text: str) -> tuple[list[str], list[tuple[Any, ...]], float]:
        self._notices.clear()
        started = time.perf_counter()
        cursor = self._connection.execute(text.encode())
        rows = cursor.fetchall()
        taken = 1000 * (time.perf_counter() - started)
        return [column.name for column in cursor.description or ()], rows, taken

    def _print_rows(self, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
        shown = [tuple("" if value is None else str(value) for value in row) for row in rows[:ROWS_SHOWN]]
        more = [("...",) * len(columns)] if len(rows) > ROWS_SHOWN else []
        for line in write_psql_table(columns, shown + more):
            self._console.print(f"   {line}", markup=False, soft_wrap=True)

    def _ask(self, question: DemoQuestion) -> None:
        self._show_sql(question.sql, question.settings)
        self._set_settings(question.settings)
        columns, rows, taken = self._run_text(question.sql)
        self._print_rows(columns, rows)
        self._console.print(
            f"   ({write_row_count(len(rows))}, {taken:.0f} ms; the same SQL on DuckDB alone takes "
            f"{self._time_plain_sql(question.sql):.0f} ms and tells everyone everything)"
        )
        self._seen[question.sql] = rows
        self._print_notices()
        answer = self._answer_again(question)
        (self._compare_ranking if answer.plan.ranking else self._compare_with_truth)(answer)

    def _print_notices(self) -> None:
        for notice in self._notices:
            if not notice.startswith(PASSED_OVER):
                self._console.print(notice, style="cyan", markup=False)

    def _show_sql(self, text: str, settings: dict[str, str]) -> None:
        if settings:
            statements = (f"SET keyhole.{name} = '{value}';" for name, value in settings.items())
            self._console.print(f"   {' '.join(statements)}", style="dim")
        for line in text.splitlines():
            self._console.print(f"   {line}", style="dim", markup=False, soft_wrap=True)

    def _time_plain_sql(self, text: str) -> float:
        """Return the milliseconds that the engine alone takes for the same SQL, with `month` and `hour` written out."""
        month, hour = "date_trunc('month', invoice_date)::date", "extract(hour FROM invoice_date)"
        with duckdb.connect(str(self._database), read_only=True) as connection:
            connection.execute(
                f"CREATE TEMP VIEW sales AS SELECT *, {month} AS month, {hour} AS hour FROM {TRUTH}.main.sales"
            )
            started = time.perf_counter()
            connection.execute(text).fetchall()
            return 1000 * (time.perf_counter() - started)

    def _make_asked(self, question: DemoQuestion) -> Asked:
        return Asked(
            question=self._read_question(question.sql),
            settings={f"keyhole.{name}": value for name, value in question.settings.items()},
            parameters={},
            analyst=self._service.find_analyst(USER),
            today=datetime.now(UTC).date(),
            is_utc=True,
        )

    def _read_question(self, text: str) -> EmbeddedQuestion:
        statement = classify(text, self._service.catalog)
        assert isinstance(statement, Asking)
        (question,) = statement.questions
        return question

    def _answer_again(self, question: DemoQuestion) -> Answer:
        """Ask once more in this process, for nothing. Return the plan, and the keys as the ledger has them."""
        asked = self._make_asked(question)
        return pipeline.answer(self._service, pipeline.plan_asked_question(self._service, asked), asked)

    def _show_scorecard(self) -> None:
        question = DemoQuestion("", SCORECARD, SCORECARD_SETTINGS)
        self._show_sql(question.sql, question.settings)
        self._set_settings(question.settings)
        _, rows, taken = self._run_text(question.sql)
        self._print_notices()
        cost = self._describe_spent()
        answer = self._answer_again(question)
        drawn = list(draw_answer(answer, min(PICTURE_WIDTH, self._console.width), most_rows=PICTURE_ROWS))
        self._console.print(f"   ({write_row_count(len(rows))}, {taken:.0f} ms)\n", *drawn, sep="\n", soft_wrap=False)
        self._compare_predicates(answer)
        apart = sum(
            self._price_predicate_alone(answer.plan, predicate) for predicate in answer.plan.calibration.task.predicates
        )
        reserved = f"Reserved: {round_up_epsilon(answer.plan.worst_case_epsilon)} epsilon a group"
        self._console.print(f"{reserved} (its six thresholds asked apart {round_up_epsilon(apart)}). {cost}")
        if self._html is not None:
            write_html(self._html, render_answer_page(answer, question.sql))
            self._console.print(f"The picture, for a browser: {self._html}", markup=False, soft_wrap=True)

    def _price_predicate_alone(self, plan: Plan, predicate: Formula) -> float:
        task = replace(plan.calibration.task, formula=predicate, predicates=())
        return MECHANISMS[plan.question.accuracy.mechanism].calibrate(task).worst_case_epsilon

    def _compare_predicates(self, answer: Answer) -> None:
        """Print how many yes/no answers are wrong, counted over all predicates."""
        plan = answer.plan
        exact = self._read_exact(plan)
        shown = np.array([[text == "true" for text in key[-len(plan.predicates) :]] for key in answer.keys.keys]).T
        truly = np.array([evaluate_exactly(one.formula, exact) for one in plan.predicates])
        nearly = np.array([evaluate_exactly(relax_formula(one.formula), exact) for one in plan.predicates])
        self._console.print(describe_errors(truly, nearly, shown, what="truths "))

    def _compare_with_truth(self, answer: Answer) -> None:
        plan, returned = answer.plan, set(answer.keys.keys)
        exact, common = self._read_exact(plan), plan.calibration.task.common
        truly = evaluate_exactly(plan.minimised.formula, exact, common=common)
        nearly = evaluate_exactly(relax_formula(plan.minimised.formula), exact, common=common)
        passed = np.fromiter((key in returned for key in _list_written_keys(plan)), np.bool_)
        self._console.print(describe_errors(truly, nearly, passed, what=""))
        compared = [
            f"{name} {round_up_epsilon(plan.compared[key])}"
            for key, name in (("probe", "ProBE"), ("naive", "equal split"))
            if key in plan.compared
        ]
        beside = f" ({', '.join(compared)})" if compared else ""
        reserved = f"Reserved: {round_up_epsilon(plan.worst_case_epsilon)} epsilon a group{beside}."
        self._console.print(f"{reserved} {self._describe_spent()}")

    def _compare_ranking(self, answer: Answer) -> None:
        plan = answer.plan
        keys: list[tuple[str | None, ...]] = list(_list_written_keys(plan))
        (sizes,) = self._read_exact(plan)
        places = {key: place for place, key in enumerate(keys)}
        returned = [int(sizes[places[key[: len(keys[0])]]]) for key in answer.keys.keys]
        first = sorted(map(int, sizes), reverse=True)[: len(returned)]
        found = sum(size >= first[-1] for size in returned)
        pairs = sum(later > size for place, size in enumerate(returned) for later in returned[place:])
        self._console.print(
            f"Against the truth after bounding (the demo may look): {found} of the first {len(first)} returned; pairs "
            f"in the wrong order: {pairs}.\n"
            f"Reserved: {round_up_epsilon(plan.worst_case_epsilon)} epsilon a group. {self._describe_spent()}"
        )

    def _read_exact(self, plan: Plan) -> Integers:
        found = self._service.source.read_aggregates(
            plan.rewritten,
            plan.question.keys,
            functionals=len(plan.question.computed_functionals),
            timeout_ms=self._service.catalog.statement_timeout_ms,
        ).values
        exact = subtract_offsets(plan.question, found)
        common = plan.calibration.task.common
        return exact if common is None or common.cells else read_functionals(common, exact)

    def _describe_spent(self) -> str:
        """Return the last question's real cost, for groups near a threshold and for others. Only owners may read it."""
        spent = self._service.ledger.read_history()[-1]
        assert spent.spent is not None
        losses = np.broadcast_to(spent.spent.read_amounts(spent.charge.cells), spent.charge.cells.shape_by_column)
        least, most = int(losses.min()), int(losses.max())
        if least == most:
            return f"Spent: {round_up_epsilon(most / NANO)} on each of {losses.size:,}."
        few = int(np.sum(2 * losses > most))
        rest = losses[2 * losses <= most]
        spent_most = f"Spent: at most {round_up_epsilon(most / NANO)} on {few:,} of {losses.size:,}"
        return (
            f"{spent_most}, mean {round_up_epsilon(float(rest.mean()) / NANO)} on the rest."
            if rest.size
            else f"{spent_most}."
        )

    def _show_repeat(self, question: DemoQuestion) -> None:
        self._set_settings(question.settings)
        _, rows, taken = self._run_text(question.sql)
        same = "the same " if rows == self._seen[question.sql] else ""
        self._console.print(f"   ({same}{write_row_count(len(rows))}, {taken:.0f} ms)")
        self._console.print(self._notices[1], style="cyan", markup=False)

    def _show_query_around(self, question: DemoQuestion) -> None:
        text = WRAPPED.format(question=question.sql)
        self._show_sql(text, question.settings)
        self._set_settings(question.settings)
        columns, rows, _ = self._run_text(text)
        self._print_rows(columns, rows)
        self._console.print(self._notices[1], style="cyan", markup=False)

    def _show_refusal(self, text: str, settings: dict[str, str]) -> None:
        self._show_sql(text, settings)
        self._set_settings(settings)
        try:
            self._connection.execute(text.encode())
        except psycopg.Error as error:
            first, *others = f"ERROR:  {error}".splitlines()
            self._console.print(first, style="red", markup=False)
            for line in others:
                words = line.startswith(("DETAIL", "HINT"))  # the others are the statement and where it is refused
                self._console.print(line, markup=False, soft_wrap=not words)

    def _show_budget(self, title: str) -> None:
        self._connection.execute("RESET ALL")
        caps = self._service.catalog.budget
        group, unit = self._connection.execute(
            "SELECT min(left_at_least) FILTER (WHERE scope = 'grouping'), "
            "min(left_at_least) FILTER (WHERE scope = 'unit') FROM keyhole.budget"
        ).fetchone() or (None, None)
        of_group, of_unit = ("nothing used" if group is None else f"at least {one:.2f} left" for one in (group, unit))
        self._console.print(
            f"\n[bold]{title}[/] (SELECT * FROM keyhole.budget): per group {caps.per_predicate:g} epsilon, {of_group}; "
            f"per customer's month {caps.per_unit:g}, {of_unit}."
        )


def _list_written_keys(plan: Plan) -> Iterator[tuple[str, ...]]:
    """Yield the keys of all groups, in the texts of an answer."""
    space = plan.question.keys
    return (tuple(format_value(value) for value in space.get_key(index)) for index in range(space.size))


def describe_errors(truly: Booleans, nearly: Booleans, shown: Booleans, *, what: str) -> str:
    """Return in words how often an answer is wrong, compared with the truth exactly and within the tolerance."""
    missed, within, beyond = (
        int(np.sum(truly & ~shown)),
        int(np.sum(shown & ~truly & nearly)),
        int(np.sum(shown & ~nearly)),
    )
    return (
        f"Against the truth after bounding (the demo may look): {missed} of {int(truly.sum()):,} {what}missed; of the "
        f"other {int((~truly).sum()):,}, {within} within the slack, {beyond} beyond it."
    )


def round_up_epsilon(epsilon: float) -> str:
    """Return a loss rounded up to two decimals."""
    return f"{math.ceil(epsilon * 100) / 100:.2f}"


def evaluate_exactly(formula: Formula, exact: Integers, *, common: CommonSums | None = None) -> Booleans:
    """Return, by key, True if a formula holds on the exact aggregates.

    With `common`, the aggregates are sums of cells, from which the functionals are computed.
    """

    def test_literal(cut: Cut) -> Booleans:
        if common is not None and common.cells:
            return evaluate_literal(common, cut, exact)
        return cut.evaluate(exact[cut.functional])

    return evaluate_formula(formula, test_literal, keys=exact.shape[1])
