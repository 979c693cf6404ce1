"""A slots feed. Its order is worked out one row after another as the specification tells it."""

from .views import between, follow


class Slots:
    def __init__(self, definition, world):
        self.name, self.world, self.definition = definition["feed"], world, definition
        self.contents, self.types = definition["contents"], definition.get("types", "content")

    def places(self):
        """Pairs of a type and the index of a row in its content."""
        counts = {type: sum(self._counts(feed)) for type, feed in self.contents.items()}
        return rows(self.definition, counts)

    def _counts(self, feed):
        return [len(section["rows"]) for section in self.world.sections(feed)]

    def sections(self):
        return [{"name": self.name, "rows": self._rows()}]

    def _rows(self):
        content = {
            type: [row for section in self.world.sections(feed) for row in section["rows"]]
            for type, feed in self.contents.items()
        }
        return [content[type][place] for type, place in self.places()]

    def state(self):
        """What `change` needs of the time before a request."""
        counts = {type: self._counts(feed) for type, feed in self.contents.items()}
        return {"counts": counts, "places": self.places(), "rows": self._rows()}

    def change(self, before, of):
        """The change since `before`, where `of` tells the change of a content."""
        numbers = {type: follow(before["counts"][type], of(feed)) for type, feed in self.contents.items()}
        new = [(type, numbers[type][place]) for type, place in self.places()]
        return between(before["places"], before["rows"], new, self._rows())


def rows(definition, counts):
    """Pairs (type, index into its content), in order."""
    pattern, default = definition["pattern"], definition.get("default")
    live = set() if default is not None else set(definition.get("repeatables", [])) & set(pattern)
    used, result, header = {}, [], definition.get("header", [])

    def left(type):
        return type is not None and used.get(type, 0) < counts.get(type, 0)

    def emit(type, at=None):
        used[type] = used.get(type, 0) + 1
        result.insert(len(result) if at is None else at, (type, used[type] - 1))

    def goes_through(types):
        """One pass; False when everything ends in it."""
        found_empty = False
        for type in types:
            if left(type):
                if not found_empty or type in live:
                    emit(type)
            elif left(default):
                emit(default)
            else:
                if type in live:
                    live.discard(type)
                else:
                    found_empty = True
                if not live:
                    return False
        return True

    if not pattern or not goes_through(header):
        return result
    while goes_through(pattern):
        pass
    for position, type in sorted((int(p), t) for p, t in definition.get("fixed", {}).items()):
        if type not in pattern and left(type) and 0 <= position <= len(result):
            emit(type, position)
    return result
