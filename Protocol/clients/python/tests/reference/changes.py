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

    __slots__ = ("element", "origin")

    def __init__(self, element, origin=None):
        self.element, self.origin = element, origin


class Section:
    __slots__ = ("name", "rows")

    def __init__(self, name, rows):
        self.name, self.rows = name, rows


class Tracker:
    """Follows rows and sections by their own identity through changes, and tells the change from start to end."""

    def __init__(self, sections):
        self.sections = [Section(s["name"], [Row(element) for element in s["rows"]]) for s in sections]
        self.before = [(section, list(section.rows)) for section in self.sections]
        self.touched = set()

    def apply(self, change, elements):
        elements = iter(elements)
        gone = [self.sections[at].rows[row] for at, row in change["deleted"]]
        origins = {j: gone[i].origin or gone[i] for i, j in change.get("moves", [])}
        for at, row in reversed(change["deleted"]):
            del self.sections[at].rows[row]
        structure = change.get("sections", {})
        for at in reversed(structure.get("deleted", [])):
            del self.sections[at]
        for addition in structure.get("added", []):
            self.sections.insert(addition["at"], Section(addition["name"], []))
        for place, (at, row) in enumerate(change["added"]):
            self.sections[at].rows.insert(row, Row(next(elements), origins.get(place)))
        for at, row in change["updated"]:
            self.sections[at].rows[row].element = next(elements)
            self.touched.add(self.sections[at].rows[row])

    def change(self):
        """The change from the first state to this one, and the elements of its added and updated rows."""
        kept = set(self.sections)
        old = {section for section, _ in self.before}
        places = {row: (s, r) for s, (_, rows) in enumerate(self.before) for r, row in enumerate(rows)}
        now = {row: (s, r) for s, section in enumerate(self.sections) for r, row in enumerate(section.rows)}
        listed = [row for section, rows in self.before if section in kept for row in rows if row not in now]
        added = [row for row in now if row not in places]
        updated = [row for row in now if row in places and row in self.touched]
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
