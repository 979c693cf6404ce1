"""What the tests share: the client on the path, the vectors, and a daemon of their own."""

import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import feedd  # noqa: E402
from reference import texts, vectors  # noqa: E402

#: No answer of a healthy daemon takes this long; a test that waits longer fails instead of hanging.
PATIENCE = 60


def cases(name):
    """The cases of a file of vectors, as nodes that keep every digit."""
    return texts.parse((vectors.FOLDER / f"{name}.json").read_text(encoding="utf-8"))["cases"].items


def raw(node):
    """An element as the client takes it: the bytes of its text."""
    return node.text.encode("utf-8")


def params(node):
    """The parameters of a request with every value as the text it has in the vectors."""
    return {name: raw(value) for name, value in node.items}


def binary(name):
    """The path of a built program; skips the test when none was built."""
    folder = os.environ.get("FEEDD_BIN_DIR")
    if not folder:
        raise unittest.SkipTest("FEEDD_BIN_DIR names no folder with feedd in it")
    return os.path.join(folder, name)


class Daemon:
    """A daemon on a socket of its own, ready when the constructor returns."""

    def __init__(self, *arguments, durability="memory", path=None):
        program = binary("feedd")
        self.folder = tempfile.TemporaryDirectory(prefix="feedd-test-")
        self.path = path or os.path.join(self.folder.name, "feedd.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(os.path.join(self.folder.name, "notify"))
            environment = dict(os.environ, NOTIFY_SOCKET=ready.getsockname())
            self.log = open(os.path.join(self.folder.name, "log"), "w+b")
            self.process = subprocess.Popen(
                [program, "--socket", self.path, "--durability", durability, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stderr=self.log,
            )
            if not self._is_ready(ready):
                self.log.seek(0)
                reason = self.log.read().decode("utf-8", "replace")
                self.stop()
                raise AssertionError(f"the daemon is not ready: {reason}")

    def _is_ready(self, notices):
        """Waits for the daemon to say so, for its end, or for patience to run out, whichever comes first."""
        end = os.pidfd_open(self.process.pid)
        try:
            while True:
                readable, _, _ = select.select([notices, end], [], [], PATIENCE)
                if notices not in readable:
                    return False
                if b"READY=1" in notices.recv(4096):
                    return True
        finally:
            os.close(end)

    #: The kind of connection that the tests use.
    connection = feedd.Connection

    def connect(self, client="test"):
        return self.connection(self.path, client=client, timeout=PATIENCE)

    def stop(self):
        """Ends the daemon; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        self.log.close()
        self.folder.cleanup()
        return status


class DaemonTest(unittest.TestCase):
    """Tests that share one daemon, each with a connection of its own; every feed is gone again after each."""

    arguments = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*cls.arguments)
        cls.addClassCleanup(cls.daemon.stop)

    def setUp(self):
        self.connection = self.daemon.connect()
        self.addCleanup(self.connection.close)
        self.addCleanup(self.clear)

    def clear(self):
        """Takes all feeds away, those that show others first."""
        with self.daemon.connect() as connection:
            left = [feed["feed"] for feed in connection.call("feeds")["feeds"]]
            while left:
                kept = []
                for feed in left:
                    try:
                        connection.call("undefine", feed=feed)
                    except feedd.Refused:
                        kept.append(feed)
                self.assertLess(len(kept), len(left), "feeds that cannot be taken away")
                left = kept

    def define(self, definition):
        """Defines a feed from the node or dictionary of its definition."""
        return self.connection.call(
            "define", **(params(definition) if isinstance(definition, texts.Node) else definition)
        )

    def mirror(self, feed, **options):
        """A watch on a connection of its own and a mirror that is whole."""
        connection = self.daemon.connect("mirror")
        self.addCleanup(connection.close)
        watch = connection.watch(feed, **options)
        mirror = feedd.Mirror(watch.result)
        while not mirror.whole:
            mirror.apply(watch.next(PATIENCE))
        return watch, mirror

    def refused(self, method, **given):
        """The error that the request is answered with."""
        with self.assertRaises(feedd.Refused) as caught:
            self.connection.call(method, **given)
        return caught.exception
