"""Pictures of the console for the documents, made by a headless Chromium over the demo, and what its pages load.

Read first: `pictures.py`.
"""
