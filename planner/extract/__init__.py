"""Questions, cut out of the statements that people and BI tools write, and the edits that let the text around them
read the answered keys.

May refuse: KH100, KH101, KH103, KH104, KH106, KH107, KH110, KH202, KH207, KH208, KH215.
May import: `bind`, `lower`, `explain` and below.
Read first: `extract.py`.
"""
