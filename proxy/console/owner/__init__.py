"""The owner's pages: the budget, past questions, waiting questions and decisions. Commands show and do the same.

`overview.py`, `budget_map.py`, `burn_lines.py`, `decided.py`, `question_pages.py` and `risk_page.py` compute what pages
show, as values and without a browser. `pages.py` shows them, and `deciding.py` receives the decisions.
"""
