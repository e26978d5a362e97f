"""Handle SIGTERM and SIGHUP as Ctrl-C: the command keeps its work and prints one line."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from connector.errors import Stopped

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

_received: list[signal.Signals] = []


@contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Raise `KeyboardInterrupt` for SIGTERM and SIGHUP until the block ends, unless they are
    ignored.
    """
    _received.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in (*_SIGNALS, signal.SIGINT)}
    for each in _SIGNALS:
        if before[each] is signal.SIG_DFL:
            signal.signal(each, _handle_signal)
    is_background = before[signal.SIGINT] is signal.SIG_IGN
    if is_background:
        # A shell's background job ignores Ctrl-C. Blocked, the signal has no effect either, but
        # asyncio installs its handler, which `_handle_signal` needs.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if is_background:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def describe_interrupt() -> tuple[str, int]:
    """Return a sentence on the signal, and the exit status: 130 for Ctrl-C, 4 for other signals."""
    if _received:
        return f"Stopped by {_received[0].name}.", Stopped.exit_status
    return "Interrupted.", INTERRUPTED


def _handle_signal(number: int, frame: FrameType | None) -> None:
    """Remember the signal and call the handler of Ctrl-C."""
    _received.append(signal.Signals(number))
    handler = signal.getsignal(signal.SIGINT)
    # asyncio's own handler cancels the run, so that records that were read are kept. A
    # KeyboardInterrupt raised here would be lost if Python were inside a callback.
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)
