"""What the names and expressions of a question refer to, which of them are its keys, and which columns the keys
determine.

May refuse: KH100, KH105, KH106, KH201, KH202, KH215.
May import: `question` and below.
Read first: `names.py`.
"""
