"""Outer joins, written as inner ones that mean the same.

It changes text alone. A text that it does not understand stays, and is refused where a question is cut out. It may
import the parser and what `bind` knows of FROM.
"""
