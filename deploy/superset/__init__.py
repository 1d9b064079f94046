"""Apache Superset over the demo, from an empty folder to three screenshots.

May import: `deploy.demo`; Keyhole only as a command.
Read first: `show.py`.
"""
