"""Reports as one HTML file: sentences, tables and plots. The file runs nothing and loads nothing.

`page.py` puts a page together, `plots.py` draws.
"""
