"""A collection: elements by identity, sorted into bins, and the change of each request."""

from . import filters, mergepatch


class Refused(Exception):
    """A request that changes nothing, with the code of its error and what its data names."""

    def __init__(self, code, **data):
        super().__init__(code, data)
        self.code, self.data = code, data


def check(feed, index, element, where=None, absent=False):
    """The condition of a request on a present element; None if there is none."""
    unmatched = where is not None and (element is None or not filters.accepts(where, element))
    if unmatched or absent and element is not None:
        raise Refused(-32009, feed=feed, index=index)


class _Row:
    __slots__ = ("identity", "element")

    def __init__(self, identity, element):
        self.identity, self.element = identity, element


class _Bin:
    def __init__(self, name, filter=None, sort=()):
        self.name, self.filter, self.sort, self.rows = name, filter, sort, []

    def place(self, element):
        """Before the first row that sorts after the element; a bin without a sort appends."""
        if self.sort:
            for place, row in enumerate(self.rows):
                if filters.sorts_after(self.sort, row.element, element):
                    return place
        return len(self.rows)

    def find(self, identity):
        for place, row in enumerate(self.rows):
            if row.identity == identity:
                return place
        return None


class Collection:
    def __init__(self, definition):
        self.name = definition["feed"]
        self.id = definition.get("id", "$.id")
        self.exclusive = definition.get("exclusive", False)
        self.count = definition.get("retain", {}).get("count")
        self.bins = [_Bin(**bin) for bin in definition.get("bins", [{"name": "all"}])]
        self.elements = {}  # by identity, the longest unchanged first

    def sections(self):
        return [{"name": f"{self.name}/{bin.name}", "rows": [row.element for row in bin.rows]} for bin in self.bins]

    def update(self, elements, where=None, absent=False):
        identities = self._identities(elements, "elements")
        self._require(identities, where, absent)
        before = self._rows()
        for identity, element in zip(identities, elements):
            self._put(identity, element)
        self._evict()
        return self._change(before)

    def patch(self, patches, where=None):
        """Merges each patch into the element with its identity; the merged elements are then updated, each once."""
        merged = {}
        for index, entry in enumerate(patches):
            identity = filters.identity("$", entry["id"])
            if identity not in self.elements:
                raise Refused(-32010, feed=self.name, index=index)
            check(self.name, index, self.elements[identity], where)
            merged[identity] = mergepatch.merge(merged.get(identity, self.elements[identity]), entry["patch"])
            if filters.identity(self.id, merged[identity]) != identity:
                raise Refused(-32602, feed=self.name)
        return self.update(list(merged.values()))

    def delete(self, ids, where=None):
        identities = self._identities(ids, "ids", "$")
        self._require(identities, where)
        before = self._rows()
        for identity in identities:
            self._drop(identity)
        return self._change(before)

    def deleteWhere(self, where):
        before = self._rows()
        for identity in [i for i, element in self.elements.items() if filters.accepts(where, element)]:
            self._drop(identity)
        return self._change(before)

    def set(self, elements):
        identities = self._identities(elements, "elements")
        before = self._rows()
        for identity in [identity for identity in self.elements if identity not in identities]:
            self._drop(identity)
        for identity, element in zip(identities, elements):
            self._put(identity, element)
        self._evict()
        return self._change(before)

    def _require(self, identities, where=None, absent=False):
        for index, identity in enumerate(identities):
            check(self.name, index, self.elements.get(identity), where, absent)

    def _identities(self, values, member, path=None):
        identities = [filters.identity(path or self.id, value) for value in values]
        if None in identities:
            raise Refused(-32003, feed=self.name, index=identities.index(None))
        return identities

    def _put(self, identity, element):
        old = self.elements.get(identity)
        if old is not None and old.text == element.text:
            return
        home = False
        for bin in self.bins:
            accepted = filters.accepts(bin.filter, element) and not (self.exclusive and home)
            home = home or accepted
            self._settle(bin, identity, old, element, accepted)
        self.elements.pop(identity, None)
        if home:
            self.elements[identity] = element

    @staticmethod
    def _settle(bin, identity, old, element, accepted):
        place = bin.find(identity)
        if place is None:
            if accepted:
                bin.rows.insert(bin.place(element), _Row(identity, element))
        elif not accepted:
            del bin.rows[place]
        elif filters.same_key(bin.sort, old, element):
            bin.rows[place].element = element
        else:
            del bin.rows[place]
            bin.rows.insert(bin.place(element), _Row(identity, element))

    def _drop(self, identity):
        self.elements.pop(identity, None)
        for bin in self.bins:
            bin.rows = [row for row in bin.rows if row.identity != identity]

    def _evict(self):
        while self.count is not None and len(self.elements) > self.count:
            self._drop(next(iter(self.elements)))

    def _rows(self):
        return [[(row, row.element) for row in bin.rows] for bin in self.bins]

    def _change(self, before):
        """The net change since `before`. A row that ends between the rows it started between is not listed as moved."""
        result, elements = {"deleted": [], "added": [], "updated": []}, {"added": [], "updated": []}
        moves = []
        left, come = {}, {}
        for section, bin in enumerate(self.bins):
            old = {row.identity: (place, row, element) for place, (row, element) in enumerate(before[section])}
            new = {row.identity: (place, row) for place, row in enumerate(bin.rows)}
            kept = {i for i in old if i in new and old[i][1] is new[i][1]}
            for identity in [i for i in old if i in new and i not in kept]:
                if _rank(kept, old, identity) == _rank(kept, new, identity):
                    kept.add(identity)
            for identity, (place, _, element) in old.items():
                if identity not in kept:
                    left.setdefault(identity, []).append((section, len(result["deleted"])))
                    result["deleted"].append([section, place])
                elif element.text != new[identity][1].element.text:
                    result["updated"].append([section, new[identity][0]])
                    elements["updated"].append(new[identity][1].element)
            result["updated"].sort()
            for identity, (place, row) in new.items():
                if identity not in kept:
                    come.setdefault(identity, []).append((section, len(result["added"])))
                    result["added"].append([section, place])
                    elements["added"].append(row.element)
        updated = [self.bins[section].rows[row].element for section, row in result["updated"]]
        for identity in left.keys() & come.keys():
            gone, here = dict(left[identity]), dict(come[identity])
            moves += [[gone[section], here[section]] for section in gone.keys() & here.keys()]
            others = [gone[section] for section in gone.keys() - here.keys()]
            entered = [here[section] for section in here.keys() - gone.keys()]
            if len(others) == 1 == len(entered):
                moves.append([others[0], entered[0]])
        if moves:
            result["moves"] = sorted(moves)
        return result, elements["added"] + updated


def _rank(kept, places, identity):
    """How many kept rows come before it: where it stands among those that never left."""
    return sum(places[other][0] < places[identity][0] for other in kept)
