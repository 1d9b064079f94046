"""A heat map shows what the ledger says, the worst first, whatever the key values are called."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from accountant.charges import NANO, Cells, Charge, Family, Spent
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.reports.balance_report import FamilyBalance
from proxy.cli import main as cli
from proxy.open_policy.service import Service
from proxy.report.heat_map import (
    NEVER,
    NEVER_FILL,
    STEPS,
    SUMMARY,
    HeatMap,
    choose_colour,
    list_legend,
    make_heat_maps,
    summarise,
)
from proxy.report.heat_map_svg import draw_heat_maps
from proxy.report.heat_map_terminal import print_maps
from tests.worlds.house import check_once
from tests.worlds.wards import install

NAMES = st.text(min_size=1, max_size=40)
SHARES = st.integers(-1, 150)


@st.composite
def maps(draw: st.DrawFn) -> HeatMap:
    rows, columns = draw(st.lists(NAMES, min_size=1, max_size=8)), draw(st.lists(NAMES, min_size=1, max_size=8))
    cells = draw(st.lists(SHARES, min_size=len(rows) * len(columns), max_size=len(rows) * len(columns)))
    percent = np.array(cells, dtype=np.int64).reshape(len(rows), len(columns))
    return HeatMap(draw(NAMES), (draw(NAMES), draw(NAMES)), tuple(rows), tuple(columns), percent)


def family(*columns: str, filter_: str = "") -> Family:
    return Family("visits", "row", columns, filter_, "static", frozenset())


def balance(family_: Family, axes: tuple[tuple[str, ...], ...], lost: list[int], *, cap: int) -> FamilyBalance:
    cells = Cells(tuple(zip(family_.columns, axes, strict=True)))
    return FamilyBalance(family_, cells, tuple(lost), tuple(lost), tuple(cap - amount for amount in lost), cap)


def test_a_cell_is_the_worst_of_all_questions_about_the_group() -> None:
    (made,) = make_heat_maps(
        [
            balance(family("day", "ward"), (("10", "9"), ("A",)), [40, 1], cap=100),
            balance(family("day", "ward", filter_="x > 1"), (("9", "11"), ("A", "B")), [20, 0, 0, 150], cap=100),
        ]
    )
    assert made.keys == ("day", "ward")
    assert made.rows == ("9", "10", "11")  # numbers in their own order
    assert made.percent.tolist() == [[20, 0], [40, NEVER], [0, 150]]


def test_one_key_none_and_three() -> None:
    one, none, three = make_heat_maps(
        [
            balance(family("ward"), (("A", "B"),), [0, 1], cap=1000),
            balance(family(), (), [99], cap=1000),
            balance(family("a", "b", "c"), (("1", "2"), ("1", "2", "3"), ("x",)), [1, 2, 3, 4, 5, 6], cap=1000),
        ]
    )
    assert one.percent.tolist() == [[0], [1]]  # a thousandth is not nothing
    assert (none.rows, none.percent.tolist()) == (("the whole table",), [[9]])
    assert three.keys == ("b", "a", "c")
    assert three.percent.shape == (3, 2)
    assert three.title == "visits by b (down) and a (across), the worst over c"


@given(maps(), st.integers(1, 9), st.integers(1, 9))
def test_cutting_keeps_the_worst_and_tells_of_the_rest(whole: HeatMap, rows: int, columns: int) -> None:
    cut = whole.keep_most_spent(rows=rows, columns=columns)
    assert cut.percent.shape == (min(rows, len(whole.rows)), min(columns, len(whole.columns)))
    assert max(int(cut.percent.max()), cut.left_out_percent) == whole.percent.max()
    assert cut.left_out == (len(whole.rows) - len(cut.rows), len(whole.columns) - len(cut.columns))
    assert bool(cut.remark) == (cut.left_out != (0, 0))


@given(st.lists(maps(), max_size=3), st.text(max_size=20))
def test_the_picture_is_well_formed_and_holds_every_number(made: list[HeatMap], title: str) -> None:
    root = ET.fromstring(draw_heat_maps(made, title=title))
    namespace = {"svg": "http://www.w3.org/2000/svg"}
    cells = [text.text for text in root.findall(".//svg:g/svg:text", namespace)]
    wanted = [percent for whole in made for percent in whole.percent.reshape(-1).tolist()]
    assert cells == ["." if percent < 0 else str(percent) for percent in wanted]
    assert {element.tag.split("}")[1] for element in root.iter()} <= {"svg", "title", "rect", "text", "g"}
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for box in root.findall(".//svg:rect", namespace)[1:]:
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= width
        assert float(box.attrib["y"]) + float(box.attrib["height"]) <= height


@given(maps(), st.integers(40, 200))
def test_a_terminal_shows_numbers_without_colours_and_obeys_nothing(whole: HeatMap, width: int) -> None:
    console = Console(width=width, no_color=True, markup=False, emoji=False, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(*print_maps([whole], width=width, most_rows=20), sep="\n")
    text = captured.get()
    assert "\x1b" not in text
    assert all(cell_len(line) <= width for line in text.splitlines() if line.startswith(("│", "┃")))


@given(maps(), st.integers(50, 90))
def test_a_terminal_shows_every_cell_that_is_left(whole: HeatMap, width: int) -> None:
    plain = replace(
        whole,
        rows=tuple(chr(97 + place) for place in range(len(whole.rows))),
        columns=tuple(chr(65 + place) for place in range(len(whole.columns))),
    )
    console = Console(width=width, no_color=True, markup=False, emoji=False, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(*print_maps([plain], width=width, most_rows=5), sep="\n")
    body = [line.split("│")[1:-1] for line in captured.get().splitlines() if line.startswith("│")]
    shown = plain.keep_most_spent(rows=5, columns=(width - 28) // 7)
    assert [cells[0].strip() for cells in body] == list(shown.rows)
    assert [[cell.strip() for cell in cells[1:]] for cells in body] == [
        ["." if percent < 0 else str(percent) for percent in row] for row in shown.percent.tolist()
    ]


def luminance(colour: str) -> float:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_copy_in_black_and_white_shows_the_same_order() -> None:
    fills = [NEVER_FILL, *(colour for _, colour in STEPS)]
    assert all(luminance(lighter) > luminance(darker) for lighter, darker in pairwise(fills))
    assert [choose_colour(percent) for percent in (-1, 0, 24, 25, 99, 100, 400)] == [
        fills[i] for i in (0, 1, 1, 2, 4, 5, 5)
    ]
    assert [words for _, words in list_legend()] == [
        ". never asked",
        "0-24 %",
        "25-49 %",
        "50-74 %",
        "75-99 %",
        "100 % used up",
    ]


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = check_once(install(tmp_path))
    monkeypatch.setenv("KEYHOLE_POLICY", str(path))
    monkeypatch.setenv("NO_COLOR", "1")
    wide = Limits(
        per_predicate_nano=1000 * NANO,
        per_unit_nano=None,
        per_query_nano=None,
        analyst_per_predicate_nano=None,
        analyst_per_unit_nano=None,
        separates_analysts=False,
    )
    cells = Cells((("day", ("2026-01-02", "2026-01-01")), ("ward", ("A", "[bold]C"))))
    charge = Charge("0" * 64, "ada", family("day", "ward"), cells, 2 * NANO, 0, shared=True)
    with Ledger.open(f"sqlite:///{tmp_path}/keyhole.db", clock=lambda: datetime.now(UTC)) as ledger:
        losses = Spent.from_keys([0, NANO, 2 * NANO, 1], unit_epsilon_nano=0)
        ledger.commit(ledger.reserve(charge, wide), losses, None)
    return path


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_command_draws_the_ledger(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "budget", "--map", "--svg", str(policy.parent / "map.svg"))
    assert "visits by day (down) and ward (across)" in out
    rows = {line.split("│")[1].strip(): line.split("│")[2:4] for line in out.splitlines() if line.startswith("│")}
    assert [cell.strip() for cell in rows["2026-01-01"]] == ["50", "1"]  # of the policy's 4 epsilon
    assert [cell.strip() for cell in rows["2026-01-02"]] == ["0", "25"]
    picture = (policy.parent / "map.svg").read_text()
    assert "2026-01-02, [bold]C: 25 % spent" in picture
    assert "No group was ever asked about." in ran(capsys, "budget", "--map", "--table", "nothing")
    ran(capsys, "grant", "4", "--cap", "predicate", "--why", "double", "--by", "kim")
    assert " 25 │" in ran(capsys, "budget", "--map", "--table", "visits")


def test_an_analyst_sees_the_own_losses_against_the_own_cap(policy: Path) -> None:
    from proxy.report import budget

    with Service.open(policy) as service:
        assert budget.make_maps(service, "cy", table=None) == ()
        (ada,) = budget.make_maps(service, "ada", table=None)
        assert ada.percent.tolist() == [[50, 1], [0, 25]]


def test_a_picture_of_another_format_is_refused_and_nothing_is_written(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("map.png", "map.PDF"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["budget", "--svg", str(policy.parent / name)])
        assert ended.value.code == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert f"KH011: pictures are written as SVG, and {name} is the name of another format" in told.err
        assert "HINT:  Write --svg map.svg: " in told.err
        assert not (policy.parent / name).exists()


@pytest.mark.parametrize(
    "names",
    [
        ("January", "February", "march", "April", "August", "December"),
        ("Feb", "Mar", "Apr", "Sep", "Oct"),
        ("Monday", "Tuesday", "Wednesday", "Saturday", "Sunday"),
        ("2011-02", "2011-10", "2012-01"),
        ("2", "10", "11"),
    ],
)
def test_months_and_days_stand_in_their_order(names: tuple[str, ...]) -> None:
    shuffled = tuple(sorted(names))
    (drawn,) = make_heat_maps([balance(family("month"), (shuffled,), [0] * len(names), cap=100)])
    assert drawn.rows == names


def test_maps_that_are_cut_start_with_what_is_spent_most_by_grouping() -> None:
    """The worst grouping first, with the groups that have lost most; a map that fits has no need of it."""
    many = tuple(f"p{place:03}" for place in range(200))
    lost = [1] * 200
    lost[150] = lost[3] = 90
    made = make_heat_maps(
        [
            balance(family("ward"), (("A", "B"),), [10, 95], cap=100),
            balance(family("product"), (many,), lost, cap=100),
            balance(family(), (), [40], cap=100),
        ]
    )
    assert summarise(made) == (
        "  95 %  visits by ward, worst of 2: B",
        "  90 %  visits by product, worst of 200: p003, p150",
        "  40 %  visits, the whole table",
    )
    console = Console(width=80, no_color=True, markup=False, emoji=False, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(*print_maps(made, width=80, most_rows=40), sep="\n")
    assert captured.get().splitlines()[:4] == [SUMMARY, *summarise(made)]
    drawn = draw_heat_maps(made, title="t")
    assert drawn.index(SUMMARY) < drawn.index("worst of 200: p003, p150") < drawn.index(">visits by ward<")
    assert SUMMARY not in draw_heat_maps(made[:1], title="t")
