"""Watching the daemon: snapshots, deltas, resuming, falling behind, ending; and the client's own command."""

import decimal
import functools
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
import unittest

import support
from feedd._text import encode
from support import feedd, PATIENCE


def element(id, **more):
    return {"id": id, **more}


class Watching(support.DaemonTest):
    def setUp(self):
        super().setUp()
        self.define({"feed": "list", "kind": "collection", "type": "$.kind"})

    def push(self, *elements):
        return self.connection.call("update", feed="list", elements=list(elements))

    def catch_up(self, watch, mirror, revision):
        """Takes messages in until the mirror is at the revision; the messages."""
        came = []
        while not (mirror.whole and mirror.revision >= revision):
            came.append(watch.next(PATIENCE))
            mirror.apply(came[-1])
        return came

    def agree(self, mirror):
        answer = self.connection.call("verify", feed=mirror.feed)
        self.assertEqual((mirror.digest(), mirror.revision), (answer["digest"], answer["revision"]))

    def test_exactly_one_snapshot_first(self):
        self.push(element(1), element(2))
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        watch = connection.watch("list")
        self.assertEqual(watch.result["sections"], [{"name": "list/all", "count": 2}])
        self.assertFalse(watch.result["resumed"])
        part = watch.next(PATIENCE)
        self.assertEqual((part.method, part.params["at"], part.params["last"]), ("snapshot", [0, 0], True))
        self.assertEqual(part.params["revision"], watch.result["revision"])
        self.assertNotIn("reset", part.params)
        connection.call("sync")
        with self.assertRaises(TimeoutError):
            watch.next(timeout=0)

    def test_parts_of_many_sections(self):
        self.define({"feed": "many", "kind": "collection", "section": "$.n", "type": "$.kind"})
        self.connection.push("many", ({"id": n, "n": n, "kind": str(n % 3)} for n in range(300)))
        for spanning, count in ((True, 1), (False, 300)):
            with self.subTest(spanning):
                watch = self.connection.watch("many", spanning=spanning)
                mirror = feedd.Mirror(watch.result)
                parts = self.catch_up(watch, mirror, watch.result["revision"])
                self.assertEqual(len(parts), count)
                self.agree(mirror)
                self.assertEqual([section.types for section in mirror.sections], [[str(n % 3)] for n in range(300)])
                watch.stop()
        self.assertEqual(self.connection.watch("many").next(PATIENCE).params["last"], True)

    def test_a_feed_without_rows_has_a_snapshot_too(self):
        _, mirror = self.mirror("list")
        self.assertEqual((mirror.counts(), mirror.sections[0].name), ([0], "list/all"))

    def test_parts_of_a_large_snapshot_while_others_push(self):
        self.connection.push("list", ({"id": n, "text": "x" * 200} for n in range(5000)))
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        watch = connection.watch("list")
        last = self.push(element(0, text="changed"), element(9999))["revision"]
        mirror = feedd.Mirror(watch.result)
        came = self.catch_up(watch, mirror, last)
        parts = [message for message in came if message.method == "snapshot"]
        self.assertGreater(len(parts), 1)
        self.assertEqual([part.params["last"] for part in parts], [False] * (len(parts) - 1) + [True])
        self.agree(mirror)

    def test_without_a_snapshot_deltas_start_at_the_revision(self):
        self.push(element(1))
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        watch = connection.watch("list", initial=False)
        revision = self.push(element(2, kind="T"))["revision"]
        delta = watch.next(PATIENCE)
        self.assertEqual((delta.method, delta.params["from"]), ("delta", watch.result["revision"]))
        self.assertEqual(delta.params["revision"], revision)
        self.assertEqual((delta.params["elements"], delta.params["types"]), ([b'{"id":2,"kind":"T"}'], ["T"]))

    def test_types_are_strings_or_null(self):
        self.push(element(1, kind="A"), element(2), element(3, kind=7), element(4, kind="é\u0001"))
        expected = ["A", None, None, "é\u0001"]
        _, mirror = self.mirror("list")
        self.assertEqual(mirror.sections[0].types, expected)
        self.assertEqual(self.connection.call("snapshot", feed="list")["sections"][0]["types"], expected)
        self.assertEqual(self.connection.call("range", feed="list", section=0)["types"], expected)
        self.assertEqual(self.connection.call("get", feed="list", at=[0, 3])["type"], "é\u0001")

    def test_resuming_brings_one_composed_delta(self):
        self.push(element(1), element(2))
        watch, mirror = self.mirror("list")
        watch.connection.close()
        self.push(element(3))
        self.push(element(2, x=1))
        last = self.connection.call("delete", feed="list", id=1)["revision"]
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        watch = connection.watch("list", since=mirror.since)
        self.assertTrue(watch.result["resumed"])
        self.assertEqual(watch.result["revision"], last)
        since = mirror.since["revision"]
        mirror.restart(watch.result)
        [delta] = self.catch_up(watch, mirror, last)
        self.assertEqual((delta.params["from"], delta.params["revision"]), (since, last))
        self.assertEqual(delta.params["deleted"], [[0, 0]])
        self.assertEqual((delta.params["added"], delta.params["updated"]), ([[0, 1]], [[0, 0]]))
        self.agree(mirror)

    def test_rows_that_left_are_named(self):
        """By deltas of one commit and of several, also after a connection that was lost."""
        big = 10**30
        self.push(element(1), element("two"), element(big), element(2.5))
        steps = feedd.follow("list", path=self.daemon.path, ids=True)
        self.addCleanup(steps.close)
        mirror = next(steps).mirror
        self.connection.call("delete", feed="list", id="two")
        self.assertEqual(next(steps).delta["deletedIDs"], ["two"])
        watches = [client["connection"] for client in self.connection.call("clients")["clients"] if client["watches"]]
        for connection in watches:
            self.connection.call("kick", connection=connection)
        self.connection.call("delete", feed="list", id=big)
        self.connection.call("delete", feed="list", id=2.5)
        left = []
        while len(left) < 2:
            left += next(steps).delta["deletedIDs"]
        self.assertEqual(left, [big, decimal.Decimal("2.5")])
        self.agree(mirror)

    def test_resuming_over_changes_that_cancel_out(self):
        self.push(element(1))
        watch, mirror = self.mirror("list")
        watch.connection.close()
        self.push(element(2))
        last = self.connection.call("delete", feed="list", id=2)["revision"]
        connection = self.daemon.connect()
        self.addCleanup(connection.close)
        since = mirror.since["revision"]
        watch = connection.watch("list", since=mirror.since)
        self.assertEqual((watch.result["resumed"], watch.result["revision"]), (True, last))
        mirror.restart(watch.result)
        [delta] = self.catch_up(watch, mirror, last)
        self.assertEqual((delta.params["from"], delta.params["revision"]), (since, last))
        for member in ("deleted", "added", "updated", "elements"):
            self.assertEqual(delta.params[member], [], member)
        self.agree(mirror)

    def test_resuming_when_nothing_was_missed(self):
        self.push(element(1))
        watch, mirror = self.mirror("list")
        watch.connection.close()
        self.define({"feed": "other", "kind": "collection"})
        self.connection.call("update", feed="other", element=element(1))
        current = self.connection.call("sync")["revision"]
        for since in (mirror.since, {**mirror.since, "revision": current}):
            connection = self.daemon.connect()
            self.addCleanup(connection.close)
            watch = connection.watch("list", since=since)
            self.assertEqual((watch.result["resumed"], watch.result["revision"]), (True, since["revision"]))
            connection.call("sync")
            with self.assertRaises(TimeoutError):
                watch.next(timeout=0)
        revision = self.push(element(2))["revision"]
        delta = watch.next(PATIENCE)
        self.assertEqual((delta.params["from"], delta.params["revision"]), (current, revision))

    def test_what_cannot_be_resumed_is_no_error(self):
        self.push(element(1))
        for since in (
            {"epoch": "another", "revision": 1},
            {"epoch": self.connection.hello["epoch"], "revision": 10**15},
        ):
            watch, mirror = self.mirror("list", since=since)
            self.assertFalse(watch.result["resumed"])
            self.agree(mirror)

    def test_a_second_watch_starts_over(self):
        self.push(element(1))
        watch, mirror = self.mirror("list")
        watch = watch.connection.watch("list")
        self.assertEqual(watch.next(PATIENCE).method, "snapshot")
        revision = self.push(element(2))["revision"]
        self.assertEqual(watch.next(PATIENCE).params["revision"], revision)
        watch.connection.call("sync")
        with self.assertRaises(TimeoutError):
            watch.next(timeout=0)

    def test_unwatch_ends_it(self):
        watch, _ = self.mirror("list")
        watch.stop()
        watch.stop()
        self.push(element(1))
        watch.connection.call("sync")
        with self.assertRaises(TimeoutError):
            watch.next(timeout=0)

    def test_one_delta_for_one_request_of_many(self):
        watch, mirror = self.mirror("list")
        revision = self.push(*(element(n) for n in range(100)))["revision"]
        self.assertEqual(len(self.catch_up(watch, mirror, revision)), 1)
        self.agree(mirror)

    def test_redefining_tells_the_sections(self):
        self.push(element(1, v=1), element(2, v=2))
        watch, mirror = self.mirror("list")
        bins = [{"name": "high", "filter": "@.v > 1"}, {"name": "all"}]
        revision = self.define({"feed": "list", "kind": "collection", "bins": bins, "replace": True})["revision"]
        [delta] = self.catch_up(watch, mirror, revision)
        self.assertEqual(delta.params["sections"], {"deleted": [], "added": [{"at": 0, "name": "list/high"}]})
        self.assertEqual(mirror.counts(), [1, 2])
        self.agree(mirror)

    def test_undefining_ends_the_watch_with_a_delta(self):
        self.push(element(1))
        watch, mirror = self.mirror("list")
        bin, bins = self.mirror("list/all")
        revision = self.connection.call("undefine", feed="list")["revision"]
        for each, copy in ((watch, mirror), (bin, bins)):
            [delta] = self.catch_up(each, copy, revision)
            self.assertTrue(delta.params["ended"])
            self.assertEqual(copy.sections, [])
        self.define({"feed": "list", "kind": "collection"})
        self.push(element(1))
        watch.connection.call("sync")
        with self.assertRaises(TimeoutError):
            watch.next(timeout=0)

    def test_the_iterator_ends_with_the_feed_and_after_stop(self):
        watch, _ = self.mirror("list")
        counts = self.daemon.connect()
        self.addCleanup(counts.close)
        numbers = counts.watch("list", elements=False)
        self.push(element(1))
        self.connection.call("undefine", feed="list")
        for one in (watch, numbers):
            self.assertEqual([message.params.get("ended", False) for message in one], [False, True])
            self.assertEqual(list(one), [])
        self.define({"feed": "list", "kind": "collection"})
        watch = watch.connection.watch("list")
        self.assertEqual(next(watch).method, "snapshot")
        watch.stop()
        self.assertEqual(list(watch), [])

    def test_throttled_deltas_are_composed(self):
        watch, mirror = self.mirror("list", throttle=300)
        for n in range(50):
            last = self.push(element(n))["revision"]
        came = self.catch_up(watch, mirror, last)
        self.assertLess(len(came), 50)
        self.agree(mirror)

    def test_sync_brings_throttled_deltas_before_it(self):
        watch, mirror = self.mirror("list", throttle=3_600_000)
        for n in range(3):
            last = self.push(element(n))["revision"]
        watch.connection.call("sync")
        while mirror.revision < last:
            mirror.apply(watch.next(timeout=0))
        self.agree(mirror)

    def test_pushes_of_one_connection_come_to_its_own_watch(self):
        watch = self.connection.watch("list")
        mirror = feedd.Mirror(watch.result)
        revision = self.push(element(1))["revision"]
        self.catch_up(watch, mirror, revision)
        self.agree(mirror)

    def test_a_refused_push_is_told_and_the_rest_goes_on(self):
        answers = []
        accepted = self.connection.push(
            "list",
            [element(1), {"no": "id"}, element(2)],
            each=lambda place, result, refused: answers.append((place, refused)),
        )
        self.assertEqual(accepted, 2)
        self.assertEqual([place for place, _ in answers], [0, 1, 2])
        self.assertEqual(answers[1][1].code, -32003)
        with self.assertRaises(feedd.Refused):
            self.connection.push("list", [{"no": "id"}, element(3)])

    def test_a_pusher_that_also_watches_is_not_stuck(self):
        """Its own deltas fill its queue while it writes; it must read meanwhile."""
        watch = self.connection.watch("list")
        mirror = feedd.Mirror(watch.result)
        self.connection.push("list", ({"id": n % 50, "n": n, "text": "y" * 1000} for n in range(4000)), window=2000)
        last = self.connection.call("describe", feed="list")["revision"]
        self.catch_up(watch, mirror, last)
        self.agree(mirror)


class FallingBehind(support.DaemonTest):
    arguments = ("--max-queue", "64K", "--history-bytes", "16K")

    def follow(self, rounds, trimmed=False):
        """A watcher that reads nothing while many large updates are made, and what it then gets.

        With trimmed, it reads after the daemon has discarded old history, which it does once a second.
        """
        self.define({"feed": "list", "kind": "collection"})
        connection = self.daemon.connect("slow")
        self.addCleanup(connection.close)
        watch = connection.watch("list")
        for n in range(rounds):
            last = self.connection.call("update", feed="list", element={"id": n % 20, "n": n, "text": "z" * 4000})[
                "revision"
            ]
        while trimmed and self.connection.call("stats")["historyBytes"] > 32 << 10:
            time.sleep(0.01)
        mirror, came = feedd.Mirror(watch.result), []
        while not (mirror.whole and mirror.revision >= last):
            came.append(watch.next(PATIENCE))
            mirror.apply(came[-1])
        answer = self.connection.call("verify", feed="list")
        self.assertEqual((mirror.digest(), mirror.revision), (answer["digest"], answer["revision"]))
        return came

    def test_a_reader_that_sleeps_gets_less_than_everything(self):
        came = self.follow(1500)
        self.assertLess(len(came), 750)
        wide = [m for m in came if m.method == "delta" and m.params["revision"] - m.params["from"] > 1]
        resets = [m for m in came if m.params.get("reset")]
        self.assertTrue(wide or resets)

    def test_beyond_the_history_it_is_reset(self):
        came = self.follow(6000, trimmed=True)
        [first] = [m for m in came if m.params.get("reset")]
        self.assertEqual(first.params["sections"], [{"name": "list/all", "count": 20}])


class Ending(unittest.TestCase):
    def test_the_daemon_says_bye(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            connection.call("define", feed="list", kind="collection")
            watch = connection.watch("list")
            self.assertEqual(watch.next(PATIENCE).method, "snapshot")
            daemon.process.terminate()
            with self.assertRaises(feedd.Closed) as caught:
                watch.next(PATIENCE)
            self.assertEqual(caught.exception.reason, "shutdown")
        self.assertEqual(daemon.process.wait(PATIENCE), 0)


class Command(support.DaemonTest):
    """`python3 -m feedd …`"""

    def run_command(self, *arguments, status=0, **options):
        command = [sys.executable, "-m", "feedd", "--socket", self.daemon.path, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, cwd=support.HERE.parent, **options)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_push_watch_verify_call(self):
        self.define({"feed": "list", "kind": "collection"})
        pushed = self.run_command("push", "list", '{"id": 1, "v": 1.10}', '{"id":2}')
        self.assertEqual(json.loads(pushed), {"pushed": 2})
        self.run_command("push", "list", "-", input=b'{"id":3}\n\n{"id":4}\n')
        lines = io.BytesIO(self.run_command("watch", "list", "1")).readlines()
        self.assertEqual(len(lines), 1)
        self.assertIn(b'"elements":[{"id":1,"v":1.10},{"id":2},{"id":3},{"id":4}]', lines[0])
        verified = self.run_command("verify", "list")
        self.assertEqual(json.loads(verified)["counts"], [4])
        self.assertEqual(json.loads(self.run_command("mirror", "list", "1")), json.loads(verified))
        found = self.run_command("call", "get", '{"feed":"list","id":1.0}')
        self.assertIn(b'"element":{"id":1,"v":1.10}', found)

    def test_a_line_of_a_pipe_does_not_wait_for_the_next(self):
        self.define({"feed": "log", "kind": "collection"})
        watch = self.connection.watch("log")
        mirror = feedd.Mirror(watch.result)
        command = [sys.executable, "-m", "feedd", "--socket", self.daemon.path, "push", "log", "-"]
        pushing = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=support.HERE.parent)
        for n in range(3):
            pushing.stdin.write(b'{"id":%d}\n' % n)
            pushing.stdin.flush()
            while mirror.counts() != [n + 1]:
                mirror.apply(watch.next(PATIENCE))
        self.assertEqual(json.loads(pushing.communicate(timeout=PATIENCE)[0]), {"pushed": 3})

    def test_statuses(self):
        self.run_command("push", "nowhere", '{"id":1}', status=1)
        self.run_command("nonsense", "x", status=2)
        self.run_command("call", "ping", "{", status=2)
        missing = [sys.executable, "-m", "feedd", "--socket", "/nonexistent/s", "verify", "x"]
        self.assertEqual(subprocess.run(missing, capture_output=True, cwd=support.HERE.parent).returncode, 3)

    def test_ends_of_the_output(self):
        self.define({"feed": "list", "kind": "collection"})
        command = [sys.executable, "-m", "feedd", "--socket", self.daemon.path]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": support.HERE.parent}
        # A reader that ends is no error, and an interrupt leaves no traceback.
        with subprocess.Popen([*command, "watch", "list"], **options) as watching:
            watching.stdout.readline()
            watching.stdout.close()
            self.connection.push("list", [{"id": 1}])
            self.assertEqual((watching.stderr.read(), watching.wait(PATIENCE)), (b"", 0))
        for handler, status in [(signal.SIG_DFL, -signal.SIGINT), (signal.SIG_IGN, 0)]:
            interrupts = functools.partial(signal.signal, signal.SIGINT, handler)
            with subprocess.Popen([*command, "watch", "list", "2"], **options, preexec_fn=interrupts) as watching:
                watching.stdout.readline()
                watching.send_signal(signal.SIGINT)
                self.connection.push("list", [{"id": status}])
                self.assertEqual((watching.stderr.read(), watching.wait(PATIENCE)), (b"", status))
        with open("/dev/full", "wb") as full:
            done = subprocess.run([*command, "verify", "list"], **{**options, "stdout": full})
        self.assertEqual((done.returncode, done.stderr), (2, b"cannot write to standard output: No space left on device\n"))
        done = subprocess.run([*command, "verify", "list"], stderr=subprocess.PIPE, cwd=options["cwd"], preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (2, b"cannot write to standard output: it is closed\n"))
        done = subprocess.run([*command, "push", "list"], **options, preexec_fn=lambda: os.close(0))
        self.assertEqual((done.returncode, done.stderr), (2, b"cannot read from standard input: it is closed\n"))


class Counts(support.DaemonTest):
    def test_counts_follow_the_feed(self):
        call = self.connection.call
        call("define", feed="list", kind="array")
        call("define", feed="inbox", kind="collection", bins=[{"name": "a", "filter": "@.a"}, {"name": "b"}])
        call("define", feed="tabs", kind="segmented", children=["inbox", "list"])
        follower = self.daemon.connect("follower")
        self.addCleanup(follower.close)
        watches = {feed: follower.watch(feed, elements=False) for feed in ("list", "inbox", "tabs")}
        counts = {feed: feedd.Counts(watch.result) for feed, watch in watches.items()}
        rng = random.Random(7)
        for step in range(60):
            if step % 3 == 0:
                call("update", feed="inbox", elements=[{"id": rng.randrange(9), "a": 1}, {"id": rng.randrange(9)}])
            elif step % 3 == 1:
                call("insert", feed="list", elements=[step] * rng.randrange(3))
            else:
                call("activate", feed="tabs", child=rng.randrange(-1, 2))
            follower.call("sync")
            for feed, watch in watches.items():
                while True:
                    try:
                        message = watch.next(timeout=0)
                    except TimeoutError:
                        break
                    self.assertEqual(message.params.keys() & {"elements", "types", "added", "deleted", "updated"}, set())
                    self.assertLess(len(encode(message.params)), 150)
                    counts[feed].apply(message)
                status = call("describe", feed=feed)
                self.assertEqual(counts[feed].counts, status["counts"])
                self.assertEqual(counts[feed].names, [section["name"] for section in status["sections"]])

    def test_conditions_are_given_with_an_underscore(self):
        self.connection.call("define", feed="list", kind="array")
        with self.assertRaises(feedd.Refused) as refused:
            self.connection.call("insert", feed="list", elements=[1], if_={"feed": "list", "revision": 0})
        self.assertEqual(refused.exception.code, -32009)
        self.connection.call("insert", feed="list", elements=[1], if_={"feed": "list", "revision": refused.exception.data["revision"]})


if __name__ == "__main__":
    unittest.main()
