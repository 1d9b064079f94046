"""Drawn trees hold every literal, as typed and as evaluated; the picture is well-formed whatever the texts are."""

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from mechanisms.formula import list_literals
from planner.explain.formula_svg import draw_formula
from planner.explain.formula_tree import IDLE_NOTE, Branch, NodeKind, build_trees
from planner.explain.literal_labels import letter_literals
from planner.explain.rounded_numbers import write_ceiling
from tests.effort import examples
from tests.planner.explain.test_render import KPI, LARGE, NEGATED, REDUNDANT, planned
from tests.worlds.questions import CLIPPED, ROWS

SVG = "{http://www.w3.org/2000/svg}"


def test_the_trees_of_a_redundant_formula() -> None:
    (heading, typed), (other, minimal) = build_trees(planned(REDUNDANT, table=CLIPPED))
    assert heading == "as typed"
    worst = write_ceiling(planned(REDUNDANT, table=CLIPPED).worst_case_epsilon)
    assert other == f"as it is evaluated: minimal, worst case {worst} epsilon for a group"
    assert typed.kind is NodeKind.AND
    idle = [node.text for node in typed.walk() if node.kind is NodeKind.IDLE]
    assert idle == ["D  count(*) > 100", "E  count(DISTINCT customer_id) > 10"]
    assert all(node.note == IDLE_NOTE for node in typed.walk() if node.kind is NodeKind.IDLE)
    assert minimal.kind is NodeKind.OR
    assert [child.kind for child in minimal.children] == [NodeKind.AND, NodeKind.LITERAL]
    leaves = [node for node in minimal.walk() if not node.children]
    assert [leaf.text[0] for leaf in leaves] == ["A", "B", "C"]
    assert all(leaf.note.startswith("epsilon ") for leaf in leaves)


def test_every_literal_stands_in_the_trees() -> None:
    for having, table in ((KPI, CLIPPED), (NEGATED, CLIPPED), (LARGE, ROWS), (REDUNDANT, CLIPPED)):
        made = planned(having, table=table)
        (_, typed), (_, evaluated) = build_trees(made)
        assert len([node for node in typed.walk() if not node.children]) == len(
            list(list_literals(made.asked_question.formula))
        )
        paid = {node.text for node in evaluated.walk() if not node.children}
        assert paid == {f"{one.letter}  {one.text}" for one in letter_literals(made)}


def test_shared_noise_has_its_price_once() -> None:
    """Two thresholds on one count; and a literal that two terms read."""
    for having, letters in (
        ("count(*) >= 500 AND count(*) < 900", ["A", "B"]),
        ("(count(*) > 500 AND sum(amount) > 90) OR (count(*) > 500 AND count(DISTINCT customer_id) > 9)", ["A"] * 2),
    ):
        made = planned(having, table=CLIPPED)
        (_, evaluated) = build_trees(made)[1]
        leaves = [node for node in evaluated.walk() if not node.children]
        priced = [node for node in leaves if node.note.startswith("epsilon ")]
        assert len(priced) == len(made.question.functionals)
        assert {node.note for node in leaves if node not in priced} == {"same noise as A"}
        assert [node.text[0] for node in leaves if node.text.startswith(tuple(letters))] == letters


def test_a_constant_is_a_tree_of_one_node() -> None:
    (_, typed), (_, minimal) = build_trees(planned("count(*) > 5 OR count(*) <= 5"))
    assert len(list(typed.walk())) == 3
    assert (minimal.kind, minimal.text, minimal.children) == (NodeKind.CONSTANT, "true for every group", ())
    (_, never) = build_trees(planned("count(*) > 5 AND count(*) <= 5"))[1]
    assert never.text == "false for every group"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_holds_both_trees_labelled() -> None:
    made = planned(REDUNDANT, table=CLIPPED)
    drawn = build_trees(made)
    svg = draw_formula(drawn, title="a question")
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    assert root.findtext(f"{SVG}title") == "a question"
    found = texts(svg)
    for heading, tree in drawn:
        assert heading in found
        for node in tree.walk():
            assert node.text in found
            assert not node.note or node.note in found
    boxes = [element for element in root.iter(f"{SVG}rect") if element.get("rx")]
    assert len(boxes) == sum(1 for _, tree in drawn for _ in tree.walk())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in boxes:
        left, top, across, down = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert left >= 0
        assert top >= 0
        assert left + across <= width
        assert top + down <= height


def test_boxes_of_a_picture_do_not_overlap() -> None:
    root = ET.fromstring(draw_formula(build_trees(planned(LARGE)), title=""))
    boxes = [
        tuple(float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        for box in root.iter(f"{SVG}rect")
        if box.get("rx")
    ]
    for index, (left, top, across, down) in enumerate(boxes):
        for other in boxes[:index]:
            apart = other[0] >= left + across or other[0] + other[2] <= left
            assert apart or other[1] >= top + down or other[1] + other[3] <= top


@given(text=st.text(max_size=40), note=st.text(max_size=40), title=st.text(max_size=40))
@examples(100)
def test_any_text_is_escaped(text: str, note: str, title: str) -> None:
    leaf = Branch(kind=NodeKind.LITERAL, text=text, note=note, children=())
    tree = Branch(kind=NodeKind.AND, text="AND", note="", children=(leaf, leaf))
    root = ET.fromstring(draw_formula((("as typed", tree),), title=title))
    assert {element.tag for element in root.iter()} <= {
        f"{SVG}{name}" for name in ("svg", "title", "rect", "path", "text")
    }


def test_markup_in_a_text_stays_text() -> None:
    leaf = Branch(kind=NodeKind.LITERAL, text="<script>alert('&')</script>\x00\x1b\u202e\ud800", note='"', children=())
    svg = draw_formula((("as typed", leaf),), title="</title>")
    assert "<script>" not in svg
    assert "<script>alert('&')</script>\\x00\\x1b\\u202e\\ud800" in texts(svg)
    svg.encode("utf-8")
