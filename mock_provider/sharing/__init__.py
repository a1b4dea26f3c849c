"""One play in several processes: each keeps all of it, and all agree on the order in which it went on."""
