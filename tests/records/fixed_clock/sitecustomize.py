"""Stops the clock of every Python process whose `PYTHONPATH` contains this folder.

`FIXED_CLOCK` is the time as ISO text. Only `datetime` is stopped: timeouts, waits and rate limits,
which use `time`, keep running. Objects are of the real classes, so that databases and pickles know
them.
"""

import datetime as module
import os
from datetime import date, datetime
from typing import Any

_NOW = os.environ.get("FIXED_CLOCK", "")


class _Real(type):
    """Makes `isinstance` and `issubclass` accept the real class that a stopped class replaces."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


class _StoppedDatetime(datetime, metaclass=_Real):
    __slots__ = ()

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return datetime(*arguments, **named)

    @classmethod
    def now(cls, tz: module.tzinfo | None = None) -> Any:
        moment = datetime.fromisoformat(_NOW)
        return moment.astimezone(tz) if tz else moment.astimezone().replace(tzinfo=None)

    @classmethod
    def utcnow(cls) -> Any:
        return cls.now(module.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        return cls.now()


class _StoppedDate(date, metaclass=_Real):
    __slots__ = ()

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        return date(*arguments, **named)

    @classmethod
    def today(cls) -> Any:
        return _StoppedDatetime.now().date()


if _NOW:
    for _stopped, _real in ((_StoppedDatetime, datetime), (_StoppedDate, date)):
        _stopped.__name__ = _stopped.__qualname__ = _real.__name__
        _stopped.__module__ = "datetime"
        setattr(module, _real.__name__, _stopped)
