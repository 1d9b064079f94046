"""A linter of prose: pages, docstrings, error messages and the help of commands, held to a few rules of style.

`python -m tests.project.prose` checks the tree, `python -m tests.project.prose FILE...` lists all findings of some
files. `allowed.toml` holds the number of findings that each file may still have.
Read first: `rules.py`.
"""
