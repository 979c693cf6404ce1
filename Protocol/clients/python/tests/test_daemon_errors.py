"""The vectors of errors: the code and the data of every refusal, and that nothing has changed."""

import unittest

import support
from support import feedd, params, raw
from feedd._text import encode
from reference import texts


class Errors(support.DaemonTest):
    def test_errors(self):
        source = (support.vectors.FOLDER / "errors.json").read_text(encoding="utf-8")
        document = texts.parse(source)
        for step in document["setup"].items:
            self.connection.call(step["method"].value, **params(step["params"]))
        before = self.state()
        for case in document["cases"].items:
            with self.subTest(case["name"].value):
                error = self.play(case)
                self.assertEqual(error["code"], case["error"]["code"].value, error)
                self.assertLessEqual(case["error"]["data"].value.items(), error["data"].items(), error)
                self.assertRegex(error["message"], r"\A[^\s].* .*[^\s]\Z", "a sentence")
                self.assertEqual(self.state(), before)

    def play(self, case):
        request = dict(case["request"].items)
        if "params" in request and not request.keys() & {"jsonrpc", "id"}:
            request = {"jsonrpc": "2.0", "id": "x", **request}
        self.connection.transmit(encode({name: raw(texts.node(value)) for name, value in request.items()}))
        answer = self.connection.receive()
        usable = isinstance(request.get("id"), str) or texts.node(request.get("id")).kind == "string"
        self.assertEqual(answer["id"], "x" if usable else None)
        return answer["error"]

    def state(self):
        """Everything that a refused request must leave as it is."""
        definitions = self.connection.call("feeds")["feeds"]
        digests = [self.connection.call("verify", feed=feed["feed"]) for feed in definitions]
        return definitions, digests, self.connection.call("sync")["revision"]
