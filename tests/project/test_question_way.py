"""The picture of a question's way is drawn from the stages that questions go through."""

import ast
import xml.etree.ElementTree as ET
from pathlib import Path

from docs.generator.question_way import (
    FRAMES,
    HEIGHT,
    OTHERS,
    PICTURE,
    SMALL,
    STAGES,
    TITLE,
    WIDTH,
    draw_question_way,
    estimate_width,
)
from proxy.observe.telemetry import Stage

ROOT = Path(__file__).resolve().parents[2]
BOXES = (*STAGES.values(), *OTHERS)


def test_the_picture_is_the_one_that_the_stages_give() -> None:
    assert PICTURE.read_text(encoding="utf-8") == draw_question_way(), "run `make pages`"


def test_every_stage_has_a_box_by_its_own_name_in_its_own_order() -> None:
    assert tuple(STAGES) == tuple(Stage)
    assert [box.title for box in STAGES.values()] == [stage.value for stage in Stage]


def test_the_order_is_that_of_the_pipeline() -> None:
    """`TURN` begins where the pipeline asks the service for one; the others are named."""
    text = (ROOT / "proxy" / "pipeline" / "stages.py").read_text(encoding="utf-8")
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
    named = [node for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "Stage"]
    order = [node.attr for node in sorted(named, key=lambda node: node.lineno)]
    assert order == [stage.name for stage in Stage if stage is not Stage.TURN]


def test_it_is_an_image_with_a_title_for_those_who_do_not_see_it() -> None:
    image = ET.fromstring(draw_question_way())
    space = "{http://www.w3.org/2000/svg}"
    assert image.tag == f"{space}svg"
    assert image.findtext(f"{space}title")
    assert all(stage.value in (image.findtext(f"{space}desc") or "") for stage in Stage)


def test_what_is_written_fits_into_its_box_and_boxes_into_the_picture() -> None:
    for box in BOXES:
        assert estimate_width(box.title, TITLE) < box.width
        assert all(estimate_width(text, SMALL) < box.width - 4 for text in box.lines), box.title
        assert 0 <= box.x < box.x + box.width <= WIDTH
        assert 0 <= box.y < box.y + box.height <= HEIGHT
    for x, y, width, height, name in FRAMES:
        assert estimate_width(name, SMALL + 1) < width
        assert x + width <= WIDTH
        assert y + height <= HEIGHT


def test_no_two_boxes_overlap() -> None:
    for number, one in enumerate(BOXES):
        for other in BOXES[number + 1 :]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            above = one.y + one.height <= other.y or other.y + other.height <= one.y
            assert beside or above, f"{one.title} and {other.title}"
