"""Pull: update the local copy from the API."""
