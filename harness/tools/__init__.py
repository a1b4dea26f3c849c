"""The tools shipped with the harness."""
