"""`python -m docs.generator`: writes what the pages take from the code."""

from docs.generator import house
from docs.generator.question_way import PICTURE, question_way

house.PAGE.write_text(house.with_tables(house.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
PICTURE.write_text(question_way(), encoding="utf-8")
