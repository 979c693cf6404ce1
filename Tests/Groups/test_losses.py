"""A server that loses the end of the log and stores other messages in its place."""

import json
import os
import shutil
import unittest

from group_processes import publish, request, wait_for
from group_testing import GroupTest, collection, state


class Losses(GroupTest):
    def folder(self):
        return os.path.join(self.servers.processes[0].directory, "store", "jetstream", "$G", "streams", self.stream)

    def saved(self):
        return os.path.join(self.directory, "saved")

    def last(self):
        return request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["last_seq"]

    def image(self, client):
        return client.call("group").get("image", {}).get("position", 0)

    def test_an_image_that_was_made_of_lost_messages_is_not_used(self):
        (first, a), (second, b), (third, d) = self.start("a"), self.start("b"), self.start("d")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "kept", "n": 1})
        self.await_same(a, b)
        self.servers.processes[0].end()
        shutil.copytree(self.folder(), self.saved())
        self.servers.start()
        for place in range(3):
            wait_for(lambda: a.error("update", feed="inbox", element={"id": f"lost {place}", "n": place}) is None, 30, "storing")
        a.call("group", action="image")
        position = wait_for(lambda: self.image(a), 20, "image")
        self.await_same(a, b, d)
        third.end()
        # The server has what it had before, and stores more than it lost.
        end = self.last()
        self.servers.processes[0].end()
        shutil.rmtree(self.folder())
        shutil.copytree(self.saved(), self.folder())
        self.servers.start()
        self.assertLess(self.last(), position)
        while self.last() < end + 2:
            publish(self.port, self.subject, b"another message")
        # Both notice it without a push, and so does a member that begins with nothing.
        for daemon in (first, second):
            wait_for(lambda: "stops serving and begins again" in daemon.text(), 60, "the loss")
        _, c = self.start("c")
        third.start()
        clients = []
        for daemon in (first, second, third):
            clients.append(wait_for(lambda: (client := daemon.connect()) and "lost" not in self.text(client) and client, 60, "the log"))
        self.assertIn("was made of messages that the servers lost; it is not used", third.text())
        # What the servers lost remains on the host that had published an image of it, and ran.
        folder = os.path.join(first.state, f"group-{self.group}")
        kept = wait_for(lambda: [name for name in os.listdir(folder) if name.startswith("former-")], 5, "former image")
        with open(os.path.join(folder, kept[0]), "rb") as file:
            self.assertIn(b"lost 2", file.read())
        self.await_same(*clients, c)
        self.assertIn("kept", self.text(c))
        clients[0].call("update", feed="inbox", element={"id": "after", "n": 2})
        self.await_same(*clients, c)
        self.assertEqual(state(c), state(clients[1]))

    def test_an_image_of_more_than_the_servers_have_is_not_used(self):
        first, a = self.start("a")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "kept", "n": 1})
        self.servers.processes[0].end()
        shutil.copytree(self.folder(), self.saved())
        self.servers.start()
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "lost", "n": 2}) is None, 30, "storing")
        a.call("group", action="image")
        position = wait_for(lambda: self.image(a), 20, "image")
        self.servers.processes[0].end()
        shutil.rmtree(self.folder())
        shutil.copytree(self.saved(), self.folder())
        self.servers.start()
        self.assertLess(self.last(), position)
        wait_for(lambda: "stops serving and begins again" in first.text(), 60, "the loss")
        a = wait_for(lambda: (client := first.connect()) and "lost" not in self.text(client) and client, 60, "the log")
        self.assertRegex(
            first.text(), r"made of messages that the servers lost; it is not used, and kept as \S+/former-[0-9a-f]+\.sqlite for")
        self.assertIn("kept", self.text(a))
        c = self.daemon("c")
        c.start()
        self.await_same(a, c.ready(60))

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

    def test_a_message_that_the_servers_lost_from_the_middle(self):
        (_, a), (second, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        self.await_same(a, b)
        second.end()
        for place in range(10):
            a.call("update", feed="inbox", element={"id": place, "n": place})
        request(self.port, f"$JS.API.STREAM.MSG.DELETE.{self.stream}", {"seq": self.last() - 5})
        # The member whose own image is older than the gap takes that of the group.
        a.call("group", action="image")
        wait_for(lambda: self.image(a), 20, "image")
        second.start()
        b = second.ready()
        _, c = self.start("c")
        self.await_same(a, b, c)
        # Without one, a start says what to do, and it helps.
        second.end()
        a.call("update", feed="inbox", element={"id": "after", "n": 1})
        request(self.port, f"$JS.API.STREAM.MSG.DELETE.{self.stream}", {"seq": self.last()})
        self.assertIn("are missing and no image covers them; publish one with 'feedclient group image'", self.failure("d"))
        position = self.image(a)
        a.call("group", action="image")
        wait_for(lambda: self.image(a) > position, 20, "image")
        second.start()
        self.await_same(a, second.ready())

    @staticmethod
    def text(client):
        return json.dumps(client.call("snapshot", feed="inbox"))
