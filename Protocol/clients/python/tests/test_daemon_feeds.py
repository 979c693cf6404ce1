"""The vectors of arrays, singles, and feeds made of feeds, played against the daemon with a watch on every feed."""

import random
import time
import unittest

import support
from reference import slots, texts
from support import feedd, params, raw
from vectorplay import VectorTest, contents, listed


class Feeds(VectorTest):
    def test_lists(self):
        self.play_all("lists")

    def test_arrays_with_identity(self):
        self.play_all("arrays")

    def test_providers(self):
        self.play_all("providers")

    def test_views(self):
        self.play_all("views")

    def test_sections(self):
        self.play_all("sections")

    def play_all(self, name):
        for case in support.cases(name):
            with self.subTest(case["name"].value):
                self.play(case)
            self.clear()

    def play(self, case):
        for definition in case["definitions"].items:
            self.define(definition)
        connection, mirrors = self.follow([definition["feed"].value for definition in case["definitions"].items])
        for place, step in enumerate(case["steps"].items):
            with self.subTest(step=place):
                self.step(step, connection, mirrors)
        for feed, sections in case["after"].items:
            self.assertEqual(self.snapshot(feed), contents(sections))
        self.agree(mirrors)

    def step(self, step, connection, mirrors):
        if step.get("error"):
            error = self.refused(step["method"].value, **params(step["params"]))
            self.assertEqual(error.code, step["error"]["code"].value)
            self.assertLessEqual(step["error"]["data"].value.items(), error.data.items())
            self.assertEqual(self.deltas(connection, mirrors), {})
            return
        result = self.connection.call(step["method"].value, **params(step["params"]))
        came = self.deltas(connection, mirrors)
        self.assertEqual(listed(result), step["change"].value)
        expected = dict(step["deltas"].items)
        self.assertEqual(came.keys(), expected.keys())
        for feed, [delta] in came.items():
            self.assertEqual(listed(delta), expected[feed]["change"].value, feed)
            self.assertEqual(delta["elements"], [raw(element) for element in expected[feed]["elements"].items], feed)
            self.assertEqual(delta["revision"], result["revision"])


class Expiry(VectorTest):
    """Elements whose time is past are evicted; those of later times, or without one, stay."""

    def test_expiry(self):
        cases = support.cases("expiry")
        past = [case for case in cases if case["expires"].value and float(case["expires"].value) < time.time()]
        kept = {case["name"].value for case in cases} - {case["name"].value for case in past}
        for kind in ("collection", "array"):
            with self.subTest(kind):
                self.define({"feed": "f", "kind": kind, "id": "$.name", "retain": {"until": "$.time"}})
                connection = self.daemon.connect("expiry")
                self.addCleanup(connection.close)
                watch = connection.watch("f")
                mirror = feedd.Mirror(watch.result)
                self.connection.call("update", feed="f", elements=[raw(case) for case in cases])
                while mirror.revision < 2 or sum(mirror.counts()) != len(kept):
                    mirror.apply(watch.next(support.PATIENCE))
                names = {texts.parse(row.decode())["name"].value for row in mirror.sections[0].elements}
                self.assertEqual(names, kept)
                self.connection.call("undefine", feed="f")


class Slots(VectorTest):
    def define_slots(self, definition, counts):
        for type, count in counts.items():
            self.define({"feed": type, "kind": "array"})
            self.connection.call("insert", feed=type, elements=[[type, index] for index in range(count)])
        contents = {type: type for type in counts}
        self.define({"feed": "mixed", "kind": "slots", "contents": contents, **definition})

    def rows(self):
        [section] = self.connection.call("snapshot", feed="mixed")["sections"]
        rows = [tuple(texts.parse(element.decode()).value) for element in section["elements"]]
        self.assertEqual([type for type, _ in rows], section["types"])
        return rows

    def test_slots(self):
        for case in support.cases("slots"):
            with self.subTest(case["name"].value):
                self.define_slots(case["definition"].value, case["counts"].value)
                self.assertEqual(self.rows(), [tuple(row) for row in case["rows"].value])
            self.clear()

    def test_deltas_lead_from_order_to_order(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        for case in support.cases("slots")[:20]:
            with self.subTest(case["name"].value, seed=seed):
                self.play(case, rng)
            self.clear()

    def play(self, case, rng):
        definition, counts = case["definition"].value, case["counts"].value
        self.define_slots(definition, counts)
        connection, mirrors = self.follow(["mixed"])
        for type in [rng.choice(list(counts)) for _ in range(10) if counts]:
            if counts[type] and rng.random() < 0.5:
                counts[type] -= 1
                self.connection.call("remove", feed=type, at=[counts[type]])
            else:
                self.connection.call("insert", feed=type, elements=[[type, counts[type]]])
                counts[type] += 1
            self.deltas(connection, mirrors)
            self.assertEqual(self.rows(), slots.rows(definition, counts))
            self.agree(mirrors)
