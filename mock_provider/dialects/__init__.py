"""Pure renderers, one wire format a file."""
