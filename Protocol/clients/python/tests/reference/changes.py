"""The change: applying one, composing two, and telling what a run of single steps comes to.

A state is a list of sections, a section a dictionary {"name", "rows"}; rows are anything that can be compared.
"""


def apply(sections, change, elements):
    """The state after `change`, whose `elements` are those of `added` and then those of `updated`."""
    sections = [{"name": section["name"], "rows": list(section["rows"])} for section in sections]
    for at, row in reversed(change["deleted"]):
        del sections[at]["rows"][row]
    structure = change.get("sections", {})
    for at in reversed(structure.get("deleted", [])):
        del sections[at]
    for addition in structure.get("added", []):
        sections.insert(addition["at"], {"name": addition["name"], "rows": []})
    elements = iter(elements)
    for at, row in change["added"]:
        assert row <= len(sections[at]["rows"])
        sections[at]["rows"].insert(row, next(elements))
    for at, row in change["updated"]:
        assert row < len(sections[at]["rows"])
        sections[at]["rows"][row] = next(elements)
    return sections


class Row:
    """A row that can be told from every other row, whatever it holds."""

    __slots__ = ("element", "origin", "replaced")

    def __init__(self, element, origin=None, replaced=False):
        self.element, self.origin, self.replaced = element, origin, replaced


class Section:
    __slots__ = ("name", "rows")

    def __init__(self, name, rows):
        self.name, self.rows = name, rows


def same(first, second):
    """Whether two elements have the same text."""
    return getattr(first, "text", first) == getattr(second, "text", second)


def most_in_order(places, fixed):
    """The indexes of a largest ascending choice of `places` that has all the fixed ones, which ascend."""
    best = []
    for index, place in enumerate(places):
        found = []
        for earlier in range(index):
            if places[earlier] < place and not any(fixed[earlier + 1 : index]) and len(best[earlier]) > len(found):
                found = best[earlier]
        if not found and any(fixed[:index]):
            best.append([])
            continue
        best.append(found + [index])
    ends = [chain for i, chain in enumerate(best) if chain and not any(fixed[i + 1 :])]
    return max(ends, key=len, default=[])


class Tracker:
    """Follows rows and sections by their own identity through changes, and tells the change from start to end."""

    def __init__(self, sections):
        self.sections = [Section(s["name"], [Row(element) for element in s["rows"]]) for s in sections]
        self.before = [(section, list(section.rows)) for section in self.sections]

    def apply(self, change, elements):
        elements = iter(elements)
        gone = [self.sections[at].rows[row] for at, row in change["deleted"]]
        sources = {j: gone[i] for i, j in change.get("moves", [])}
        for at, row in reversed(change["deleted"]):
            del self.sections[at].rows[row]
        structure = change.get("sections", {})
        for at in reversed(structure.get("deleted", [])):
            del self.sections[at]
        for addition in structure.get("added", []):
            self.sections.insert(addition["at"], Section(addition["name"], []))
        for place, (at, row) in enumerate(change["added"]):
            element, source = next(elements), sources.get(place)
            if source is None:
                added = Row(element)
            else:
                added = Row(element, source.origin or source, source.replaced or not same(source.element, element))
            self.sections[at].rows.insert(row, added)
        for at, row in change["updated"]:
            self.sections[at].rows[row].element = next(elements)
            self.sections[at].rows[row].replaced = True

    def put_back(self):
        """Makes moved rows that are in order among the rows that stay the rows they were; as many as possible."""
        for section, rows in self.before:
            if section not in self.sections:
                continue
            places = {row: place for place, row in enumerate(rows)}
            # Rows of this section by the place that they had, in their present order; a row that stayed always counts.
            candidates = [row for row in section.rows if (row.origin or row) in places]
            stays = [row in places for row in candidates]
            order = [places[row.origin or row] for row in candidates]
            for index in most_in_order(order, stays):
                row = candidates[index]
                if row.origin is not None:
                    row.origin.element, row.origin.replaced = row.element, row.replaced
                    section.rows[section.rows.index(row)] = row.origin

    def change(self):
        """The change from the first state to this one, and the elements of its added and updated rows."""
        self.put_back()
        kept = set(self.sections)
        old = {section for section, _ in self.before}
        places = {row: (s, r) for s, (_, rows) in enumerate(self.before) for r, row in enumerate(rows)}
        now = {row: (s, r) for s, section in enumerate(self.sections) for r, row in enumerate(section.rows)}
        listed = [row for section, rows in self.before if section in kept for row in rows if row not in now]
        added = [row for row in now if row not in places]
        updated = [row for row in now if row in places and row.replaced]
        order = {row: i for i, row in enumerate(listed)}
        moves = sorted([order[row.origin], j] for j, row in enumerate(added) if row.origin in order)
        result = {"deleted": [list(places[row]) for row in listed], "added": [list(now[row]) for row in added]}
        result["updated"] = [list(now[row]) for row in updated]
        structure = {
            "deleted": [at for at, (section, _) in enumerate(self.before) if section not in kept],
            "added": [{"at": at, "name": s.name} for at, s in enumerate(self.sections) if s not in old],
        }
        if structure["deleted"] or structure["added"]:
            result["sections"] = structure
        if moves:
            result["moves"] = moves
        return result, [row.element for row in added + updated]


def compose(sections, first, second):
    """One change for two, each a pair (change, elements): the change and its elements."""
    tracker = Tracker(sections)
    tracker.apply(*first)
    tracker.apply(*second)
    return tracker.change()
