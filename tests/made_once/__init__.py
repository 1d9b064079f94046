"""What each process that tests makes once: data of PostgreSQL, tables of a ledger, what a check finds of a policy."""
