"""A report's page: only text, whatever the texts are; well-formed; nothing runs and nothing is loaded."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from proxy.report.html.page import Drawing, PageSection, PageTable, Part, Verbatim, compose_page
from proxy.report.html.plots import Axis, Bar, Curve, draw_bar_plot, draw_cell_plot, draw_line_plot, draw_step_plot
from tests.in_turn import in_turn

HOSTILE = "</title><script>alert('x')</script><img src=\"http://evil\" onerror=a>&\x1b[2J\x00\u202e"
VOID = {"meta", "img", "br", "hr"}


class Tags(HTMLParser):
    """Which elements a page has, and that each one is closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def every_plot(text: str) -> tuple[Drawing, ...]:
    axis = Axis(text)
    curves = (Curve(text, (0.0, 1.0), (2.0, 3.0)), Curve("", (0.0, 1.0), (1.0, 1.5), errors=(0.5, 0.25)))
    return (
        draw_line_plot(text, curves, x=axis, y=axis),
        draw_step_plot(text, curves, x=Axis("x", 0, 1), y=Axis("y", 0, 4)),
        draw_bar_plot(text, (Bar(text, 0.25, text, mark=0.5), Bar("b", 0.0, ""))),
        draw_cell_plot(text, (text,), (text, "b"), ((0.0, 1.0),), ((text, "1"),)),
    )


@pytest.fixture
def hostile() -> str:
    parts: tuple[Part, ...] = (
        HOSTILE,
        PageTable((HOSTILE, "n"), ((HOSTILE, "1.5"),), HOSTILE),
        Verbatim(HOSTILE),
        *every_plot(HOSTILE),
    )
    return compose_page(HOSTILE, (PageSection(HOSTILE, parts),), warning=HOSTILE)


def test_hostile_texts_are_only_texts(hostile: str) -> None:
    tags = read(hostile)
    names = {name for name, _ in tags.seen}
    assert not names & {"script", "img", "link", "iframe", "object", "a", "form"}
    assert "<script" not in hostile
    assert not any(name.startswith("on") or name in ("src", "href", "style") for _, had in tags.seen for name in had)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", hostile)
    assert "alert('x')" in tags.text


def test_a_page_names_no_address_and_lets_a_browser_load_nothing() -> None:
    page = compose_page("Title", (PageSection("One", ("said", *every_plot("plot"))),))
    assert "http:" not in page
    assert "https:" not in page
    (policy,) = (had["content"] for name, had in read(page).seen if name == "meta" and "http-equiv" in had)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_the_warning_is_the_first_line_that_is_seen() -> None:
    page = compose_page("Title", (), warning="OWNER ONLY")
    assert page.partition("<body>")[2].lstrip().startswith('<p class="warning">OWNER ONLY</p>')
    assert "warning" not in compose_page("Title", ()).partition("<body>")[2]


@in_turn("drawing", every_plot(HOSTILE) + every_plot("plain"))
def test_drawings_are_well_formed(drawing: Drawing) -> None:
    root = ET.fromstring(drawing.svg)
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    for element in root.iter():
        assert not any("nan" in value for name, value in element.attrib.items() if name != "aria-label")


def test_points_stand_where_their_numbers_are() -> None:
    drawn = draw_line_plot("t", (Curve("c", (0, 5, 10), (0, 50, 100)),), x=Axis("x"), y=Axis("y")).svg
    path = re.search(
        r'<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" fill="none" stroke="#0072b2"', drawn
    )
    assert path is not None
    a, b, c, d, e, f = map(float, path.groups())
    assert c == pytest.approx((a + e) / 2)
    assert d == pytest.approx((b + f) / 2)
    assert a < e
    assert b > f
    assert ">100</text>" in drawn


def test_steps_hold_until_the_next_point() -> None:
    drawn = draw_step_plot("t", (Curve("c", (0, 1), (0, 1)),), x=Axis("x"), y=Axis("y")).svg
    assert re.search(r'd="M70\.0 308\.0H616\.0V36\.0"', drawn)


def test_one_point_alone_has_a_scale() -> None:
    assert "nan" not in draw_line_plot("t", (Curve("c", (3,), (3,), is_dotted=True),), x=Axis("x"), y=Axis("y")).svg


@pytest.mark.parametrize(
    "curve",
    [Curve("c", (), ()), Curve("c", (1,), (1, 2)), Curve("c", (1,), (float("nan"),)), Curve("c", (1,), (1,), (1, 2))],
)
def test_what_cannot_be_drawn_is_refused(curve: Curve) -> None:
    with pytest.raises(ValueError, match=r"curve|plot"):
        draw_line_plot("t", (curve,), x=Axis("x"), y=Axis("y"))


def test_bars_and_cells_refuse_what_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="bars"):
        draw_bar_plot("t", (Bar("a", -1.0, ""),))
    with pytest.raises(ValueError, match="cells"):
        draw_cell_plot("t", ("a",), ("b",), (), ())
    with pytest.raises(ValueError, match="row"):
        draw_cell_plot("t", ("a",), ("b",), ((1.0, 2.0),), (("x", "y"),))
