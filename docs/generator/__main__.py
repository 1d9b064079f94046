"""`python -m docs.generator`: writes what the pages take from the code."""

from docs.generator import commands, house, policy_keys
from docs.generator.question_way import PICTURE, draw_question_way

house.PAGE.write_text(house.replace_lists(house.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
PICTURE.write_text(draw_question_way(), encoding="utf-8")
commands.PAGE.write_text(commands.write_reference(commands.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
policy_keys.PAGE.write_text(policy_keys.write_reference(policy_keys.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
