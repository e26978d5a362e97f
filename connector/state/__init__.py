"""State of an account in `state.sqlite`: lock, request count, journal of pushes, runs and events.

The file has what must survive a kill in the middle of a push, or what another process reads. A
commit is on the disk when it returns. Only this package uses SQLite.
"""
