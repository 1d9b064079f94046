"""Whole statements drawn at random: what they show is PostgreSQL's own, and one unit changes what is said."""
