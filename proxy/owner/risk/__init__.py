"""The meaning of the promises for people, in sections for a terminal, a page and a program: `keyhole risk`."""
