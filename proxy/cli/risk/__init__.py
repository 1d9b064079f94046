"""`keyhole risk`: what the owner's promises mean for people, in odds and guesses. `command.py` is the command,
`report.py` puts its sections together.
"""
