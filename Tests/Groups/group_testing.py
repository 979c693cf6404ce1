"""What the tests of groups have in common: servers, daemons, and tests of their states."""

import json
import os
import shutil
import signal
import unittest

from group_processes import Daemon, Servers, nats_server, program, request, temporary, wait_for


def collection(name="inbox"):
    return {"feed": name, "kind": "collection", "id": "$.id",
            "bins": [{"name": "low", "filter": "@.n < 50", "sort": [{"by": "$.n"}]},
                     {"name": "high", "filter": "@.n >= 50", "sort": [{"by": "$.n"}]}]}


def state(client, feed="inbox"):
    """The revision and the digest of a feed, and the daemon's revision."""
    digest = client.call("verify", feed=feed)
    return digest["revision"], digest["digest"]


@unittest.skipUnless(nats_server(), "nats-server is not installed; apt-get install nats-server")
class GroupTest(unittest.TestCase):
    """A group of its own for each test, on one server for all tests of a class."""

    server_count = 1
    server_text = ""
    domain = None
    groups = 0

    @classmethod
    def setUpClass(cls):
        cls.servers_directory = temporary()
        cls.servers = Servers(cls.servers_directory, cls.server_count, cls.server_text, domain=cls.domain)
        cls.addClassCleanup(shutil.rmtree, cls.servers_directory, True)
        cls.addClassCleanup(cls.servers.end)
        cls.servers.start()

    def setUp(self):
        self.directory = temporary()
        GroupTest.groups += 1
        self.group = f"g{GroupTest.groups}"
        self.stream, self.subject = f"feedd_{self.group}", f"feedd.{self.group}.log"
        self.daemons = []

    def tearDown(self):
        for daemon in self.daemons:
            daemon.resume()
            daemon.kill()
            # With -b, this is printed if the test failed.
            if daemon.process:
                print(f"{daemon.name} {daemon.host}: {daemon.text()[-4000:]}")
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def port(self):
        return self.servers.ports[0]

    def daemon(self, name, *options, url=None, environment=None):
        daemon = Daemon(program("feedd"), self.directory, name, url or self.servers.url, group=self.group, options=options,
                        environment=environment)
        self.daemons.append(daemon)
        return daemon

    def failure(self, name, *options, **settings):
        """What a daemon says that does not start."""
        daemon = self.daemon(name, *options, **settings)
        daemon.start()
        daemon.process.wait(60)
        self.assertNotEqual(daemon.process.returncode, 0)
        return daemon.text()

    def start(self, name, *options, url=None):
        daemon = self.daemon(name, *options, url=url)
        daemon.start()
        client = daemon.ready()
        # It accepts connections before it has read its configuration.
        client.call("hello")
        return daemon, client

    def reload(self, daemon, client):
        """Lets a daemon read its configuration again. Returns its report."""
        reads = client.call("stats")["configuration"]["reads"]
        daemon.signal(signal.SIGHUP)

        def report():
            found = client.call("stats")["configuration"]
            # The report of a configuration with feeds says first that the log stores them.
            return found["reads"] > reads and found["status"] != "storing" and found

        return wait_for(report, 20, "report")

    def await_same(self, *clients, feed="inbox", seconds=20):
        """Waits until all members have the same revision of a feed, and compares their digests."""
        def same():
            states = {state(client, feed) for client in clients}
            return len({revision for revision, _ in states}) == 1 and states
        self.assertEqual(len(wait_for(same, seconds, "common revision")), 1)


class LossTest(GroupTest):
    """A group whose servers lose a part of its log, or all of it."""

    def folder(self):
        return os.path.join(self.servers.processes[0].directory, "store", "jetstream", "$G", "streams", self.stream)

    def saved(self):
        return os.path.join(self.directory, "saved")

    def last(self):
        return request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["last_seq"]

    def image(self, client):
        return client.call("group").get("image", {}).get("position", 0)

    @staticmethod
    def text(client):
        return json.dumps(client.call("snapshot", feed="inbox"))
