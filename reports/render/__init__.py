"""One file per output; pure."""
