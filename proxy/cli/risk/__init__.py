"""`keyhole risk`: what the owner's promises mean for people, in odds and guesses.

`command.py` is the command; the sections are those of `proxy/owner/risk`, of which `private.py` alone reads private
data, with `--private`.
"""
