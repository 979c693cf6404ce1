"""A hostile daemon: it sends what violates the protocol, and more than anybody asked for. The client raises what it documents."""

import contextlib
import io
import itertools
import json
import os
import pickle
import resource
import socket
import struct
import tempfile
import threading
import unittest
from unittest import mock

import support
from support import feedd
from feedd.__main__ import main
from feedd import Counts, Gap, Malformed, Mirror, Notification
from feedd._follow import Copies, Pauses

HEAD = {"feed": "f", "epoch": "e", "revision": 7, "resumed": False, "sections": [{"name": "s", "count": 1}]}
PART = {"feed": "f", "revision": 7, "at": [0, 0], "elements": [b"1"], "last": True}
DELTA = {"feed": "f", "from": 7, "revision": 8, "deleted": [], "added": [], "updated": [], "elements": []}


def framed(text):
    return struct.pack(">I", len(text)) + text


def answer(id, result=b"{}"):
    return framed(b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (id, result))


#: The answer to a request that the daemon could not read: it names none.
UNREADABLE = framed(b'{"id":null,"error":{"code":-32007,"message":"m","data":{"limit":"maxDepth"}}}')
DELTA_FRAME = framed(json.dumps({"method": "delta", "params": DELTA}).encode())


class HostileDaemon:
    """Answers `hello`, then sends the bytes that `chunks` yields (None waits for a request), and ends the stream unless it `stays` silent."""

    def __init__(self, test, chunks, stays=False, hello=b"{}"):
        folder = tempfile.TemporaryDirectory(prefix="feedd-test-")
        test.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "s")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(1)
        thread = threading.Thread(target=self._serve, args=(chunks, stays, hello))
        thread.start()
        test.addCleanup(thread.join, support.PATIENCE)

    def _serve(self, chunks, stays, hello):
        with self._listener, self._listener.accept()[0] as peer, contextlib.suppress(OSError):
            peer.recv(1 << 16)
            peer.sendall(answer(1, hello))
            for chunk in chunks:
                peer.recv(1 << 16) if chunk is None else peer.sendall(chunk)
            if not stays:
                peer.shutdown(socket.SHUT_WR)
            while peer.recv(1 << 16):
                pass


class Frames(unittest.TestCase):
    def connect(self, *chunks):
        connection = feedd.Connection(HostileDaemon(self, *chunks).path, timeout=support.PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def test_lengths_that_no_daemon_sends(self):
        for length in (0, feedd.MAX_MESSAGE + 1, 0xFFFFFFFF):
            with self.subTest(length):
                with self.assertRaises(Malformed):
                    self.connect([struct.pack(">I", length) + b"{"]).call("ping")

    def test_other_versions(self):
        for version in (b"0", b"2", b'"1"', b"null"):
            with self.subTest(version), self.assertRaisesRegex(Malformed, "version"):
                feedd.Connection(HostileDaemon(self, [], hello=b'{"protocol":%s}' % version).path, timeout=support.PATIENCE)

    def test_after_bye_no_answer_comes(self):
        chunks = [framed(b'{"method":"bye","params":{"reason":"kicked","message":"m"}}')]
        connection = feedd.Connection(HostileDaemon(self, chunks, True).path, timeout=support.PATIENCE)
        self.addCleanup(connection.close)
        with self.assertRaises(feedd.Closed) as caught:
            connection.call("ping")
        self.assertEqual(caught.exception.reason, "kicked")

    def test_frames_that_are_no_messages(self):
        for text in (
            b"{",
            b'{"id":2,"result":',
            b'{"a"',
            b"\xff",
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b'{"id":2,"result":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
            b"7",
            b"[7]",
            b'[[{"id":2,"result":{}}]]',
            b'{"id":2}',
            b'{"id":2,"error":7}',
            b'{"id":2,"error":{"code":1}}',
            b'{"method":7}',
            b'{"method":"delta","params":[1]}',
            b'{"id":2,"result":{"a":' + b'"' + b'\\"' * 1_000_000,
            b'{"id":2,"result":{"a":[' + b'"' + b'\\"' * 1_000_000,
        ):
            with self.subTest(text[:40]):
                with self.assertRaises(Malformed):
                    self.connect([framed(text)]).call("ping")

    def test_answers_that_nobody_asked_for_are_not_kept(self):
        others = [*map(answer, (7, -1, 1)), framed(b'{"id":[2],"result":{}}')]
        connection = self.connect([*others, answer(2, b"5")])
        self.assertEqual(connection.call("ping"), 5)
        self.assertEqual(connection._stream._answers, {})

    def test_an_error_without_an_id_answers_the_oldest_request(self):
        connection = self.connect([None, UNREADABLE, answer(3)])
        first, second = connection.send("ping"), connection.send("ping")
        self.assertEqual(connection.answer(second), {})
        with self.assertRaises(feedd.Refused) as caught:
            connection.answer(first)
        self.assertEqual(caught.exception.code, -32007)

    def test_errors_reach_another_process(self):
        refused = feedd.Refused({"code": -32000, "message": "unknown feed", "data": {"feed": "x"}})
        for error in (refused, feedd.Closed("the daemon is stopping", "shutdown"), feedd.Malformed("no frame"), feedd.Gap("a gap")):
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy), vars(copy)), (type(error), str(error), vars(error)))

    def connect_and_time_out(self, request, *frames):
        """Connects to a daemon that sends the frames only after a request has timed out."""
        late = threading.Event()

        def chunks():
            late.wait(support.PATIENCE)
            yield from frames

        connection = self.connect(chunks())
        connection.timeout = 0.05
        with self.assertRaises(TimeoutError):
            request(connection)
        late.set()
        connection.timeout = support.PATIENCE
        return connection

    def test_an_answer_that_comes_too_late_is_dropped(self):
        connection = self.connect_and_time_out(lambda connection: connection.call("ping"), answer(2), answer(3))
        self.assertEqual(connection.call("ping"), {})
        self.assertEqual((connection._stream._answers, connection._stream._forgotten), ({}, set()))

    def test_a_watch_that_is_answered_too_late_is_stopped(self):
        connection = self.connect_and_time_out(
            lambda connection: connection.watch("f"),
            answer(2, json.dumps(HEAD).encode()), DELTA_FRAME, answer(3), answer(4))
        self.assertEqual(connection.call("ping"), {})
        self.assertEqual((connection._stream._notifications, connection._stream.queued), ({}, 0))

    def test_a_daemon_that_reads_nothing(self):
        end = threading.Event()

        def chunks():
            end.wait(support.PATIENCE)
            yield b""

        connection = self.connect(chunks())
        self.addCleanup(end.set)
        connection.timeout = 0.05
        with self.assertRaises(TimeoutError):
            connection.call("update", feed="f", element="x" * (8 << 20))
        for act in (connection.notification, lambda: connection.call("ping")):
            with self.assertRaises(feedd.Closed):
                act()

    def test_a_closed_connection(self):
        connection = self.connect([])
        connection.close()
        for act in (connection.notification, lambda: connection.send("ping"), lambda: connection.call("ping")):
            with self.assertRaises(feedd.Closed):
                act()

    def test_a_program_with_many_open_files(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < 2048:
            self.skipTest("the limit of open files is too low")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        daemon = HostileDaemon(self, [answer(2)])
        with contextlib.ExitStack() as files:
            while files.enter_context(open(os.devnull, "rb")).fileno() < 1024:
                pass
            with feedd.Connection(daemon.path, timeout=support.PATIENCE) as connection:
                self.assertGreater(connection.fileno(), 1024)
                self.assertEqual(connection.call("ping"), {})

    def test_notifications_without_end(self):
        def endless():
            while True:
                yield framed(b'{"method":"delta","params":{"feed":"f","elements":[%s]}}' % (b"1" * 1000)) * 50

        with mock.patch.object(feedd._stream, "MAX_QUEUED", 1 << 20):
            with self.assertRaises(Malformed):
                self.connect(endless()).call("ping")

    def test_notifications_that_were_taken_do_not_count(self):
        text = framed(b'{"method":"delta","params":{"feed":"f","text":"%s"}}' % (b"1" * 1000))
        with mock.patch.object(feedd._stream, "MAX_QUEUED", 3 * len(text)):
            connection = self.connect([answer(2), *[text] * 100])
            connection.call("ping")
            for _ in range(100):
                self.assertEqual(connection.notification("f").method, "delta")

    def test_other_messages_extend_no_timeout(self):
        connection = self.connect(itertools.repeat(answer(99)))
        connection.timeout = 0.1
        with self.assertRaises(TimeoutError):
            connection.call("ping")

    def test_control_characters_do_not_reach_the_terminal(self):
        params = {"reason": "r", "message": "\x1b]0;x\x07\x9bm\u2028\ud800"}
        bye = framed(json.dumps({"method": "bye", "params": params}).encode())
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            status = main(["--socket", HostileDaemon(self, [bye]).path, "call", "ping"])
        self.assertEqual((status, output.getvalue()), (3, "\ufffd]0;x\ufffd\ufffdm\ufffd\ud800\n"))


class Contents(unittest.TestCase):
    def mirror(self):
        mirror = Mirror(HEAD)
        mirror.apply(Notification("snapshot", PART))
        return mirror

    def test_results_that_are_no_watch(self):
        for change in (
            {"sections": [{"name": "s", "count": -1}]},
            {"sections": [{"name": "s"}]},
            {"sections": [{"name": 7, "count": 1}]},
            {"sections": 7},
            {"revision": "x"},
        ):
            with self.subTest(change):
                with self.assertRaises(Gap):
                    Mirror({**HEAD, **change})
                with self.assertRaises(Gap):
                    Counts({**HEAD, **change})

    def test_parts_that_are_malformed(self):
        for change in (
            {"revision": None},
            {"at": [0]},
            {"at": [-1, 0]},
            {"elements": 7},
            {"elements": {"a": 1}},
            {"types": ["a", "b"]},
        ):
            with self.subTest(change):
                with self.assertRaises(Gap):
                    Mirror(HEAD).apply(Notification("snapshot", {**PART, **change}))

    def test_deltas_that_are_malformed(self):
        one = [b"1"]
        for change in (
            {"deleted": [[0, -1]]},
            {"deleted": [[-1, 0]]},
            {"deleted": [[0, 0], [0, 0]]},
            {"deleted": [[0, 0.5]]},
            {"deleted": [[0, True]]},
            {"deleted": [7]},
            {"deleted": None},
            {"added": [[0, -1]], "elements": one},
            {"added": [[-1, 0]], "elements": one},
            {"added": [[0, 1], [0, 0]], "elements": one * 2},
            {"updated": [[0, -1]], "elements": one},
            {"updated": [[0, 0]], "elements": one, "types": ["a", "b"]},
            {"updated": [[0, 0]], "elements": {"a": 1}},
            {"sections": {"deleted": [-1]}},
            {"sections": {"deleted": [0, 0]}},
            {"sections": {"added": [{"at": -1, "name": "x"}]}},
            {"sections": {"added": [{"at": 0}]}},
            {"sections": 7},
            {"revision": 7},
            {"revision": 6},
            {"revision": None},
        ):
            with self.subTest(change):
                with self.assertRaises(Gap):
                    self.mirror().apply(Notification("delta", {**DELTA, **change}))

    def test_a_copy_whose_reset_is_interrupted_begins_anew(self):
        copies = Copies(("f",), {})
        copies.watched("f", HEAD)
        copies.apply(Notification("snapshot", PART))
        self.assertEqual(copies.since("f"), {"since": {"epoch": "e", "revision": 7}})
        two = {"sections": [{"name": "s", "count": 2}], "revision": 9}
        copies.apply(Notification("snapshot", {**PART, **two, "reset": True, "last": False}))
        self.assertEqual(copies.since("f"), {})
        copies.watched("f", {**HEAD, **two})
        update = copies.apply(Notification("snapshot", {**PART, **two, "elements": [b"1", b"2"]}))
        self.assertEqual((update.kind, update.mirror.values(), update.mirror.revision), ("snapshot", [[1, 2]], 9))

    def test_options_with_which_there_is_no_copy(self):
        for option in ({"since": {"epoch": "e", "revision": 7}}, {"since": None}, {"initial": False}, {"elements": False}):
            with self.subTest(option), self.assertRaises(TypeError):
                next(feedd.follow("f", path="/nonexistent/s", **option))

    def test_a_member_of_a_group_that_is_behind_is_asked_again(self):
        def refused(code):
            return feedd.Refused({"code": code, "message": "m"})

        self.assertGreater(Pauses(None).next(refused(-32008)), 0)
        for error in (refused(-32000), refused(-32006), Malformed("m")):
            with self.subTest(error), self.assertRaises(type(error)):
                Pauses(None).next(error)

    def test_bookmarks_that_are_malformed(self):
        for params in ({}, {"epoch": "e", "revision": 7, "current": -1}, {"epoch": "e", "revision": 7, "current": "x"}):
            with self.subTest(params):
                with self.assertRaises(Gap):
                    self.mirror().apply(Notification("bookmark", params))

    def test_counts_that_are_malformed(self):
        for change in (
            {"counts": [-1]},
            {"counts": [1, 2]},
            {"counts": None},
            {"sections": {"deleted": [-1]}, "counts": []},
            {"sections": {"added": [{"at": 2, "name": "x"}]}, "counts": [1, 2]},
            {"revision": None},
            {"reset": True, "sections": [{"name": "s", "count": -1}]},
        ):
            with self.subTest(change):
                counts = Counts(HEAD)
                with self.assertRaises(Gap):
                    counts.apply(Notification("delta", {**DELTA, "counts": [1], **change}))
                self.assertEqual((counts.names, counts.counts, counts.revision), (["s"], [1], 7))
