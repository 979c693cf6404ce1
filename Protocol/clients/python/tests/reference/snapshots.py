"""The parts of a snapshot: where their rows are, and which parts do not follow."""


def places(sections):
    """The place of every row in flattened order."""
    return [[at, row] for at, section in enumerate(sections) for row in range(section["count"])]


def receive(sections, parts, spanning):
    """The state after all parts, and None; or None and the index of the first part that does not follow."""
    rows, revision, is_over = [], None, False
    for index, part in enumerate(parts):
        if part.get("reset") and part["reset"].value:
            sections, rows, revision, is_over = part["sections"].value, [], part["revision"].value, False
        if revision is None:
            revision = part["revision"].value
        known, at = places(sections), part["at"].value
        elements = part["elements"].items
        types = part["types"].value if part.get("types") else [None] * len(elements)
        end = len(rows) + len(elements)
        if elements:
            follows = known[len(rows) :] and known[len(rows)] == at
        else:
            follows = at == (known[len(rows)] if len(rows) < len(known) else [0, 0])
        sound = not is_over and part["revision"].value == revision and end <= len(known) and len(types) == len(elements)
        if not (follows and sound) or part["last"].value and end < len(known):
            return None, index
        if not spanning:
            assert len({place for place, _ in known[len(rows) : end]}) <= 1, "a part of several sections"
        rows += zip(elements, types)
        is_over = part["last"].value
    assert is_over, "a snapshot without its last part"
    state, start = [], 0
    for section in sections:
        own = rows[start : start + section["count"]]
        start += section["count"]
        state.append({"name": section["name"], "elements": [row for row, _ in own], "types": [kind for _, kind in own]})
    return state, None
