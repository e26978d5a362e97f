"""Pull: one run that brings the landing up to date with the API."""
