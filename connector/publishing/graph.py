"""Which model is made of which: the order of building, rings, and what a selection means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from connector.errors import ModelsCircular, UnknownName

Parents = Mapping[str, Sequence[str]]
"""What each model is made of, by name; every name is a key."""


def order(parents: Parents) -> tuple[str, ...]:
    """Every name after what it is made of; of several that could come next, the given order's
    first. Raises `ModelsCircular` with the whole ring.
    """
    done: dict[str, None] = {}
    under_way: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in done:
            return
        if name in under_way:
            ring = list(under_way)[list(under_way).index(name) :]
            raise ModelsCircular(ring)
        under_way[name] = None
        for each in parents[name]:
            visit(each)
        del under_way[name]
        done[name] = None

    for name in parents:
        visit(name)
    return tuple(done)


def above(names: Iterable[str], parents: Parents) -> set[str]:
    """The names with everything that they are made of, whole lines of it."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += parents[name]
    return found


def below(names: Iterable[str], parents: Parents) -> set[str]:
    """The names with everything that is made of them."""
    children: dict[str, list[str]] = {name: [] for name in parents}
    for name, made_of in parents.items():
        for each in made_of:
            children[each].append(name)
    return above(names, children)


def select(asked: Sequence[str], folders: Mapping[str, str], parents: Parents) -> set[str]:
    """What a selection means; everything where it is empty.

    A word is a name or a folder's; `+` before it adds what it is made of, `+` after it what is
    made of it. `folders` maps each name to its folder. Raises `UnknownName` with the nearest.
    """
    if not asked:
        return set(parents)
    chosen: set[str] = set()
    for word in asked:
        bare = word.removeprefix("+").removesuffix("+")
        names = {name for name, folder in folders.items() if bare in (name, folder)}
        if not names:
            raise UnknownName("model, seed or folder", bare, (*parents, *set(folders.values())))
        found = set(names)
        if word.startswith("+"):
            found |= above(names, parents)
        if word.endswith("+"):
            found |= below(names, parents)
        chosen |= found
    return chosen
