"""Runs every example of the pages of the methods against a new daemon and compares the messages member by member."""

import unittest

import documents
from documents import METHODS, blocks, page, support, texts
from schemacheck import load, schema

#: Members whose values differ between runs. They are only checked against their schemas.
VARYING = {
    "capabilities",
    "definitionBytes",
    "elementBytes",
    "logBytes",
    "memoryBytes",
    "epoch",
    "server",
    "uid",
    "pid",
    "uptime",
    "connected",
    "bytesIn",
    "bytesOut",
    "limits",
    "queuedBytes",
    "held",
    "heldBytes",
    "message",
}


def comparable(node):
    """Returns the value with numbers as text and without the varying members."""
    if node.kind == "object":
        return {name: None if name in VARYING else comparable(value) for name, value in node.items}
    return [comparable(item) for item in node.items] if node.kind == "array" else node.text


def exchange(connection, request):
    """Sends a request and a `sync`, and returns the messages before the response to the `sync`."""
    received = []
    connection.transmit(support.raw(request))
    connection.transmit(b'{"jsonrpc":"2.0","id":"sync","method":"sync"}')
    while True:
        message = texts.parse(connection.receive_text().decode("utf-8"))
        if "id" in dict(message.items) and message["id"].text == '"sync"':
            return received
        received.append(message)


class Examples(unittest.TestCase):
    def test_examples(self):
        documents.support.binary("feedd")
        for method in METHODS:
            with self.subTest(method):
                self.play(method)

    def play(self, method):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        connection = daemon.connect("example")
        self.addCleanup(connection.close)
        setup = (documents.PROTOCOL / "methods" / "README.md").read_text(encoding="utf-8")
        for text in blocks(setup, "json"):
            [answer] = exchange(connection, texts.parse(text))
            self.assertIn("result", dict(answer.items))
        if method == "kick":
            self.addCleanup(daemon.connect("other").close)
        messages = [texts.parse(text) for text in blocks(page(method), "json")]
        self.assertTrue(messages)
        while messages:
            request = messages.pop(0)
            self.assertEqual(request["method"].value, method)
            parameters = load(request.get("params", texts.parse("{}")).text)
            schema(f"methods/{method}", "/$defs/params").check(parameters)
            expected = []
            while messages and not (messages[0].get("method") and messages[0].get("id")):
                expected.append(messages.pop(0))
            found = exchange(connection, request)
            self.assertEqual([comparable(message) for message in found], [comparable(message) for message in expected])
            for message in found:
                self.valid(method, message)

    def valid(self, method, message):
        schema("message").check(load(message.text))
        if message.get("result"):
            schema(f"methods/{method}", "/$defs/result").check(load(message["result"].text))
        elif message.get("params"):
            schema(f"notifications/{message['method'].value}").check(load(message["params"].text))
