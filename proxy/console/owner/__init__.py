"""The owner's pages: what is left, who asked what, what waits, and what an owner decides; as the commands have it.

`overview.py`, `budget_map.py`, `burn_lines.py`, `decided.py`, `question_pages.py` and `risk_page.py` are what
pages show,
as values and without a browser; `pages.py` shows them, `deciding.py` takes what is decided.
"""
