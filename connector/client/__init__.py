"""Typed, asynchronous client of the API, its requests and answers as values."""
