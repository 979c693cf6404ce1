"""The vectors played against the daemon: answers, deltas of every watch, states and digests."""

import unittest

import feedd
import support
from support import params, raw
from reference import texts

LISTS = ("deleted", "added", "updated", "sections", "moves")


def listed(result):
    """The change in an answer or a delta."""
    return {name: result[name] for name in LISTS if name in result}


def contents(sections):
    """A state of the vectors as `snapshot` shows it."""
    return [[s["name"].value, [raw(element) for element in s["elements"].items]] for s in sections.items]


class VectorTest(support.DaemonTest):
    def snapshot(self, feed):
        sections = self.connection.call("snapshot", feed=feed)["sections"]
        for section in sections:
            self.assertEqual(section["count"], len(section["elements"]))
        return [[section["name"], section["elements"]] for section in sections]

    def follow(self, feeds):
        """A connection that watches the feeds, and a whole mirror of each."""
        connection, mirrors = self.daemon.connect("follower"), {}
        self.addCleanup(connection.close)
        for feed in feeds:
            watch = connection.watch(feed)
            mirrors[feed] = feedd.Mirror(watch.result)
            while not mirrors[feed].whole:
                mirrors[feed].apply(watch.next(support.PATIENCE))
        return connection, mirrors

    def deltas(self, connection, mirrors):
        """Everything that has come since, by feed, taken in by the mirrors."""
        connection.call("sync")
        came = {}
        for feed, mirror in mirrors.items():
            while True:
                try:
                    message = connection.notification(feed, timeout=0)
                except TimeoutError:
                    break
                mirror.apply(message)
                if message.method == "delta":
                    came.setdefault(feed, []).append(message.params)
        return came

    def agree(self, mirrors):
        for feed, mirror in mirrors.items():
            answer = self.connection.call("verify", feed=feed)
            self.assertEqual((mirror.digest(), mirror.counts()), (answer["digest"], answer["counts"]), feed)


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


if __name__ == "__main__":
    unittest.main()
