"""How bytes leave and enter the process."""
