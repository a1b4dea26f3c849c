"""The one agent loop: decide what is next, do it, append what happened."""
