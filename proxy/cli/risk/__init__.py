"""`keyhole risk`: what the owner's promises mean for people, in odds and guesses.

`command.py` is the command. The sections are in `proxy/owner/risk`. Of these only `private.py` reads private data, and
only with `--private`.
"""
