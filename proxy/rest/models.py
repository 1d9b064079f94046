"""The types of REST's requests and responses. Requests are validated strictly; responses include their guarantees."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from accountant.store.attempts import Attempt
from planner.catalog.catalog import Analyst, Value
from planner.errors import KeyholeError
from planner.statements.settings import find_setting, read_catalog
from proxy.concurrency.fair_queue import read_very_long_alone
from proxy.dashboard.question_list import ListedQuestion
from proxy.open_policy.service import Service
from proxy.pipeline.messages import Asked, read_ordered_question

MOST_SQL_CHARACTERS = 100_000  # half of what a question may have over PostgreSQL, so that a body has its limit
MOST_PLANNED = 20  # questions of one list: what it takes to plan them grows with the square, to some ten seconds here
MOST_PARAMETERS = 1_000  # far more than questions have placeholders for; lists go into the text


def _check_storable(text: str) -> str:
    """Return a text unchanged. Raise ValueError if PostgreSQL cannot store it: for NUL or a lone surrogate."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("not text that a database can hold")
    return text


def _make_union_check(kinds: str) -> WrapValidator:
    """Return a validator for a union of types with one error message, instead of one for each type."""

    def check(sent: Any, read: Callable[[Any], Any]) -> Any:
        if isinstance(sent, str):
            _check_storable(sent)
        if isinstance(sent, float) and not isfinite(sent):
            raise ValueError("not a number that a database can hold")
        try:
            return read(sent)
        except ValidationError:
            raise PydanticCustomError("kind", "Input should be {kinds}", {"kinds": kinds}) from None

    return WrapValidator(check)


Text: TypeAlias = Annotated[str, AfterValidator(_check_storable)]
Parameter: TypeAlias = Annotated[
    str | int | float | bool | None,
    _make_union_check("text, a number, true, false or null; an array is sent as its text, {a,b}"),
]


def _make_setting_field(name: str) -> Any:
    return Field(default=None, description=find_setting(f"keyhole.{name}").meaning)


class QuestionIn(BaseModel):
    """A question, and optionally the accuracy of its answer. Without one, the policy's defaults apply."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"sql": "SELECT month FROM sales GROUP BY month HAVING count(*) > $1", "parameters": [1000]}]
        },
    )

    sql: Annotated[
        str,
        Field(max_length=MOST_SQL_CHARACTERS, description="SELECT keys ... HAVING ..., one statement"),
        AfterValidator(_check_storable),
    ]
    parameters: Annotated[list[Parameter], Field(max_length=MOST_PARAMETERS, description="values of $1, $2, ...")] = []
    fnr: float | None = _make_setting_field("fnr")
    fpr: float | None = _make_setting_field("fpr")
    tolerance: Annotated[str | int | float | None, _make_union_check("text, a number or null")] = _make_setting_field(
        "tolerance"
    )
    min_rows: int | None = _make_setting_field("min_rows")
    min_base: float | None = _make_setting_field("min_base")
    guard: Text | None = _make_setting_field("guard")
    mechanism: Text | None = _make_setting_field("mechanism")
    test: Text | None = _make_setting_field("test")
    most_positives: int | None = _make_setting_field("most_positives")
    public_knowledge: Text | None = _make_setting_field("public_knowledge")
    max_epsilon: float | None = _make_setting_field("max_epsilon")
    reuse: Text | None = _make_setting_field("reuse")
    numbers: Text | None = _make_setting_field("numbers")

    def make_asked(self, analyst: Analyst, service: Service, *, today: date, attempt: Attempt | None = None) -> Asked:
        """Return the request as the pipeline's input. `today` is the day for current_date.

        With an `attempt`, the question can spend only while this attempt holds the request.
        """
        named = self.model_dump(exclude={"sql", "parameters"}, exclude_none=True)
        settings = {f"keyhole.{name}": str(value) for name, value in named.items()}
        parameters = {number: _read_value(value) for number, value in enumerate(self.parameters, start=1)}
        question, order = read_ordered_question(self.sql, read_catalog(service.catalog, settings), parameters)
        return Asked(
            question=question,
            settings=settings,
            parameters=parameters,
            analyst=analyst,
            today=today,
            is_utc=True,
            attempt=attempt,
            order=order,
        )


class PlanIn(BaseModel):
    """Questions in the order in which they will be asked, and the most that all together may cost one group."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    questions: Annotated[list[QuestionIn], Field(min_length=1, max_length=MOST_PLANNED)]
    max_epsilon: Annotated[
        float | None,
        Field(
            gt=0, le=1000, description="the most that all questions may cost one group; null: the caps alone limit it"
        ),
    ] = None

    def make_list(self, analyst: Analyst, service: Service, *, today: date) -> tuple[ListedQuestion, ...]:
        """Return the questions to plan, in order. A question that cannot be parsed is replaced by its refusal."""
        return tuple(_read_one(number, one, analyst, service, today=today) for number, one in enumerate(self.questions))


def _read_one(number: int, one: QuestionIn, analyst: Analyst, service: Service, *, today: date) -> ListedQuestion:
    asked: Asked | None = None
    refusal: KeyholeError | None = None
    try:
        with read_very_long_alone(one.sql, analyst=analyst.name):
            asked = one.make_asked(analyst, service, today=today)
    except KeyholeError as error:
        refusal = error
    return ListedQuestion(statement=number, line=1, offset=0, text=one.sql, asked_question=asked, refusal=refusal)


def _read_value(sent: Parameter) -> Value | None:
    return Decimal(str(sent)) if isinstance(sent, float) else sent


class RankingOut(BaseModel):
    """The measure by which groups are ranked, and the tolerance within which their order may be wrong."""

    by: str
    order: Annotated[str, Field(description="greatest first, or least first")]
    limit: Annotated[int, Field(description="the most groups that are returned")]
    offset: Annotated[int, Field(description="the number of groups at the front that are skipped")] = 0
    partition: Annotated[
        list[str], Field(description="the keys; groups are ranked separately for each combination of their values")
    ] = []
    tolerance: Annotated[float, Field(description="in the unit of the ranked measure")]
    swapped_at_most: Annotated[
        float, Field(description="the rate at which two returned groups that differ by more are in the wrong order")
    ]
    epsilon: Annotated[float, Field(description="the most that ranking costs one group")]
    looks: int


class Guarantee(BaseModel):
    """The promise of the answer: its error rates, its tolerances, and the most that it costs a group."""

    sentence: str
    fnr: Annotated[float | None, Field(description="null: no bound")]
    fpr: Annotated[float | None, Field(description="null: no bound")]
    tolerance: Annotated[dict[str, float], Field(description="by aggregate, in the unit of its threshold")]
    epsilon_at_most: float
    wrong_groups_at_most: Annotated[
        float | None,
        Field(description="the mean number, if all groups failed just beyond the tolerance; null: no bound"),
    ] = None
    most_groups: Annotated[int | None, Field(description="the most keys that are returned; null: no limit")] = None
    cells: Annotated[
        str | None, Field(description="the promise about one unit in one group; null: each row is a unit")
    ] = None
    predicates: Annotated[
        dict[str, str], Field(description="for each predicate column of a scorecard, its formula")
    ] = {}
    ranking: Annotated[RankingOut | None, Field(description="the measure of a ranking; null: no ranking")] = None


class BalanceOut(BaseModel):
    """The rest of one balance: of the tightest group in the question, of a unit, or of the table."""

    of: Annotated[str, Field(description="group, unit or table")]
    epsilon: float
    cap: float


class Cost(BaseModel):
    """The most that the answer can have cost, and how many more answers at that price fit."""

    sentence: str
    group_at_most: Annotated[float, Field(description="the most that one group lost")]
    unit_at_most: Annotated[
        float | None, Field(description="the most that one privacy unit lost; null: each row is a unit")
    ]
    groups_of_one_unit: Annotated[
        int | None, Field(description="the number of groups whose losses add up for one unit")
    ]
    left: list[BalanceOut]
    further_questions: Annotated[int | None, Field(description="at least this many more fit; null: it cost nothing")]
    limit: Annotated[str | None, Field(description="the name of the limit that decides `further_questions`")]


class PageOut(BaseModel):
    """Some keys of a released key set."""

    columns: Annotated[
        list[str],
        Field(description="the key columns, then the predicates of a scorecard; later pages number the predicates"),
    ]
    keys: Annotated[
        list[list[str | None]], Field(description="one list per group, as PostgreSQL's text; null means NULL")
    ]
    data_version: str
    count: Annotated[int, Field(ge=0, description="the number of keys in the whole answer")]
    next: Annotated[str | None, Field(description="the cursor of the next page; null: there is none")]


class ShownOut(BaseModel):
    """The select list of a scorecard, as PostgreSQL would show it."""

    columns: Annotated[list[str], Field(description="the names of the select list, as PostgreSQL gives them")]
    rows: Annotated[
        list[list[str | int | bool | None]],
        Field(description="one list per key, in the order of `keys`: keys as their text, truths as true or false"),
    ]


class NumberOut(BaseModel):
    """The content of a column of the select list that says how large a group is."""

    name: str
    told: Annotated[
        str,
        Field(description="null: nothing; threshold: a bound that HAVING proves; bands: the lower edge of its band"),
    ]
    says: Annotated[
        str, Field(description="the statement about every group, such as at least 501, or the lower edges of the bands")
    ]


class NumbersOut(BaseModel):
    """The columns of a select list that ask for sizes, and the content of each."""

    columns: list[NumberOut]
    sentences: Annotated[list[str], Field(description="the notices for the analyst")]


class AnswerOut(PageOut):
    """A released key set, or its first page."""

    shown: Annotated[
        ShownOut | None,
        Field(description="null: no scorecard, or one whose select list only PostgreSQL could evaluate"),
    ] = None
    numbers: Annotated[
        NumbersOut | None, Field(description="the content of columns that ask for sizes; null: there are none")
    ] = None
    guarantee: Guarantee
    cost: Annotated[Cost | None, Field(description="null: it cost nothing this time")] = None
    reused: Annotated[bool, Field(description="true: the answer was released before, so nothing was spent this time")]
    shared_noise: Annotated[
        str | None, Field(description="a sentence about the earlier questions whose noise it shares; null: none")
    ]


class MonitorOut(BaseModel):
    """A monitor: its progress and its promise. Times are UTC."""

    name: str
    comment: str | None
    state: Annotated[str, Field(description="waiting, running, paused or ended")]
    reason: Annotated[str | None, Field(description="the owner's reason for the state")]
    keys: Annotated[list[str], Field(description="the key columns")]
    every_s: Annotated[float, Field(description="seconds between looks")]
    window_s: Annotated[float, Field(description="the length of a window in seconds")]
    looks_made: int
    looks_planned: int
    look: Annotated[int, Field(description="the number of the last look; 0: none")]
    next_look: str | None
    last_look: str | None
    fnr: Annotated[float | None, Field(description="for each look; null: no bound")]
    fpr: Annotated[float | None, Field(description="for each window; null: no bound")]
    tolerance: str
    epsilon_per_group: Annotated[float, Field(description="the most that one window costs one group")]
    epsilon_per_unit: Annotated[
        float | None,
        Field(description="the most that the whole horizon costs one privacy unit; null: each row is a unit"),
    ]
    contract: Annotated[str, Field(description="the promise, in a sentence")]


class MonitorsOut(BaseModel):
    """The monitors that an analyst may read."""

    monitors: list[MonitorOut]


class AlertOut(BaseModel):
    """A group that entered a monitor's answer. It stays until its window closes, or until the alert is cleared."""

    monitor: str
    key: Annotated[
        dict[str, str | None], Field(description="the key's values by column, as PostgreSQL's text; null for NULL")
    ]
    window: Annotated[str | None, Field(description="when the window began; null if alerts clear at once")]
    window_closes: Annotated[str | None, Field(description="when the window closes; null if alerts clear at once")]
    alerted_at: str
    look: Annotated[int, Field(description="the number of the look that alerted")]
    cleared_at: Annotated[
        str | None, Field(description="when the group left the answer; null if it has not left so far")
    ]


class ClearingOut(BaseModel):
    """A group that left a monitor's answer."""

    monitor: str
    key: Annotated[
        dict[str, str | None], Field(description="the key's values by column, as PostgreSQL's text; null for NULL")
    ]
    alerted_at: Annotated[str, Field(description="when the group had entered the answer")]
    cleared_at: str
    look: Annotated[int, Field(description="the number of the look that cleared it")]


class AlertsOut(BaseModel):
    """The changes of some looks of a monitor, the oldest first. Each look is included whole."""

    alerts: list[AlertOut]
    cleared: Annotated[
        list[ClearingOut],
        Field(description="the cleared alerts, also those of earlier pages, in the order of the clearing looks"),
    ]
    look: Annotated[int, Field(description="the last look whose changes are included")]
    next: Annotated[int | None, Field(description="the value of `after` for the next page; null: there is none yet")]


class Health(BaseModel):
    """The state of the process: if it can answer. It says nothing about data."""

    status: str


class Problem(BaseModel):
    """A refusal as a problem document (RFC 9457)."""

    type: Annotated[str, Field(examples=["urn:keyhole:error:KH101"])]
    title: str
    status: int
    code: Annotated[str, Field(description="a stable code; docs/errors.md lists all")]
    sqlstate: str
    meaning: str
    detail: str | None = None
    hint: str | None = None
    position: Annotated[int | None, Field(description="the character in `sql`, counted from 1")] = None
