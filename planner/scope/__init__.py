"""Name resolution: a question's columns, expressions and keys, and the columns that keys determine.

May refuse: KH100, KH105, KH106, KH201, KH202, KH215.
May import: `question` and below.
Read first: `name_resolution.py`.
"""
