"""What tests ask about, each made once: catalogs, policies and data, and a Keyhole that serves them."""
