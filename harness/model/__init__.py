"""What a model call is, as plain data; pure."""
