"""Product faces: they translate and nothing more."""
