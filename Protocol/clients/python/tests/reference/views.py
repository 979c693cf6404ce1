"""A view of one other feed: its rows, and its change from that of its source."""

from functools import cmp_to_key

from . import filters


class View:
    def __init__(self, definition, world):
        self.name, self.world, self.source = definition["feed"], world, definition["of"]
        self.filter, self.sort = definition.get("filter"), definition.get("sort", [])
        self.offset, self.limit = definition.get("offset", 0), definition.get("limit")

    def _source(self):
        return self.world.sections(self.source)

    def places(self):
        """The indexes of the rows that show among the rows of the source in flattened order."""
        rows = [row for section in self._source() for row in section["rows"]]
        places = [place for place, row in enumerate(rows) if filters.accepts(self.filter, row)]
        if self.sort:
            places.sort(
                key=cmp_to_key(
                    lambda a, b: 1
                    if filters.sorts_after(self.sort, rows[a], rows[b])
                    else -1
                    if filters.sorts_after(self.sort, rows[b], rows[a])
                    else 0
                )
            )
        end = None if self.limit is None else self.offset + self.limit
        return places[self.offset : end]

    def sections(self):
        rows = [row for section in self._source() for row in section["rows"]]
        return [{"name": self.name, "rows": [rows[place] for place in self.places()]}]

    def state(self):
        """What `change` needs of the time before a request."""
        return {"counts": [len(s["rows"]) for s in self._source()], "places": self.places(), "rows": self._rows()}

    def _rows(self):
        return self.sections()[0]["rows"]

    def change(self, before, change):
        """The change since `before`, of which the source's is `change`."""
        numbers = follow(before["counts"], change)
        new = [numbers[place] for place in self.places()]
        return between(before["places"], before["rows"], new, self._rows())


def between(old, old_rows, new, rows):
    """The change of one section from the rows named `old` to those named `new`, and its elements."""
    texts = {number: row.text for number, row in zip(old, old_rows)}
    staying = set(longest_rising([old.index(number) for number in new if number in texts]))
    staying = {old[place] for place in staying}
    gone = [number for number in old if number not in staying]
    come = [number for number in new if number not in staying]
    updated = [n for n, row in zip(new, rows) if n in staying and texts[n] != row.text]
    result = {"deleted": [[0, old.index(n)] for n in gone], "added": [[0, new.index(n)] for n in come]}
    result["updated"] = [[0, new.index(n)] for n in updated]
    moves = [[place, come.index(number)] for place, number in enumerate(gone) if number in come]
    if moves:
        result["moves"] = moves
    return result, [rows[new.index(number)] for number in come + updated]


def follow(counts, change):
    """For each row after a change, the flat index of the same row before it, or something unique."""
    sections, start = [], 0
    for count in counts:
        sections.append(list(range(start, start + count)))
        start += count
    rows = {added: change["deleted"][deleted] for deleted, added in change.get("moves", [])}
    rows.update({added: row for row, added in change.get("departed", [])})
    origins = {added: sections[section][row] for added, (section, row) in rows.items()}
    for section, row in reversed(change["deleted"]):
        del sections[section][row]
    structure = change.get("sections", {})
    for section in reversed(structure.get("deleted", [])):
        del sections[section]
    for section in structure.get("added", []):
        sections.insert(section["at"], [])
    for place, (section, row) in enumerate(change["added"]):
        sections[section].insert(row, origins.get(place, ("new", place)))
    return [number for section in sections for number in section]


def longest_rising(values):
    """A longest rising subsequence."""
    best = []
    for place, value in enumerate(values):
        before = max((run for run in best if run[-1] < value), key=len, default=[])
        best.append([*before, value])
    return max(best, key=len, default=[])
