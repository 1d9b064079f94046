"""Reports as one HTML file: sentences, tables and plots; nothing in it runs, and nothing is loaded from anywhere.

`page.py` puts a page together, `plots.py` draws.
"""
