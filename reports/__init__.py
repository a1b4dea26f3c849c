"""Reads records, writes columns."""
