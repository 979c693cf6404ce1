"""The messages of one connection, without input or output: what both kinds of connections share."""

from __future__ import annotations

import collections
import errno
import os
import struct
from typing import Any, Deque, Dict, NamedTuple, Optional, Set, Tuple

from ._errors import Closed, Malformed, Refused
from ._text import decode, encode

#: The most bytes of a message: several times the largest message of a daemon with default limits.
MAX_MESSAGE = 256 << 20
#: The most bytes of notifications that are kept while the program waits for something else.
MAX_QUEUED = 64 << 20


class Notification(NamedTuple):
    """A message that nobody asked for: `method` is `snapshot`, `delta`, `bookmark` or `selection`; `params` are decoded.

    Elements in `params` are `bytes`: the items of `elements`. Everything else is decoded, numbers that are not integers to Decimal.
    """

    method: str
    params: Dict[str, Any]


def socket_path(path: Optional[str] = None) -> str:
    """Returns the path of the socket: `path`, $FEEDD_SOCKET, $XDG_RUNTIME_DIR/feedd.sock if a daemon was ever there, or the system's."""
    if path or os.environ.get("FEEDD_SOCKET"):
        return path or os.environ["FEEDD_SOCKET"]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if not runtime:
        return "/run/feedd/feedd.sock"
    own = os.path.join(runtime, "feedd.sock")
    state, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME")
    if not state.startswith("/"):
        state = os.path.join(home, ".local", "state") if home else ""
    # A stopped daemon of one's own is not replaced by the system's.
    traces = [own, own + ".own"] + ([os.path.join(state, "feedd")] if state else [])
    return own if any(map(os.path.exists, traces)) else "/run/feedd/feedd.sock"


def unreachable(error: OSError, path: str) -> OSError:
    """Returns the error of a connection that was not made, of the same kind, with the path of the socket."""
    return OSError(error.errno or errno.ENAMETOOLONG, error.strerror or str(error), path)


class Stream:
    """Encodes requests, and sorts received bytes into answers and notifications.

    Invariant: `queued` is the number of bytes of the notifications that nobody took. Only answers to requests of this stream are
    kept, and each until `answer` or `forget` is called with its id.
    """

    def __init__(self) -> None:
        self._input, self._read = bytearray(), 0
        self._next = 0
        # Requests without an answer, with the feed for those that begin or end a watch; answers that were not asked for yet.
        self._waiting: Dict[int, Optional[str]] = {}
        self._answers: Dict[int, Dict[str, Any]] = {}
        # Requests whose answer is dropped when it comes.
        self._forgotten: Set[int] = set()
        # Notifications by feed, each with its place in the order of all and its size.
        self._notifications: Dict[Optional[str], Deque[Tuple[int, Notification, int]]] = {}
        self._received = 0
        self.queued = 0
        self.bye: Optional[Closed] = None
        #: The most bytes of a request.
        self.max_frame = MAX_MESSAGE

    @property
    def is_waiting(self) -> bool:
        """Whether a request has no answer yet."""
        return bool(self._waiting)

    def greeted(self, hello: Any) -> Dict[str, Any]:
        """Takes the limits from the result of `hello`, and returns it."""
        if not isinstance(hello, dict):
            raise malformed("a result of hello that is not an object")
        if hello.get("protocol", 1) != 1:
            raise malformed(f"version {hello['protocol']!r}; this client speaks version 1")
        limits = hello.get("limits")
        limit = limits.get("maxFrame") if isinstance(limits, dict) else None
        if isinstance(limit, int) and limit > 0:
            self.max_frame = limit
        return hello

    def request(self, method: str, params: Dict[str, Any]) -> Tuple[int, bytes]:
        """Returns the id of a request and its text. A name of a parameter may end with an underscore: `if_`, `from_`.

        - Raises: TypeError or ValueError for a value that JSON does not have, and for a request that is too long.
        """
        named = {name.rstrip("_"): value for name, value in params.items()}
        id = self._next + 1
        text = b'{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}' % (id, encode(method), encode(named))
        if len(text) > self.max_frame:
            raise ValueError(f"a request of {len(text):,} bytes; the maxFrame of this daemon is {self.max_frame:,}")
        self._next = id
        self._waiting[id] = str(named.get("feed")) if method in ("watch", "unwatch") else None
        return id, text

    def answer(self, id: int) -> Optional[Dict[str, Any]]:
        """Takes the answer to a request, if it was received."""
        return self._answers.pop(id, None)

    def forget(self, id: int) -> None:
        """Drops the answer to a request, which was received or will be."""
        self._answers.pop(id, None)
        if id in self._waiting:
            self._forgotten.add(id)

    def notification(self, feed: Optional[str] = None) -> Optional[Notification]:
        """Takes the oldest notification, of a feed if given. Raises Closed after the last one before the daemon's `bye`."""
        if feed is None and self._notifications:
            feed = min(self._notifications, key=lambda name: self._notifications[name][0][0])
        queue = self._notifications.get(feed)
        if queue is None:
            if self.bye:
                raise self.bye
            return None
        _, notification, size = queue.popleft()
        self.queued -= size
        if not queue:
            del self._notifications[feed]
        return notification

    def receive(self, data: bytes) -> None:
        """Adds received bytes."""
        if self._read:
            del self._input[: self._read]
            self._read = 0
        self._input += data

    def frame(self) -> Optional[bytes]:
        """Takes the text of the next message, if it was received whole."""
        available = len(self._input) - self._read
        if available < 4:
            return None
        (length,) = struct.unpack_from(">I", self._input, self._read)
        if not 0 < length <= MAX_MESSAGE:
            raise malformed(f"a frame of {length} bytes; the limit is {MAX_MESSAGE}")
        if available < 4 + length:
            return None
        start = self._read + 4
        self._read = start + length
        return bytes(memoryview(self._input)[start : self._read])

    def sort(self, text: bytes) -> None:
        """Keeps a message, or a batch of answers, for whom it concerns. Raises Refused for an error while no request waits."""
        message = self.decode(text)
        for one in message if isinstance(message, list) else [message]:
            self._keep(one, len(text))

    def decode(self, text: bytes) -> Any:
        """Decodes the text of a message."""
        try:
            return decode(text)
        except (ArithmeticError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise malformed(f"a frame that is not JSON, or too deep: {error}") from None

    def _keep(self, message: Any, size: int) -> None:
        if not isinstance(message, dict):
            raise malformed("a message that is not an object")
        error, id = message.get("error"), message.get("id")
        if "method" in message:
            self._keep_notification(message["method"], message.get("params", {}), size)
        elif "error" in message and not (isinstance(error, dict) and "code" in error and "message" in error):
            raise malformed("an error without a code and a message")
        elif "error" not in message and "result" not in message:
            raise malformed("an answer without a result")
        elif id is None and isinstance(error, dict) and not self._waiting:
            raise Refused(error)
        else:
            # The daemon cannot name a request that it could not read. It answers in order, so it is the oldest one.
            self._keep_answer(next(iter(self._waiting)) if id is None and isinstance(error, dict) else id, message)

    def _keep_answer(self, id: Any, message: Dict[str, Any]) -> None:
        if isinstance(id, int) and id in self._waiting:
            watched = self._waiting.pop(id)
            if watched is not None and "result" in message:
                self._end_watch(watched)
            if id in self._forgotten:
                self._forgotten.remove(id)
            else:
                self._answers[id] = message

    def _keep_notification(self, method: Any, params: Any, size: int) -> None:
        if not isinstance(method, str) or not isinstance(params, dict):
            raise malformed("a notification without a name or with other parameters than an object")
        if method == "bye":
            self.bye = Closed(str(params.get("message", "bye")), params.get("reason"))
            return
        self.queued += size
        if self.queued > MAX_QUEUED:
            raise malformed("more notifications than this client keeps")
        feed = params.get("feed")
        self._received += 1
        queue = self._notifications.setdefault(feed if isinstance(feed, str) else None, collections.deque())
        queue.append((self._received, Notification(method, params), size))

    def _end_watch(self, feed: str) -> None:
        """Drops what a watch sent that ended, or was replaced by another one of the same feed."""
        self.queued -= sum(size for _, _, size in self._notifications.pop(feed, ()))


def framed(text: bytes) -> bytes:
    """Returns a message with its length before it."""
    return struct.pack(">I", len(text)) + text


def result(message: Dict[str, Any]) -> Any:
    """Returns the result of an answer. Raises Refused for an error."""
    if "error" in message:
        raise Refused(message["error"])
    return message["result"]


def watched(feed: str, result: Any) -> Dict[str, Any]:
    """Returns the result of a `watch` of a feed. Raises Malformed if it is of anything else."""
    if not isinstance(result, dict) or (isinstance(feed, str) and result.get("feed") != feed):
        raise malformed("a result of watch that is not of the feed")
    return result


def malformed(what: str) -> Malformed:
    """Returns the error for what no daemon sends."""
    return Malformed(f"the daemon does not speak this protocol: {what}")
