"""Servers whose copies of the log differ, and what makes them equal again."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import nats_copies
from group_processes import nats_server, nats_version, request, wait_for
from group_testing import GroupTest


PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Protocol/groups.md")


@unittest.skipIf(nats_server() and nats_version() < (2, 11), "older servers often do not find a leader after such a start")
class Copies(GroupTest):
    server_count = 3

    def store(self, place):
        return os.path.join(self.servers.processes[place].directory, "store")

    def copies(self):
        return [nats_copies.copy(self.store(place), self.stream) for place in range(3)]

    def info(self, port):
        return request(port, f"$JS.API.STREAM.INFO.{self.stream}", {})

    def is_complete(self):
        for port in self.servers.ports:
            cluster = self.info(port).get("cluster", {})
            copies = cluster.get("replicas", [])
            if not cluster.get("leader") or len(copies) != 2 or not all(copy["current"] for copy in copies):
                return False
        return True

    def write(self, name):
        """Stores messages, which members skip, and waits until all servers have them."""
        for place in range(5):
            message = {"name": name, "place": place}
            wait_for(lambda: "seq" in request(self.servers.ports[0], self.subject, message), 30, "storing")
        wait_for(self.is_complete, 30, "complete copies")

    def end_servers(self):
        for server in self.servers.processes:
            server.end()

    def forge(self):
        """Lets the third server have other messages than the other ones, under the same numbers."""
        daemon, client = self.start("a", "--log-timeout", "20s")
        client.call("define", feed="list", kind="array")
        client.call("insert", feed="list", elements=[{"id": "before"}])
        daemon.end()
        wait_for(self.is_complete, 30, "complete copies")
        self.end_servers()
        for place in range(3):
            shutil.copytree(self.store(place), self.saved(f"store{place}"))
        self.servers.start()
        self.write("x")
        self.end_servers()
        shutil.copytree(self.store(2), self.saved("other"))
        for place in range(3):
            shutil.rmtree(self.store(place))
            shutil.copytree(self.saved(f"store{place}"), self.store(place))
        self.servers.start()
        self.write("y")
        self.end_servers()
        shutil.rmtree(self.store(2))
        shutil.copytree(self.saved("other"), self.store(2))
        self.assertIsNotNone(nats_copies.difference(self.copies()))
        self.servers.start()
        wait_for(self.is_complete, 60, "complete copies")
        self.assertIsNotNone(nats_copies.difference(self.copies()))

    def saved(self, name):
        return os.path.join(self.directory, name)

    def are_equal(self):
        copies = self.copies()
        return copies[0] == copies[1] == copies[2]

    def compare(self):
        """All copies are equal, and members begin with them and store changes."""
        wait_for(lambda: self.is_complete() and self.are_equal(), 60, "equal copies")
        (_, b), (_, c) = self.start("b", "--log-timeout", "20s"), self.start("c", "--log-timeout", "20s")
        b.call("insert", feed="list", elements=[{"id": "after"}])
        self.await_same(b, c, feed="list")

    def test_servers_that_begin_with_an_empty_store_copy_the_leader(self):
        self.forge()
        leader = self.info(self.servers.ports[0])["cluster"]["leader"]
        for place, server in enumerate(self.servers.processes):
            if f"n{place}" == leader:
                continue
            server.end()
            shutil.rmtree(self.store(place))
            server.start()
            wait_for(self.is_complete, 60, "complete copies")
        self.compare()

    def test_one_copy_and_then_three_again(self):
        self.forge()
        # The program of the page.
        with open(PAGE, encoding="utf-8") as file:
            [text] = re.findall(r"<<'END'\n(.*?)\nEND\n", file.read(), re.DOTALL)
        done = subprocess.run([sys.executable, "-", "127.0.0.1", str(self.servers.ports[0]), self.stream], input=text,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(list(dict.fromkeys(done.stdout.splitlines())), ["copies: 1", "copies: 3"])
        self.compare()
