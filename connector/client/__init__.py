"""Typed, asynchronous client of the API."""
