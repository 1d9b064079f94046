"""What each process that tests makes once: data of PostgreSQL, a ledger's tables, what a check finds out of a policy."""
