"""The blocking connection, its watches, and `follow`."""

from __future__ import annotations

import select
import socket
import time
from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Type, TypeVar
import collections

from . import _push
from ._errors import Closed, Gap, Malformed, Refused
from ._follow import Copies, Pauses, Update
from ._stream import Notification, Stream, framed, result, socket_path, unreachable, watched

_Connection = TypeVar("_Connection", bound="Connection")


class Connection:
    """A blocking connection. Threads that share it must use a lock. `hello` is the result of the method of this name."""

    hello: Dict[str, Any]

    def __init__(self, path: Optional[str] = None, client: str = "feedd.py", timeout: Optional[float] = None):
        """Connects and calls `hello`. Raises OSError if there is no daemon."""
        self.timeout = timeout
        # Why the socket is closed.
        self._ended: Optional[Closed] = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._stream = Stream()
        try:
            self._connect(socket_path(path))
            self._socket.setblocking(False)
            self.hello = self._stream.greeted(self.call("hello", protocol=1, client=client))
        except BaseException:
            self.close()
            raise

    def _connect(self, path: str) -> None:
        try:
            self._socket.connect(path)
        except OSError as error:
            raise unreachable(error, path) from error

    def __enter__(self: _Connection) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._end(Closed("the connection was closed by this program"))

    def _end(self, reason: Closed) -> None:
        self._ended = self._ended or reason
        self._socket.close()

    def fileno(self) -> int:
        """Returns the file descriptor of the socket."""
        return self._socket.fileno()

    def send(self, method: str, **params: Any) -> int:
        """Sends a request without waiting for its answer. Returns the id to pass to `answer`.

        A parameter whose name is a keyword of Python is given with an underscore behind it: `if_`, `from_`.

        - Raises: TypeError or ValueError, before anything is sent, for a value that JSON does not have; the error names its place.
        """
        id, text = self._stream.request(method, params)
        self.transmit(text)
        return id

    def answer(self, id: int) -> Any:
        """Returns the result of the request with that id. Raises Refused for an error, and TimeoutError."""
        limit = _limit(self.timeout)
        while True:
            message = self._stream.answer(id)
            if message is not None:
                return result(message)
            if self._stream.bye:
                raise self._stream.bye
            self._take(self.timeout, limit)

    def call(self, method: str, **params: Any) -> Any:
        """Sends one request and returns its result. An answer that comes after a TimeoutError is dropped."""
        id = self.send(method, **params)
        try:
            return self.answer(id)
        finally:
            self._stream.forget(id)

    def push(
        self,
        feed: str,
        elements: Iterable[object],
        each: Optional[_push.Each] = None,
        window: Optional[int] = None,
        batch: int = 256,
        **options: Any,
    ) -> int:
        """Updates a collection with the elements: up to `batch` of them in one request and so in one commit.

        A request is sent when it is full: pass `batch=1` for elements that come one by one, such as lines of a log.
        `window` is the most requests without an answer. Options are members of each request, such as `animation` or `result`. With an option
        that is a condition, such as `if_` or `where`, each request has one element.

        Returns the number of accepted elements. Calls `each(place, result, refused)` for every element in order; either `result`,
        that of the request with the element, or `refused` is None. Without `each`, takes no more elements after the first
        refusal, and raises it when everything that was sent is answered.

        - Raises: TypeError or ValueError for an element that JSON does not have, and what `elements` raises, when the elements
          before it are answered.
        """
        source, sent = iter(_push.source(elements)), collections.deque()  # type: ignore[var-annotated]
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
                elif command is _push.NEXT:
                    try:
                        reply = next(source, _push.END)
                    except Exception as error:
                        reply = _push.Failed(error)
                else:
                    try:
                        reply = self.answer(sent[0])
                    except Refused as refused:
                        reply = refused
                    sent.popleft()
        finally:
            for id in sent:
                self._stream.forget(id)

    def watch(self, feed: str, **options: Any) -> "Watch":
        """Starts watching a feed. Options: `since`, `initial`, `throttle`, `elements`, `spanning`, `ids`.

        A second watch of the same feed ends the first. Parts of snapshots may span sections unless `spanning` is False; a mirror
        takes both.
        """
        options.setdefault("spanning", True)
        try:
            result = self.call("watch", feed=feed, **options)
        except TimeoutError:
            # Nobody would take what the watch sends.
            if not self._ended:
                self._stream.forget(self.send("unwatch", feed=feed))
            raise
        return Watch(self, feed, self._guarded(watched, feed, result))

    def notification(self, feed: Optional[str] = None, timeout: Optional[float] = None) -> Notification:
        """Returns the next notification, of that feed if given. Raises Closed on `bye`, TimeoutError after `timeout` seconds."""
        limit = _limit(timeout)
        while True:
            message = self._stream.notification(feed)
            if message is not None:
                return message
            self._take(timeout, limit)

    def receive(self, timeout: Optional[float] = None) -> Any:
        """Returns the next message of any kind. Raises Closed at the end of the stream, and TimeoutError."""
        return self._guarded(self._stream.decode, self.receive_text(timeout))

    def receive_text(self, timeout: Optional[float] = None) -> bytes:
        """Returns the text of the next message, byte for byte."""
        timeout = self.timeout if timeout is None else timeout
        return self._text(timeout, _limit(timeout))

    def transmit(self, body: bytes) -> None:
        """Sends one frame. Reads while it cannot write: the daemon reads nothing from a client whose output queue is full.

        Closes the connection if it fails, because nothing can follow half a frame.
        """
        rest, limit = memoryview(framed(body)), _limit(self.timeout)
        try:
            while rest:
                try:
                    rest = rest[self._open().send(rest) :]
                except BlockingIOError:
                    if self._wait(select.POLLIN | select.POLLOUT, self.timeout, limit) & ~select.POLLOUT:
                        self._fill()
        except (BrokenPipeError, ConnectionResetError, Closed):
            self._drain()
        except BaseException as error:
            self._end(Closed(f"a request was not sent: {error!r}"))
            raise

    def _drain(self) -> None:
        """Reads what the daemon sent before it closed the connection, and raises Closed with the reason of its `bye`."""
        limit = _limit(self.timeout)
        while True:
            self._take(self.timeout, limit)

    def _take(self, timeout: Optional[float], limit: Optional[float]) -> None:
        """Receives one message, or a batch of answers, and keeps it for whom it concerns. Other messages extend no limit."""
        text = self._text(timeout if limit is not None else self.timeout, limit or _limit(self.timeout))
        self._guarded(self._stream.sort, text)

    def _text(self, timeout: Optional[float], limit: Optional[float]) -> bytes:
        while True:
            frame: Optional[bytes] = self._guarded(self._stream.frame)
            if frame is not None:
                return frame
            self._wait(select.POLLIN, timeout, limit)
            self._fill()

    def _open(self) -> socket.socket:
        if self._ended:
            raise self._ended
        return self._socket

    def _wait(self, events: int, timeout: Optional[float], limit: Optional[float]) -> int:
        """Waits for one of the events of `select.poll`, and returns those that came. Raises TimeoutError at the limit."""
        poll = select.poll()
        poll.register(self._open(), events)
        while True:
            left = None if limit is None else max(0, limit - time.monotonic())
            # poll takes 24 days at most.
            for _, found in poll.poll(None if left is None else 1000 * min(left, 1e6)):
                return found
            if left == 0:
                raise TimeoutError(f"timed out after {timeout} s")

    def _guarded(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Malformed as malformed:
            self._end(malformed)
            raise

    def _fill(self) -> None:
        try:
            data = self._socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise self._stream.bye or Closed("the daemon closed the connection")
        self._stream.receive(data)


def _limit(timeout: Optional[float]) -> Optional[float]:
    """Returns the time at which a wait ends; None for never."""
    return None if timeout is None else time.monotonic() + timeout


class Watch:
    """An iterator over the notifications of one watched feed. `result` is the result of `watch`."""

    def __init__(self, connection: Connection, feed: str, result: Dict[str, Any]):
        self.connection, self.feed, self.result = connection, feed, result
        self._is_over = False

    def __iter__(self) -> "Watch":
        return self

    def __next__(self) -> Notification:
        """Waits for the next notification. Ends after the removal of the feed, after `stop`, and when the daemon sends `bye`."""
        if self._is_over:
            raise StopIteration
        try:
            return self.next()
        except Closed as closed:
            if closed.reason is None:
                raise
            raise StopIteration from None

    def next(self, timeout: Optional[float] = None) -> Notification:
        """Returns the next notification. Raises Closed when the connection ends, and TimeoutError."""
        message = self.connection.notification(self.feed, timeout)
        self._is_over = self._is_over or message.params.get("ended") is True
        return message

    def stop(self) -> None:
        """Ends the watch."""
        self._is_over = True
        self.connection.call("unwatch", feed=self.feed)


def follow(
    *feeds: str,
    path: Optional[str] = None,
    client: str = "feedd.py",
    retry_for: Optional[float] = None,
    **options: Any,
) -> Iterator[Update]:
    """Yields every step of the feeds, in copies that are kept across connections: `for update in follow("inbox")`.

    When the connection ends, connects again and resumes from the copies, so that no change is missed. Ends when all feeds were
    removed. Options are those of `watch`.

    - Raises: the last OSError when there was no daemon for `retry_for` seconds (by default, never); at once, PermissionError if the
      socket may not be opened, and OSError if its path is too long; Refused if a feed may not be watched or does not exist;
      Malformed if the daemon violates the protocol.
    """
    copies, pauses = Copies(feeds, options), Pauses(retry_for)
    while copies.feeds:
        try:
            with Connection(path, client) as connection:
                for feed in copies.feeds:
                    copies.watched(feed, connection.watch(feed, **options, **copies.since(feed)).result)
                pauses.connected()
                while copies.feeds:
                    message = connection.notification()
                    try:
                        update = copies.apply(message)
                    except Gap as gap:
                        feed = message.params["feed"]
                        copies.forget(feed, gap)
                        copies.watched(feed, connection.watch(feed, **options).result)
                        continue
                    if update:
                        yield update
        except (OSError, Refused) as error:
            time.sleep(pauses.next(error))
