"""What a daemon was told is there again after it was killed, and watchers go on where they were."""

import os
import tempfile
import unittest

import support
from support import PATIENCE, feedd


class Kept(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")

    def start(self, durability="process"):
        daemon = support.Daemon("--state", self.state, durability=durability)
        self.addCleanup(daemon.stop)
        return daemon

    def mirror(self, daemon, feed, mirror=None):
        """A mirror brought up to what the daemon holds, and the messages that it took."""
        came = []
        with daemon.connect() as connection:
            watch = connection.watch(feed, **({"since": mirror.since} if mirror else {}))
            if mirror:
                mirror.restart(watch.result)
            else:
                mirror = feedd.Mirror(watch.result)
            while not (mirror.whole and mirror.revision >= watch.result["revision"]):
                came.append(watch.next(PATIENCE))
                mirror.apply(came[-1])
            answer = connection.call("verify", feed=feed)
        self.assertEqual((mirror.digest(), mirror.counts()), (answer["digest"], answer["counts"]))
        return watch.result, mirror, came

    def fill(self, daemon):
        with daemon.connect() as connection:
            connection.call(
                "define", feed="inbox", kind="collection", bins=[{"name": "a", "filter": "@.a"}, {"name": "b"}]
            )
            connection.call("define", feed="list", kind="array")
            connection.call("define", feed="home", kind="composed", children=["list", "inbox/a"])
            connection.push("inbox", ({"id": n, **({"a": 1.0} if n % 3 else {})} for n in range(300)))
            connection.call("insert", feed="list", elements=["x", "y", "z"])
            connection.call("select", feed="list", at=[0, 1])

    def test_killed_and_started_again(self):
        for durability in ("process", "disk"):
            with self.subTest(durability):
                self.killed(durability)

    def killed(self, durability):
        self.state += durability
        daemon = self.start(durability)
        self.fill(daemon)
        mirrors = {feed: self.mirror(daemon, feed)[1] for feed in ("inbox", "list", "home")}
        with daemon.connect() as connection:
            connection.call("delete", feed="inbox", ids=[1, 2, 4])
            connection.call("move", feed="list", **{"from": 1, "to": 2})
            before = {feed: connection.call("verify", feed=feed) for feed in mirrors}
            definitions = connection.call("feeds")["feeds"]
        daemon.process.kill()
        daemon.process.wait(PATIENCE)

        daemon = self.start(durability)
        with daemon.connect() as connection:
            self.assertEqual({feed: connection.call("verify", feed=feed) for feed in mirrors}, before)
            again = connection.call("feeds")["feeds"]
            self.assertEqual([{**f, "watchers": 0} for f in again], [{**f, "watchers": 0} for f in definitions])
            self.assertEqual(connection.call("selected", feed="list")["selected"], [[0, 2]])
        for feed, mirror in mirrors.items():
            result, _, came = self.mirror(daemon, feed, mirror)
            self.assertTrue(result["resumed"])
            self.assertEqual([message.method for message in came], ["delta"])

    def test_nothing_is_kept_in_memory(self):
        daemon = self.start("memory")
        self.fill(daemon)
        epoch = self.mirror(daemon, "inbox")[0]["epoch"]
        daemon.stop()
        daemon = self.start("memory")
        with daemon.connect() as connection:
            self.assertEqual(connection.call("feeds")["feeds"], [])
            self.assertNotEqual(connection.hello["epoch"], epoch)
