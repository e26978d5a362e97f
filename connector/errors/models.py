"""What can be wrong with the models: SQL files, their declarations, and the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from connector.errors.root import ConnectorError


class ModelError(ConnectorError):
    """A model, seed, test or audit cannot be used; `path` and `line` (from 1) say where, as far
    as it is known.
    """

    code = "model"
    action = "Correct the file that is named, then run 'connector models list'."
    exit_status = 2

    def __init__(
        self,
        message: str,
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
        action: str | None = None,
    ) -> None:
        self.path, self.line, self.column = path, line, column
        places = [str(each) for each in (path, line, column) if each is not None]
        super().__init__(f"{':'.join(places)}: {message}" if places else message, action=action)


class ModelInvalid(ModelError):
    """A file is not as models are written: its header, its braces, or what declares it."""

    code = "model_invalid"


class ReferenceUnknown(ModelError):
    """A `ref()` or `source()` names nothing that there is; the message gives the nearest names."""

    code = "reference_unknown"
    action = "Write one of the names that there are: 'connector models list' shows them."

    def __init__(
        self,
        what: str,
        received: str,
        allowed: Sequence[str],
        *,
        path: Path | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.what, self.received, self.allowed = what, received, tuple(allowed)
        near = get_close_matches(received, self.allowed, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        super().__init__(
            f"there is no {what} {received!r}.{hint}", path=path, line=line, column=column
        )


class ModelsCircular(ModelError):
    """Models are made of each other in a ring; `ring` names all of it, in order."""

    code = "models_circular"
    action = "Take one ref() out of the ring: no model can be built before itself."

    def __init__(self, ring: Sequence[str], *, path: Path | None = None) -> None:
        self.ring = tuple(ring)
        told = " -> ".join((*self.ring, self.ring[0]))
        super().__init__(f"models refer to each other in a ring: {told}", path=path)


class ModelTwice(ModelError):
    """Two files, or two declarations, have the same name."""

    code = "model_twice"
    action = "Rename one of the two: ref() must mean one thing."


class SeedInvalid(ModelError):
    """A seed's table cannot be read as its columns are declared; no value of it is shown."""

    code = "seed_invalid"
    action = "Correct the place that is named in the csv file, and build again."


class ModelFailed(ModelError):
    """DuckDB did not build a model or run a check; what stood before is unchanged."""

    code = "model_failed"
    action = "Correct the SQL at the place that is named, then build again."
    exit_status = 1
