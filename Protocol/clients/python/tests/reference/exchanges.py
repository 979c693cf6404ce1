"""A daemon from its start: requests in order, with revisions, conditions, selections, watches and the list of feeds."""

import copy
import re

from . import changes, feeds, filters, texts
from .collection import Collection, Refused
from .sections import Sectioned, keyed, keyed_change
from .slots import Slots
from .views import View, follow

CATALOG = "$feeds"
#: Members of a request that any method takes, and `replace`.
_OPTIONS = ("replace", "if", "animation", "result")


class Daemon:
    """Feeds with their revisions; `run` makes the change of a method on a feed of the world."""

    def __init__(self, run):
        self.run = run
        self.world = feeds.World([{"feed": CATALOG, "kind": "array", "id": "$.feed"}])
        self.definitions = {}
        self.revision, self.revisions = 0, {CATALOG: 0}
        self.selections, self.watches = {}, {}  # sets of places; the revision that the watcher has, and whether it counts
        self.deltas, self.selected_now = {}, {}

    def request(self, method, params):
        """What a step expects: `result` or `error`, and the notifications of the watches."""
        self.deltas, self.selected_now = {}, {}
        feed = params["feed"].value if params.get("feed") else None
        try:
            self._check(params)
            if feed and feed not in self.revisions and method != "define":
                raise Refused(-32000, feed=feed)
            if method == "transaction":
                result = self._transaction(params)
            elif method in ("describe", "get", "query", "select", "deselect", "selected", "snapshot", "watch"):
                result = getattr(self, method)(feed, params)
            else:
                [change] = self._commit([(method, params)])
                result = {"revision": self.revision, **_answer(keyed_change(self.world.feeds, change), params)}
        except Refused as refused:
            return {"error": {"code": refused.code, "data": refused.data}}
        deltas = {"deltas": self.deltas} if self.deltas else {}
        return {"result": result, **deltas, **({"selections": self.selected_now} if self.selected_now else {})}

    def _check(self, params, **op):
        given = params.get("if")
        for condition in [] if given is None else given.items if given.kind == "array" else [given]:
            feed, revision = condition["feed"].value, condition["revision"].value
            if self.revisions.get(feed) != revision:
                raise Refused(-32009, feed=feed, revision=self.revisions.get(feed), **op)

    # Changes

    def _transaction(self, params):
        ops = params["ops"].items
        for place, op in enumerate(ops):
            self._check(op["params"], op=place)
        results = self._commit([(op["method"].value, op["params"]) for op in ops], in_transaction=True)
        results = [keyed_change(self.world.feeds, change) for change in results]
        results = [_answer(change, params, op["params"]) for op, change in zip(ops, results)]
        return {"revision": self.revision, "results": results}

    def _commit(self, ops, in_transaction=False):
        saved = copy.deepcopy((self.world, self.definitions))
        before = {feed: self.world.sections(feed) for feed in self.world.feeds}
        results, steps, ended = [], [], set()
        for place, (method, params) in enumerate(ops):
            try:
                change, deltas = self._op(method, params)
            except Refused as refused:
                self.world, self.definitions = saved
                raise Refused(refused.code, **refused.data, **({"op": place} if in_transaction else {})) from None
            results.append(change)
            steps.append(deltas)
            if method == "undefine":
                ended.add(params["feed"].value)
        steps.append(self.world.request(CATALOG, lambda feed: feed.request("set", {"elements": self._catalog()}))[1])
        kept = [feed for feed in before if feed in self.world.feeds and feed not in ended]
        net = {feed: self._net(before[feed], [step[feed] for step in steps if feed in step]) for feed in kept}
        for feed, delta in net.items():
            after = changes.apply(before[feed], *delta)
            assert _text(after) == _text(self.world.sections(feed)), feed
        new = [feed for feed in self.world.feeds if feed not in kept]
        if new or ended or any(any(change.values()) for change, _ in net.values()):
            self.revision += 1
        self._publish(before, net, new, ended, None if in_transaction else ops[0][1].get("animation"))
        return results

    def _op(self, method, params):
        name = params["feed"].value
        if name == CATALOG:
            raise Refused(-32006, feed=name)
        if method == "define":
            return self._define(name, params)
        if name not in self.world.feeds:
            raise Refused(-32000, feed=name)
        if method == "undefine":
            if any(name in (child.partition("/")[0] for child in _shown(d)) for d in self.definitions.values()):
                raise Refused(-32001, feed=name)
            del self.world.feeds[name], self.definitions[name]
            return {}, {}
        feed = self.world.feeds[name]
        given = texts.node({member: value for member, value in params.items if member not in _OPTIONS})
        result = self.world.request(name, lambda feed: self.run(feed, method, given))
        if isinstance(feed, feeds.Provider):
            self.definitions[name]["children"] = feed.children
            if feed.current is not None:
                self.definitions[name]["current"] = feed.current
        return result

    def _define(self, name, params):
        definition = {member: value.value for member, value in params.items if member not in _OPTIONS}
        old = self.definitions.get(name)
        if old == definition:
            return {}, {}
        if old and not (params.get("replace") and old["kind"] == definition["kind"]):
            raise Refused(-32001, feed=name)
        self.definitions[name] = definition
        if not old:
            self.world.define(definition)
            return {}, {}
        if definition["kind"] != "composed":  # only the rules of other kinds change here
            assert {**old, "multiple": 0, "selectable": 0} == {**definition, "multiple": 0, "selectable": 0}, name
            return {}, {}

        def replace(feed):
            feed.children = list(definition["children"])

        return {}, self.world.request(name, replace)[1]

    def _catalog(self):
        """The elements of the list of feeds, in the order of names."""
        entries = sorted(self.definitions.items(), key=lambda entry: filters.points(entry[0]))
        return [texts.node({"feed": name, "kind": d["kind"], "definition": d}) for name, d in entries]

    @staticmethod
    def _net(before, steps):
        steps = [step for step in steps if any(step[0].values())]
        if len(steps) == 1:
            return steps[0]
        tracker = changes.Tracker(before)
        for step in steps:
            tracker.apply(*step)
        return tracker.change()

    def _publish(self, before, net, new, ended, animation):
        """Brings revisions, selections and watches up to date with a commit."""
        names = [name for feed in net for name in (feed, *self._bins(feed)) if name in self.revisions]
        changed = {name: self._change_of(name, net) for name in names}
        changed = {name: change for name, change in changed.items() if any(change.values())}
        for name in [name for name in self.revisions if name.partition("/")[0] in ended]:
            self._end(name, before)
        for feed in new:
            self.revisions.update({name: self.revision for name in (feed, *self._bins(feed))})
        for name, change in changed.items():
            self.revisions[name] = self.revision
            self._tell(name, change, net[name][1] if name in net else None, animation, before)
            if self.selections.get(name):
                now = follow([len(s["rows"]) for s in _part(before, name)], change)
                old = {flat for flat, place in enumerate(_places(_part(before, name))) if place in self.selections[name]}
                places = _places(self.world.sections(name))
                self._choose(name, {place for flat, place in zip(now, places) if flat in old})

    def _bins(self, feed):
        if not isinstance(self.world.feeds[feed], Collection) or isinstance(self.world.feeds[feed], Sectioned):
            return []
        return [section["name"] for section in self.world.sections(feed)]

    def _change_of(self, name, net):
        return net[name][0] if name in net else self.world.of(name, net)

    def _tell(self, name, change, elements, animation, before):
        if name not in self.watches:
            return
        keyed_change(self.world.feeds, change)
        delta = {"from": self.watches[name]["revision"], "revision": self.revision}
        if self.watches[name]["counts"]:
            delta["counts"] = [len(section["rows"]) for section in self.world.sections(name)]
            delta.update({"sections": change["sections"]} if "sections" in change else {})
        else:
            delta.update(change, elements=elements)
            if self.watches[name]["ids"]:
                delta.update(self._identities(name, change, before))
        if animation and name != CATALOG:
            delta["animation"] = animation
        self.deltas[name], self.watches[name]["revision"] = delta, self.revision

    def _identities(self, name, change, before):
        """The identities of the rows that a change takes from their places; those of composed feeds are of other feeds."""
        path = getattr(self.world.feeds[name.partition("/")[0]], "id", None)
        rows = [section["rows"] for section in _part(before, name)]
        found = [[filters.resolve(path, row) if path else None for row in section] for section in rows]
        gone = change.get("sections", {}).get("deleted", [])
        sections = {"deletedSectionIDs": [found[section] for section in gone]} if gone else {}
        return {"deletedIDs": [found[section][row] for section, row in change["deleted"]], **sections}

    def _end(self, name, before):
        """The last delta of a watch of a feed that is gone."""
        del self.revisions[name]
        self.selections.pop(name, None)
        watch = self.watches.pop(name, None)
        if watch:
            rows = {"counts": []} if watch["counts"] else {"deleted": [], "added": [], "updated": [], "elements": []}
            rows.update({"deletedIDs": None} if watch["ids"] else {})
            gone = {"deleted": list(range(len(_part(before, name)))), "added": []}
            revisions = {"from": watch["revision"], "revision": self.revision}
            self.deltas[name] = {**revisions, **rows, "sections": gone, "ended": True}

    # Reading

    def _described(self, name):
        sections = [{"name": s["name"], "count": len(s["rows"])} for s in self.world.sections(name)]
        return keyed(self.world.feeds, sections)

    def describe(self, name, params):
        sections, feed, shows = self._described(name), self.world.feeds.get(name), None
        if isinstance(feed, Slots):
            shows = [{"feed": content, "type": type} for type, content in feed.contents.items()]
        elif isinstance(feed, feeds.Provider):
            active, at, shows = feed.shown(), 0, []
            for child in feed.children:
                shows.append({"feed": child, "section": at if child in active else None})
                at += len(self.world.sections(child)) if child in active else 0
        counts = [section["count"] for section in sections]
        result = {} if shows is None else {"shows": shows}
        result.update(sections=sections, counts=counts, count=sum(counts), revision=self.revisions[name])
        return result

    def snapshot(self, name, params):
        sections = []
        for section, origins in zip(self.world.sections(name), self._origins(name)):
            kinds = {"types": [kind for kind, _ in origins]} if self._has_types(name) else {}
            own = {"name": section["name"], "count": len(section["rows"]), "elements": section["rows"]}
            sections.append({**own, **kinds})
        return {"revision": self.revisions[name], "sections": keyed(self.world.feeds, sections)}

    def watch(self, name, params):
        counts = params.get("elements") is not None and not params["elements"].value
        ids = params.get("ids") is not None and params["ids"].value
        self.watches[name] = {"revision": self.revisions[name], "counts": counts, "ids": ids}
        if self.selections.get(name):
            self._notify(name)
        return {"feed": name, "revision": self.revisions[name], "resumed": False, "sections": self._described(name)}

    def get(self, name, params):
        sections, at = self.world.sections(name), params.get("at")
        feed = self.world.feeds[name.partition("/")[0]]
        if at is not None:
            found, shown = ([at.value] if tuple(at.value) in _places(sections) else []), at.value
        else:
            id = filters.identity("$", params["id"])
            found = [[s, r] for s, r in _places(sections) if filters.identity(feed.id, sections[s]["rows"][r]) == id]
            shown = found
        if not found:
            return {"element": None, "type": None, "at": shown, "found": False, "revision": self.revisions[name]}
        section, row = found[0]
        kind, _ = self._origins(name)[section][row]
        element = sections[section]["rows"][row]
        return {"element": element, "type": kind, "at": shown, "found": True, "revision": self.revisions[name]}

    def query(self, name, params):
        """Paths with one selector for the elements, and then names and indexes within each."""
        sections, path = self.world.sections(name), params["path"].value
        rows = [(section["rows"][r], [s, r]) for s, section in enumerate(sections) for r in range(len(section["rows"]))]
        selector, rest = re.fullmatch(r"\$(?:\[(\*|-?\d+|-?\d*:-?\d*|\?.*)\])?((?:\.\w+|\[-?\d+\])*)", path).groups()
        if self.definitions.get(name, {}).get("kind") == "single":
            assert not selector, path
        elif selector is None:
            assert not rest, path
            rows = [(texts.node([row for row, _ in rows]), None)]
        elif selector.startswith("?"):
            rows = [(row, place) for row, place in rows if filters.accepts(selector[1:], row)]
        elif ":" in selector:
            start, end = (int(number) if number else None for number in selector.split(":"))
            rows = rows[start:end]
        elif selector != "*":
            rows = rows[int(selector) :][:1]
        nodes = [(filters.resolve("$" + rest, row), place) for row, place in rows]
        nodes = [(node, place) for node, place in nodes if node is not filters.NOTHING]
        result = {"nodes": [node for node, _ in nodes], "revision": self.revisions[name]}
        if params.get("places") is not None and params["places"].value:
            result["places"] = [place for _, place in nodes]
        return result

    def _origins(self, name):
        """For each row of each section its type, and the feeds that it comes from, from this one down."""
        own = name.partition("/")[0]
        feed = self.world.feeds[own]
        if isinstance(feed, feeds.Provider):
            sections = [rows for child in feed.shown() for rows in self._origins(child)]
        elif isinstance(feed, View):
            flat = [row for rows in self._origins(feed.source) for row in rows]
            sections = [[flat[place] for place in feed.places()]]
        elif isinstance(feed, Slots):
            content = {t: [row for rows in self._origins(f) for row in rows] for t, f in feed.contents.items()}
            rows = [(type, *content[type][place]) for type, place in feed.places()]
            sections = [[(type if feed.types == "content" else kind, chain) for type, kind, chain in rows]]
        else:
            path = self.definitions.get(own, {}).get("type")
            types = [[_type(path, row) for row in section["rows"]] for section in self.world.sections(name)]
            sections = [[(type, []) for type in section] for section in types]
        return [[(type, [own, *chain]) for type, chain in rows] for rows in sections]

    def _has_types(self, name):
        definition = self.definitions.get(name.partition("/")[0], {})
        return "type" in definition or definition.get("kind") == "slots" or any(map(self._has_types, _shown(definition)))

    # Selection

    def selected(self, name, params):
        return {"revision": self.revisions[name], "selected": sorted(self.selections.get(name, set()))}

    def select(self, name, params):
        given, origins = self._given(name, params), self._origins(name)
        chains = {(s, r): chain for s, rows in enumerate(origins) for r, (_, chain) in enumerate(rows)}
        if any(self._rule(feed, "selectable") is False for place in given for feed in chains[place]):
            raise Refused(-32006, feed=name)
        if len(given) > 1 and self._rule(name.partition("/")[0], "multiple") is False:
            raise Refused(-32602, feed=name)
        chosen = {tuple(place) for place in self.selections.get(name, [])}
        for place in given:
            alone = {feed for feed in chains[place] if self._rule(feed, "multiple") is False}
            chosen = {other for other in chosen if not alone & set(chains[other])} | {place}
        self._choose(name, chosen)
        return self.selected(name, params)

    def deselect(self, name, params):
        self._choose(name, set(self.selections.get(name, [])) - set(self._given(name, params)))
        return self.selected(name, params)

    def _given(self, name, params):
        """The rows that a request names."""
        places = _places(self.world.sections(name))
        if params.get("all") is not None:
            return places
        given = params["at"].value
        given = [tuple(place) for place in (given if isinstance(given[0], list) else [given])]
        if not set(given) <= set(places):
            raise Refused(-32005, feed=name)
        return given

    def _rule(self, feed, rule):
        return self.definitions.get(feed, {}).get(rule)

    def _choose(self, name, places):
        if places != self.selections.get(name, set()):
            self.selections[name] = places
            self._notify(name)

    def _notify(self, name):
        if name in self.watches and not self.watches[name]["counts"]:
            self.selected_now[name] = {"revision": self.revisions[name], "selected": sorted(self.selections[name])}


def _answer(change, *params):
    """What a request is told of its change: all of it, or how many rows."""
    if not any(given.get("result") is not None and given["result"].value == "counts" for given in params):
        return change
    counts = {name: len(change.get(name, [])) for name in ("deleted", "added", "updated", "moves")}
    sections = change.get("sections")
    return {"counts": {**counts, **({"sections": {n: len(each) for n, each in sections.items()}} if sections else {})}}


def _shown(definition):
    """The feeds that a definition names."""
    of = [definition["of"]] if "of" in definition else []
    return [*definition.get("children", []), *definition.get("contents", {}).values(), *of]


def _part(states, name):
    """The sections of a feed, or of a bin, among the states of all feeds."""
    feed, _, bin = name.partition("/")
    return [section for section in states[feed] if not bin or section["name"] == name]


def _places(sections):
    return [(s, r) for s, section in enumerate(sections) for r in range(len(section["rows"]))]


def _type(path, element):
    found = filters.resolve(path, element) if path else filters.NOTHING
    return found.value if found is not filters.NOTHING and found.kind == "string" else None


def _text(state):
    return texts.node([[section["name"], section["rows"]] for section in state]).text
