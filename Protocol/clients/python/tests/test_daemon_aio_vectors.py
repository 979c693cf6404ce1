"""The vectors played against the daemon through the connection on asyncio."""

import asyncio
import threading
import unittest
from unittest import mock

import support
from support import feedd
import feedd.aio
import test_daemon_exchanges
import test_daemon_feeds
import test_daemon_vectors


class Loop:
    """An event loop on a thread of its own, which all blocking callers share."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(support.PATIENCE)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Blocking:
    """A connection on asyncio with the methods of the blocking one."""

    loop = None

    def __init__(self, path, client, timeout):
        async def opened():
            return await feedd.aio.Connection(path, client, timeout).open()

        self.inner = self.loop.run(opened())

    def call(self, method, **params):
        return self.loop.run(self._call(method, params))

    async def _call(self, method, params):
        return await self.inner.call(method, **params)

    def push(self, feed, elements, **options):
        return self.loop.run(self.inner.push(feed, elements, **options))

    def watch(self, feed, **options):
        return BlockingWatch(self, self.loop.run(self.inner.watch(feed, **options)))

    def notification(self, feed=None, timeout=None):
        return self.loop.run(self.inner.notification(feed, timeout))

    def close(self):
        self.loop.run(self.inner.close())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class BlockingWatch:
    def __init__(self, connection, inner):
        self.connection, self.inner, self.result = connection, inner, inner.result

    def next(self, timeout=None):
        return self.connection.loop.run(self.inner.next(timeout))


def setUpModule():
    Blocking.loop = Loop()
    unittest.addModuleCleanup(Blocking.loop.stop)
    patch = mock.patch.object(support.Daemon, "connection", Blocking)
    patch.start()
    unittest.addModuleCleanup(patch.stop)


class Bins(test_daemon_vectors.Bins):
    pass


class Feeds(test_daemon_feeds.Feeds):
    pass


class Slots(test_daemon_feeds.Slots):
    pass


class Transactions(test_daemon_vectors.Transactions):
    pass


class Exchanges(test_daemon_exchanges.Exchanges):
    pass
