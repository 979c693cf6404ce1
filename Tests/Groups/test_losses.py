"""A server that loses the end of the log and stores other messages in its place, or one message."""

import os
import shutil

from group_processes import publish, request, wait_for
from group_testing import LossTest, collection, state


class Losses(LossTest):
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
