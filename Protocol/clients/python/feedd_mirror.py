"""A copy of a watched feed, kept up to date by the notifications of its watch."""

import json
import zlib
from decimal import Decimal


class Gap(Exception):
    """A message does not follow from the messages before it. The copy is wrong; watch again without `since`."""


class Section:
    """The name of a section, its elements as text, and their types (None for elements without a type)."""

    __slots__ = ("name", "count", "elements", "types")

    def __init__(self, name, count=0):
        self.name, self.count, self.elements, self.types = name, count, [], []


class Counts:
    """The names of the sections of a feed and their numbers of rows, from a watch with `elements=False`."""

    def __init__(self, result):
        self.names = [section["name"] for section in result["sections"]]
        self.counts = [section["count"] for section in result["sections"]]
        self.revision, self.epoch = result["revision"], result["epoch"]

    def apply(self, message):
        """Applies a notification of the watch. Returns whether the counts are of another revision now."""
        params = message.params
        if params.get("reset"):
            self.names = [section["name"] for section in params["sections"]]
            self.counts = [section["count"] for section in params["sections"]]
        elif message.method != "delta" or params["revision"] <= self.revision:
            return False
        else:
            structure = params.get("sections", {})
            for at in reversed(structure.get("deleted", [])):
                del self.names[at]
            for addition in structure.get("added", []):
                self.names.insert(addition["at"], addition["name"])
            self.counts = params["counts"]
        self.revision = params["revision"]
        return True


class Mirror:
    """A copy of a watched feed. It is correct at every revision; a message that does not fit raises Gap."""

    def __init__(self, result):
        self.feed, self.sections, self.revision, self.epoch, self.whole = result["feed"], [], None, None, False
        self.since = None
        self.restart(result)

    def restart(self, result):
        """Continues with the result of another `watch` of the same feed that was called with `since` of this mirror."""
        if result["resumed"]:
            if self.since is None or self.since["epoch"] != result["epoch"]:
                raise Gap("resumed from a position that this mirror never had")
            self.revision = self.since["revision"]
        else:
            self.revision, self.whole = result["revision"], False
            self._clear(result["sections"])
        self.epoch = result["epoch"]

    def apply(self, message):
        """Applies a notification. Returns whether the mirror is complete and this message changed it."""
        params = message.params
        if message.method == "delta":
            self._delta(params)
        elif message.method == "snapshot":
            self._part(params)
        elif message.method == "bookmark":
            self._expect(self.whole and params["revision"] == self.revision, "unexpected revision of a bookmark")
            self.since = {"epoch": params["epoch"], "revision": params["current"]}
        return self.whole and message.method in ("delta", "snapshot")

    def values(self):
        """Returns the decoded elements, one list for each section. Numbers that are not integers become Decimal."""
        return [[json.loads(text, parse_float=Decimal) for text in section.elements] for section in self.sections]

    def digest(self):
        """Returns the digest that `verify` returns at this revision."""
        text = b"[" + b",".join(b"[" + b",".join(section.elements) + b"]" for section in self.sections) + b"]"
        return f"{zlib.crc32(text):08x}"

    def counts(self):
        return [len(section.elements) for section in self.sections]

    def _expect(self, truth, otherwise):
        if not truth:
            raise Gap(f"{self.feed} at revision {self.revision}: {otherwise}")

    def _arrive(self, revision):
        self.revision, self.whole = revision, True
        self.since = {"epoch": self.epoch, "revision": revision}

    def _clear(self, sections):
        self.sections = [Section(section["name"], section["count"]) for section in sections]

    def _part(self, part):
        if part.get("reset"):
            self.revision, self.whole = part["revision"], False
            self._clear(part["sections"])
        self._expect(not self.whole and part["revision"] == self.revision, "unexpected part of a snapshot")
        at, row = part["at"]
        types = part.get("types") or [None] * len(part["elements"])
        self._expect(all(len(s.elements) == s.count for s in self.sections[:at]), "missing part of a snapshot")
        for element, type in zip(part["elements"], types):
            while at < len(self.sections) and len(self.sections[at].elements) == self.sections[at].count:
                at, row = at + 1, 0
            self._expect(at < len(self.sections), "more elements than the counts of the sections")
            self._expect(len(self.sections[at].elements) == row, "missing part of a snapshot")
            self.sections[at].elements.append(element)
            self.sections[at].types.append(type)
            row += 1
        if part["last"]:
            self._expect(all(len(s.elements) == s.count for s in self.sections), "missing rows in a snapshot")
            self._arrive(part["revision"])

    def _delta(self, delta):
        self._expect(self.whole and delta["from"] == self.revision, f"unexpected delta from revision {delta['from']}")
        added, updated, elements = delta["added"], delta["updated"], delta["elements"]
        self._expect(len(elements) == len(added) + len(updated), "missing elements in a delta")
        content = list(zip(elements, delta.get("types") or [None] * len(elements)))
        sections, structure = self.sections, delta.get("sections", {})
        self._expect(
            all(s < len(sections) and r < len(sections[s].elements) for s, r in delta["deleted"]), "row out of range"
        )
        for at, row in reversed(delta["deleted"]):
            del sections[at].elements[row], sections[at].types[row]
        for at in reversed(structure.get("deleted", [])):
            self._expect(at < len(sections), "section out of range")
            del sections[at]
        for addition in structure.get("added", []):
            self._expect(addition["at"] <= len(sections), "new section out of range")
            sections.insert(addition["at"], Section(addition["name"]))
        for (at, row), (element, type) in zip(added, content):
            self._expect(at < len(sections) and row <= len(sections[at].elements), "new row out of range")
            sections[at].elements.insert(row, element)
            sections[at].types.insert(row, type)
        for (at, row), (element, type) in zip(updated, content[len(added) :]):
            self._expect(at < len(sections) and row < len(sections[at].elements), "updated row out of range")
            sections[at].elements[row], sections[at].types[row] = element, type
        self._arrive(delta["revision"])
