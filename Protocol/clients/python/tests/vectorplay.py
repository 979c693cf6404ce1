"""What the tests that play vectors against the daemon share."""

import support
from support import feedd, raw

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
