"""Codecs: bytes in, values out, and back; pure."""
