"""A copy of a watched feed, kept up to date by the notifications of its watch."""

from __future__ import annotations

import functools
import itertools
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar

from ._errors import Gap
from ._stream import Notification
from ._text import loads

_Method = TypeVar("_Method", bound=Callable[..., Any])


def _checked(apply: _Method) -> _Method:
    """Makes a method raise Gap for a message without the members that it needs, or with members of another kind."""

    @functools.wraps(apply)
    def method(self: Any, message: Any) -> Any:
        try:
            return apply(self, message)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Gap(f"malformed message: {error!r}") from error

    return method  # type: ignore[return-value]


def _number(value: Any) -> int:
    """Returns a count, a revision, or the number of a row or section. Numbers below 0 would count from the end."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a number of rows or sections, or a revision")
    return value


def _ascending(places: Any) -> Any:
    """Returns numbers, or pairs of them, which must be strictly ascending."""
    for place in places:
        for number in place if isinstance(place, list) else [place]:
            _number(number)
    if any(one >= next for one, next in zip(places, places[1:])):
        raise ValueError("places that are not ascending")
    return places


def _sections(result: Dict[str, Any]) -> List[Tuple[str, int, Any]]:
    """Returns the names, counts and keys of the sections of a watch or a reset."""
    return [(_text(one["name"]), _number(one["count"]), one.get("key")) for one in result["sections"]]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a name")
    return value


def _elements(params: Dict[str, Any]) -> List[Tuple[bytes, Optional[str]]]:
    """Returns the elements of a message with their types."""
    elements = params["elements"]
    types = params.get("types") or [None] * len(elements)
    if not isinstance(elements, list) or len(types) != len(elements):
        raise ValueError("elements that are no list, or have another number of types")
    return list(zip(elements, types))


def _by_section(places: List[List[int]]) -> Iterator[Tuple[int, List[int]]]:
    """Yields each section of ascending index paths, with its rows."""
    for section, group in itertools.groupby(places, key=lambda place: place[0]):
        yield section, [row for _, row in group]


#: Up to so many rows are removed or inserted one by one, which moves those behind each time but copies none.
_FEW = 16


def _remove(items: List[Any], rows: List[int]) -> None:
    """Removes the items at ascending places. O(items), however many are removed."""
    if len(rows) <= _FEW:
        for row in reversed(rows):
            del items[row]
        return
    kept: List[Any] = []
    at = 0
    for row in rows:
        kept += items[at:row]
        at = row + 1
    items[:at] = kept


def _insert(items: List[Any], rows: List[int], fresh: List[Any]) -> None:
    """Inserts items at ascending places, counted after the insertion. O(items), however many are inserted."""
    if len(rows) <= _FEW:
        for row, item in zip(rows, fresh):
            items.insert(row, item)
        return
    grown: List[Any] = []
    at = 0
    for row, item in zip(rows, fresh):
        end = at + row - len(grown)
        grown += items[at:end]
        grown.append(item)
        at = end
    items[:at] = grown


class Section:
    """One section of a copy.

    `name` is its name. `key` is the decoded value of a section by value, and None for any other section. `elements` are the
    elements of its rows as text, and `types` their types (None for elements without a type).
    """

    __slots__ = ("name", "key", "count", "elements", "types")

    name: str
    key: Any
    elements: List[bytes]
    types: List[Optional[str]]

    def __init__(self, name: str, count: int = 0, key: Any = None):
        self.name, self.key, self.count, self.elements, self.types = name, key, count, [], []


class Counts:
    """The names of the sections of a feed and their numbers of rows, from a watch with `elements=False`."""

    names: List[str]
    counts: List[int]
    revision: int
    epoch: str

    @_checked
    def __init__(self, result: Dict[str, Any]):
        self._start(result)
        self.epoch = _text(result["epoch"])

    def _start(self, result: Dict[str, Any]) -> None:
        sections = _sections(result)
        self.names, self.counts = [name for name, _, _ in sections], [count for _, count, _ in sections]
        self.revision = _number(result["revision"])

    @_checked
    def apply(self, message: Notification) -> bool:
        """Applies a notification of the watch. Returns whether the counts are of another revision now."""
        params = message.params
        if params.get("reset"):
            self._start(params)
            return True
        if message.method != "delta" or _number(params["revision"]) <= self.revision:
            return False
        names, structure = list(self.names), params.get("sections", {})
        gone, fresh = _ascending(structure.get("deleted", [])), structure.get("added", [])
        if any(at >= len(names) for at in gone[-1:]):
            raise Gap(f"section {gone[-1]} of {len(names)}")
        _remove(names, gone)
        places = _ascending([addition["at"] for addition in fresh])
        if any(at >= len(names) + len(places) for at in places[-1:]):
            raise Gap(f"new section {places[-1]} of {len(names) + len(places)}")
        _insert(names, places, [_text(addition["name"]) for addition in fresh])
        counts = [_number(count) for count in params["counts"]]
        if len(counts) != len(names):
            raise Gap(f"{len(counts)} counts of {len(names)} sections")
        self.names, self.counts, self.revision = names, counts, params["revision"]
        return True


class Mirror:
    """A copy of a watched feed. It is correct at every revision; a message that does not fit raises Gap.

    `sections` are its sections, `revision` is the revision that they have, and `whole` says whether the snapshot is complete.
    `since` is what to pass to another `watch` to resume, and None while a snapshot is incomplete: its rows replace those of before.
    """

    feed: str
    sections: List[Section]
    revision: int
    epoch: str
    whole: bool
    since: Optional[Dict[str, Any]]

    def __init__(self, result: Dict[str, Any]):
        self.feed, self.sections, self.whole, self.since = result["feed"], [], False, None
        self.restart(result)

    @_checked
    def restart(self, result: Dict[str, Any]) -> None:
        """Continues with the result of another `watch` of the same feed that was called with `since` of this mirror."""
        if result["resumed"]:
            if self.since is None or self.since["epoch"] != result["epoch"]:
                raise Gap("resumed from a position that this mirror never had")
            self.revision = self.since["revision"]
        else:
            self.revision, self.whole = _number(result["revision"]), False
            self._clear(result)
        self.epoch = _text(result["epoch"])

    @_checked
    def apply(self, message: Notification) -> bool:
        """Applies a notification. Returns whether the mirror is complete and this message changed it."""
        params = message.params
        if message.method == "delta":
            self._delta(params)
        elif message.method == "snapshot":
            self._part(params)
        elif message.method == "bookmark":
            self._expect(self.whole and params["revision"] == self.revision, "unexpected revision of a bookmark")
            self.since = {"epoch": params["epoch"], "revision": _number(params["current"])}
        return self.whole and message.method in ("delta", "snapshot")

    def values(self) -> List[List[Any]]:
        """Returns the decoded elements, one list for each section. Numbers that are not integers become Decimal."""
        return [[loads(text) for text in section.elements] for section in self.sections]

    def digest(self) -> str:
        """Returns the digest that `verify` returns at this revision."""
        text = b"[" + b",".join(b"[" + b",".join(section.elements) + b"]" for section in self.sections) + b"]"
        return f"{zlib.crc32(text):08x}"

    def counts(self) -> List[int]:
        """Returns the number of rows of each section."""
        return [len(section.elements) for section in self.sections]

    def _expect(self, truth: bool, otherwise: str) -> None:
        if not truth:
            raise Gap(f"{self.feed} at revision {getattr(self, 'revision', None)}: {otherwise}")

    def _arrive(self, revision: int) -> None:
        self.revision, self.whole = revision, True
        self.since = {"epoch": self.epoch, "revision": revision}

    def _clear(self, result: Dict[str, Any]) -> None:
        self.since = None
        self.sections = [Section(*section) for section in _sections(result)]
        # The number of sections at the beginning that have all rows of the snapshot.
        self._filled = 0

    def _part(self, part: Dict[str, Any]) -> None:
        if part.get("reset"):
            self.revision, self.whole = _number(part["revision"]), False
            self._clear(part)
        self._expect(not self.whole and part["revision"] == self.revision, "unexpected part of a snapshot")
        at, row = _number(part["at"][0]), _number(part["at"][1])
        self._expect(self._fill(at) == min(at, len(self.sections)), "missing part of a snapshot")
        content = _elements(part)
        self._expect(not content or at < len(self.sections), "more elements than the counts of the sections")
        self._expect(not content or row < self.sections[at].count, "a part that begins at no row")
        for element, type in content:
            while at < len(self.sections) and len(self.sections[at].elements) == self.sections[at].count:
                at, row = at + 1, 0
            self._expect(at < len(self.sections), "more elements than the counts of the sections")
            self._expect(len(self.sections[at].elements) == row, "missing part of a snapshot")
            self.sections[at].elements.append(element)
            self.sections[at].types.append(type)
            row += 1
        if part["last"]:
            self._expect(self._fill(len(self.sections)) == len(self.sections), "missing rows in a snapshot")
            self._arrive(part["revision"])

    def _fill(self, limit: int) -> int:
        """Returns how many of the first `limit` sections have all rows up to one that has not. O(1) amortized over the parts."""
        sections = self.sections
        while self._filled < min(limit, len(sections)) and len(sections[self._filled].elements) == sections[self._filled].count:
            self._filled += 1
        return min(self._filled, limit)

    def _delta(self, delta: Dict[str, Any]) -> None:
        self._expect(self.whole and delta["from"] == self.revision, f"unexpected delta from revision {delta['from']}")
        self._expect(_number(delta["revision"]) > self.revision, f"delta back to revision {delta['revision']}")
        added, updated, content = _ascending(delta["added"]), _ascending(delta["updated"]), _elements(delta)
        self._expect(len(content) == len(added) + len(updated), "missing elements in a delta")
        sections, structure = self.sections, delta.get("sections", {})
        self._expect(
            all(s < len(sections) and r < len(sections[s].elements) for s, r in _ascending(delta["deleted"])),
            "row out of range",
        )
        for at, rows in _by_section(delta["deleted"]):
            _remove(sections[at].elements, rows)
            _remove(sections[at].types, rows)
        gone, fresh = _ascending(structure.get("deleted", [])), structure.get("added", [])
        self._expect(all(at < len(sections) for at in gone[-1:]), "section out of range")
        _remove(sections, gone)
        places = _ascending([addition["at"] for addition in fresh])
        self._expect(all(at < len(sections) + len(places) for at in places[-1:]), "new section out of range")
        _insert(sections, places, [Section(_text(addition["name"]), key=addition.get("key")) for addition in fresh])
        taken = 0
        for at, rows in _by_section(added):
            count = len(sections[at].elements) if at < len(sections) else -1
            self._expect(all(row <= count + before for before, row in enumerate(rows)), "new row out of range")
            new = content[taken : taken + len(rows)]
            taken += len(rows)
            _insert(sections[at].elements, rows, [element for element, _ in new])
            _insert(sections[at].types, rows, [type for _, type in new])
        for (at, row), (element, type) in zip(updated, content[len(added) :]):
            self._expect(at < len(sections) and row < len(sections[at].elements), "updated row out of range")
            sections[at].elements[row], sections[at].types[row] = element, type
        self._arrive(delta["revision"])
