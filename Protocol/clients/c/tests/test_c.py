"""The C client: the tests of the Python one through it, and what only C has."""

import ctypes
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest
from unittest import mock

import adapter
from adapter import FLAGS, HERE, Message, Value, compiler, library, support
from support import PATIENCE, feedd
import test_aio
import test_daemon_exchanges
import test_daemon_feeds
import test_daemon_vectors
import test_mirror
from test_hostile import UNREADABLE, HostileDaemon, answer, framed


def setUpModule():
    library()
    for patch in (
        mock.patch.object(support.Daemon, "connection", adapter.Connection),
        mock.patch.object(feedd, "Mirror", adapter.Mirror),
        mock.patch.object(test_mirror, "Mirror", adapter.Mirror),
    ):
        patch.start()
        unittest.addModuleCleanup(patch.stop)


def tearDownModule():
    library.loaded = None
    library.folder.cleanup()


class Vectors(test_mirror.Vectors):
    pass


class Gaps(test_mirror.Gaps):
    pass


class Courses(test_mirror.Courses):
    pass


class Bins(test_daemon_vectors.Bins):
    pass


class Sorting(test_daemon_vectors.Sorting):
    pass


class Identities(test_daemon_vectors.Identities):
    pass


class Transactions(test_daemon_vectors.Transactions):
    pass


class Feeds(test_daemon_feeds.Feeds):
    pass


class Expiry(test_daemon_feeds.Expiry):
    pass


class Slots(test_daemon_feeds.Slots):
    pass


class Exchanges(test_daemon_exchanges.Exchanges):
    pass


class Follower:
    """A follower as an iterator over `feedd.Update`s."""

    def __init__(self, path, feed):
        self.c = library()
        self.handle = ctypes.c_void_p(self.c.feedd_follow(path.encode(), b"test", feed.encode(), None))

    def __iter__(self):
        return self

    def __next__(self):
        update = Update()
        status = self.c.feedd_follower_wait(self.handle, PATIENCE * 1000, ctypes.byref(update))
        if adapter.STATUSES[status] == "closed":
            self.close()
            raise StopIteration
        if status:
            adapter.raise_for(status, {"code": 0, "message": "m"} if adapter.STATUSES[status] == "refused" else "")
        delta = adapter.decode(b'{"params":%s}' % update.delta.bytes())["params"] if update.delta.size else None
        kind = "ended" if delta and delta.get("ended") else adapter.KINDS[update.kind]
        return feedd.Update(Copy(self.c, update.mirror), kind, delta)

    def close(self):
        self.c.feedd_follower_free(self.handle)


class Update(ctypes.Structure):
    _fields_ = [("mirror", ctypes.c_void_p), ("kind", ctypes.c_int), ("delta", Value)]


class Copy(adapter.Mirror):
    """The mirror of a follower, which owns it. The same one is equal to itself."""

    copies = {}

    def __new__(cls, c, handle):
        return cls.copies.setdefault(handle, super().__new__(cls))

    def __init__(self, c, handle):
        self.c, self.handle = c, ctypes.c_void_p(handle)

    def __del__(self):
        pass


class Following(test_aio.Following):
    RESET_THAT_ENDS = "snapshot"

    def follow(self):
        return Follower(self.path, "a")

    def follow_on_asyncio(self):
        self.skipTest("the C client has one kind of follower")

    def test_no_daemon_for_too_long(self):
        c, update = library(), Update()
        handle = ctypes.c_void_p(c.feedd_follow(b"/nonexistent/s", b"test", b"a", None))
        self.assertEqual(adapter.STATUSES[c.feedd_follower_wait(handle, 100, ctypes.byref(update))], "timeout")
        self.assertEqual(c.feedd_follower_reason(handle), b"No such file or directory")
        c.feedd_follower_free(handle)
        with self.assertRaises(feedd.Refused):
            next(Follower(self.path, "nowhere"))

    def test_a_path_that_is_too_long(self):
        self.check_end(b"/" + b"s" * 200, "invalid", b"File name too long")

    def test_a_socket_that_may_not_be_opened(self):
        with self.locked():
            self.check_end(self.path.encode(), "closed", b"Permission denied")

    def test_options_with_which_there_is_no_copy(self):
        reason = b"a follower keeps a copy and does not take since, initial or elements: use feedd_watch"
        for options in (b'"elements":false', b'"throttle":1,"initial":false', b'"since":{"epoch":"e","revision":1}'):
            self.check_end(self.path.encode(), "invalid", reason, options)
        self.check_end(self.path.encode(), "invalid", b"params that are not a JSON object", b'"elements"')

    def check_end(self, path, status, reason, options=None):
        c, update = library(), Update()
        handle = ctypes.c_void_p(c.feedd_follow(path, b"test", b"a", options))
        for _ in range(2):
            self.assertEqual(adapter.STATUSES[c.feedd_follower_wait(handle, PATIENCE * 1000, ctypes.byref(update))], status)
        self.assertEqual(c.feedd_follower_reason(handle), reason)
        c.feedd_follower_free(handle)

    def test_a_daemon_that_lies(self):
        with self.assertRaises(feedd.Malformed):
            next(Follower(HostileDaemon(self, [framed(b"[")]).path, "a"))
        result = b'{"feed":"a","epoch":"e","revision":1,"resumed":false,"sections":[]}'
        wrong = framed(b'{"method":"snapshot","params":{"feed":"a","revision":9,"at":[0,0],"elements":[],"last":true}}')
        turns = [answer(2, result), wrong, None, answer(3, result), wrong]
        with self.assertRaises(feedd.Malformed):
            next(Follower(HostileDaemon(self, turns, True).path, "a"))

    def test_a_member_of_a_group_that_is_behind_is_asked_again(self):
        behind = framed(b'{"id":2,"error":{"code":-32008,"message":"behind"}}')
        c, update = library(), Update()
        handle = ctypes.c_void_p(c.feedd_follow(HostileDaemon(self, [behind]).path.encode(), b"test", b"f", None))
        while c.feedd_follower_reason(handle) != b"behind":
            self.assertEqual(adapter.STATUSES[c.feedd_follower_wait(handle, 10, ctypes.byref(update))], "timeout")
        c.feedd_follower_free(handle)


class Hostile(unittest.TestCase):
    def connect(self, *chunks):
        connection = adapter.Connection(HostileDaemon(self, *chunks).path, timeout=PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def test_what_no_daemon_sends(self):
        for text in (
            struct.pack(">I", 0),
            struct.pack(">I", 0xFFFFFFFF) + b"{",
            framed(b"{"),
            framed(b"\xff"),
            framed(b"[" * 100_000),
            framed(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
            framed(b"7"),
            framed(b"[7]"),
            framed(b'{"id":2}'),
            framed(b'{"id":2,"error":7}'),
            framed(b'{"id":2,"error":{"code":1}}'),
            framed(b'{"method":7}'),
            framed(b'{"method":"delta","params":[1]}'),
            framed(b'{"id":2,"result":NaN}'),
        ):
            with self.subTest(text[:30]):
                with self.assertRaises(feedd.Malformed):
                    self.connect([text]).call("ping")

    def test_streams_that_end(self):
        for chunks in ([], [b"\0\0"], [struct.pack(">I", 100) + b"{"], [framed(b'{"method":"bye","params":{}}')]):
            with self.subTest(chunks):
                with self.assertRaises(feedd.Closed) as caught:
                    self.connect(chunks).call("ping")
                self.assertEqual(type(caught.exception), feedd.Closed)

    def test_answers_that_nobody_asked_for(self):
        others = [answer(7), answer(-1), answer(1), framed(b'{"id":"2","result":1}'), framed(b'{"id":2.5,"result":1}')]
        self.assertEqual(self.connect([*others, answer(2, b"5")]).call("ping"), 5)

    def test_an_error_without_an_id_answers_the_oldest_request(self):
        connection, id, message = self.connect([answer(2), UNREADABLE, answer(4)]), ctypes.c_int64(), Message()
        for expected in (2, 3):
            self.assertEqual(connection.c.feedd_send(connection.handle, b"ping", None, ctypes.byref(id)), 0)
            self.assertEqual(id.value, expected)
        self.assertEqual(connection.call("ping"), {})
        for kind, expected in (("answer", 2), ("error", 3)):
            self.assertEqual(connection.c.feedd_next(connection.handle, ctypes.byref(message)), 0)
            self.assertEqual((adapter.KINDS[message.kind], message.id), (kind, expected))
        connection = self.connect([UNREADABLE])
        with self.assertRaises(feedd.Refused) as caught:
            connection.call("ping")
        self.assertEqual(caught.exception.code, -32007)

    def test_another_version(self):
        class Old(HostileDaemon):
            def _serve(self, chunks, stays, hello):
                with self._listener, self._listener.accept()[0] as peer:
                    peer.recv(1 << 16)
                    peer.sendall(chunks)
                    peer.recv(1)

        for text, kind in (
            (answer(1, b'{"protocol":2}'), feedd.Malformed),
            (framed(b'{"id":1,"error":{"code":-32602,"message":"no such protocol"}}'), feedd.Refused),
        ):
            connection = adapter.Connection(Old(self, text).path, timeout=PATIENCE)
            status = connection.c.feedd_call(connection.handle, b"ping", None, PATIENCE * 1000, None)
            self.assertEqual(adapter.STATUSES[status], "malformed" if kind is feedd.Malformed else "refused")
            connection.close()

    def test_after_bye_nothing_comes(self):
        connection = self.connect([framed(b'{"method":"bye","params":{"reason":"kicked","message":"go away"}}')], True)
        with self.assertRaisesRegex(feedd.Closed, "^go away$"):
            connection.call("ping")

    def test_a_daemon_that_says_nothing(self):
        connection = self.connect([], True)
        connection.timeout = 0.05
        with self.assertRaises(TimeoutError):
            connection.call("ping")

    def test_params_that_are_not_json_are_not_sent(self):
        connection = self.connect([], True)
        for params in (b"{", b"[]", b'{"a":1}}', b'{"a":\xff}', b"", b'{"a":01}'):
            status = connection.c.feedd_call(connection.handle, b"ping", params, 1000, None)
            self.assertEqual(adapter.STATUSES[status], "invalid", params)


class JSON(unittest.TestCase):
    def accepts(self, text):
        return library().feedd_json(text, len(text), ctypes.byref(Value()))

    def test_texts(self):
        good = (b"1", b" [ ] ", b'{"a":[{}],"b":-0.5e-3}', b'"\\u00e9\xc3\xa9\\ud800"', b"true", b"[[]]", b'{"":{"":null}}', b"0", b"1E9")
        bad = (b"", b" ", b"[1,]", b"[,1]", b"[1 2]", b'{"a"}', b'{"a":}', b'{"a":1,}', b"{1:2}", b"01", b"-", b"1.", b".5", b"1e", b"+1")
        worse = (b"tru", b"nul", b'"\n"', b'"\\x"', b'"\\u12"', b'"', b"[", b"]", b"{", b"}", b"[}", b"{]", b'"\xed\xa0\x80"', b'"\xc0\x80"')
        worst = (b'"\xf5\x80\x80\x80"', b"1 1", b"\xef\xbb\xbf1", b"1\x00", b"NaN", b"'a'", b"[1]]", b'{"a":1"b":2}', b'"\xe2\x82"')
        for text in good:
            self.assertTrue(self.accepts(text), text)
        for text in bad + worse + worst:
            self.assertFalse(self.accepts(text), text)
        self.assertTrue(self.accepts(b"[" * 10240 + b"]" * 10240))
        self.assertFalse(self.accepts(b"[" * 10241 + b"]" * 10241))

    def test_the_parsing_suite(self):
        folder = os.environ.get("FEEDD_JSON_SUITE")
        if not folder:
            self.skipTest("FEEDD_JSON_SUITE names no folder")
        for path in sorted(pathlib.Path(folder).glob("[yn]_*.json")):
            with self.subTest(path.name):
                text = path.read_bytes()
                deep = path.name == "n_structure_100000_opening_arrays.json"
                self.assertEqual(self.accepts(text), path.name.startswith("y_") and not deep)

    def test_strings(self):
        for text in ('"é\\n\\"\\/\\u00e9\\ud83d\\ude00\U0001f600"', '""', '"\\u0000a"', '"\\u20ac"'):
            expected = json.loads(text).encode()
            encoded = text.encode()
            for capacity in (0, 1, 2, 5, 100):
                buffer = ctypes.create_string_buffer(b"\xaa" * 101)
                length = library().feedd_string(adapter.value(encoded), buffer, capacity)
                self.assertEqual(length, len(expected))
                if capacity:
                    written = buffer.raw[: min(length + 1, capacity)].split(b"\0")[0] if b"\0" not in expected else None
                    if written is not None:
                        self.assertTrue(expected.startswith(written))
                        written.decode()
                self.assertEqual(buffer.raw[capacity], 0xAA)

    def test_integers(self):
        for text, expected in (
            (b"0", 0),
            (b"-0", 0),
            (b"9223372036854775807", 2**63 - 1),
            (b"-9223372036854775808", -(2**63)),
            (b"9223372036854775808", None),
            (b"-9223372036854775809", None),
            (b"99999999999999999999", None),
            (b"1.0", None),
            (b"1e3", None),
            (b'"1"', None),
        ):
            found = ctypes.c_int64()
            accepted = library().feedd_integer(adapter.value(text), ctypes.byref(found))
            self.assertEqual(found.value if accepted else None, expected, text)


    def test_numbers_in_a_locale_with_commas(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            command = ["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")]
            if not shutil.which("localedef") or subprocess.run(command, capture_output=True).returncode != 0:
                self.skipTest("localedef makes no locale here")
            program = os.path.join(folder, "double")
            source = b"""#include <feedd.h>
                #include <locale.h>
                int main(void) {
                  feedd_value v;
                  if (!setlocale(LC_ALL, "") || *localeconv()->decimal_point != ',' || !feedd_json("-1.25e1", 7, &v)) return 2;
                  return feedd_double(v, 0) == -12.5 ? 0 : 1;
                }"""
            files = ["-x", "c", "-", HERE.parent / "feedd.c", "-I", HERE.parent, "-o", program]
            subprocess.run([compiler(), *FLAGS, *files], input=source, check=True)
            environment = {**os.environ, "LOCPATH": folder, "LC_ALL": "de_DE.UTF-8"}
            self.assertEqual(subprocess.run([program], env=environment).returncode, 0)


class Programs(unittest.TestCase):
    def test_hostile_bytes_under_sanitizers(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            program = os.path.join(folder, "fuzz")
            sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
            command = [compiler(), "-std=c11", "-g", "-O1", "-DSTANDALONE", *sanitizers, HERE / "fuzz.c", "-o", program]
            built = subprocess.run(command, capture_output=True, text=True)
            if built.returncode != 0 and "asan" in built.stderr:
                self.skipTest(f"the compiler has no sanitizers: {built.stderr[-200:]}")
            self.assertEqual(built.returncode, 0, built.stderr)
            seed, count = str(os.getpid()), "200000" if os.environ.get("FEEDD_LONG") else "5000"
            done = subprocess.run([program, count, seed, HERE / "corpus" / "watch.txt"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"seed {seed}\n{done.stderr}")

    def test_the_example_with_pkg_config(self):
        if not shutil.which("make") or not shutil.which("pkg-config"):
            self.skipTest("make or pkg-config is not installed")
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            source = shutil.copytree(HERE.parent, os.path.join(folder, "source"))
            prefix = os.path.join(folder, "prefix")
            subprocess.run(["make", "-s", "-C", source, "install", f"PREFIX={prefix}"], check=True)
            environment = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "feedd"], env=environment, capture_output=True, text=True, check=True)
            program = os.path.join(folder, "watch")
            command = [compiler(), *FLAGS, os.path.join(source, "examples", "watch.c"), *flags.stdout.split(), "-o", program]
            subprocess.run(command, check=True)
            daemon = support.Daemon()
            self.addCleanup(daemon.stop)
            with feedd.Connection(daemon.path, timeout=PATIENCE) as connection:
                connection.call("define", feed="inbox", kind="collection")
                connection.call("update", feed="inbox", element=b'{"id":1,"v":1.10}')
                environment["FEEDD_SOCKET"] = daemon.path
                shown = subprocess.Popen([program, "inbox"], env=environment, stdout=subprocess.PIPE, text=True)
                self.assertEqual(shown.stdout.readline() + shown.stdout.readline(), 'revision 2\n  [0,0] {"id":1,"v":1.10}\n')
                connection.call("undefine", feed="inbox")
                self.assertEqual((shown.stdout.read(), shown.wait(PATIENCE)), ("revision 3\n", 1))
                shown.stdout.close()


if __name__ == "__main__":
    unittest.main()
