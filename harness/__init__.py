"""One agent loop over one session log, and the surfaces that put prompts in and read the log out."""
