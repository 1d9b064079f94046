"""Faults of one line that the tests nearby must notice. They tell how strong the tests are: `make test-mutants`."""
