"""A parser of HTML pages into a tree of elements and texts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = frozenset(("meta", "link", "input", "br", "wbr", "img"))


@dataclass
class Element:
    """An HTML element. Its children are elements and texts."""

    tag: str
    attributes: dict[str, str]
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in the element, with whitespace collapsed."""
        return " ".join(" ".join(self._iterate_texts()).split())

    def _iterate_texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child._iterate_texts()

    def descendants(self, *tags: str) -> Iterator[Element]:
        """Yield all elements below, or those with one of these tags, in document order."""
        for child in self.children:
            if isinstance(child, Element):
                if not tags or child.tag in tags:
                    yield child
                yield from child.descendants(*tags)

    def find_by_id(self, id: str) -> Element:
        """Return the only element below with this id."""
        (found,) = (each for each in self.descendants() if each.attributes.get("id") == id)
        return found


class Document(HTMLParser):
    """Parser of a page into a tree of elements. It asserts that elements are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("document", {})
        self._open = [self.root]

    @classmethod
    def parse(cls, html: str) -> Document:
        """Parse the text as a document."""
        made = cls()
        made.feed(html)
        made.close()
        assert [made.root] == made._open
        return made

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an element without children."""
        self._open[-1].children.append(Element(tag, {n: v or "" for n, v in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert tag == self._open.pop().tag

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)

    def find_figure(self, key: str) -> Element:
        """Return the article of a figure by its key."""
        (found,) = (
            each
            for each in self.root.descendants("article")
            if each.attributes.get("aria-labelledby") == key
        )
        return found

    def read_table(self, caption: str) -> list[list[str]]:
        """Return the texts of the body cells of the table with this caption, row by row."""
        (found,) = (
            each
            for each in self.root.descendants("table")
            if next(each.descendants("caption")).text == caption
        )
        (body,) = found.descendants("tbody")
        return [
            [cell.text for cell in row.descendants("th", "td")] for row in body.descendants("tr")
        ]

    def read_key_figures(self) -> dict[str, tuple[str, str]]:
        """Return by label the value of each key figure and its details, joined by " | "."""
        found = {}
        for each in self.root.descendants("li"):
            if each.attributes.get("class") == "key":
                value, detail = each.descendants("p")
                lines = [
                    detail,
                    *(each for list in each.descendants("dl") for each in list.descendants("div")),
                ]
                found[next(each.descendants("h3")).text] = (
                    value.text,
                    " | ".join(n.text for n in lines),
                )
        return found
