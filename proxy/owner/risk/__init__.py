"""The report of `keyhole risk`: what the promises mean for people, in sections for a terminal, a page, and as JSON."""
