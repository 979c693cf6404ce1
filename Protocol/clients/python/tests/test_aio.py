"""The connection on asyncio against hostile daemons, and `follow` of both kinds against daemons that come and go."""

import asyncio
import contextlib
import errno
import os
import struct
import tempfile
import threading
import unittest

import support
from support import feedd, PATIENCE
from test_hostile import HostileDaemon, UNREADABLE, answer, framed
import feedd.aio
from feedd import Closed, Malformed, Refused


def patiently(test):
    """Runs a coroutine function as a test that fails when it hangs."""

    def method(self):
        asyncio.run(asyncio.wait_for(test(self), PATIENCE))

    return method


class Hostile(unittest.TestCase):
    async def connect(self, *chunks):
        return await feedd.aio.Connection(HostileDaemon(self, *chunks).path, timeout=PATIENCE).open()

    @patiently
    async def test_what_no_daemon_sends(self):
        for text in (
            struct.pack(">I", 0),
            struct.pack(">I", 0xFFFFFFFF) + b"{",
            framed(b"{"),
            framed(b"\xff"),
            framed(b"[" * 100_000),
            framed(b"7"),
            framed(b'{"id":2}'),
            framed(b'{"method":7}'),
            framed(b'{"id":2,"result":NaN}'),
        ):
            with self.subTest(text[:30]):
                connection = await self.connect([text])
                with self.assertRaises(Malformed):
                    await connection.call("ping")
                with self.assertRaises(Malformed):
                    await connection.call("ping")
                await connection.close()

    @patiently
    async def test_an_error_without_an_id_answers_the_oldest_request(self):
        connection = await self.connect([None, UNREADABLE, answer(3)])
        calls = [asyncio.ensure_future(connection.call("ping")) for _ in range(2)]
        with self.assertRaises(Refused) as caught:
            await calls[0]
        self.assertEqual((caught.exception.code, await calls[1]), (-32007, {}))
        await connection.close()

    @patiently
    async def test_a_stream_that_ends(self):
        for chunks, reason in (
            ([], None),
            ([b"\0\0"], None),
            ([framed(b'{"method":"bye","params":{"reason":"shutdown","message":"m"}}')], "shutdown"),
        ):
            with self.subTest(chunks):
                connection = await self.connect(chunks)
                with self.assertRaises(Closed) as caught:
                    await connection.notification()
                self.assertEqual((type(caught.exception), caught.exception.reason), (Closed, reason))
                await connection.close()

    @patiently
    async def test_waits_end_when_the_connection_is_closed(self):
        connection = await self.connect([], True)
        tasks = [asyncio.ensure_future(connection.call("ping")), asyncio.ensure_future(connection.notification("f"))]
        await asyncio.sleep(0)
        await connection.close()
        for task in tasks:
            with self.assertRaises(Closed):
                await task

    @patiently
    async def test_no_daemon(self):
        for path, number in (("/nonexistent/s", errno.ENOENT), ("/" + "s" * 200, errno.ENAMETOOLONG)):
            with self.subTest(path):
                with self.assertRaises(OSError) as raised:
                    await feedd.aio.Connection(path).open()
                self.assertEqual((raised.exception.errno, raised.exception.filename), (number, path))
                with self.assertRaises(OSError) as raised:
                    feedd.Connection(path)
                self.assertEqual((raised.exception.errno, raised.exception.filename), (number, path))
        with self.assertRaises(Closed):
            feedd.aio.Connection("/nonexistent/s").send("ping")

    @patiently
    async def test_a_timeout_drops_the_answer(self):
        connection = await self.connect([], True)
        connection.timeout = 0.01
        with self.assertRaises(TimeoutError):
            await connection.call("ping")
        connection.data_received(answer(2))
        self.assertFalse(connection._stream.is_waiting or connection._stream._answers or connection._stream._forgotten)
        await connection.close()

    @patiently
    async def test_after_bye_no_answer_comes(self):
        connection = await self.connect([framed(b'{"method":"bye","params":{"reason":"kicked","message":"m"}}')], True)
        with self.assertRaises(Closed) as caught:
            await connection.call("ping")
        self.assertEqual(caught.exception.reason, "kicked")
        await connection.close()

    @patiently
    async def test_results_of_watch_that_no_daemon_sends(self):
        for result in (b"7", b"null", b"[]", b"{}", b'{"feed":"g","epoch":"e","revision":1,"resumed":false,"sections":[]}'):
            connection = await self.connect([None, answer(2, result)], True)
            with self.assertRaises(Malformed):
                await connection.watch("f")
            with self.assertRaises(Malformed):
                await connection.call("ping")
            await connection.close()

    @patiently
    async def test_reading_stops_while_nobody_takes_notifications(self):
        text = framed(b'{"method":"delta","params":{"feed":"f","text":"%s"}}' % (b"1" * 100_000))
        connection = await self.connect([text] * 200)
        while not connection._is_paused:
            await asyncio.sleep(0.001)
        self.assertLess(connection._stream.queued, feedd.aio.HIGH_WATER + (1 << 20))
        for _ in range(200):
            self.assertEqual((await connection.notification("f")).method, "delta")
        await connection.close()


class Tasks(support.DaemonTest):
    async def open(self):
        return await feedd.aio.Connection(self.daemon.path, timeout=PATIENCE).open()

    @patiently
    async def test_several_watches_and_calls_at_a_time(self):
        async with feedd.aio.Connection(self.daemon.path) as connection:
            for feed in ("a", "b"):
                await connection.call("define", feed=feed, kind="collection")
            watches = [await connection.watch(feed) for feed in ("a", "b")]

            async def mirrored(watch):
                mirror = feedd.Mirror(watch.result)
                async for message in watch:
                    mirror.apply(message)
                    if sum(mirror.counts()) == 500:
                        return mirror

            async def source():
                for n in range(500):
                    yield {"id": n}

            mirrors = [asyncio.ensure_future(mirrored(watch)) for watch in watches]
            pushes = [connection.push(feed, source()) for feed in ("a", "b")]
            self.assertEqual(await asyncio.gather(*pushes), [500, 500])
            for mirror in await asyncio.gather(*mirrors):
                verified = await connection.call("verify", feed=mirror.feed)
                self.assertEqual((mirror.digest(), mirror.revision), (verified["digest"], verified["revision"]))

    @patiently
    async def test_cancelled_calls_disturb_nobody(self):
        async with feedd.aio.Connection(self.daemon.path) as connection:
            await connection.call("define", feed="a", kind="collection")
            tasks = [asyncio.ensure_future(connection.call("update", feed="a", element={"id": n})) for n in range(100)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertTrue(all(isinstance(one, asyncio.CancelledError) for one in results[::2]))
            self.assertEqual([one["added"] for one in results[1::2]], [[[0, n]] for n in range(1, 100, 2)])
            await connection.call("sync")
            self.assertFalse(connection._stream.is_waiting or connection._stream._answers)

    @patiently
    async def test_a_watch_that_ended_holds_up_no_other(self):
        async with feedd.aio.Connection(self.daemon.path) as connection:
            for feed in ("a", "b"):
                await connection.call("define", feed=feed, kind="collection")
            await connection.push("a", ({"id": n, "text": "x" * 1000} for n in range(2 * feedd.aio.HIGH_WATER // 1000)))
            for end in ("stopped", "cancelled"):
                async with feedd.aio.Connection(self.daemon.path) as other:
                    if end == "stopped":
                        ended = await other.watch("a")
                    else:
                        task = asyncio.ensure_future(other.watch("a"))
                        await asyncio.sleep(0)
                        task.cancel()
                        await asyncio.wait([task])
                    watch = await other.watch("b")
                    await connection.call("sync")
                    if end == "stopped":
                        while not other._is_paused:
                            await asyncio.sleep(0.001)
                        await ended.stop()
                    await connection.push("b", [{"id": end}])
                    mirror = feedd.Mirror(watch.result)
                    while not mirror.values() or mirror.values()[0][-1:] != [{"id": end}]:
                        mirror.apply(await watch.next())
                    self.assertLess(other._stream.queued, feedd.aio.HIGH_WATER // 2)

    @patiently
    async def test_the_iterator_ends_with_the_feed_and_after_stop(self):
        async with feedd.aio.Connection(self.daemon.path) as connection:
            for feed in ("removed", "stopped"):
                await connection.call("define", feed=feed, kind="array")
            watch = await connection.watch("removed")
            await connection.call("undefine", feed="removed")
            self.assertEqual([message.method async for message in watch], ["snapshot", "delta"])
            self.assertEqual([message async for message in watch], [])
            watch = await connection.watch("stopped")

            async def taken():
                return [message.method async for message in watch]

            # Both tasks wait: this one for the answer, the other one for what will not come.
            took, _ = await asyncio.gather(taken(), watch.stop())
            self.assertLessEqual(len(took), 1)
            self.assertEqual(await taken(), [])

    @patiently
    async def test_refusals_and_values_that_json_does_not_have(self):
        async with feedd.aio.Connection(self.daemon.path) as connection:
            with self.assertRaises(Refused):
                await connection.call("describe", feed="nowhere")
            with self.assertRaisesRegex(ValueError, r"element.v: nan"):
                await connection.call("update", feed="a", element={"id": 1, "v": float("nan")})
            self.assertEqual(await connection.call("ping"), {})


class Following(unittest.TestCase):
    """Both kinds of `follow`, over a daemon that is killed and started again while elements are pushed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="feedd-test-")
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")
        self.path = os.path.join(folder.name, "s")
        self.start()
        self.addCleanup(lambda: self.daemon.stop())

    def start(self):
        self.daemon = support.Daemon("--state", self.state, durability="process", path=self.path)

    def push(self, *ids):
        with feedd.Connection(self.path, timeout=PATIENCE) as connection:
            connection.push("a", [{"id": id} for id in ids])

    def restart(self):
        self.daemon.process.kill()
        self.daemon.stop()
        self.start()

    def play(self, updates):
        """Checks the steps of one follower; `updates` is a blocking iterator over them."""
        with feedd.Connection(self.path, timeout=PATIENCE) as connection:
            connection.call("define", feed="a", kind="collection")
        self.push(1, 2)
        update = next(updates)
        mirror = update.mirror
        self.assertEqual((update.kind, mirror.values()), ("snapshot", [[{"id": 1}, {"id": 2}]]))
        for turn in range(3):
            self.restart()
            self.push(10 + turn)
            update = next(updates)
            self.assertEqual((update.kind, update.delta["elements"]), ("delta", [b'{"id":%d}' % (10 + turn)]))
            self.assertIs(update.mirror, mirror)
        with feedd.Connection(self.path, timeout=PATIENCE) as connection:
            self.assertEqual(mirror.digest(), connection.call("verify", feed="a")["digest"])
            connection.call("undefine", feed="a")
        self.assertEqual(next(updates).kind, "ended")
        self.assertEqual(list(updates), [])

    def play_slowly(self, updates):
        """Checks that a follower that reads nothing while its feed changes much, and is removed, is told of the end."""
        with feedd.Connection(self.path, timeout=PATIENCE) as connection:
            connection.call("define", feed="a", kind="collection")
            self.assertEqual(next(updates).kind, "snapshot")
            connection.call("update", feed="a", element={"id": 0, "text": "x" * (3 << 20)})
            connection.call("update", feed="a", elements=[{"id": id} for id in range(1, 3000)])
            connection.call("undefine", feed="a")
        self.assertEqual(next(updates).kind, "delta")
        last = next(updates)
        self.assertEqual((last.kind, last.delta, last.mirror.counts()), (self.RESET_THAT_ENDS, None, []))
        self.assertEqual(list(updates), [])

    RESET_THAT_ENDS = "ended"

    def follow(self):
        return feedd.follow("a", path=self.path)

    def follow_on_asyncio(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        inner = feedd.aio.follow("a", path=self.path)
        with contextlib.suppress(StopAsyncIteration):
            while True:
                yield loop.run_until_complete(asyncio.wait_for(inner.__anext__(), PATIENCE))

    def test_blocking(self):
        self.play(self.follow())

    def test_asyncio(self):
        self.play(self.follow_on_asyncio())

    def test_a_slow_reader(self):
        self.play_slowly(self.follow())

    def test_a_slow_reader_on_asyncio(self):
        self.play_slowly(self.follow_on_asyncio())

    def test_no_daemon_for_too_long(self):
        with self.assertRaises(OSError):
            next(feedd.follow("a", path="/nonexistent/s", retry_for=0.05))
        with self.assertRaises(Refused):
            next(feedd.follow("nowhere", path=self.path))

    def test_a_path_that_is_too_long(self):
        with self.assertRaises(OSError) as raised:
            next(feedd.follow("a", path="/" + "s" * 200))
        self.assertEqual(raised.exception.errno, errno.ENAMETOOLONG)

    def test_a_socket_that_may_not_be_opened(self):
        with self.locked(), self.assertRaises(PermissionError) as raised:
            next(feedd.follow("a", path=self.path))
        self.assertEqual(raised.exception.filename, self.path)

    @contextlib.contextmanager
    def locked(self):
        """Makes the folder of the socket one that this process may not enter, also if it is root."""
        folder, user = os.path.dirname(self.path), os.geteuid()
        os.chmod(folder, 0)
        try:
            if user == 0:
                os.seteuid(65534)
            yield
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o700)

    def test_a_daemon_that_lies(self):
        result = b'{"feed":"a","epoch":"e","revision":1,"resumed":%s,"sections":[]}'
        watched = answer(2, result % b"false")
        wrong = framed(b'{"method":"snapshot","params":{"feed":"a","revision":9,"at":[0,0],"elements":[],"last":true}}')
        for lies in (
            [None, watched, framed(b"[")],
            [None, answer(2, b"7")],
            [None, answer(2, b'{"feed":"a"}')],
            [None, answer(2, result % b"true")],
            [None, watched, wrong],
        ):
            with self.subTest(lies), self.assertRaises(Malformed):
                next(feedd.follow("a", path=HostileDaemon(self, lies).path))
            with self.subTest(lies), self.assertRaises(Malformed):
                follower = feedd.aio.follow("a", path=HostileDaemon(self, lies).path)
                asyncio.run(asyncio.wait_for(follower.__anext__(), PATIENCE))


if __name__ == "__main__":
    unittest.main()
