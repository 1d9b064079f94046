"""A market: customers, their orders and the lines of these, with public suppliers and a public stock by two columns."""
