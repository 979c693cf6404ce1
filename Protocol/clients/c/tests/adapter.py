"""The C client behind the interface of the Python one, so that both run the same tests."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "python"
sys.path[:0] = [str(PYTHON / "tests")]

import support  # noqa: E402
from support import feedd  # noqa: E402
from feedd._text import decode, encode  # noqa: E402

STATUSES = "ok again refused invalid full timeout closed malformed gap memory".split()
KINDS = "answer error snapshot delta bookmark selection bye other".split()
FLAGS = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


class Value(ctypes.Structure):
    _fields_ = [("text", ctypes.POINTER(ctypes.c_char)), ("size", ctypes.c_size_t)]

    def bytes(self):
        return ctypes.string_at(self.text, self.size) if self.size else b""


class Message(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("id", ctypes.c_int64), ("feed", Value), ("body", Value), ("whole", Value)]


def compiler():
    """Returns the C compiler; skips the test when there is none."""
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if not found:
        raise unittest.SkipTest("there is no C compiler")
    return found


def library():
    """Builds and loads the client, once."""
    if library.loaded is None:
        library.folder = tempfile.TemporaryDirectory(prefix="feedd-test-")
        path = os.path.join(library.folder.name, "libfeedd.so")
        subprocess.run([compiler(), *FLAGS, "-O1", "-shared", "-fPIC", HERE.parent / "feedd.c", "-o", path], check=True)
        library.loaded = c = ctypes.CDLL(path)
        for name, result, arguments in (
            ("feedd_mirror_new", ctypes.c_void_p, []),
            ("feedd_mirror_free", None, [ctypes.c_void_p]),
            ("feedd_mirror_start", ctypes.c_int, [ctypes.c_void_p, Value]),
            ("feedd_mirror_apply", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]),
            ("feedd_mirror_is_whole", ctypes.c_bool, [ctypes.c_void_p]),
            ("feedd_mirror_revision", ctypes.c_int64, [ctypes.c_void_p]),
            ("feedd_mirror_since", ctypes.c_char_p, [ctypes.c_void_p]),
            ("feedd_mirror_sections", ctypes.c_size_t, [ctypes.c_void_p]),
            ("feedd_mirror_rows", ctypes.c_size_t, [ctypes.c_void_p, ctypes.c_size_t]),
            ("feedd_mirror_name", Value, [ctypes.c_void_p, ctypes.c_size_t]),
            ("feedd_mirror_key", Value, [ctypes.c_void_p, ctypes.c_size_t]),
            ("feedd_mirror_element", Value, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]),
            ("feedd_mirror_type", Value, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]),
            ("feedd_mirror_digest", ctypes.c_uint32, [ctypes.c_void_p]),
            ("feedd_open", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]),
            ("feedd_close", None, [ctypes.c_void_p]),
            ("feedd_reason", ctypes.c_char_p, [ctypes.c_void_p]),
            ("feedd_next", ctypes.c_int, [ctypes.c_void_p, ctypes.c_void_p]),
            ("feedd_wait", ctypes.c_int, [ctypes.c_void_p, ctypes.c_int]),
            ("feedd_call", ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]),
            ("feedd_json", ctypes.c_bool, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]),
            ("feedd_string", ctypes.c_size_t, [Value, ctypes.c_char_p, ctypes.c_size_t]),
            ("feedd_integer", ctypes.c_bool, [Value, ctypes.c_void_p]),
            ("feedd_follow", ctypes.c_void_p, [ctypes.c_char_p] * 4),
            ("feedd_follower_wait", ctypes.c_int, [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]),
            ("feedd_follower_free", None, [ctypes.c_void_p]),
            ("feedd_follower_reason", ctypes.c_char_p, [ctypes.c_void_p]),
        ):
            function = getattr(c, name)
            function.restype, function.argtypes = result, arguments
    return library.loaded


library.loaded = None


def value(text):
    """Returns a checked value. The bytes must outlive it."""
    result = Value()
    if not library().feedd_json(text, len(text), ctypes.byref(result)):
        raise ValueError(f"not JSON: {text[:50]!r}")
    return result


def raise_for(status, reason):
    name = STATUSES[status]
    if name == "refused":
        raise feedd.Refused(reason)
    kinds = {"timeout": TimeoutError, "gap": feedd.Gap, "invalid": ValueError, "malformed": feedd.Malformed, "memory": MemoryError}
    raise kinds.get(name, feedd.Closed)(reason)


class Connection:
    """A connection with the methods of `feedd.Connection`."""

    def __init__(self, path, client="test", timeout=None):
        self.c, self.timeout, self.queue = library(), timeout, []
        pointer = ctypes.c_void_p()
        status = self.c.feedd_open(ctypes.byref(pointer), path.encode(), client.encode())
        if status:
            raise OSError(STATUSES[status])
        self.handle = pointer

    def call(self, method, **params):
        text = encode({name.rstrip("_"): value for name, value in params.items()})
        found = Value()
        limit = -1 if self.timeout is None else int(self.timeout * 1000)
        status = self.c.feedd_call(self.handle, method.encode(), text, limit, ctypes.byref(found))
        if status == 0:
            return decode(b'{"result":%s}' % found.bytes())["result"]
        if STATUSES[status] == "refused":
            raise feedd.Refused(decode(b'{"result":%s}' % found.bytes())["result"])
        raise_for(status, self.c.feedd_reason(self.handle).decode())

    def push(self, feed, elements):
        for element in elements:
            self.call("update", feed=feed, element=element)

    def watch(self, feed, **options):
        options.setdefault("spanning", True)
        return Watch(self, feed, self.call("watch", feed=feed, **options))

    def notification(self, feed=None, timeout=None):
        while True:
            for place, message in enumerate(self.queue):
                if feed is None or message.params.get("feed") == feed:
                    return self.queue.pop(place)
            status = self.c.feedd_wait(self.handle, -1 if timeout is None else int(timeout * 1000))
            if status:
                raise_for(status, "")
            message = Message()
            status = self.c.feedd_next(self.handle, ctypes.byref(message))
            if STATUSES[status] == "again":
                continue
            if status:
                raise_for(status, self.c.feedd_reason(self.handle).decode())
            decoded = decode(message.whole.bytes())
            self.queue.append(feedd.Notification(decoded["method"], decoded["params"]))

    def close(self):
        self.c.feedd_close(self.handle)
        self.handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Watch:
    def __init__(self, connection, feed, result):
        self.connection, self.feed, self.result = connection, feed, result

    def next(self, timeout=None):
        return self.connection.notification(self.feed, timeout)


class Section:
    def __init__(self, c, mirror, place):
        rows = range(c.feedd_mirror_rows(mirror, place))
        self.name = decode(c.feedd_mirror_name(mirror, place).bytes())
        key = c.feedd_mirror_key(mirror, place).bytes()
        self.key = decode(key) if key else None
        self.elements = [c.feedd_mirror_element(mirror, place, row).bytes() for row in rows]
        types = [c.feedd_mirror_type(mirror, place, row).bytes() for row in rows]
        self.types = [decode(type) if type else None for type in types]


class Mirror:
    """A copy with the members of `feedd.Mirror`."""

    def __init__(self, result):
        self.c, self.feed = library(), result["feed"]
        self.handle = ctypes.c_void_p(self.c.feedd_mirror_new())
        self.restart(result)

    def __del__(self):
        self.c.feedd_mirror_free(self.handle)

    def restart(self, result):
        text = encode(result)
        self._check(self.c.feedd_mirror_start(self.handle, value(text)))

    def apply(self, notification):
        text = encode(notification.params)
        kind = KINDS.index(notification.method) if notification.method in KINDS else KINDS.index("other")
        message, changed = Message(kind=kind, body=value(text)), ctypes.c_bool()
        self._check(self.c.feedd_mirror_apply(self.handle, ctypes.byref(message), ctypes.byref(changed)))
        return changed.value

    def _check(self, status):
        if status:
            raise_for(status, STATUSES[status])

    @property
    def whole(self):
        return self.c.feedd_mirror_is_whole(self.handle)

    @property
    def revision(self):
        return self.c.feedd_mirror_revision(self.handle)

    @property
    def since(self):
        text = self.c.feedd_mirror_since(self.handle)
        return decode(text) if text else None

    @property
    def sections(self):
        return [Section(self.c, self.handle, place) for place in range(self.c.feedd_mirror_sections(self.handle))]

    def counts(self):
        return [self.c.feedd_mirror_rows(self.handle, s) for s in range(self.c.feedd_mirror_sections(self.handle))]

    def values(self):
        return [[feedd.loads(element) for element in section.elements] for section in self.sections]

    def digest(self):
        return f"{self.c.feedd_mirror_digest(self.handle):08x}"
