"""The order of a slots feed, worked out one row after another as the specification tells it."""


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
