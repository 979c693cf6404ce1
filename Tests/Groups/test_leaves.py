"""A leaf node without JetStream on each host, with the configuration that is shipped, and the unit that starts it."""

import os
import re
import shutil
import subprocess
import unittest

from group_processes import Process, can_connect, free_ports, nats_server, temporary, wait_for
from group_testing import GroupTest, collection, state
from nats_secrets import Certificates, Credentials

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/systemd/group")


class LeafNodes(GroupTest):
    """Three servers that listen for leaf nodes, encrypted and with credentials."""

    server_count = 3
    domain = "shop"

    @classmethod
    def setUpClass(cls):
        cls.secrets = temporary()
        cls.addClassCleanup(shutil.rmtree, cls.secrets, True)
        cls.certificates, cls.credentials = Certificates(cls.secrets), Credentials(cls.secrets)
        cls.leaf_ports = free_ports(cls.server_count)
        cls.server_text = [
            f'{cls.credentials.server_text}\nleafnodes {{ listen: "127.0.0.1:{port}", {cls.certificates.server_text()} }}'
            for port in cls.leaf_ports]
        super().setUpClass()

    def leaf(self, name):
        """A leaf node with the shipped configuration, with ports, files and an authority of its own."""
        home = os.path.join(self.directory, f"leaf-{name}")
        os.mkdir(home)
        port = free_ports(1)[0]
        with open(os.path.join(UNITS, "leaf.conf")) as file:
            text = file.read()
        urls = ", ".join(f'"tls://127.0.0.1:{port}"' for port in self.leaf_ports)
        for pattern, replacement in (
                (r'"127\.0\.0\.1:4222"', f'"127.0.0.1:{port}"'),
                (r"urls: \[[^]]*\]", f'urls: [{urls}]\n      tls {{ ca_file: "{self.certificates.authority}" }}'),
                (r'"/etc/feedd/host\.creds"', f'"{self.credentials.path}"')):
            text, count = re.subn(pattern, replacement, text)
            self.assertEqual(count, 1, pattern)
        path = os.path.join(home, "leaf.conf")
        with open(path, "w") as file:
            file.write(text)
        leaf = Process([nats_server(), "--config", path], home, "nats")
        self.addCleanup(leaf.kill)
        self.addCleanup(leaf.resume)
        leaf.start()
        wait_for(lambda: can_connect(port), 20, "leaf node")
        return leaf, f"nats://127.0.0.1:{port}"

    def test_daemons_on_leaf_nodes(self):
        (first, url_a), (_, url_b) = self.leaf("a"), self.leaf("b")
        (_, a), (_, b) = self.start("a", "--log-timeout", "2s", url=url_a), self.start("b", url=url_b)
        self.assertEqual(a.call("group")["replicas"], 3)
        a.call("define", **collection())
        wait_for(lambda: b.error("describe", feed="inbox") is None, 10, "feed on b")
        since = a.call("watch", feed="inbox")["revision"]
        self.assertEqual(a.notification()["method"], "snapshot")
        b.call("update", feed="inbox", element={"id": "from b", "n": 1})
        delta = a.notification()
        self.assertEqual((delta["method"], delta["params"]["from"]), ("delta", since))
        self.await_same(a, b)
        # The leaf node ends: reads and the watch go on, changes are refused.
        before = state(a)
        first.kill()
        error = a.error("update", feed="inbox", element={"id": "refused", "n": 2})
        self.assertEqual(error["code"], -32008, error)
        wait_for(lambda: a.call("hello")["log"].startswith("unreachable since "), 10, "report of the cut")
        for place in range(20):
            b.call("update", feed="inbox", element={"id": f"meanwhile {place}", "n": place})
        self.assertEqual(state(a), before)
        # Who was ahead of this host is told to try another one.
        ahead = {"epoch": b.call("hello")["epoch"], "revision": state(b)[0]}
        error = a.error("watch", feed="inbox", since=ahead)
        self.assertEqual(error["code"], -32008, error)
        self.assertIn("another host", error["message"])
        # Back again, the watch gets what it missed.
        first.start()
        revision = before[0]
        while revision < state(b)[0]:
            delta = a.notification()
            self.assertEqual((delta["method"], delta["params"]["from"]), ("delta", revision))
            revision = delta["params"]["revision"]
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "after", "n": 3}) is None, 20, "storing")
        self.await_same(a, b)
        self.assertEqual(a.call("describe", feed="inbox")["count"], 22)

    def test_a_leaf_node_that_is_cut_off_from_the_servers(self):
        leaf, url = self.leaf("a")
        _, b = self.start("b", "--config", self.credentials_configuration())
        _, a = self.start("a", "--log-timeout", "2s", url=url)
        a.call("define", **collection())
        self.await_same(a, b)
        # The daemon stays connected to its leaf node, which stands still.
        leaf.stop()
        error = a.error("update", feed="inbox", element={"id": "refused", "n": 2})
        self.assertEqual(error["code"], -32008, error)
        b.call("update", feed="inbox", element={"id": "meanwhile", "n": 1})
        leaf.resume()
        wait_for(lambda: a.call("hello")["log"] == "connected", 30, "log")
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "after", "n": 3}) is None, 20, "storing")
        self.await_same(a, b)
        self.assertEqual(a.call("describe", feed="inbox")["count"], 2)

    def credentials_configuration(self):
        path = os.path.join(self.directory, "c.json")
        with open(path, "w") as file:
            file.write(f'{{"group": {{"credentials": "{self.credentials.path}"}}}}')
        return path


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Units(unittest.TestCase):
    def test_the_units_pass_systemd_analyze(self):
        """The daemon's unit with the drop-in, and that of the leaf node, as they are installed."""
        directory = temporary()
        self.addCleanup(shutil.rmtree, directory, True)
        for name in ("feedd.service", "feedd.socket", "group/feedd-nats.service"):
            shutil.copy(os.path.join(UNITS, "..", name), directory)
        os.mkdir(os.path.join(directory, "feedd.service.d"))
        with open(os.path.join(UNITS, "group.conf")) as file:
            drop_in = file.read()
        for name in ("feedd.service", "feedd.service.d/group.conf", "feedd-nats.service"):
            path = os.path.join(directory, name)
            text = drop_in
            if os.path.exists(path):
                with open(path) as file:
                    text = file.read()
            # The programs need not be installed here.
            text = re.sub(r"(?<==)/usr/(?:local/)?s?bin/(?:feedd|nats-server)", "/bin/true", text)
            with open(path, "w") as file:
                file.write(text)
        done = subprocess.run(["systemd-analyze", "verify", "./feedd.service", "./feedd-nats.service"], cwd=directory,
                              env={**os.environ, "SYSTEMD_UNIT_PATH": f"{directory}:"}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
