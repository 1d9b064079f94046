"""Made once by each process that tests: data of PostgreSQL, tables of a ledger, findings about a policy."""
