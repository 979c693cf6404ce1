"""A collection with a section for each value that is found at a path."""

import json
import re
from decimal import Decimal

from . import filters, texts
from .collection import Collection, _Bin, _Row


class Sectioned(Collection):
    def __init__(self, definition):
        super().__init__(definition)
        [bin] = self.bins
        self.filter, self.sort, self.bins = bin.filter, bin.sort, []
        self.by = [{"by": definition["section"], "order": definition.get("sectionOrder", "ascending")}]

    def _value(self, element):
        """The node that names the section of an element, or None."""
        found = filters.resolve(self.by[0]["by"], element)
        if found is filters.NOTHING or len(found.text) > 1024 or found.text == '""':
            return None
        return found if found.kind in ("string", "number", "true", "false") else None

    def name_of(self, element):
        found = self._value(element)
        if found is None:
            return self.name
        shown = {"number": lambda: number(found.text), "string": lambda: string(found.value)}
        return f"{self.name}/{shown.get(found.kind, lambda: found.text)()}"

    def _after(self, one, other):
        """Whether the section of one element comes after that of the other; None if it is the same."""
        a, b = self._value(one), self._value(other)
        if a is None or b is None:
            return None if a is b else a is None
        if filters.same_key(self.by, one, other):
            return None
        return filters.sorts_after(self.by, one, other)

    def sections(self):
        return [{"name": bin.name, "rows": [row.element for row in bin.rows]} for bin in self.bins]

    def _section(self, element):
        for place, bin in enumerate(self.bins):
            after = self._after(bin.rows[0].element, element)
            if after is None:
                return bin
            if after:
                break
        else:
            place = len(self.bins)
        bin = _Bin(self.name_of(element), sort=self.sort)
        self.bins.insert(place, bin)
        return bin

    def _put(self, identity, element):
        old = self.elements.get(identity)
        if old is not None and old.text == element.text:
            return
        accepted = filters.accepts(self.filter, element)
        if old is not None:
            bin = next(bin for bin in self.bins if bin.find(identity) is not None)
            place = bin.find(identity)
            stays = accepted and self._after(old, element) is None
            if stays and filters.same_key(self.sort, old, element):
                bin.rows[place].element = element
                accepted = False
            elif not (stays and len(bin.rows) == 1):
                del bin.rows[place]
                self.bins = [bin for bin in self.bins if bin.rows]
            else:
                bin.rows[place].element = element
                accepted = False
            self.elements.pop(identity)
        if accepted:
            bin = self._section(element)
            bin.rows.insert(bin.place(element), _Row(identity, element))
        if accepted or any(bin.find(identity) is not None for bin in self.bins):
            self.elements[identity] = element

    def _drop(self, identity):
        super()._drop(identity)
        self.bins = [bin for bin in self.bins if bin.rows]

    def _rows(self):
        return [(bin.name, [(row, row.element) for row in bin.rows]) for bin in self.bins]

    def _change(self, before):
        """The change as if all sections, before and after, were bins; then those that are empty are taken out of it.

        The rows of deleted sections that were added elsewhere are in `departed`, for the feeds that show them.
        """
        names, now = [name for name, _ in before], [bin.name for bin in self.bins]
        present, rows = list(self.bins), dict(before)
        order = names + [name for name in now if name not in names]
        bins = {bin.name: bin for bin in present}
        self.bins = [bins.get(name, _Bin(name)) for name in order]
        change, elements = super()._change([rows.get(name, []) for name in order])
        self.bins = present
        gone = [place for place, name in enumerate(names) if name not in now]
        come = [{"at": place, "name": name} for place, name in enumerate(now) if name not in names]
        return self._renumbered(change, elements, order, names, now, gone, come)

    @staticmethod
    def _renumbered(change, elements, order, names, now, gone, come):
        deleted = sorted([s, r, i] for i, (s, r) in enumerate(change["deleted"]) if s not in gone)
        added = sorted([now.index(order[s]), r, i] for i, (s, r) in enumerate(change["added"]))
        updated = sorted([now.index(order[s]), r, i] for i, (s, r) in enumerate(change["updated"]))
        count = len(change["added"])
        result = {"deleted": [[s, r] for s, r, _ in deleted], "added": [[s, r] for s, r, _ in added]}
        result["updated"] = [[s, r] for s, r, _ in updated]
        if gone or come:
            result["sections"] = {"deleted": gone, "added": come}
        left = {i: place for place, (_, _, i) in enumerate(deleted)}
        right = {i: place for place, (_, _, i) in enumerate(added)}
        moves = sorted([left[i], right[j]] for i, j in change.get("moves", []) if i in left)
        if moves:
            result["moves"] = moves
        result["departed"] = [
            [change["deleted"][i], right[j]] for i, j in change.get("moves", []) if change["deleted"][i][0] in gone
        ]
        content = [elements[i] for _, _, i in added] + [elements[count + i] for _, _, i in updated]
        return result, content


def string(value):
    """The text of a string in the name of a section: its JSON text if another value would be named like it."""
    is_plain = not value.startswith('"') and value not in ("true", "false") and not _is_number(value)
    if is_plain and not re.search("[\ud800-\udfff]", value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _is_number(text):
    return re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", text) is not None and number(text) == text


def keyed(feeds, sections):
    """The sections, with the keys of those by value: the name tells the value."""
    for section in sections:
        feed, slash, value = section["name"].partition("/")
        if isinstance(feeds.get(feed), Sectioned):
            is_text = not (value.startswith('"') or value in ("true", "false") or _is_number(value))
            section["key"] = None if not slash else texts.node(value) if is_text else texts.parse(value)
    return sections


def keyed_change(feeds, change):
    """The change, with the keys of the sections by value that it adds."""
    if change.get("sections"):
        keyed(feeds, change["sections"]["added"])
    return change


def number(text):
    """The text of a number in the name of a section, the same for equal values."""
    sign, digits, exponent = Decimal(text).as_tuple()
    digits = "".join(map(str, digits)).lstrip("0")
    point, digits = len(digits) + exponent, digits.rstrip("0")
    if not digits:
        return "0"
    if len(digits) <= point <= 21:
        shown = digits + "0" * (point - len(digits))
    elif 0 < point <= 21:
        shown = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        shown = "0." + "0" * -point + digits
    else:
        shown = digits[0] + ("." + digits[1:] if len(digits) > 1 else "") + f"e{point - 1}"
    return "-" * sign + shown
