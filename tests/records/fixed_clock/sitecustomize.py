"""Stops the clock of every Python process whose `PYTHONPATH` contains this folder.

`FIXED_CLOCK` is the time as ISO text. Only `datetime` is stopped: timeouts, waits and rate limits,
which use `time`, keep running. Objects are of the real classes, so that databases and pickles know
them.
"""

import datetime as module
import os
import sys
from datetime import date, datetime
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
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


def _stop(is_stopped: bool) -> None:
    for stopped, real in ((_StoppedDatetime, datetime), (_StoppedDate, date)):
        setattr(module, real.__name__, stopped if is_stopped else real)


class _PandasFinder(MetaPathFinder):
    """Imports pandas with the running clock: its C classes cannot inherit from a stopped class."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == "pandas" else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_unstopped(loaded: ModuleType) -> None:
                _stop(False)
                try:
                    run(loaded)
                finally:
                    _stop(True)

            spec.loader.exec_module = run_unstopped  # type: ignore[assignment,method-assign]
        return spec


if _NOW:
    for _stopped in (_StoppedDatetime, _StoppedDate):
        _stopped.__name__ = _stopped.__qualname__ = _stopped.__mro__[1].__name__
        _stopped.__module__ = "datetime"
    sys.meta_path.insert(0, _PandasFinder())
    _stop(True)
