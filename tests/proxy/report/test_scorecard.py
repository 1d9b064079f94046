"""Pictures of answers: each group's band stands where it belongs, whatever keys there are, and no key is but text."""

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Plan
from proxy.pipeline.messages import KeySet
from proxy.report.scorecard import ABSENT, Scale, Scorecard, choose_ink, draw_scorecard, find_luminance
from proxy.report.scorecard_html import write_scorecard_html
from proxy.report.scorecard_terminal import count_fitting_columns, print_scorecard
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.worlds.retail import COUNTRIES

BANDS = "SELECT country, month, width_bucket(count(*), ARRAY[1200, 1500, 2500]), {} FROM sales GROUP BY country, month"
TWO_KEYS = BANDS.format("sum(amount) > 200000 AND count(*) > 1300")
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=y>', "\u202eabc", "[red]\x1b[31m", "&amp;", "a" * 400)


def planned(sql: str, *, tolerance: str = "10%") -> Plan:
    return plan_question(asked(sql, tolerance=tolerance), dialect=DUCKDB)


def rows(plan_: Plan, truths: Sequence[tuple[bool, ...]]) -> list[tuple[str | None, ...]]:
    """An answer with these truths of the keys, in the key space's order."""
    keys = KeySet.make_constant(replace(plan_, question=replace(plan_.question, predicates=()))).keys
    return [(*key, *("true" if one else "false" for one in each)) for key, each in zip(keys, truths, strict=True)]


def drawn(
    plan_: Plan, keys: Sequence[tuple[str | None, ...]], *, most_rows: int = 100, most_columns: int = 100
) -> Scorecard:
    return draw_scorecard(plan_, keys, most_rows=most_rows, most_columns=most_columns)


def printed(card: Scorecard, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False, emoji=False)
    console.print(*print_scorecard(card, width=width), sep="\n")
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.fixture(scope="module")
def two_keys() -> Plan:
    return planned(TWO_KEYS)


@given(st.data())
def test_a_cell_has_the_level_of_its_group(two_keys: Plan, data: st.DataObject) -> None:
    size = two_keys.question.keys.size
    levels = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    others = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    truths = [(*(place < level for place in range(3)), other) for level, other in zip(levels, others, strict=True)]
    answer = rows(two_keys, truths)
    here = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    bands, both = drawn(two_keys, [answer[place] for place in sorted(here)]).grids
    listed = [answer[place][:2] for place in sorted(here)]
    assert bands.columns == tuple(dict.fromkeys(country for country, _ in listed))
    assert bands.rows == tuple(sorted({str(month) for _, month in listed}))  # most values go down
    for place, (country, month, *_) in enumerate(answer):
        if country not in bands.columns or month not in bands.rows:
            continue
        cell = bands.rows.index(month), bands.columns.index(country)
        assert bands.levels[cell] == (levels[place] if place in here else ABSENT)
        assert both.levels[cell] == (int(others[place]) if place in here else ABSENT)
    assert bands.scales[0].marks == ("0", "1", "2", "3")
    assert bands.scales[0].meanings == ("none of these", ">= 1200", ">= 1500", ">= 2500")
    assert bands.title == "count(*) by month (down) and country (across)"
    assert both.scales[0].title == "sum(amount) > 200000 AND count(*) > 1300"


def test_thresholds_of_one_aggregate_are_one_measure_wherever_they_stand() -> None:
    plan_ = planned(
        "SELECT country, count(*) > 2500, sum(amount) > 200000 AS big, CASE WHEN count(*) > 1500 THEN 'x' END, "
        "count(*) FILTER (WHERE gift) > 1500, count(*) < 3000 AND count(*) > 100 FROM sales GROUP BY country"
    )
    (grid,) = drawn(plan_, rows(plan_, [(False, True, True, False, True)] * 4)).grids
    assert grid.columns == (
        "count(*)",
        "big",
        "count(*) FILTER (WHERE gift) > 1500",
        "count(*) < 3000 AND count(*) > 100",
    )
    assert grid.levels.tolist() == [[1, 1, 0, 1]] * 4
    assert grid.scales[0].meanings == ("none of these", "> 1500", "> 2500")
    assert grid.scales[1].meanings == ("false", "sum(amount) > 200000")


def test_no_key_three_keys_and_no_predicate() -> None:
    whole = planned("SELECT count(*) > 1500, sum(amount) > 200000 FROM sales")
    (grid,) = drawn(whole, [("true", "true", "false")]).grids
    assert (grid.rows, grid.levels.tolist()) == (("the whole table",), [[1, 0]])

    three = planned(
        "SELECT ward, day, hour, count(*) > 1500 FROM visits WHERE hour < 4 GROUP BY ward, day, hour "
        "HAVING count(*) > 1000"
    )
    (grid,) = drawn(three, [("B", "2026-01-03", "2", "true"), ("C", "2026-01-10", "0", "false")]).grids
    assert grid.title.endswith("by ward / day (down) and hour (across)") or grid.title.endswith(
        "by day / hour (down) and ward (across)"
    )
    names = {
        (f"{row} / {column}", level)
        for (row, levels) in zip(grid.rows, grid.levels.tolist(), strict=True)
        for column, level in zip(grid.columns, levels, strict=True)
        if level != ABSENT
    }
    assert {("".join(sorted(name)), level) for name, level in names} == {
        ("".join(sorted("B / 2026-01-03 / 2")), 1),
        ("".join(sorted("C / 2026-01-10 / 0")), 0),
    }

    passing = planned("SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 1500")
    (grid,) = drawn(passing, [("France", "2011-01-01"), ("Norway", "2011-03-01")]).grids
    assert (grid.rows, grid.columns) == (("2011-01-01", "2011-03-01"), ("France", "Norway"))
    assert [[grid.scales[0].find_mark(level) for level in row] for row in grid.levels.tolist()] == [
        ["yes", ""],
        ["", "yes"],
    ]
    assert printed(drawn(passing, []), 80) == ["No group is in the answer."]
    assert "<p>No group is in the answer.</p>" in write_scorecard_html(drawn(passing, []), title="", sql="", told=())


def test_a_ranking_stands_in_its_order_with_its_places() -> None:
    sql = "SELECT country, count(*) > 1500 AS busy FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 3"
    plan_ = planned(sql, tolerance="10%, sum(amount)=5000")
    answer = [("Norway", "1", "true"), ("France", "2", "false"), ("Germany", "3", "true")]
    card = drawn(plan_, answer)
    (grid,) = card.grids
    assert (grid.rows, grid.columns) == (("Norway", "France", "Germany"), ("busy", "place by sum(amount)"))
    marks = [
        [scale.find_mark(level) for scale, level in zip(grid.scales, row, strict=True)] for row in grid.levels.tolist()
    ]
    assert marks == [["yes", "1"], ["no", "2"], ["yes", "3"]]
    assert "place by sum(amount):   1  is the first" in [line.rstrip() for line in printed(card, 80)]
    assert drawn(plan_, answer, most_rows=2).grids[0].rows == ("Norway", "France")
    two = planned(sql.replace("country", "country, month"), tolerance="10%, sum(amount)=5000")
    _, grid = drawn(two, [("France", "2011-02-01", "1", "true"), ("Norway", "2011-01-01", "2", "true")]).grids
    assert (grid.rows, grid.columns) == (("2011-01-01", "2011-02-01"), ("France", "Norway"))
    assert [[grid.scales[0].find_mark(level) for level in row] for row in grid.levels.tolist()] == [
        ["", "2"],
        ["1", ""],
    ]


def test_what_is_left_out_is_lowest_and_told(two_keys: Plan) -> None:
    truths = [
        (country in ("France", "Norway"), month.startswith("2011-0"), False, False)
        for country, month in product(COUNTRIES, (str(value) for value in two_keys.question.keys.values[1]))
    ]
    card = drawn(two_keys, rows(two_keys, truths), most_rows=9, most_columns=2)
    for grid in card.grids:
        assert grid.columns == ("France", "Norway")
        assert grid.rows == tuple(f"2011-0{month}-01" for month in range(1, 10))
    assert card.remark == "Left out: 4 rows and 2 columns, those in the lowest bands."
    assert card.remark in printed(card, 80)


@pytest.mark.parametrize("width", [80, 60, 40])
def test_it_fits_a_terminal_and_shows_every_mark(two_keys: Plan, width: int) -> None:
    plan_ = planned(TWO_KEYS.replace("country, month", "month, country"))
    levels = [place % 4 for place in range(plan_.question.keys.size)]
    answer = rows(plan_, [(*(each < level for each in range(3)), level == 2) for level in levels])
    card = drawn(plan_, answer, most_columns=count_fitting_columns(width))
    lines = printed(card, width)
    assert max(map(len, lines)) <= width
    shown = [line.split() for line in lines if re.match(r"20\d\d-", line)]
    marks = [[grid.scales[0].find_mark(level) for level in row] for grid in card.grids for row in grid.levels.tolist()]
    assert [row[1:] for row in shown] == marks


def test_months_head_columns_by_their_names() -> None:
    plan_ = planned("SELECT month, hour, count(*) > 1500 FROM visits GROUP BY 1, 2".replace("month", "day"))
    lines = printed(drawn(plan_, rows(plan_, [(True,)] * plan_.question.keys.size)), 80)
    assert lines[1].split() == ["'26"] * 10
    assert lines[2].split() == ["Jan"] * 10
    assert lines[3].split() == [str(day) for day in range(1, 11)]


class Read(HTMLParser):
    """What a browser would see: tags with their attributes, and the text of each cell."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag in ("td", "th")
        if self._inside:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.cells[-1] += data


def hostile_answer() -> tuple[Plan, list[tuple[str | None, ...]]]:
    made = planned("SELECT country, month, count(*) > 1500, count(*) > 2500 FROM sales GROUP BY country, month")
    space = replace(made.question.keys, values=(HOSTILE, made.question.keys.values[1]))
    made = replace(made, question=replace(made.question, keys=space))
    return made, rows(made, [(place % 2 == 0, place % 4 == 0) for place in range(space.size)])


def test_a_page_runs_nothing_loads_nothing_and_shows_everything() -> None:
    plan_, answer = hostile_answer()
    card = drawn(plan_, answer)
    page = write_scorecard_html(card, title=HOSTILE[0], sql=f"SELECT 1\n-- {HOSTILE[1]}", told=HOSTILE)
    read = Read(page)
    used = {tag for tag, _ in read.tags}
    assert used == {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "pre",
        "table",
        "caption",
        "tr",
        "th",
        "td",
        "p",
    }
    attributes = {name for _, given_ in read.tags for name in given_}
    assert attributes == {"lang", "charset", "http-equiv", "content", "name", "scope", "class"}
    (policy,) = (given_["content"] for _, given_ in read.tags if given_.get("http-equiv") == "Content-Security-Policy")
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert all(char.isprintable() or char == "\n" for char in page)
    marks = list(expected_cells(card))
    assert read.cells[: len(marks)] == marks


def expected_cells(card: Scorecard) -> Iterator[str]:
    (grid,) = card.grids
    visible = {name: name.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b") for name in (*HOSTILE, *grid.rows)}
    yield from ("", *(visible[name] for name in grid.columns))
    for name, levels in zip(grid.rows, grid.levels.tolist(), strict=True):
        yield from (visible[name], *(grid.scales[0].find_mark(level) for level in levels))
    for mark, meaning in zip(grid.scales[0].marks, grid.scales[0].meanings, strict=True):
        yield from (mark, meaning)


def test_a_terminal_obeys_no_key() -> None:
    plan_, answer = hostile_answer()
    for width in (80, 200):
        text = "\n".join(printed(drawn(plan_, answer, most_columns=count_fitting_columns(width)), width))
        assert all(char.isprintable() or char == "\n" for char in text)


@in_turn("bands", range(2, 12))
def test_colours_keep_their_order_in_grey_and_marks_can_be_read(bands: int) -> None:
    scale = Scale("any", tuple(map(str, range(bands))), ("",) * bands)
    shades = [find_luminance(scale.find_shade(level)) for level in range(bands)]
    assert all(darker < lighter - 0.01 for lighter, darker in pairwise(shades))
    for level in range(bands):
        low, high = sorted(
            (find_luminance(scale.find_shade(level)), find_luminance(choose_ink(scale.find_shade(level))))
        )
        assert (high + 0.05) / (low + 0.05) >= 4.5
