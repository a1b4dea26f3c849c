"""The session log: the only thing that remembers."""
