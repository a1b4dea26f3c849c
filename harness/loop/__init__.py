"""The one agent loop."""
