"""`keyhole publish`: a whole table made to be handed out. `command.py` is the command, `report.py` what it says."""
