"""Child processes of tests: forked from one that has imported Keyhole, and what their servers begin with."""
