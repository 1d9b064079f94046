"""What the promises mean for people, in sections that a terminal, a page and a program read: `keyhole risk`."""
