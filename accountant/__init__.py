"""The ledger: append-only events, balances as their fold, reserve / commit / release."""
