"""Servers that forget the history of a group."""

import os

from group_processes import request, wait_for
from group_testing import LossTest, collection


class Forgotten(LossTest):
    def test_no_history_begins_anew_in_an_empty_stream_of_the_same_epoch(self):
        first, a = self.start("a")
        a.call("define", **collection())
        a.call("group", action="image")
        wait_for(lambda: self.image(a), 20, "image")
        a.call("update", feed="inbox", element={"id": "newest", "n": 1})
        epoch = a.call("hello")["epoch"]
        settings = request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["config"]
        request(self.port, f"$JS.API.STREAM.DELETE.{self.stream}", {})
        request(self.port, f"$JS.API.STREAM.CREATE.{self.stream}", settings)
        # It waits for the servers while it runs, and again before it gives up.
        first.process.wait(120)
        self.assertIn("the servers have forgotten the history of the group", first.text())
        self.assertIn(f"stream {self.stream} is empty, and an image covers its messages", first.text())
        self.assertIn(f"stream {self.stream} is empty, and an image covers its messages", self.failure("b"))
        request(self.port, f"$JS.API.STREAM.DELETE.{self.stream}", {})
        first.start()
        self.assertNotEqual(first.ready(60).call("hello")["epoch"], epoch)
        with open(os.path.join(first.state, f"group-{self.group}", f"former-{epoch}.sqlite"), "rb") as file:
            self.assertIn(b'"newest"', file.read())

    def test_the_image_of_a_forgotten_history_is_kept(self):
        for newest in (False, True):
            with self.subTest(newest=newest):
                first, a = self.start(f"a{newest}")
                a.call("define", **collection())
                a.call("update", feed="inbox", element={"id": "precious", "n": 1})
                epoch = a.call("hello")["epoch"]
                first.end()
                # The servers forget the group, and another member begins a new history, with or without an image.
                for stream in (self.stream, f"OBJ_{self.stream}"):
                    request(self.port, f"$JS.API.STREAM.DELETE.{stream}", {})
                second, b = self.start(f"b{newest}")
                b.call("define", **collection("other"))
                if newest:
                    b.call("group", action="image")
                    wait_for(lambda: self.image(b), 20, "image")
                first.start()
                wait_for(lambda: first.connect().call("hello"), 30, "member")
                folder = os.path.join(first.state, f"group-{self.group}")
                former = os.path.join(folder, f"former-{epoch}.sqlite")
                self.assertIn(f"the image of the former one is kept as {former}", first.text())
                with open(former, "rb") as file:
                    self.assertIn(b"precious", file.read())
                first.end()
                second.end()

    def test_the_newest_state_of_a_forgotten_history_is_kept(self):
        first, a = self.start("a")
        a.call("define", **collection())
        # An image of this size is not written after each batch.
        for place in range(1500):
            a.call("update", feed="inbox", element={"id": place, "n": place % 100, "text": "x" * 2000})
        a.call("group", action="image")
        wait_for(lambda: self.image(a), 20, "image")
        a.call("update", feed="inbox", element={"id": "newest", "n": 1})
        epoch = a.call("hello")["epoch"]
        for stream in (self.stream, f"OBJ_{self.stream}"):
            request(self.port, f"$JS.API.STREAM.DELETE.{stream}", {})
        former = os.path.join(first.state, f"group-{self.group}", f"former-{epoch}.sqlite")
        wait_for(lambda: f"is kept as {former}" in first.text(), 30, "the new history")
        self.assertIn("the servers have forgotten the history of the group", first.text())
        with open(former, "rb") as file:
            self.assertIn(b'"newest"', file.read())
