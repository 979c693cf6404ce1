"""The command: `python3 -m feedd`."""

from __future__ import annotations

import itertools
import os
import re
import signal
import stat
import sys
from typing import Any, List, Optional

from ._connection import Connection
from ._errors import Gap, Refused
from ._mirror import Mirror
from ._text import encode, loads

#: What must not reach a terminal: control characters and line separators.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

_USAGE = """usage: python3 -m feedd [--socket PATH] push FEED [ELEMENT...|-]
       python3 -m feedd [--socket PATH] watch FEED [COUNT]     print the notifications, one a line
       python3 -m feedd [--socket PATH] mirror FEED [COUNT]    print revision, counts and digest of a copy after each change
       python3 -m feedd [--socket PATH] verify FEED
       python3 -m feedd [--socket PATH] call METHOD [PARAMS]"""


class _ReaderEnded(Exception):
    """The reader of the output has ended."""


def main(arguments: List[str]) -> int:
    """Runs a command. Returns 0 on success, 1 if refused, 2 for a usage error or failed output, 3 without a daemon, 5 for a gap."""
    path = None
    if arguments[:1] == ["--socket"] and len(arguments) > 1:
        path, arguments = arguments[1], arguments[2:]
    commands: Any = {"push": _push, "watch": _watch, "mirror": _mirror, "verify": _verify, "call": _call}
    if len(arguments) < 2 or arguments[0] not in commands:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        with Connection(path) as connection:
            commands[arguments[0]](connection, *arguments[1:])
    except _ReaderEnded:
        return 0
    except (Refused, Gap, ValueError, OSError, TypeError) as error:
        print(_CONTROL.sub("\ufffd", str(error)), file=sys.stderr)
        return 1 if isinstance(error, Refused) else 5 if isinstance(error, Gap) else 3 if isinstance(error, OSError) else 2
    return 0


def _push(connection: Connection, feed: str, *elements: str) -> None:
    is_input = elements in ((), ("-",))
    if is_input and sys.stdin is None:
        raise ValueError("cannot read from standard input: it is closed")
    lines = sys.stdin.buffer if is_input else (element.encode() for element in elements)
    texts = (line.strip() for line in lines)
    # What comes from a program may come slowly, so that no line waits for the next one.
    batch = 1 if is_input and not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode) else 256
    _print({"pushed": connection.push(feed, (text for text in texts if text), batch=batch)})


def _print(value: object) -> None:
    text = encode(value)
    if sys.stdout is None:
        raise ValueError("cannot write to standard output: it is closed")
    if sys.stdout.isatty():
        text = _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text.decode("utf-8", "replace")).encode("utf-8")
    try:
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise _ReaderEnded from None
    except OSError as error:
        raise ValueError(f"cannot write to standard output: {error.strerror}") from error


def _watch(connection: Connection, feed: str, count: Optional[str] = None) -> None:
    # Readers of printed notifications expect each part of a snapshot within one section.
    for message in itertools.islice(connection.watch(feed, spanning=False), int(count) if count else None):
        _print({"method": message.method, "params": message.params})


def _mirror(connection: Connection, feed: str, count: Optional[str] = None) -> None:
    watch = connection.watch(feed)
    mirror = Mirror(watch.result)
    for _ in itertools.islice(filter(mirror.apply, watch), int(count) if count else None):
        _print({"revision": mirror.revision, "counts": mirror.counts(), "digest": mirror.digest()})


def _verify(connection: Connection, feed: str) -> None:
    _print(connection.call("verify", feed=feed))


def _call(connection: Connection, method: str, params: str = "{}") -> None:
    members = loads(params)
    if not isinstance(members, dict):
        raise ValueError("PARAMS must be a JSON object of named parameters")
    _print(connection.call(method, **members))


if __name__ == "__main__":
    # An interrupt ends the process without a traceback, unless it is ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = main(sys.argv[1:])
    # The interpreter would write again, and complain, what a reader that has ended did not take.
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
