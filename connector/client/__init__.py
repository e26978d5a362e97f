"""The typed, asynchronous client of the API, and its requests and answers as values."""
