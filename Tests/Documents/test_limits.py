"""Protocol/limits.md and the table of the specification, compared with the daemon: names, flags, defaults and errors."""

import re
import struct
import subprocess
import unittest

from documents import PROTOCOL, section, support

PAGE = (PROTOCOL / "limits.md").read_text(encoding="utf-8")
#: name: (flag, default, effect of exceeding the limit)
ROWS = {
    name: (flag, default, result)
    for name, flag, default, result in re.findall(
        r"^\| `(\w+)` \| `(--[a-z-]+)` \| (\S+) \| (.*?) \| .* \|$", PAGE, re.MULTILINE
    )
}
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1, "m": 60, "h": 3600}


def number(text):
    digits, unit = re.fullmatch(r"([\d,]+)(.*)", text).groups()
    return int(digits.replace(",", "")) * UNITS[unit]


def update(count, size=0):
    return ("update", {"feed": "c", "elements": [{"id": id, "text": "x" * size} for id in range(count)]})


def define(name, kind, **members):
    return ("define", {"feed": name, "kind": kind, **members})


COLLECTION = define("c", "collection")
ARRAYS = [define("a", "array"), define("b", "array")]
PARENTS = [define("p", "composed", children=["a"]), define("q", "composed", children=["a"])]

#: For each limit with the error -32007: its value, requests that succeed, and a request that exceeds it.
SELECTION = [
    ARRAYS[0],
    ("insert", {"feed": "a", "elements": [0, 1]}),
    *(define(name, "view", of="a") for name in "vw"),
    ("select", {"feed": "v", "all": True}),
]
KEPT = [
    ARRAYS[0],
    ("insert", {"feed": "a", "elements": [0, 1]}),
    define("v", "view", of="a", sort=[{"by": "$"}]),
]
REFUSED = {
    "maxFrame": ("4096", [COLLECTION, update(400)], ("snapshot", {"feed": "c"})),
    "maxDepth": ("8", [COLLECTION], ("update", {"feed": "c", "element": {"id": 1, "deep": [[[[[[[[[]]]]]]]]]}})),
    "maxFeeds": ("1", [COLLECTION], define("d", "collection")),
    "maxFeedsPerUser": ("1", [COLLECTION], define("d", "collection")),
    "maxBins": ("2", [], define("c", "collection", bins=[{"name": name} for name in "xyz"])),
    "maxSections": ("1", ARRAYS, define("both", "composed", children=["a", "b"])),
    "maxRepeats": ("1", [ARRAYS[0], *PARENTS], define("top", "composed", children=["p", "q"])),
    "maxLevels": (
        "2",
        [ARRAYS[0], define("p", "composed", children=["a"]), define("q", "composed", children=["p"])],
        define("top", "composed", children=["a", "q"]),
    ),
    "maxElements": ("2", [COLLECTION, update(2)], update(3)),
    "maxDefinitionBytes": ("1024", [ARRAYS[0]], define("p", "composed", children=["a"] * 300)),
    "maxDefinitionEntries": (
        "2",
        [*ARRAYS, define("p", "composed", children=["a", "b"])],
        define("q", "composed", children=["a", "b", "a"]),
    ),
    "maxDefinitionBytesPerUser": (
        "1024",
        [define("x" * 120, "array"), *(define(name, "composed", children=["x" * 120]) for name in "abc")],
        define("d", "composed", children=["x" * 120]),
    ),
    "maxTotalDefinitionBytes": (
        "1024",
        [define("x" * 120, "array"), *(define(name, "composed", children=["x" * 120]) for name in "abc")],
        define("d", "composed", children=["x" * 120]),
    ),
    "maxElementsPerUser": ("2", [COLLECTION, ARRAYS[0], update(2)], ("insert", {"feed": "a", "element": 1})),
    "maxTotalElements": ("2", [COLLECTION, ARRAYS[0], update(2)], ("insert", {"feed": "a", "element": 1})),
    "maxBytesPerUser": ("1024", [COLLECTION, update(1, 800)], update(2, 800)),
    "maxTotalBytes": ("1024", [COLLECTION, update(1, 800)], update(2, 800)),
    "maxElementBytes": ("100", [COLLECTION, update(1, 50)], update(1, 100)),
    "maxBytes": ("1024", [COLLECTION, update(1, 800)], update(2, 800)),
    "maxWatches": ("1", [*ARRAYS, ("watch", {"feed": "a"})], ("watch", {"feed": "b"})),
    "maxWatchesPerUser": ("1", [*ARRAYS, ("watch", {"feed": "a"})], ("watch", {"feed": "b"})),
    "maxQuerySteps": (
        "1000",
        [define("c", "collection", bins=[{"name": "x", "filter": "@.list[?@ == 1]"}])],
        ("update", {"feed": "c", "element": {"id": 1, "list": [0] * 2000}}),
    ),
    "maxRequestSteps": (
        "1000",
        [
            define("c", "collection", bins=[{"name": "x", "filter": "@.list[?@ == 1]"}]),
            ("update", {"feed": "c", "elements": [{"id": 1, "list": [0] * 100}]}),
        ],
        ("update", {"feed": "c", "elements": [{"id": id, "list": [0] * 100} for id in range(20)]}),
    ),
    "maxDerivedSteps": (
        "2500",
        [ARRAYS[0], define("v", "view", of="a"), define("w", "view", of="v")],
        define("x", "view", of="a"),
    ),
    "maxRequestRows": ("2", [COLLECTION, update(2)], update(3)),
    "maxSelected": (
        "2",
        [ARRAYS[0], ("insert", {"feed": "a", "elements": [0, 1, 2]}), ("select", {"feed": "a", "at": [[0, 0], [0, 1]]})],
        ("select", {"feed": "a", "all": True}),
    ),
    "maxSelectedPerUser": ("2", SELECTION, ("select", {"feed": "w", "all": True})),
    "maxTotalSelected": ("2", SELECTION, ("select", {"feed": "w", "all": True})),
    "maxViewRowsPerUser": ("2", KEPT, define("w", "view", of="a", sort=[{"by": "$"}])),
    "maxTotalViewRows": ("2", KEPT, define("w", "view", of="a", sort=[{"by": "$"}])),
    "maxPathBytes": (
        "16",
        [COLLECTION, ("query", {"feed": "c", "path": "$..id"})],
        ("query", {"feed": "c", "path": "$..id" + " " * 16}),
    ),
    "maxFilterBytes": (
        "200",
        [define("c", "collection", bins=[{"name": "x", "filter": "@.a"}])],
        define("d", "collection", bins=[{"name": "x", "filter": "@.a"}, {"name": "y", "filter": "@.b"}]),
    ),
    "maxQueryBytes": (
        "1024",
        [COLLECTION, update(1, 900), ("query", {"feed": "c", "path": "$..id"}), update(2, 900)],
        ("query", {"feed": "c", "path": "$..id"}),
    ),
}


class Table(unittest.TestCase):
    def test_the_page_has_every_limit_of_the_daemon(self):
        help_text = subprocess.run([support.binary("feedd"), "--help"], capture_output=True, text=True, check=True).stdout
        limits = re.sub(r"\s+", " ", help_text.partition("Limits:")[2].partition("Information:")[0])
        flags = dict(re.findall(r"(--[a-z-]+) \w+ [^(]*\(default: ([^)]*)\)", limits))
        self.assertEqual({flag: default for flag, default, _ in ROWS.values()}, flags)
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            reported = connection.hello["limits"]
        self.assertEqual({name: number(default) for name, (_, default, _) in ROWS.items()}, reported)

    def test_the_specification_has_the_same_table(self):
        table = section((PROTOCOL / "README.md").read_text(encoding="utf-8"), "9. Limits")
        rows = re.findall(r"^\| `(\w+)` \| `(--[a-z-]+)` \| (\S+) \|", table, re.MULTILINE)
        self.assertEqual({name: (flag, default) for name, flag, default in rows}, {n: r[:2] for n, r in ROWS.items()})

    def test_the_page_says_which_limits_refuse_a_request(self):
        self.assertEqual({name for name, (_, _, result) in ROWS.items() if "-32007" in result}, set(REFUSED))


class Errors(unittest.TestCase):
    def daemon(self, *arguments):
        daemon = support.Daemon(*arguments)
        self.addCleanup(daemon.stop)
        return daemon

    def connect(self, daemon):
        connection = daemon.connect()
        self.addCleanup(connection.close)
        return connection

    def bye(self, connection):
        with self.assertRaises(support.feedd.Closed) as closed:
            while True:
                connection.notification(timeout=support.PATIENCE)
        return closed.exception.reason

    def test_refused_requests(self):
        for name, (setting, before, exceeding) in REFUSED.items():
            with self.subTest(name):
                connection = self.connect(self.daemon(ROWS[name][0], setting))
                for method, parameters in before:
                    if name == "maxFrame" and method == "update":
                        # All elements together are larger than a frame; each one is smaller.
                        connection.push("c", parameters["elements"])
                    else:
                        connection.call(method, **parameters)
                method, parameters = exceeding
                state = connection.call("stats")["revision"]
                id = connection.send(method, **parameters)
                with self.assertRaises(support.feedd.Refused) as refused:
                    connection.answer(id)
                self.assertEqual(refused.exception.code, -32007)
                self.assertEqual(refused.exception.data["limit"], name)
                self.assertEqual(refused.exception.data["value"], int(setting))
                self.assertEqual(connection.call("stats")["revision"], state)

    def test_too_long_frame(self):
        connection = self.connect(self.daemon("--max-frame", "4096"))
        connection._socket.send(struct.pack(">I", 4097))
        with self.assertRaises(support.feedd.Refused) as refused:
            connection.notification(timeout=support.PATIENCE)
        self.assertEqual(refused.exception.code, -32600)
        self.assertEqual(self.bye(connection), "badFrame")

    def test_too_many_connections(self):
        for name in ("maxConnections", "maxConnectionsPerUser"):
            self.assertIn("`bye` `limit`", ROWS[name][2])
            daemon = self.daemon(ROWS[name][0], "1", "--reserved-connections", "0")
            connection = self.connect(daemon)
            with self.assertRaises(support.feedd.Closed) as closed:
                daemon.connect()
            self.assertEqual(closed.exception.reason, "limit", name)
            connection.call("ping")

    def test_incomplete_frame(self):
        self.assertIn("`bye` `frameTimeout`", ROWS["frameTimeout"][2])
        connection = self.connect(self.daemon("--frame-timeout", "1"))
        connection._socket.send(b"\x00\x00")
        self.assertEqual(self.bye(connection), "frameTimeout")

    def test_quota_of_a_user(self):
        self.assertIn("`bye` `quota`", ROWS["maxQueuePerUser"][2])
        daemon = self.daemon("--max-queue-per-user", "4096")
        connection, other = self.connect(daemon), self.connect(daemon)
        connection._socket.send(struct.pack(">I", 1 << 20) + b" " * 16384)
        self.assertEqual(self.bye(connection), "quota")
        other.call("ping")

    def test_discarded_history(self):
        for name in ("historyBytes", "maxHistoryBytes"):
            connection = self.connect(self.daemon(ROWS[name][0], "0"))
            connection.call(*COLLECTION[:1], **COLLECTION[1])
            start = {"epoch": connection.hello["epoch"], "revision": connection.call("update", feed="c", element={"id": 1})["revision"]}
            connection.call("update", feed="c", element={"id": 2})
            # The limit is enforced once a second.
            while connection.call("stats")["historyBytes"] > 0:
                connection.call("sync")
            self.assertFalse(connection.call("watch", feed="c", since=start)["resumed"], name)

    def test_bookmark_of_an_idle_watch(self):
        connection = self.connect(self.daemon("--bookmark-interval", "1"))
        for method, parameters in ARRAYS:
            connection.call(method, **parameters)
        watch = connection.watch("a", initial=False)
        connection.call("insert", feed="b", element=1)
        self.assertEqual(watch.next(support.PATIENCE).method, "bookmark")
