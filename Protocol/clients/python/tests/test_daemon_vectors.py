"""The vectors played against the daemon: answers, deltas of every watch, states and digests."""

import unittest

import support
from support import params, raw
from reference import texts
from vectorplay import VectorTest, contents, listed


class Bins(VectorTest):
    def test_bins(self):
        for case in support.cases("bins"):
            with self.subTest(case["name"].value):
                self.play(case)
            self.clear()

    def play(self, case):
        feed = case["definition"]["feed"].value
        self.define(case["definition"])
        names = [section["name"].value for section in case["after"].items]
        connection, mirrors = self.follow([feed, *names])
        for place, step in enumerate(case["steps"].items):
            with self.subTest(step=place):
                self.step(step, feed, connection, mirrors)
        self.assertEqual(self.snapshot(feed), contents(case["after"]))
        self.assertEqual(self.connection.call("verify", feed=feed)["digest"], case["digest"].value)
        self.agree(mirrors)

    def step(self, step, feed, connection, mirrors):
        before = mirrors[feed].revision
        if step.get("error"):
            error = self.refused(step["method"].value, **params(step["params"]))
            self.assertEqual(error.code, step["error"]["code"].value)
            self.assertLessEqual(step["error"]["data"].value.items(), error.data.items())
            self.assertEqual(self.deltas(connection, mirrors), {})
            return
        result = self.connection.call(step["method"].value, **params(step["params"]))
        change = step["change"].value
        self.assertEqual(listed(result), change)
        deltas = self.deltas(connection, mirrors)
        if not any(change.values()):
            self.assertEqual(deltas, {})
            return
        [delta] = deltas[feed]
        self.assertEqual(listed(delta), change)
        self.assertEqual(delta["elements"], [raw(element) for element in step["elements"].items])
        self.assertEqual((delta["from"], delta["revision"]), (before, result["revision"]))


class Sorting(VectorTest):
    def test_sorting(self):
        for case in support.cases("sorting"):
            with self.subTest(case["name"].value):
                self.define(
                    {"feed": "sorted", "kind": "collection", "bins": [{"name": "all", "sort": raw(case["sort"])}]}
                )
                for element in case["elements"].items:
                    self.connection.call("update", feed="sorted", element=raw(element))
                [[_, elements]] = self.snapshot("sorted")
                ids = [texts.parse(element.decode())["id"].text for element in elements]
                self.assertEqual(ids, [id.text for id in case["ids"].items])
            self.clear()

    def test_sorting_all_at_once(self):
        for case in support.cases("sorting"):
            with self.subTest(case["name"].value):
                self.define(
                    {"feed": "sorted", "kind": "collection", "bins": [{"name": "all", "sort": raw(case["sort"])}]}
                )
                self.connection.call("update", feed="sorted", elements=raw(case["elements"]))
                [[_, elements]] = self.snapshot("sorted")
                ids = [texts.parse(element.decode())["id"].text for element in elements]
                self.assertEqual(ids, [id.text for id in case["ids"].items])
            self.clear()


class Identities(VectorTest):
    def test_identities(self):
        for case in support.cases("identities"):
            with self.subTest(case["name"].value):
                self.define({"feed": "ids", "kind": "collection"})
                elements = [text.encode() for text in case["elements"].value]
                first = {group[0] for group in case["groups"].value}
                for place, element in enumerate(elements):
                    with self.subTest(element=element):
                        if place in case["refused"].value:
                            error = self.refused("update", feed="ids", element=element)
                            self.assertEqual((error.code, error.data["index"]), (-32003, 0))
                        else:
                            result = self.connection.call("update", feed="ids", element=element)
                            self.assertEqual(bool(result["added"]), place in first)
                [[_, rows]] = self.snapshot("ids")
                self.assertEqual(rows, [elements[group[-1]] for group in case["groups"].value])
            self.clear()


class Transactions(VectorTest):
    def test_transactions(self):
        for case in support.cases("transactions"):
            with self.subTest(case["name"].value):
                self.play(case)
            self.clear()

    def play(self, case):
        for definition in case["definitions"].items:
            self.define(definition)
        for step in case["setup"].items:
            self.connection.call(step["method"].value, **params(step["params"]))
        connection, mirrors = self.follow([definition["feed"].value for definition in case["definitions"].items])
        before = connection.call("sync")["revision"]
        ops = [{"method": op["method"].value, "params": params(op["params"])} for op in case["ops"].items]
        if case.get("error"):
            error = self.refused("transaction", ops=ops)
            self.assertEqual(error.code, case["error"]["code"].value)
            self.assertLessEqual(case["error"]["data"].value.items(), error.data.items())
            self.assertEqual(self.deltas(connection, mirrors), {})
        else:
            result = self.connection.call("transaction", ops=ops)
            self.assertEqual([listed(one) for one in result["results"]], case["results"].value)
            expected = {feed: delta for feed, delta in case["deltas"].items}
            deltas = self.deltas(connection, mirrors)
            self.assertEqual(deltas.keys(), expected.keys())
            for feed, [delta] in deltas.items():
                self.assertEqual(listed(delta), expected[feed]["change"].value)
                self.assertEqual(delta["elements"], [raw(element) for element in expected[feed]["elements"].items])
                self.assertEqual(delta["revision"], result["revision"])
            self.assertEqual(result["revision"], before + (1 if expected else 0))
        for feed, sections in case["after"].items:
            self.assertEqual(self.snapshot(feed), contents(sections))
        self.agree(mirrors)
