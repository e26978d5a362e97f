"""YAML whose every mapping knows its line, and the few questions that readers ask of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from connector.errors import ModelInvalid


class Lined(dict[str, Any]):
    """A mapping of a YAML file: `path` and `line` (from 1) say where it begins."""

    path: Path
    line: int

    def refuse(self, problem: str, action: str) -> ModelInvalid:
        """The error that the mapping is not as it must be."""
        return ModelInvalid(problem, path=self.path, line=self.line, action=action)

    def allow(self, what: str, *names: str) -> None:
        """Refuse every key but these: one that is passed over would change the result unseen."""
        for key in self:
            if key not in names:
                raise self.refuse(
                    f"{key!r} of {what} is not understood", f"Use one of: {', '.join(names)}."
                )

    def text(self, key: str, *, default: str | None = None) -> str:
        """The text under the key, on one line. Raises `ModelInvalid` where there is none."""
        value = self.get(key, default)
        if not isinstance(value, str):
            raise self.refuse(f"{key!r} must be a text", f"Write '{key}: ...' here.")
        return " ".join(value.split())

    def paragraph(self, key: str) -> str:
        """The text under the key with its lines, or nothing."""
        self.text(key, default="")
        return "\n".join(" ".join(line.split()) for line in self.get(key, "").strip().split("\n"))

    def mappings(self, key: str) -> Iterator[Lined]:
        """The mappings of the list under the key; none where it is not there."""
        for each in self.get(key) or ():
            if not isinstance(each, Lined):
                raise self.refuse(f"{key!r} must be a list of mappings", "Write '- name: ...'.")
            yield each

    def mapping(self, key: str) -> Lined:
        """The mapping under the key, empty where it is not there."""
        value = self.get(key)
        if value is None:
            value = Lined()
            value.path, value.line = self.path, self.line
        if not isinstance(value, Lined):
            raise self.refuse(f"{key!r} must be a mapping", f"Write '{key}:' and keys below it.")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """The list of plain values under the key, as texts."""
        value = self.get(key)
        if not isinstance(value, list) or any(isinstance(v, dict | list) for v in value):
            raise self.refuse(f"{key!r} must be a list", f"Write '{key}: [...]' here.")
        return tuple(_plain(each) for each in value)


def _plain(value: object) -> str:
    # YAML reads true as a boolean; SQL and dbt write it in small letters.
    return str(value).lower() if isinstance(value, bool) else str(value)


# The parser in C is ten times as fast, and not in every build of the library.
if TYPE_CHECKING:
    from yaml import SafeLoader as _SafeLoader
else:
    _SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):
    """Plain YAML values alone, each mapping with its line."""

    path: Path


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Lined:
    keys = [loader.construct_object(key) for key, _ in node.value]
    line = node.start_mark.line + 1
    for key in keys:
        if not isinstance(key, str) or keys.count(key) > 1:
            raise ModelInvalid(
                f"the key {key!r} is there twice, or no text", path=loader.path, line=line
            )
    values = [loader.construct_object(value, deep=True) for _, value in node.value]
    made = Lined(zip(keys, values, strict=True))
    made.path, made.line = loader.path, line
    return made


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read_yaml(path: Path) -> Lined:
    """The one mapping of a YAML file. Raises `ModelInvalid` with the line of what is wrong."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        loader.path = path
        found = loader.get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = None if mark is None else mark.line + 1
        raise ModelInvalid(f"is no YAML: {error.problem}", path=path, line=line) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelInvalid(f"cannot be read: {type(error).__name__}", path=path) from None
    if not isinstance(found, Lined):
        raise ModelInvalid("must be a mapping", path=path, line=1)
    return found
