"""Works out, for each file under Protocol/vectors, what its cases expect, from what they are given.

Files whose expectations are statements of the specification (errors, framing) are left as they are.
"""

import pathlib

from . import changes, digest, exchanges, expiry, feeds, filters, mergepatch, slots, snapshots, texts
from .collection import Collection, Refused
from .sections import keyed_change

FOLDER = pathlib.Path(__file__).resolve().parents[4] / "vectors"


def recompute(name, document):
    """The document with every expectation worked out afresh."""
    work = _WORK.get(name)
    if work is None:
        return document
    members = dict(document.items)
    members["cases"] = [work(case) for case in document["cases"].items]
    return texts.node(members)


def plain(node):
    """Names, places and paths as Python values; nodes of elements stay nodes where the caller keeps them."""
    return node.value


def sections(node):
    return [{"name": s["name"].value, "rows": s["elements"].items} for s in node.items]


def shown(state):
    return [{"name": section["name"], "elements": section["rows"]} for section in state]


def _change(case):
    after = changes.apply(sections(case["before"]), plain(case["change"]), case["elements"].items)
    return {**dict(case.items), "after": shown(after)}


def _compose(case):
    before = sections(case["before"])
    first, second = ((plain(case[n]["change"]), case[n]["elements"].items) for n in ("first", "second"))
    change, elements = changes.compose(before, first, second)
    after = changes.apply(changes.apply(before, *first), *second)
    assert shown_text(changes.apply(before, change, elements)) == shown_text(after), case["name"]
    return {**dict(case.items), "composed": {"change": change, "elements": elements}, "after": shown(after)}


def shown_text(state):
    return texts.node(shown(state)).text


def run(collection, method, params):
    """One request against a collection: the change and its elements. Raises Refused."""
    conditions = {name: params[name].value for name in ("where", "absent") if params.get(name) is not None}
    if method == "patch":
        single = {name: params[name] for name in ("id", "patch") if params.get(name)}
        return collection.patch(params["patches"].items if params.get("patches") else [single], **conditions)
    if method == "delete" and params.get("id") is None and params.get("ids") is None:
        return collection.deleteWhere(params["where"].value)
    many = {"update": ("elements", "element"), "set": ("elements",), "delete": ("ids", "id")}[method]
    values = next(params[member] for member in many if params.get(member) is not None)
    return getattr(collection, method)(
        values.items if values.kind == "array" and many[0] in dict(params.items) else [values], **conditions
    )


def _bins(case):
    collection, steps = Collection(plain(case["definition"])), []
    for step in case["steps"].items:
        members = {name: member for name, member in step.items if name in ("method", "params")}
        before = collection.sections()
        try:
            change, elements = run(collection, step["method"].value, step["params"])
            applied = changes.apply(before, change, elements)
            assert shown_text(applied) == shown_text(collection.sections()), (case["name"], step)
            members.update(change=change, elements=elements)
        except Refused as refused:
            members["error"] = {"code": refused.code, "data": refused.data}
        steps.append(members)
    after = collection.sections()
    return {**dict(case.items), "steps": steps, "after": shown(after), "digest": digest.digest(after)}


def _sorting(case):
    definition = {"feed": "sorted", "bins": [{"name": "all", "sort": plain(case["sort"])}]}
    collection = Collection(definition)
    for element in case["elements"].items:
        collection.update([element])
    return {**dict(case.items), "ids": [row["id"] for row in collection.sections()[0]["rows"]]}


def _identities(case):
    same = [filters.identity("$.id", texts.parse(text)) for text in plain(case["elements"])]
    groups = []
    for place, identity in enumerate(same):
        if identity is None:
            continue
        for group in groups:
            if same[group[0]] == identity:
                group.append(place)
                break
        else:
            groups.append([place])
    refused = [place for place, identity in enumerate(same) if identity is None]
    return {**dict(case.items), "groups": groups, "refused": refused}


def _transaction(case):
    feeds = {d["feed"].value: Collection(plain(d)) for d in case["definitions"].items}
    for step in case["setup"].items:
        run(feeds[step["params"]["feed"].value], step["method"].value, step["params"])
    before = {name: feed.sections() for name, feed in feeds.items()}
    trackers = {name: changes.Tracker(state) for name, state in before.items()}
    members = {name: case[name] for name in ("name", "definitions", "setup", "ops")}
    results = []
    try:
        for place, op in enumerate(case["ops"].items):
            name = op["params"]["feed"].value
            if name not in feeds:
                raise Refused(-32000, feed=name)
            change, elements = run(feeds[name], op["method"].value, op["params"])
            trackers[name].apply(change, elements)
            results.append(change)
    except Refused as refused:
        members["error"] = {"code": refused.code, "data": {**refused.data, "op": place}}
        return {**members, "after": {name: shown(state) for name, state in before.items()}}
    deltas = {name: dict(zip(("change", "elements"), tracker.change())) for name, tracker in trackers.items()}
    deltas = {name: d for name, d in deltas.items() if any(d["change"].values())}
    after = {name: shown(feed.sections()) for name, feed in feeds.items()}
    return {**members, "results": results, "deltas": deltas, "after": after}


def _patch(case):
    return {**dict(case.items), "result": mergepatch.merge(case["target"], case["patch"])}


def _digest(case):
    state = sections(case["sections"])
    return {**dict(case.items), "text": digest.text(state), "digest": digest.digest(state)}


def _snapshots(case):
    members = {name: case[name] for name in ("name", "spanning", "sections", "parts")}
    state, fault = snapshots.receive(case["sections"].value, case["parts"].items, case["spanning"].value)
    return {**members, "after": state} if fault is None else {**members, "fault": fault}


def _slots(case):
    counts, definition = case["counts"].value, case["definition"].value
    return {**dict(case.items), "rows": slots.rows(definition, counts)}


def _feeds(case):
    world, steps = feeds.World(plain(case["definitions"])), []
    for step in case["steps"].items:
        members = {name: member for name, member in step.items if name in ("method", "params")}
        name = step["params"]["feed"].value
        before = {feed: world.sections(feed) for feed in world.feeds}
        try:
            change, deltas = world.request(name, lambda feed: _on_feed(feed, step["method"].value, step["params"]))
            for feed, (delta, elements) in deltas.items():
                assert shown_text(changes.apply(before[feed], delta, elements)) == shown_text(
                    world.sections(feed)
                ), step
            for told in [change, *(c for c, _ in deltas.values())]:
                keyed_change(world.feeds, told)
            deltas = {n: {"change": c, "elements": e} for n, (c, e) in deltas.items() if any(c.values())}
            members.update(change=change, deltas=deltas)
        except Refused as refused:
            members["error"] = {"code": refused.code, "data": refused.data}
        steps.append(members)
    after = {feed: shown(world.sections(feed)) for feed in world.feeds}
    return {**dict(case.items), "steps": steps, "after": after}


def _on_feed(feed, method, params):
    if isinstance(feed, Collection):
        return run(feed, method, params)
    given = {name: value for name, value in params.items if name != "feed"}
    arguments = {name: value if name == "element" else plain(value) for name, value in given.items()}
    if method == "patch":
        arguments.update({name: given[name] for name in ("patch",) if name in given})
        if "patches" in given:
            arguments["patches"] = [{**p.value, "patch": p["patch"], "id": p.get("id")} for p in given["patches"].items]
    for name in ("id", "ids"):
        if name in given and isinstance(feed, feeds.List):
            arguments[name] = given[name].items if name == "ids" else given[name]
    if "elements" in given:
        arguments["elements"] = given["elements"].items
    if isinstance(feed, feeds.List):
        if "from" in arguments:
            arguments["start"] = arguments.pop("from")
        return feed.request(method, arguments)
    return getattr(feed, method)(**arguments)


def _exchange(case):
    """A daemon of its own for each case."""
    daemon, steps = exchanges.Daemon(_on_feed), []
    for step in case["setup"].items:
        done = daemon.request(step["method"].value, step["params"])
        assert "result" in done, (case["name"], step, done)
    for step in case["steps"].items:
        done = daemon.request(step["method"].value, step["params"])
        steps.append({"method": step["method"], "params": step["params"], **done})
    return {"name": case["name"], "setup": case["setup"], "steps": steps}


def _expiry(case):
    return {**dict(case.items), "expires": expiry.text(case["time"])}


_WORK = {
    "counts": _exchange,
    "exchanges": _exchange,
    "expiry": _expiry,
    "slots": _slots,
    "snapshots": _snapshots,
    "lists": _feeds,
    "arrays": _feeds,
    "providers": _feeds,
    "views": _feeds,
    "sections": _feeds,
    "change": _change,
    "compose": _compose,
    "bins": _bins,
    "sorting": _sorting,
    "identities": _identities,
    "transactions": _transaction,
    "digest": _digest,
    "patch": _patch,
}
