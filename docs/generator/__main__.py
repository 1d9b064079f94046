"""`python -m docs.generator`: writes what the pages take from the code."""

from docs.generator import house

house.PAGE.write_text(house.with_tables(house.PAGE.read_text(encoding="utf-8")), encoding="utf-8")
