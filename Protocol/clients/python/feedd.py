#!/usr/bin/env python3
"""A client of feedd that needs only the standard library of Python 3.9 or later.

Copy feedd.py, feedd_mirror.py and feedd_text.py into your project.

    import feedd
    with feedd.Connection() as connection:
        connection.push("inbox", [{"id": 1, "priority": 9}])
        watch = connection.watch("inbox")
        mirror = feedd.Mirror(watch.result)
        for message in watch:                       # snapshot parts, deltas, bookmarks
            if mirror.apply(message):
                print(mirror.revision, mirror.values())

Elements are JSON text. Elements from the daemon are `bytes`, exactly as another program pushed them; `json.loads` decodes
them. `bytes` given to a method are sent unchanged. Any other value is encoded as JSON.
"""

import collections
import itertools
import json
import os
import re
import select
import socket
import struct
import sys
import time
from decimal import Decimal

from feedd_mirror import Counts, Gap, Mirror, Section
from feedd_text import decode, encode

__all__ = [
    "Closed",
    "Connection",
    "Counts",
    "Gap",
    "Malformed",
    "Mirror",
    "Notification",
    "Refused",
    "Section",
    "Watch",
    "socket_path",
]

#: The most bytes of a message: several times the largest message of a daemon with default limits.
MAX_MESSAGE = 256 << 20
#: The most bytes of notifications that are kept while the program waits for something else.
MAX_QUEUED = 64 << 20


class Refused(Exception):
    """The error of one request, which changed nothing. `code`, `message` and `data` are those of the daemon."""

    def __init__(self, error):
        super().__init__(f"{error['message']} ({error['code']})")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data", {})


class Closed(ConnectionError):
    """The connection is closed. `reason` is that of the daemon's `bye`, or None."""

    def __init__(self, message, reason=None):
        super().__init__(message)
        self.reason = reason


class Malformed(Closed):
    """The daemon sent what violates the protocol, or more than this client keeps. The connection is closed."""


Notification = collections.namedtuple("Notification", "method params")


def socket_path(path=None):
    """Returns the path of the socket: `path`, $FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock if it exists, or the system's."""
    if path or os.environ.get("FEEDD_SOCKET"):
        return path or os.environ["FEEDD_SOCKET"]
    own = os.path.join(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "feedd.sock")
    return own if os.path.exists(own) else "/run/feedd/feedd.sock"


class Connection:
    """A blocking connection. Threads that share it must use a lock."""

    def __init__(self, path=None, client="feedd.py", timeout=None):
        """Connects and calls `hello`, whose result is kept in `hello`. Raises OSError if there is no daemon."""
        self.timeout = timeout
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._input, self._read = bytearray(), 0
        # Ids without an answer, answers that were not asked for yet, notifications with their sizes, and the sum of these.
        self._next, self._waiting, self._answers = 0, set(), {}
        self._queued, self._kept = collections.deque(), 0
        try:
            self._socket.connect(socket_path(path))
            self._socket.setblocking(False)
            self.hello = self.call("hello", protocol=1, client=client)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def fileno(self):
        return self._socket.fileno()

    def send(self, method, **params):
        """Sends a request without waiting for its answer. Returns the id to pass to `answer`.

        A parameter whose name is a keyword of Python is given with an underscore behind it: `if_`, `from_`.
        """
        self._next += 1
        message = {"jsonrpc": "2.0", "id": self._next, "method": method}
        if params:
            message["params"] = {name.rstrip("_"): value for name, value in params.items()}
        text = encode(message)
        self._waiting.add(self._next)
        self.transmit(text)
        return self._next

    def answer(self, id):
        """Returns the result of the request with that id. Raises Refused for an error, and TimeoutError."""
        limit = _limit(self.timeout)
        while id not in self._answers:
            self._take(self.timeout, limit)
        message = self._answers.pop(id)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def call(self, method, **params):
        """Sends one request and returns its result."""
        return self.answer(self.send(method, **params))

    def push(self, feed, elements, each=None, window=256, **options):
        """Updates a collection with the elements, one request each, with at most `window` unanswered requests.

        Options are members of each request, such as `animation`.

        Returns the number of accepted elements. Calls `each(place, result, refused)` for every answer in order; either
        `result` or `refused` is None. Without `each`, stops at the first refusal, waits for the answers to requests that
        were already sent, and raises it.
        """
        accepted, first, waiting = 0, None, collections.deque()

        def settle():
            nonlocal accepted, first
            place, id = waiting.popleft()
            result = refused = None
            try:
                result = self.answer(id)
                accepted += 1
            except Refused as error:
                refused, first = error, first or error
            if each:
                each(place, result, refused)

        for place, element in enumerate(elements):
            if first and not each:
                break
            waiting.append((place, self.send("update", feed=feed, element=element, **options)))
            if len(waiting) >= window:
                settle()
        while waiting:
            settle()
        if first and not each:
            raise first
        return accepted

    def watch(self, feed, **options):
        """Starts watching a feed. Options: `since`, `initial`, `throttle`, `elements`, `spanning`.

        A second watch of the same feed ends the first. Parts of snapshots may span sections unless `spanning` is False; a mirror
        takes both.
        """
        options.setdefault("spanning", True)
        self._queued = collections.deque(entry for entry in self._queued if entry[0].params.get("feed") != feed)
        self._kept = sum(size for _, size in self._queued)
        return Watch(self, feed, self.call("watch", feed=feed, **options))

    def notification(self, feed=None, timeout=None):
        """Returns the next notification, of that feed if given. Raises Closed on `bye`, TimeoutError after `timeout` seconds."""
        limit = _limit(timeout)
        while True:
            for place, (message, size) in enumerate(self._queued):
                if feed is None or message.method == "bye" or message.params.get("feed") == feed:
                    del self._queued[place]
                    self._kept -= size
                    if message.method == "bye":
                        raise Closed(message.params.get("message", "bye"), message.params.get("reason"))
                    return message
            self._take(timeout, limit)

    def receive(self, timeout=None):
        """Returns the next message of any kind. Raises Closed at the end of the stream, and TimeoutError."""
        return self._decode(self.receive_text(timeout))

    def receive_text(self, timeout=None):
        """Returns the text of the next message, byte for byte."""
        timeout = self.timeout if timeout is None else timeout
        return self._text(timeout, _limit(timeout))

    def _text(self, timeout, limit):
        while True:
            frame = self._frame()
            if frame is not None:
                return frame
            ready, _, _ = select.select([self], [], [], None if limit is None else max(0, limit - time.monotonic()))
            if not ready:
                raise TimeoutError(f"timed out after {timeout} s")
            self._fill()

    def transmit(self, body):
        """Sends one frame. Reads while it cannot write: the daemon reads nothing from a client whose output queue is full."""
        rest = memoryview(struct.pack(">I", len(body)) + body)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                readable, _, _ = select.select([self], [self], [])
                if readable:
                    self._fill()
            except (BrokenPipeError, ConnectionResetError):
                self._drain()

    def _drain(self):
        """Reads what the daemon sent before it closed the connection, and raises Closed with the reason of its `bye`."""
        limit = _limit(self.timeout)
        while True:
            self._take(self.timeout, limit)

    def _take(self, timeout, limit):
        """Receives one message, or a batch of answers, and keeps it for whom it concerns. Other messages extend no limit."""
        text = self._text(timeout if limit is not None else self.timeout, limit or _limit(self.timeout))
        message = self._decode(text)
        for one in message if isinstance(message, list) else [message]:
            self._sort(one, len(text))

    def _sort(self, message, size):
        if not isinstance(message, dict):
            raise self._malformed("a message that is not an object")
        error, id = message.get("error"), message.get("id")
        if "method" in message:
            notification = Notification(message["method"], message.get("params", {}))
            if not isinstance(notification.method, str) or not isinstance(notification.params, dict):
                raise self._malformed("a notification without a name or with other parameters than an object")
            self._kept += size
            if self._kept > MAX_QUEUED:
                raise self._malformed("more notifications than this client keeps")
            self._queued.append((notification, size))
        elif "error" in message and not (isinstance(error, dict) and "code" in error and "message" in error):
            raise self._malformed("an error without a code and a message")
        elif "error" not in message and "result" not in message:
            raise self._malformed("an answer without a result")
        elif id is None and "error" in message:
            raise Refused(error)
        elif isinstance(id, int) and id in self._waiting:
            self._waiting.remove(id)
            self._answers[id] = message

    def _decode(self, text):
        try:
            return decode(text)
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise self._malformed(f"a frame that is not JSON, or too deep: {error}") from None

    def _malformed(self, what):
        self.close()
        return Malformed(f"the daemon does not speak this protocol: {what}")

    def _frame(self):
        available = len(self._input) - self._read
        if available < 4:
            return None
        (length,) = struct.unpack_from(">I", self._input, self._read)
        if not 0 < length <= MAX_MESSAGE:
            raise self._malformed(f"a frame of {length} bytes; the limit is {MAX_MESSAGE}")
        if available < 4 + length:
            return None
        start = self._read + 4
        self._read = start + length
        return bytes(memoryview(self._input)[start : self._read])

    def _fill(self):
        try:
            data = self._socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            bye = next((m for m, _ in self._queued if m.method == "bye"), Notification("bye", {}))
            raise Closed(bye.params.get("message", "the daemon closed the connection"), bye.params.get("reason"))
        if self._read:
            del self._input[: self._read]
            self._read = 0
        self._input += data


def _limit(timeout):
    """Returns the time at which a wait ends; None for never."""
    return None if timeout is None else time.monotonic() + timeout


class Watch:
    """An iterator over the notifications of one watched feed. `result` is the result of `watch`."""

    def __init__(self, connection, feed, result):
        self.connection, self.feed, self.result = connection, feed, result

    def __iter__(self):
        return self

    def __next__(self):
        """Waits for the next notification. Ends when the daemon sends `bye`."""
        try:
            return self.next()
        except Closed as closed:
            if closed.reason is None:
                raise
            raise StopIteration from None

    def next(self, timeout=None):
        """Returns the next notification. Raises Closed when the connection ends, and TimeoutError."""
        return self.connection.notification(self.feed, timeout)

    def stop(self):
        self.connection.call("unwatch", feed=self.feed)


# --- The command ---

#: What must not reach a terminal: control characters and line separators.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_USAGE = """usage: feedd.py [--socket PATH] push FEED [ELEMENT...|-]
       feedd.py [--socket PATH] watch FEED [COUNT]     print the notifications, one a line
       feedd.py [--socket PATH] mirror FEED [COUNT]    print revision, counts and digest of a copy after each change
       feedd.py [--socket PATH] verify FEED
       feedd.py [--socket PATH] call METHOD [PARAMS]"""


def main(arguments):
    """Runs a command. Returns 0 on success, 1 if refused, 2 for a usage error, 3 without a daemon, 5 for a gap."""
    path = None
    if arguments[:1] == ["--socket"] and len(arguments) > 1:
        path, arguments = arguments[1], arguments[2:]
    commands = {"push": _push, "watch": _watch, "mirror": _mirror, "verify": _verify, "call": _call}
    if len(arguments) < 2 or arguments[0] not in commands:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        with Connection(path) as connection:
            commands[arguments[0]](connection, *arguments[1:])
    except (Refused, Gap, ValueError, OSError, TypeError) as error:
        print(_CONTROL.sub("\ufffd", str(error)), file=sys.stderr)
        codes = {Refused: 1, Gap: 5, ValueError: 2, TypeError: 2, json.JSONDecodeError: 2}
        return codes.get(type(error), 3)
    return 0


def _push(connection, feed, *elements):
    lines = sys.stdin.buffer if elements in ((), ("-",)) else (element.encode() for element in elements)
    texts = (line.strip() for line in lines)
    _print({"pushed": connection.push(feed, (text for text in texts if text))})


def _print(value):
    text = encode(value)
    if sys.stdout.isatty():
        text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode("utf-8", "replace")).encode("utf-8")
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def _watch(connection, feed, count=None):
    # Readers of printed notifications expect each part of a snapshot within one section.
    for message in itertools.islice(connection.watch(feed, spanning=False), count and int(count)):
        _print({"method": message.method, "params": message.params})


def _mirror(connection, feed, count=None):
    watch = connection.watch(feed)
    mirror = Mirror(watch.result)
    for _ in itertools.islice(filter(mirror.apply, watch), count and int(count)):
        _print({"revision": mirror.revision, "counts": mirror.counts(), "digest": mirror.digest()})


def _verify(connection, feed):
    _print(connection.call("verify", feed=feed))


def _call(connection, method, params="{}"):
    members = json.loads(params, parse_float=Decimal)
    if not isinstance(members, dict):
        raise ValueError("PARAMS must be a JSON object of named parameters")
    _print(connection.call(method, **members))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
