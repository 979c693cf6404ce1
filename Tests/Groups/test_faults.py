"""Servers and members that end, stop and are cut off."""

import json
import os
import subprocess
import sys
import time
import unittest

from group_processes import nats_server, request, wait_for
from group_testing import GroupTest, collection, state


class CutOff(GroupTest):
    def test_changes_are_refused_after_the_timeout_and_reads_go_on(self):
        (_, a), (_, b) = self.start("a", "--log-timeout", "1s"), self.start("b", "--log-timeout", "1s")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "before", "n": 1})
        self.await_same(a, b)
        before = state(a)
        for server in self.servers.processes:
            server.stop()
        start = time.monotonic()
        error = a.error("update", feed="inbox", element={"id": "refused", "n": 2})
        self.assertEqual(error["code"], -32008, error)
        self.assertLess(time.monotonic() - start, 4)
        self.assertGreater(time.monotonic() - start, 0.9)
        self.assertEqual(state(a), before)
        wait_for(lambda: a.call("hello")["log"].startswith("unreachable since "), 10, "report of the cut")
        self.assertTrue(a.call("stats")["log"].startswith("unreachable since "))
        self.assertTrue(a.call("describe", feed="inbox")["log"].startswith("unreachable since "))
        for server in self.servers.processes:
            server.resume()
        wait_for(lambda: a.call("hello")["log"] == "connected", 20, "log")
        # The refused change, which the stopped server had in its socket, has no effect.
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "after", "n": 3}) is None, 20, "storing")
        self.await_same(a, b)
        texts = json.dumps(b.call("snapshot", feed="inbox"))
        self.assertIn("after", texts)
        self.assertNotIn("refused", texts)

    def test_a_change_during_a_short_cut_is_stored_once(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", feed="list", kind="array")
        self.servers.processes[0].stop()
        number = a.send("set", feed="list", elements=[{"id": 1}])
        time.sleep(1.5)
        self.servers.processes[0].resume()
        self.assertIn("result", a.answer(number))
        self.await_same(a, b, feed="list")
        self.assertEqual(b.call("describe", feed="list")["count"], 1)

    def test_a_killed_server_comes_back_with_everything(self):
        (_, a), (_, b) = self.start("a", "--log-timeout", "20s"), self.start("b")
        a.call("define", **collection())
        for place in range(30):
            a.call("update", feed="inbox", element={"id": f"e{place}", "n": place})
        self.servers.processes[0].kill()
        number = a.send("update", feed="inbox", element={"id": "during", "n": 5})
        time.sleep(0.5)
        self.servers.processes[0].start()
        self.assertIn("result", a.answer(number))
        self.await_same(a, b)
        self.assertEqual(b.call("describe", feed="inbox")["count"], 31)

    def test_a_member_starts_from_its_image_without_the_log(self):
        first, a = self.start("a")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "kept", "n": 1})
        first.end()
        self.servers.processes[0].stop()
        first.arguments += ["--log-timeout", "1s"]
        first.start()
        a = first.ready(20)
        self.assertEqual(a.call("describe", feed="inbox")["count"], 1)
        self.assertTrue(a.call("hello")["log"].startswith("unreachable since "))
        self.servers.processes[0].resume()
        wait_for(lambda: a.call("hello")["log"] == "connected", 20, "log")
        a.call("update", feed="inbox", element={"id": "more", "n": 1})


class Cluster(GroupTest):
    """Three servers that keep three copies."""

    server_count = 3

    def is_complete(self):
        """Whether each server answers, and has all of the log."""
        infos = [request(port, f"$JS.API.STREAM.INFO.{self.stream}", {}) for port in self.servers.ports]
        clusters = [info.get("cluster", {}) for info in infos]
        return all(cluster.get("leader") and all(copy["current"] for copy in cluster["replicas"]) for cluster in clusters)

    def test_a_group_survives_each_server(self):
        (_, a), (_, b) = self.start("a", "--log-timeout", "20s"), self.start("b", "--log-timeout", "20s")
        a.call("define", **collection())
        count = 0
        for server in self.servers.processes:
            server.kill()
            for _ in range(10):
                count += 1
                a.call("update", feed="inbox", element={"id": f"e{count}", "n": count})
            server.start()
            wait_for(self.is_complete, 30, "copies of the log")
        self.await_same(a, b)
        self.assertEqual(b.call("describe", feed="inbox")["count"], count)


@unittest.skipUnless(nats_server(), "nats-server is not installed; apt-get install nats-server")
@unittest.skipUnless(os.environ.get("FEEDD_LONG"), "ten minutes of random faults run with FEEDD_LONG=1")
class Faults(unittest.TestCase):
    def test_nothing_is_lost_or_doubled(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chaos.py")
        done = subprocess.run([sys.executable, script, "--seconds", "600"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


if __name__ == "__main__":
    unittest.main()
