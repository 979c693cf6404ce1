"""The vectors of exchanges: each case played against a daemon that has just started."""

import unittest

import support
from feedd._text import decode
from support import feedd, params, raw


class Exchanges(unittest.TestCase):
    def test_counts(self):
        self.play_all("counts")

    def test_exchanges(self):
        self.play_all("exchanges")

    def play_all(self, name):
        for case in support.cases(name):
            with self.subTest(case["name"].value):
                daemon = support.Daemon()
                try:
                    with daemon.connect() as connection, daemon.connect("watcher") as watcher:
                        Case(self, connection, watcher).play(case)
                finally:
                    daemon.stop()


def among(expected, value):
    """The value with only those members that are expected, at every level."""
    if isinstance(expected, dict) and isinstance(value, dict):
        return {name: among(member, value[name]) for name, member in expected.items() if name in value}
    if isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
        return [among(one, other) for one, other in zip(expected, value)]
    return value


class Case:
    """Requests on one connection, watches on another, and a copy of each watched feed."""

    def __init__(self, test, connection, watcher):
        self.test, self.connection, self.watcher, self.copies = test, connection, watcher, {}

    def play(self, case):
        for step in case["setup"].items:
            self.connection.call(step["method"].value, **params(step["params"]))
        for place, step in enumerate(case["steps"].items):
            with self.test.subTest(step=place):
                self.step(step)

    def step(self, step):
        if step.get("error"):
            with self.test.assertRaises(feedd.Refused) as caught:
                self.connection.call(step["method"].value, **params(step["params"]))
            self.test.assertEqual(caught.exception.code, step["error"]["code"].value)
            self.test.assertLessEqual(step["error"]["data"].value.items(), caught.exception.data.items())
        else:
            self.result(step["method"].value, params(step["params"]), decode(raw(step["result"])))
        deltas, selections = self.notifications()
        self.test.assertEqual(deltas, decode(raw(step["deltas"])) if step.get("deltas") else {})
        self.test.assertEqual(selections, step["selections"].value if step.get("selections") else {})

    def result(self, method, given, expected):
        result = (self.watcher if method == "watch" else self.connection).call(method, **given)
        self.test.assertEqual(among(expected, result), expected)
        if method == "watch":
            copy = feedd.Counts if given.get("elements") == b"false" else feedd.Mirror
            self.copies[result["feed"]] = copy(result)

    def notifications(self):
        """The deltas and selections that have come since, by feed; the copies apply them."""
        self.watcher.call("sync")
        came = {"delta": {}, "selection": {}}
        while True:
            try:
                method, message = notification = self.watcher.notification(timeout=0)
            except TimeoutError:
                return came["delta"], came["selection"]
            self.copies[message["feed"]].apply(notification)
            if method != "snapshot":
                feed = message.pop("feed")
                self.test.assertNotIn(feed, came[method])
                came[method][feed] = message
