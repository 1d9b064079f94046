"""accountant balances."""
