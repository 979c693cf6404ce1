"""The client on asyncio, with the names of the blocking one.

    import asyncio, feedd.aio

    async def main():
        async with feedd.aio.Connection() as connection:
            await connection.push("inbox", [{"id": 1, "priority": 9}])
        async for update in feedd.aio.follow("inbox"):
            print(update.mirror.revision, update.mirror.values())

    asyncio.run(main())

A connection may have several watches and calls at a time, in several tasks. A cancelled call is not taken back: the daemon may
execute it, and its answer is dropped. While nobody takes notifications, and no call waits for an answer, the client stops reading
at HIGH_WATER bytes of them; the daemon then combines further changes into one delta.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, AsyncIterable, AsyncIterator, Awaitable, Dict, Iterable, Optional, Set, TypeVar, Union

from . import _push
from ._errors import Closed, Gap, Malformed, Refused
from ._follow import Copies, Pauses, Update
from ._mirror import Counts, Mirror, Section
from ._stream import Notification, Stream, framed, result, socket_path, unreachable, watched

__all__ = [
    "HIGH_WATER",
    "Closed",
    "Connection",
    "Counts",
    "Gap",
    "Malformed",
    "Mirror",
    "Notification",
    "Refused",
    "Section",
    "Update",
    "Watch",
    "follow",
]

#: The bytes of notifications that nobody took at which a connection stops reading.
HIGH_WATER = 4 << 20

_Connection = TypeVar("_Connection", bound="Connection")
_Value = TypeVar("_Value")


class Connection(asyncio.Protocol):
    """A connection for the tasks of one event loop: `async with Connection() as connection`. `hello` is the result of `hello`."""

    hello: Dict[str, Any]

    def __init__(self, path: Optional[str] = None, client: str = "feedd.aio", timeout: Optional[float] = None):
        self.timeout = timeout
        self._path, self._client = path, client
        self._stream = Stream()
        self._transport: Optional[asyncio.Transport] = None
        self._ended: Optional[Closed] = None
        # Tasks that wait for anything to happen, and whether writing and reading are held back.
        self._sleepers: Set["asyncio.Future[None]"] = set()
        self._is_full = self._is_paused = False

    async def open(self: _Connection) -> _Connection:
        """Connects and calls `hello`. Raises OSError if there is no daemon."""
        loop, path = asyncio.get_running_loop(), socket_path(self._path)
        try:
            await loop.create_unix_connection(lambda: self, path)
        except OSError as error:
            raise unreachable(error, path) from error
        try:
            self.hello = self._stream.greeted(await self.call("hello", protocol=1, client=self._client))
        except BaseException:
            self._abandon()
            raise
        return self

    async def __aenter__(self: _Connection) -> _Connection:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection. Calls and watches that wait raise Closed."""
        self._abandon()
        await asyncio.sleep(0)

    def _abandon(self, reason: Optional[Closed] = None) -> None:
        self._end(reason or Closed("the connection was closed by this program"))
        if self._transport:
            self._transport.abort()

    # --- Requests ---

    def send(self, method: str, **params: Any) -> int:
        """Sends a request without waiting for its answer. Returns the id to pass to `answer`.

        A parameter whose name is a keyword of Python is given with an underscore behind it: `if_`, `from_`.

        - Raises: TypeError or ValueError, before anything is sent, for a value that JSON does not have; the error names its place.
        """
        if self._ended or not self._transport:
            raise self._ended or Closed("the connection is not open")
        id, text = self._stream.request(method, params)
        self._transport.write(framed(text))
        self._read_on()
        return id

    async def answer(self, id: int) -> Any:
        """Returns the result of the request with that id. Raises Refused for an error, and TimeoutError."""
        try:
            return result(await _within(self._answer(id), self.timeout))
        except BaseException:
            self._stream.forget(id)
            raise

    async def _answer(self, id: int) -> Dict[str, Any]:
        while True:
            message = self._stream.answer(id)
            if message is not None:
                return message
            if self._stream.bye:
                raise self._stream.bye
            await self._sleep()

    async def call(self, method: str, **params: Any) -> Any:
        """Sends one request and returns its result."""
        return await self.answer(self.send(method, **params))

    async def push(
        self,
        feed: str,
        elements: Union[Iterable[object], AsyncIterable[object]],
        each: Optional[_push.Each] = None,
        window: Optional[int] = None,
        batch: int = 256,
        **options: Any,
    ) -> int:
        """Updates a collection with the elements, as `feedd.Connection.push` does. They may come from an async iterable."""
        source = elements.__aiter__() if isinstance(elements, AsyncIterable) else iter(_push.source(elements))
        sent: "collections.deque[int]" = collections.deque()
        steps, reply = _push.steps(feed, options, each, batch, window, self._stream.max_frame), None
        try:
            while True:
                try:
                    command = steps.send(reply)
                except StopIteration as end:
                    return int(end.value)
                if isinstance(command, dict):
                    sent.append(self.send("update", **command))
                    reply = None
                    while self._is_full:
                        await self._sleep()
                elif command is _push.NEXT:
                    try:
                        reply = await _next(source)
                    except Exception as error:
                        reply = _push.Failed(error)
                else:
                    try:
                        reply = await self.answer(sent.popleft())
                    except Refused as refused:
                        reply = refused
        finally:
            for id in sent:
                self._stream.forget(id)

    # --- Notifications ---

    async def watch(self, feed: str, **options: Any) -> "Watch":
        """Starts watching a feed. Options: `since`, `initial`, `throttle`, `elements`, `spanning`, `ids`.

        A second watch of the same feed ends the first. Parts of snapshots may span sections unless `spanning` is False; a mirror
        takes both.
        """
        options.setdefault("spanning", True)
        id = self.send("watch", feed=feed, **options)
        try:
            result = await self.answer(id)
        except (asyncio.CancelledError, TimeoutError):
            # Nobody would take what the watch sends.
            if not self._ended:
                self._stream.forget(self.send("unwatch", feed=feed))
            raise
        try:
            return Watch(self, feed, watched(feed, result))
        except Malformed as malformed:
            self._abandon(malformed)
            raise

    async def notification(self, feed: Optional[str] = None, timeout: Optional[float] = None) -> Notification:
        """Returns the next notification, of that feed if given. Raises Closed on `bye`, TimeoutError after `timeout` seconds."""
        # wait_for would not look at what is there with a timeout of 0.
        message = self._kept(feed)
        if message is not None:
            return message
        return await _within(self._notification(feed), timeout)

    async def _notification(self, feed: Optional[str]) -> Notification:
        while True:
            message = self._kept(feed)
            if message is not None:
                return message
            await self._sleep()

    def _kept(self, feed: Optional[str]) -> Optional[Notification]:
        message = self._stream.notification(feed)
        if self._stream.queued < HIGH_WATER // 2:
            self._read_on()
        return message

    # --- What the event loop calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._stream.receive(data)
        try:
            while True:
                text = self._stream.frame()
                if text is None:
                    break
                self._stream.sort(text)
        except Malformed as malformed:
            self._end(malformed)
        except Refused as refused:
            self._end(Malformed(f"the daemon refused a frame of this client: {refused}"))
        if self._ended and self._transport:
            self._transport.abort()
        elif self._transport and self._stream.queued >= HIGH_WATER and not self._stream.is_waiting and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._end(self._stream.bye or Closed("the daemon closed the connection"))

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _read_on(self) -> None:
        if self._is_paused and self._transport and not self._transport.is_closing():
            self._is_paused = False
            self._transport.resume_reading()

    def _end(self, reason: Closed) -> None:
        self._ended = self._ended or reason
        self._wake()

    def _wake(self) -> None:
        sleepers, self._sleepers = self._sleepers, set()
        for sleeper in sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    async def _sleep(self) -> None:
        """Waits until something happened. Raises Closed when nothing can happen any more."""
        if self._ended:
            raise self._ended
        sleeper: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            await sleeper
        finally:
            self._sleepers.discard(sleeper)


class Watch:
    """An asynchronous iterator over the notifications of one watched feed. `result` is the result of `watch`."""

    def __init__(self, connection: Connection, feed: str, result: Dict[str, Any]):
        self.connection, self.feed, self.result = connection, feed, result
        self._is_over = False

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> Notification:
        """Waits for the next notification. Ends after the removal of the feed, after `stop`, and when the daemon sends `bye`."""
        try:
            # Another task may call `stop` while this one waits.
            while not self._is_over:
                message = self.connection._kept(self.feed)
                if message is not None:
                    return self._taken(message)
                await self.connection._sleep()
        except Closed as closed:
            if closed.reason is None:
                raise
        raise StopAsyncIteration

    async def next(self, timeout: Optional[float] = None) -> Notification:
        """Returns the next notification. Raises Closed when the connection ends, and TimeoutError."""
        return self._taken(await self.connection.notification(self.feed, timeout))

    def _taken(self, message: Notification) -> Notification:
        self._is_over = self._is_over or message.params.get("ended") is True
        return message

    async def stop(self) -> None:
        """Ends the watch."""
        self._is_over = True
        await self.connection.call("unwatch", feed=self.feed)


async def follow(
    *feeds: str,
    path: Optional[str] = None,
    client: str = "feedd.aio",
    retry_for: Optional[float] = None,
    **options: Any,
) -> AsyncIterator[Update]:
    """Yields every step of the feeds, as `feedd.follow` does: `async for update in follow("inbox", "home")`.

    All feeds are watched on one connection.
    """
    copies, pauses = Copies(feeds, options), Pauses(retry_for)
    while copies.feeds:
        try:
            async with Connection(path, client) as connection:
                for feed in copies.feeds:
                    copies.watched(feed, (await connection.watch(feed, **options, **copies.since(feed))).result)
                pauses.connected()
                while copies.feeds:
                    message = await connection.notification()
                    try:
                        update = copies.apply(message)
                    except Gap as gap:
                        feed = message.params["feed"]
                        copies.forget(feed, gap)
                        copies.watched(feed, (await connection.watch(feed, **options)).result)
                        continue
                    if update:
                        yield update
        except (OSError, Refused) as error:
            await asyncio.sleep(pauses.next(error))


async def _next(source: Any) -> object:
    if hasattr(source, "__anext__"):
        try:
            return await source.__anext__()
        except StopAsyncIteration:
            return _push.END
    return next(source, _push.END)


async def _within(work: Awaitable[_Value], timeout: Optional[float]) -> _Value:
    if timeout is None:
        return await work
    try:
        return await asyncio.wait_for(work, timeout)
    except asyncio.TimeoutError:
        raise TimeoutError(f"timed out after {timeout} s") from None
