"""The vectors of framing: bytes against a real socket."""

import socket
import struct
import unittest

import support
from feedd._text import decode


class Wire:
    """A socket and the frames that come out of it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(support.PATIENCE)
        self.socket.connect(path)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            if not piece:
                return data
            data += piece
        return data

    def frame(self):
        """The next message, or None at the end of the stream."""
        head = self.exactly(4)
        if not head:
            return None
        (length,) = struct.unpack(">I", head)
        body = self.exactly(length)
        assert len(body) == length, "the stream ended inside a frame"
        return decode(body)


class Framing(support.DaemonTest):
    def test_framing(self):
        for case in support.cases("framing"):
            with self.subTest(case["name"].value):
                self.play(case)
        self.assertEqual(self.connection.call("ping"), {}, "nobody else is disturbed")

    def play(self, case):
        wire = Wire(self.daemon.path)
        self.addCleanup(wire.socket.close)
        expected = [decode(support.raw(message)) for message in case["expect"].items]
        try:
            for piece in case["send"].value:
                wire.socket.sendall(bytes.fromhex(piece))
        except BrokenPipeError:
            pass  # The daemon may close before the last of many writes.
        if case.get("end"):
            wire.socket.shutdown(socket.SHUT_WR)
        for message in expected:
            self.match(message, wire.frame())
        if case["closed"].value:
            self.assertIsNone(wire.frame())
        else:
            ping = b'{"jsonrpc":"2.0","id":"last","method":"ping"}'
            wire.socket.sendall(struct.pack(">I", len(ping)) + ping)
            self.match({"id": "last", "result": {}}, wire.frame())
        wire.socket.close()

    def match(self, expected, found):
        """Every member that is expected is there."""
        if isinstance(expected, dict):
            self.assertIsInstance(found, dict)
            for name, value in expected.items():
                self.assertIn(name, found)
                self.match(value, found[name])
        elif isinstance(expected, list):
            self.assertEqual(len(expected), len(found))
            for one, other in zip(expected, found):
                self.match(one, other)
        else:
            self.assertEqual(expected, found)
