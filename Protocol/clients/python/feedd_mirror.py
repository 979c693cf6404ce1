"""A copy of a watched feed, kept by the notifications of its watch."""

import json
import zlib
from decimal import Decimal


class Gap(Exception):
    """A message does not follow from what came before it: a fault of the daemon or of this client."""


class Section:
    """A section's name, its elements as text, and their types (all None where the feed has none)."""

    __slots__ = ("name", "count", "elements", "types")

    def __init__(self, name, count=0):
        self.name, self.count, self.elements, self.types = name, count, [], []


class Mirror:
    """A copy of a watched feed, right at every revision, or Gap is raised."""

    def __init__(self, result):
        self.feed, self.sections, self.revision, self.epoch, self.whole = result["feed"], [], None, None, False
        self.since = None
        self.restart(result)

    def restart(self, result):
        """Goes on with the result of another `watch` of the same feed, which was given this mirror's `since`."""
        if result["resumed"]:
            if self.since is None or self.since["epoch"] != result["epoch"]:
                raise Gap("resumed from a place that this mirror never was at")
            self.revision = self.since["revision"]
        else:
            self.revision, self.whole = result["revision"], False
            self._clear(result["sections"])
        self.epoch = result["epoch"]

    def apply(self, message):
        """Takes a notification in. True when the mirror is whole and this message changed it."""
        params = message.params
        if message.method == "delta":
            self._delta(params)
        elif message.method == "snapshot":
            self._part(params)
        elif message.method == "bookmark":
            self._expect(self.whole and params["revision"] == self.revision, "a bookmark of another revision")
            self.since = {"epoch": params["epoch"], "revision": params["current"]}
        return self.whole and message.method in ("delta", "snapshot")

    def values(self):
        """The elements decoded, a list a section; numbers that are not integers become Decimal."""
        return [[json.loads(text, parse_float=Decimal) for text in section.elements] for section in self.sections]

    def digest(self):
        """What `verify` answers at this revision."""
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
        self._expect(not self.whole and part["revision"] == self.revision, "a part of a snapshot out of place")
        at, row = part["at"]
        types = part.get("types") or [None] * len(part["elements"])
        self._expect(all(len(s.elements) == s.count for s in self.sections[:at]), "a part of a snapshot is missing")
        for element, type in zip(part["elements"], types):
            while at < len(self.sections) and len(self.sections[at].elements) == self.sections[at].count:
                at, row = at + 1, 0
            self._expect(at < len(self.sections), "more elements than the sections count")
            self._expect(len(self.sections[at].elements) == row, "a part of a snapshot is missing")
            self.sections[at].elements.append(element)
            self.sections[at].types.append(type)
            row += 1
        if part["last"]:
            self._expect(all(len(s.elements) == s.count for s in self.sections), "a snapshot with rows missing")
            self._arrive(part["revision"])

    def _delta(self, delta):
        self._expect(self.whole and delta["from"] == self.revision, f"a delta from revision {delta['from']}")
        added, updated, elements = delta["added"], delta["updated"], delta["elements"]
        self._expect(len(elements) == len(added) + len(updated), "a delta with elements missing")
        content = list(zip(elements, delta.get("types") or [None] * len(elements)))
        sections, structure = self.sections, delta.get("sections", {})
        self._expect(
            all(s < len(sections) and r < len(sections[s].elements) for s, r in delta["deleted"]), "no such row"
        )
        for at, row in reversed(delta["deleted"]):
            del sections[at].elements[row], sections[at].types[row]
        for at in reversed(structure.get("deleted", [])):
            self._expect(at < len(sections), "no such section")
            del sections[at]
        for addition in structure.get("added", []):
            self._expect(addition["at"] <= len(sections), "no place for a section")
            sections.insert(addition["at"], Section(addition["name"]))
        for (at, row), (element, type) in zip(added, content):
            self._expect(at < len(sections) and row <= len(sections[at].elements), "no place for a row")
            sections[at].elements.insert(row, element)
            sections[at].types.insert(row, type)
        for (at, row), (element, type) in zip(updated, content[len(added) :]):
            self._expect(at < len(sections) and row < len(sections[at].elements), "no such row to update")
            sections[at].elements[row], sections[at].types[row] = element, type
        self._arrive(delta["revision"])
