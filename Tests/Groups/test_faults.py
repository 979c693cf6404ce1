"""Servers and members that end, stop and are cut off."""

import base64
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import unittest

from group_processes import Process, can_connect, free_ports, nats_server, nats_version, request, wait_for
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
        self.assertGreater(time.monotonic() - start, 0.9)
        self.assertEqual(state(a), before)
        wait_for(lambda: a.call("hello")["log"].startswith("unreachable since "), 10, "report of the cut")
        self.assertTrue(a.call("stats")["log"].startswith("unreachable since "))
        self.assertTrue(a.call("describe", feed="inbox")["log"].startswith("unreachable since "))
        # After a long cut, a change is refused at once, and the error says what to do.
        wait_for(lambda: self.refusal(a)[0] < 0.3, 60, "refusal at once")
        _, error = self.refusal(a)
        self.assertEqual(error["code"], -32008, error)
        self.assertRegex(error["message"], f"the log of group {self.group} is unreachable: .+; start nats-server or check the network")
        self.assertEqual(state(a), before)
        for server in self.servers.processes:
            server.resume()
        wait_for(lambda: a.call("hello")["log"] == "connected", 20, "log")
        # The refused change, which the stopped server had in its socket, has no effect.
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "after", "n": 3}) is None, 20, "storing")
        self.await_same(a, b)
        texts = json.dumps(b.call("snapshot", feed="inbox"))
        self.assertIn("after", texts)
        self.assertNotIn("refused", texts)

    def test_a_proxy_without_a_server(self):
        with socket.create_server(("127.0.0.1", 0)) as proxy:
            def close_all():
                while True:
                    try:
                        proxy.accept()[0].close()
                    except OSError:
                        return

            threading.Thread(target=close_all, daemon=True).start()
            url = f"nats://127.0.0.1:{proxy.getsockname()[1]}"
            self.assertIn(f"cannot reach {url}", self.failure("a", "--log-timeout", "1s", url=url))
            # A member that has an image starts.
            b, client = self.start("b")
            client.call("define", feed="list", kind="array")
            b.end()
            b.arguments = [url if argument == self.servers.url else argument for argument in b.arguments]
            b.start()
            self.assertIsNone(b.ready().error("snapshot", feed="list"))

    GREETING = b'INFO {"server_id":"x","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576}\r\n'

    def test_a_server_that_greets_and_does_not_answer(self):
        _, a = self.start("a", "--log-timeout", "1s")
        a.call("define", **collection())
        server = self.servers.processes[0]
        server.kill()
        with socket.create_server(("127.0.0.1", self.port)) as silent:
            connection, _ = silent.accept()
            with connection:
                connection.sendall(self.GREETING)
                self.assertIn(b"PING", connection.recv(1 << 16))
                self.assertEqual(self.refusal(a)[1]["code"], -32008)
                wait_for(lambda: a.call("hello")["log"].startswith("unreachable since "), 10, "report of the cut")
        server.start()
        wait_for(lambda: a.call("hello")["log"] == "connected", 20, "log")

    def test_a_server_that_answers_late(self):
        daemon, a = self.start("a", "--log-timeout", "1s")
        a.call("define", feed="list", kind="array")
        daemon.end()
        with socket.create_server(("127.0.0.1", 0)) as late:
            url = f"nats://127.0.0.1:{late.getsockname()[1]}"
            daemon.arguments = [url if argument == self.servers.url else argument for argument in daemon.arguments]
            daemon.start()
            connection, _ = late.accept()
            with connection:
                connection.sendall(self.GREETING)
                self.assertIn(b"PING", connection.recv(1 << 16))
                # A member waits a second for it.
                time.sleep(1.2)
                connection.sendall(b"PONG\r\n")
        # A member that has an image starts.
        self.assertIsNone(daemon.ready().error("snapshot", feed="list"))

    def test_a_member_looks_for_a_server_that_reaches_the_log(self):
        daemon, a = self.start("a", "--log-timeout", "1s")
        a.call("define", feed="list", kind="array")
        daemon.end()
        port = free_ports(1)[0]
        other = Process([nats_server(), "--addr", "127.0.0.1", "--port", str(port)], self.directory, "other")
        self.addCleanup(other.kill)
        other.start()
        wait_for(lambda: can_connect(port), 20, "server without JetStream")
        server = self.servers.processes[0]
        server.kill()
        # They are tried in any order.
        url = f"nats://127.0.0.1:{port},{self.servers.url},nats://localhost:{self.port}"
        daemon.arguments = [url if argument == self.servers.url else argument for argument in daemon.arguments]
        daemon.start()
        a = daemon.ready()
        wait_for(lambda: a.call("group")["server"].endswith(f":{port}"), 20, "connection")
        server.start()
        wait_for(lambda: a.call("hello")["log"] == "connected", 150, "log")

    def test_servers_without_jetstream(self):
        _, a = self.start("a", "--log-timeout", "1s")
        server = self.servers.processes[0]
        path = os.path.join(server.directory, "server.conf")
        with open(path) as file:
            text = file.read()

        def restart(text):
            server.kill()
            with open(path, "w") as file:
                file.write(text)
            server.start()

        self.addCleanup(restart, text)
        restart(re.sub(r"(?s)jetstream \{.*?\}", "", text))
        reason = "the servers run without JetStream, a leaf node does not reach them, or the user may not use it"
        wait_for(lambda: a.call("group").get("reason") == reason, 20, "reason")
        wait_for(lambda: reason in self.refusal(a)[1]["message"], 20, "refusal")
        restart(text)
        wait_for(lambda: a.call("hello")["log"] == "connected", 20, "log")

    def test_a_start_waits_for_the_servers_once(self):
        daemon, a = self.start("a", "--log-timeout", "10s")
        a.call("define", **collection())
        before = state(a)
        daemon.end()
        for server in self.servers.processes:
            server.stop()
        start = time.monotonic()
        daemon.start()
        a = daemon.ready()
        self.assertEqual(state(a), before)
        self.assertGreater(time.monotonic() - start, 9.9)
        self.assertLess(time.monotonic() - start, 19)
        self.assertTrue(a.call("hello")["log"].startswith("unreachable since "))
        for server in self.servers.processes:
            server.resume()
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "after", "n": 1}) is None, 30, "storing")

    @staticmethod
    def refusal(client):
        """The seconds after which a change is refused, and the error."""
        start = time.monotonic()
        error = client.error("update", feed="inbox", element={"id": "refused", "n": 2})
        return time.monotonic() - start, error

    def test_a_change_during_a_short_cut_is_stored_once(self):
        (_, a), (_, b) = self.start("a", "--log-timeout", "20s"), self.start("b")
        a.call("define", feed="list", kind="array")
        self.servers.processes[0].stop()
        number = a.send("set", feed="list", elements=[{"id": 1}])
        time.sleep(1.5)
        self.servers.processes[0].resume()
        self.assertIn("result", a.answer(number))
        self.await_same(a, b, feed="list")
        self.assertEqual(b.call("describe", feed="list")["count"], 1)
        # The server knows a message that is sent again by its header.
        last = request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["last_seq"]
        messages = [request(self.port, f"$JS.API.STREAM.MSG.GET.{self.stream}", {"seq": place})["message"] for place in range(1, last + 1)]
        batch = [message for message in messages if base64.b64decode(message["data"])[12] == 1][-1]
        self.assertIn("Nats-Msg-Id: ", base64.b64decode(batch["hdrs"]).decode())

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
        wait_for(lambda: a.error("update", feed="inbox", element={"id": "more", "n": 1}) is None, 20, "storing")


class Cluster(GroupTest):
    """Three servers that keep three copies."""

    server_count = 3

    def is_complete(self):
        """Whether each server answers, and has all of the log."""
        infos = [request(port, f"$JS.API.STREAM.INFO.{self.stream}", {}) for port in self.servers.ports]
        clusters = [info.get("cluster", {}) for info in infos]
        return all(
            cluster.get("leader") and len(copies := cluster.get("replicas", [])) == 2 and all(copy["current"] for copy in copies)
            for cluster in clusters)

    def test_members_that_create_their_group_at_once(self):
        for place in range(3):
            self.group = f"{self.group}-{place}"
            daemons = [self.daemon(f"{name}{place}", "--log-timeout", "10s") for name in "abc"]
            for daemon in daemons:
                daemon.start()
            for daemon in daemons:
                client = daemon.ready()
                wait_for(lambda: client.call("hello")["log"] == "connected", 30, "log")

    def test_repeated_messages_are_named_if_the_servers_discard_them_safely(self):
        first, a = self.start("a")
        a.call("define", **collection())
        info = request(self.servers.ports[0], f"$JS.API.STREAM.INFO.{self.stream}", {})
        found = request(self.servers.ports[0], f"$JS.API.STREAM.MSG.GET.{self.stream}", {"seq": info["state"]["last_seq"]})
        headers = base64.b64decode(found["message"].get("hdrs", "")).decode()
        is_safe = nats_version() >= (2, 11)
        self.assertEqual("Nats-Msg-Id: " in headers, is_safe, headers)
        self.assertEqual("older than nats-server 2.11" in first.text(), not is_safe, first.text())

    def test_a_change_that_is_sent_again_before_the_servers_decide(self):
        _, a = self.start("a", "--log-timeout", "20s")
        a.call("define", **collection())
        wait_for(self.is_complete, 30, "copies of the log")
        leader = a.call("group")["leader"]
        others = [server for place, server in enumerate(self.servers.processes) if f"n{place}" != leader]
        for server in others:
            server.stop()
        number = a.send("update", feed="inbox", element={"id": "x", "n": 1})
        # The member sends it again each second.
        time.sleep(2.5)
        for server in others:
            server.resume()
        self.assertIn("result", a.answer(number))
        self.assertEqual(a.call("describe", feed="inbox")["count"], 1)

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
        # The version of the servers, the faults that are left out for it, and the result; also if output is buffered.
        lines = done.stdout.splitlines()
        print(lines[0], *lines[-2:], sep="\n", file=sys.__stderr__)


if __name__ == "__main__":
    unittest.main()
