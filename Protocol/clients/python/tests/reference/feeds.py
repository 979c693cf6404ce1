"""Arrays, singles, and feeds made of feeds: the change of each request, for the feed and for all that show it."""

import itertools

from . import changes, filters, mergepatch
from .collection import Collection, Refused, check
from .sections import Sectioned
from .slots import Slots
from .views import View, longest_rising


class List:
    """An array, or a single. The elements of an array may have an identity, and may be limited in number."""

    def __init__(self, definition):
        self.name, self.rows, self.moved = definition["feed"], [], set()
        self.id, self.most = definition.get("id"), (definition.get("retain") or {}).get("count")
        self.changed, self.clock = {}, 0  # when each row changed last

    def sections(self):
        return [{"name": self.name, "rows": [row.element for row in self.rows]}]

    def request(self, method, params):
        rows, elements, changed = list(self.rows), [row.element for row in self.rows], dict(self.changed)
        self.moved = set()
        try:
            getattr(self, method)(**params)
        except Refused:
            self.rows, self.changed = rows, changed
            for row, element in zip(rows, elements):
                row.element = element
            raise
        while self.most and len(self.rows) > self.most:
            self.rows.remove(min(self.rows, key=self.changed.get))
        return self._change(rows, [element.text for element in elements])

    def insert(self, elements, at=None):
        for place, element in enumerate(elements):
            row = len(self.rows) if at is None else at[place] if isinstance(at, list) else at + place
            self._check(row, len(self.rows))
            self._check_new(element, place)
            self._add(element, row)

    def update(self, elements=None, element=None, where=None, absent=False):
        """Replaces the elements with these identities where they are, and appends the others."""
        for place, new in enumerate([element] if elements is None else elements):
            self._require(self._find(self._identity(new, place)), place, where, absent)
        for place, element in enumerate([element] if elements is None else elements):
            row = self._find(self._identity(element, place))
            if row is None:
                self._add(element, len(self.rows))
            else:
                self._put(row, element)

    def delete(self, ids=None, id=None, where=None):
        if ids is None and id is None:
            self.rows = [row for row in self.rows if not filters.accepts(where, row.element)]
            return
        for place, identity in enumerate([id] if ids is None else ids):
            self._require(self._find(self._identity(identity, place, "$")), place, where)
        for place, identity in enumerate([id] if ids is None else ids):
            row = self._find(self._identity(identity, place, "$"))
            if row is not None:
                self.rows.remove(row)

    def remove(self, at):
        for row in sorted(at if isinstance(at, list) else [at], reverse=True):
            self._check(row, len(self.rows) - 1)
            del self.rows[row]

    def replace(self, elements, at):
        """An element with another identity is another row."""
        for place, element in enumerate(elements):
            row = at[place] if isinstance(at, list) else at + place
            self._check(row, len(self.rows) - 1)
            if self.id and self._identity(element, place) != self._identity(self.rows[row].element, place):
                self._check_new(element, place)
                del self.rows[row]
                self._add(element, row)
            else:
                self._put(self.rows[row], element)

    def patch(self, patch=None, at=0, id=None, patches=None, where=None):
        """Merges each patch into the element of its row; a single has only row 0."""
        before = {row: row.element for row in self.rows}
        for index, entry in enumerate(patches or [{"at": at, "id": id, "patch": patch}]):
            if entry.get("id") is not None:
                row = self._find(self._identity(entry["id"], index, "$"))
                if row is None:
                    raise Refused(-32010, feed=self.name, index=index)
            else:
                self._check(entry["at"], len(self.rows) - 1)
                row = self.rows[entry["at"]]
            check(self.name, index, before[row], where)
            merged = mergepatch.merge(row.element, entry["patch"])
            if self.id and self._identity(merged, index) != self._identity(row.element, index):
                raise Refused(-32602, feed=self.name)
            self._put(row, merged)

    def move(self, to, start=None, id=None, where=None):
        if id is not None:
            row = self._find(self._identity(id, 0, "$"))
            if row is None:
                raise Refused(-32010, feed=self.name, index=0)
            start = self.rows.index(row)
        self._check(start, len(self.rows) - 1)
        self._require(self.rows[start], 0, where)
        self._check(to, len(self.rows) - 1)
        if start != to:
            self.moved = {self.rows[start]}
            self.rows.insert(to, self.rows.pop(start))

    def _require(self, row, index, where=None, absent=False):
        check(self.name, index, row and row.element, where, absent)

    def set(self, elements):
        if self.id:
            return self._set_by_identity(elements)
        return self._set_by_text(elements)

    def _set_by_identity(self, elements):
        """A row stays if its identity does; as few of these as possible move."""
        identities = [self._identity(element, place) for place, element in enumerate(elements)]
        for place, identity in enumerate(identities):
            if identity in identities[:place]:
                raise Refused(-32001, feed=self.name, index=place)
        known = [self._find(identity) for identity in identities]
        kept = [row for row in known if row]
        old = {row: place for place, row in enumerate(self.rows)}
        staying = {self.rows[place] for place in longest_rising([old[row] for row in kept])}
        self.moved = {row for row in kept if row not in staying}
        self.rows = []
        for row, element in zip(known, elements):
            if row is None:
                self._add(element, len(self.rows))
            else:
                self.rows.append(row)
                self._put(row, element)

    def _set_by_text(self, elements):
        """The rule of Protocol/methods/set.md: common ends, pairs of equal elements, then the gaps between them."""
        old, new = [row.element.text for row in self.rows], [element.text for element in elements]
        start = end = 0
        while start < min(len(old), len(new)) and old[start] == new[start]:
            start += 1
        while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
            end += 1
        pairs = self._equal_pairs(old, new, range(start, len(old) - end), range(start, len(new) - end))
        ends = [(len(old) - end + place, len(new) - end + place) for place in range(end)]
        rows, before = [], 0
        for kept, place in [(place, place) for place in range(start)] + pairs + ends + [(len(old), len(new))]:
            for element in elements[len(rows) : place]:
                rows.append((self.rows[before] if before < kept else None, element))
                before += 1
            if place < len(new):
                rows.append((self.rows[kept], elements[place]))
            before = kept + 1
        for row, element in rows:
            if row:
                self._put(row, element)
        self.rows = [row for row, _ in rows if row]
        for place, (row, element) in enumerate(rows):
            if row is None:
                self._add(element, place)

    @staticmethod
    def _equal_pairs(old, new, rows, places):
        """Pairs the nth row of each element with its nth new place, and keeps the most that are in order."""
        pairs = []
        for text in set(new[places.start : places.stop]):
            pairs += zip([i for i in rows if old[i] == text], [i for i in places if new[i] == text])
        pairs.sort(key=lambda pair: pair[1])
        for count in range(len(pairs), 0, -1):
            choices = [choice for choice in itertools.combinations(pairs, count) if list(choice) == sorted(choice)]
            if choices:
                return list(min(choices, key=lambda choice: [before for before, _ in reversed(choice)]))
        return []

    def put(self, element):
        if element.kind == "null":
            self.rows = []
        elif self.rows:
            self.replace([element], 0)
        else:
            self.insert([element])

    def _add(self, element, at):
        row = changes.Row(element)
        self.rows.insert(at, row)
        self._touch(row)

    def _put(self, row, element):
        if row.element.text != element.text:
            row.element = element
            self._touch(row)

    def _touch(self, row):
        self.clock += 1
        self.changed[row] = self.clock

    def _identity(self, value, place, path=None):
        identity = filters.identity(path or self.id, value)
        if identity is None:
            raise Refused(-32003, feed=self.name, index=place)
        return identity

    def _find(self, identity):
        return next((row for row in self.rows if filters.identity(self.id, row.element) == identity), None)

    def _check_new(self, element, place):
        if self.id and self._find(self._identity(element, place)):
            raise Refused(-32001, feed=self.name, index=place)

    def _check(self, row, last):
        if not 0 <= row <= last:
            raise Refused(-32005, feed=self.name, index=row)

    def _change(self, old, texts):
        now = {row: place for place, row in enumerate(self.rows)}
        before = {row: place for place, row in enumerate(old)}
        gone = [row for row in old if row not in now or row in self.moved]
        come = [row for row in self.rows if row not in before or row in self.moved]
        updated = [row for row in self.rows if row in before and row not in self.moved]
        updated = [row for row in updated if texts[before[row]] != row.element.text]
        change = {"deleted": [[0, before[row]] for row in gone], "added": [[0, now[row]] for row in come]}
        change["updated"] = [[0, now[row]] for row in updated]
        moves = [[place, come.index(row)] for place, row in enumerate(gone) if row in now]
        if moves:
            change["moves"] = moves
        return change, [row.element for row in come + updated]


class Provider:
    """A composed feed, or a segmented one when it has `current`."""

    def __init__(self, definition, world):
        self.name, self.world, self.children = definition["feed"], world, list(definition.get("children", []))
        self.current = None
        if definition["kind"] == "segmented":
            self.current = max(-1, min(definition.get("current", 0), len(self.children) - 1))

    def shown(self):
        if self.current is None:
            return self.children
        return [self.children[self.current]] if self.current >= 0 else []

    def sections(self):
        return [section for child in self.shown() for section in self.world.sections(child)]

    def insertChild(self, child, at=None, before=None, after=None):
        if child in self.children:
            raise Refused(-32001, feed=self.name)
        if before or after:
            at = self.children.index(before or after) + (1 if after else 0)
        at = len(self.children) if at is None else at
        if not 0 <= at <= len(self.children):
            raise Refused(-32005, feed=self.name, index=at)
        self.children.insert(at, child)
        if self.current is not None:
            self.current = 0 if len(self.children) == 1 else self.current + (at <= self.current)

    def removeChild(self, child=None, at=None):
        at = self.children.index(child) if child else at
        if not 0 <= at < len(self.children):
            raise Refused(-32005, feed=self.name, index=at)
        del self.children[at]
        if self.current is not None and at < self.current:
            self.current -= 1
        elif self.current == at:
            self.current = min(at, len(self.children) - 1)

    def activate(self, child):
        if isinstance(child, str):
            child = self.children.index(child)
        self.current = max(-1, min(child, len(self.children) - 1))


class World:
    """All feeds that are defined."""

    def __init__(self, definitions):
        self.feeds = {}
        for definition in definitions:
            self.define(definition)

    def define(self, definition):
        kind = definition["kind"]
        collection = Sectioned if "section" in definition else Collection
        made = {"collection": collection, "array": List, "single": List}.get(kind)
        composed = {"view": View, "slots": Slots}.get(kind, Provider)
        self.feeds[definition["feed"]] = made(definition) if made else composed(definition, self)

    def sections(self, name):
        collection, _, bin = name.partition("/")
        sections = self.feeds[collection].sections()
        return [section for section in sections if section["name"] == name] if bin else sections

    def paths(self, name, at=()):
        """Every section that a feed shows: the way down to it, and its place in the feed that holds it."""
        feed = self.feeds.get(name.partition("/")[0])
        if isinstance(feed, Provider):
            return [path for child in feed.shown() for path in self.paths(child, (*at, child))]
        names = [section["name"] for section in self.sections(feed.name)]
        return [(at, feed.name, names.index(section["name"])) for section in self.sections(name)]

    def request(self, name, run):
        """The change of a request on a feed, and what becomes of every feed: {name: (change, elements)}."""
        before = {feed: self.paths(feed) for feed in self.feeds}
        derived = {name: feed.state() for name, feed in self.feeds.items() if isinstance(feed, (View, Slots))}
        result, deltas = run(self.feeds[name]), {}
        for feed in self.feeds:
            if isinstance(self.feeds[feed], View):
                deltas[feed] = self.feeds[feed].change(derived[feed], self.of(self.feeds[feed].source, deltas))
            elif feed in derived:
                deltas[feed] = self.feeds[feed].change(derived[feed], lambda name: self.of(name, deltas))
            elif feed == name and result is not None:
                deltas[feed] = result
            elif result is None:
                deltas[feed] = self._restructured(feed, before[feed])
            else:
                deltas[feed] = self._shifted(feed, deltas)
        for change, _ in deltas.values():
            change.pop("departed", None)
        return deltas[name][0] if result is None else result[0], deltas

    def of(self, name, deltas):
        """The change of a feed or bin; sections of collections do not come and go here."""
        collection, _, bin = name.partition("/")
        change = deltas[collection][0]
        if not bin:
            return change
        section = [part["name"] for part in self.feeds[collection].sections()].index(name)
        result, places = {}, {}
        for part in ("deleted", "added", "updated"):
            places[part] = [place for place, path in enumerate(change[part]) if path[0] == section]
            result[part] = [[0, change[part][place][1]] for place in places[part]]
        result["moves"] = [
            [places["deleted"].index(i), places["added"].index(j)]
            for i, j in change.get("moves", [])
            if i in places["deleted"] and j in places["added"]
        ]
        return result

    def _restructured(self, feed, paths):
        now = self.paths(feed)
        deleted = [place for place, path in enumerate(paths) if path not in now]
        added = [place for place, path in enumerate(now) if path not in paths]
        sections = self.sections(feed)
        change = {
            "deleted": [],
            "added": [[s, r] for s in added for r in range(len(sections[s]["rows"]))],
            "updated": [],
        }
        if deleted or added:
            structure = [{"at": at, "name": sections[at]["name"]} for at in added]
            change["sections"] = {"deleted": deleted, "added": structure}
        return change, [row for at in added for row in sections[at]["rows"]]

    def _shifted(self, feed, deltas):
        """The change of a feed that shows others, from the changes of the feeds that its sections come from."""
        lists = {name: [] for name in ("deleted", "added", "updated")}
        if isinstance(self.feeds[feed], Provider):
            for at, (way, source, section) in enumerate(self.paths(feed)):
                for name, found in lists.items():
                    rows = enumerate(deltas[source][0][name])
                    found += [([at, row], (source, way, index)) for index, (part, row) in rows if part == section]
        result = {name: [path for path, _ in sorted(found)] for name, found in lists.items()}
        where = {name: [origin for _, origin in sorted(found)] for name, found in lists.items()}
        content = [deltas[source][1][index] for source, _, index in where["added"]]
        for source, _, index in where["updated"]:
            content.append(deltas[source][1][len(deltas[source][0]["added"]) + index])
        moves = []
        for i, (source, way, index) in enumerate(where["deleted"]):
            come = (source, way, dict(deltas[source][0].get("moves", [])).get(index))
            if come in where["added"]:
                moves.append([i, where["added"].index(come)])
        if moves:
            result["moves"] = moves
        return result, content
