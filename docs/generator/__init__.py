"""Parts of pages that are written from the code: lists of the house, the policy's reference, the commands, a picture.

`python -m docs.generator` writes all of them; a test fails while a page and the code say different things.
Read first: `house.py`.
"""
