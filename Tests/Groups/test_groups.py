"""Tests of groups with real daemons and NATS servers. Skipped if nats-server is not installed."""

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

from group_processes import Daemon, Servers, nats_server, program, temporary, wait_for


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
    """A group with one server."""

    server_count = 1
    server_text = ""

    def setUp(self):
        self.directory = temporary()
        self.servers = Servers(self.directory, self.server_count, self.server_text)
        self.servers.start()
        self.daemons = []

    def tearDown(self):
        if os.environ.get("FEEDD_GROUP_LOGS"):
            for daemon in self.daemons:
                print(daemon.directory, daemon.text())
        for daemon in self.daemons:
            daemon.resume()
            daemon.kill()
        self.servers.end()
        shutil.rmtree(self.directory, ignore_errors=True)

    def daemon(self, name, *options, url=None):
        daemon = Daemon(program("feedd"), self.directory, name, url or self.servers.url, options=options)
        self.daemons.append(daemon)
        return daemon

    def start(self, name, *options):
        daemon = self.daemon(name, *options)
        daemon.start()
        return daemon, daemon.ready()

    def await_same(self, *clients, feed="inbox", seconds=20):
        """Waits until all members have the same revision of a feed, and compares their digests."""
        def is_same():
            return len({state(client, feed)[0] for client in clients}) == 1
        wait_for(is_same, seconds, "common revision")
        self.assertEqual(len({state(client, feed) for client in clients}), 1)


class SharedFeeds(GroupTest):
    def test_members_have_the_same_feeds_revisions_and_deltas(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        self.assertEqual(a.call("hello")["epoch"], b.call("hello")["epoch"])
        self.assertEqual(a.call("hello")["log"], "connected")
        a.call("define", **collection())
        wait_for(lambda: "inbox" in [f["feed"] for f in b.call("feeds")["feeds"]], 10, "feed on b")
        watch = b.call("watch", feed="inbox")
        first = b.notification()
        self.assertEqual(first["method"], "snapshot")
        for place in range(20):
            client = a if place % 2 else b
            client.call("update", feed="inbox", element={"id": f"e{place}", "n": place * 7 % 100})
        self.await_same(a, b)
        # The watcher of one host saw each change of both.
        revision = first["params"]["revision"]
        while revision < state(b)[0]:
            delta = b.notification()
            self.assertEqual((delta["method"], delta["params"]["from"]), ("delta", revision))
            revision = delta["params"]["revision"]
        self.assertIsNotNone(watch)

    def test_a_watcher_resumes_on_another_host(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        a.call("watch", feed="inbox")
        since = a.notification()["params"]["revision"]
        for place in range(10):
            a.call("update", feed="inbox", element={"id": f"e{place}", "n": place})
        self.await_same(a, b)
        answer = b.call("watch", feed="inbox", since={"epoch": a.call("hello")["epoch"], "revision": since})
        self.assertEqual(answer["resumed"], True, answer)
        message = b.notification()
        self.assertEqual((message["method"], message["params"]["from"]), ("delta", since))

    def test_a_restarted_member_catches_up_and_a_new_one_gets_everything(self):
        (first, a), (second, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        second.kill()
        for place in range(50):
            a.call("update", feed="inbox", element={"id": f"e{place}", "n": place})
        second.start()
        b = second.ready()
        _, c = self.start("c")
        self.await_same(a, b, c)

    def test_large_requests_are_several_messages(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", feed="big", kind="array")
        elements = [{"id": place, "text": "x" * 1000} for place in range(3000)]
        a.call("set", feed="big", elements=elements)
        self.await_same(a, b, feed="big")
        self.assertEqual(b.call("describe", feed="big")["count"], 3000)

    def test_one_error_is_the_same_everywhere(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        wrong = {"feed": "inbox", "element": {"no": "id"}}
        self.assertEqual(a.error("update", **wrong), b.error("update", **wrong))
        self.await_same(a, b)


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


class BadInput(GroupTest):
    def failure(self, name, *options, url=None):
        """The last line of a daemon that does not start."""
        daemon = self.daemon(name, *options, url=url)
        daemon.start()
        daemon.process.wait(30)
        self.assertNotEqual(daemon.process.returncode, 0)
        return daemon.text()

    def test_no_server(self):
        text = self.failure("a", "--log-timeout", "500ms", url="nats://127.0.0.1:1")
        self.assertIn("cannot reach nats://127.0.0.1:1", text)
        self.assertIn("start nats-server or correct --log", text)

    def test_other_limits(self):
        self.start("a")
        text = self.failure("b", "--max-elements", "10")
        self.assertIn("maxElements is 10 here and 10000000 in the group", text)

    def test_a_message_of_somebody_else_is_skipped(self):
        first, a = self.start("a")
        a.call("define", **collection())
        publish(self.servers.ports[0], "feedd.test.log", b"hello")
        a.call("update", feed="inbox", element={"id": "e", "n": 1})
        _, b = self.start("b")
        self.await_same(a, b)
        wait_for(lambda: "is not of feedd and is skipped" in first.text(), 10, "warning")

    def test_a_foreign_stream(self):
        request(self.servers.ports[0], "$JS.API.STREAM.CREATE.feedd_test",
                {"name": "feedd_test", "subjects": ["other"], "storage": "memory"})
        self.assertIn("stream feedd_test does not belong to this group", self.failure("a"))

    def test_a_stream_of_another_version(self):
        request(self.servers.ports[0], "$JS.API.STREAM.CREATE.feedd_test",
                {"name": "feedd_test", "subjects": ["feedd.test.log"], "storage": "memory",
                 "description": '{"feedd":2,"rules":2,"epoch":"e","limits":{}}'})
        self.assertIn("written by another version (format 2)", self.failure("a"))

    def test_a_bad_name(self):
        daemon = Daemon(program("feedd"), self.directory, "a", self.servers.url, group="a.b")
        self.daemons.append(daemon)
        daemon.start()
        daemon.process.wait(10)
        self.assertIn("group name 'a.b'", daemon.text())


class WrongCredentials(GroupTest):
    server_text = 'authorization { user: u, password: p }'

    def test_wrong_credentials(self):
        daemon = self.daemon("a")
        daemon.start()
        daemon.process.wait(30)
        self.assertIn("check the URL of --log and the credentials", daemon.text())

    def test_right_credentials(self):
        url = f"nats://u:p@127.0.0.1:{self.servers.ports[0]}"
        daemon = self.daemon("a", url=url)
        daemon.start()
        client = daemon.ready()
        client.call("define", feed="x", kind="array")


class FullStore(GroupTest):
    def test_a_full_stream_refuses_changes(self):
        _, a = self.start("a", "--log-timeout", "2s")
        a.call("define", feed="big", kind="array")
        info = request(self.servers.ports[0], "$JS.API.STREAM.INFO.feedd_test", {})
        config = info["config"]
        config["max_bytes"] = 100_000
        request(self.servers.ports[0], "$JS.API.STREAM.UPDATE.feedd_test", config)
        error = None
        for place in range(40):
            error = a.error("set", feed="big", elements=[{"id": place, "text": "x" * 10_000}])
            if error:
                break
        self.assertEqual(error["code"], -32008, error)
        self.assertIn("is full", error["message"])
        before = state(a, "big")
        config["max_bytes"] = -1
        request(self.servers.ports[0], "$JS.API.STREAM.UPDATE.feedd_test", config)
        wait_for(lambda: a.error("set", feed="big", elements=[{"id": 1}]) is None, 20, "room")
        self.assertEqual(state(a, "big")[0], before[0] + 1)


class Images(GroupTest):
    def test_an_image_is_published_and_the_stream_trimmed(self):
        options = ("--image-journal", "64K")
        (first, a), (_, b) = self.start("a", *options), self.start("b", *options)
        a.call("define", **collection())
        for place in range(400):
            a.call("update", feed="inbox", element={"id": f"e{place % 50}", "n": place % 100, "text": "x" * 500})
        wait_for(lambda: self.first_message() > 1, 30, "trimmed stream")
        self.await_same(a, b)
        _, c = self.start("c", *options)
        self.await_same(a, b, c)
        # A member that was away for long loads the image too.
        shutil.rmtree(first.state + "/group-test")
        first.kill()
        first.start()
        a = first.ready()
        self.await_same(a, b, c)

    def first_message(self):
        info = request(self.servers.ports[0], "$JS.API.STREAM.INFO.feedd_test", {})
        return info["state"]["first_seq"]

    def test_an_image_that_does_not_verify_is_refused(self):
        options = ("--image-journal", "64K")
        _, a = self.start("a", *options)
        a.call("define", **collection())
        for place in range(400):
            a.call("update", feed="inbox", element={"id": f"e{place % 50}", "n": place % 100, "text": "x" * 500})
        wait_for(lambda: self.first_message() > 1, 30, "trimmed stream")
        name = "$O.feedd_test.M.aW1hZ2U="
        found = request(self.servers.ports[0], "$JS.API.STREAM.MSG.GET.OBJ_feedd_test", {"last_by_subj": name})
        facts = json.loads(base64.b64decode(found["message"]["data"]))
        facts["digest"] = "SHA-256=" + "A" * 43 + "="
        publish(self.servers.ports[0], name, json.dumps(facts).encode())
        daemon = self.daemon("b", *options)
        daemon.start()
        daemon.process.wait(60)
        self.assertIn("does not verify: its bytes do not match its SHA-256", daemon.text())


class Cluster(GroupTest):
    """Three servers that keep three copies."""

    server_count = 3

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
            time.sleep(2)
        self.await_same(a, b)
        self.assertEqual(b.call("describe", feed="inbox")["count"], count)


class Faults(GroupTest):
    """The random faults of chaos.py: for a short time, or for ten minutes with FEEDD_LONG."""

    def setUp(self):
        self.daemons = []

    def tearDown(self):
        pass

    def test_nothing_is_lost_or_doubled(self):
        seconds = "600" if os.environ.get("FEEDD_LONG") else "25"
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chaos.py")
        done = subprocess.run([sys.executable, script, "--seconds", seconds], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-2000:])


class Membership(GroupTest):
    def client(self, daemon, *words):
        done = subprocess.run(
            [program("feedclient"), "--json", *words], capture_output=True, text=True,
            env={**os.environ, "FEEDD_SOCKET": daemon.path})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_status_leave_and_join(self):
        (first, a), (second, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        self.await_same(a, b)
        wait_for(lambda: len(self.client(first, "group")["members"]) == 2, 10, "two members")
        status = self.client(first, "group", "status")
        self.assertEqual([member["host"] for member in status["members"]], ["a", "b"])
        self.assertEqual((status["group"], status["log"]), ("test", "connected"))
        self.client(second, "group", "leave")
        error = wait_for(lambda: b.error("update", feed="inbox", element={"id": "x", "n": 1}), 10, "refusal")
        self.assertEqual(error["code"], -32008)
        self.assertIn("feedclient group join", error["message"])
        wait_for(lambda: len(self.client(first, "group")["members"]) == 1, 10, "one member")
        a.call("update", feed="inbox", element={"id": "y", "n": 1})
        self.await_same(a, b)
        self.client(second, "group", "join")
        wait_for(lambda: b.error("update", feed="inbox", element={"id": "x", "n": 1}) is None, 10, "membership")
        self.await_same(a, b)

    def test_members_compare_digests(self):
        (first, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", feed="one", kind="array")
        # One request in each batch.
        for place in range(4200):
            a.call("set", feed="one", elements=[{"n": place}])

        def agreement():
            status = self.client(first, "group")
            return status.get("digest") and all(member.get("agrees") for member in status["members"]) and status
        status = wait_for(agreement, 30, "agreement")
        self.assertEqual(len(status["members"]), 2)
        self.await_same(a, b, feed="one")

    def test_two_configurations_that_differ_are_refused(self):
        paths = []
        for place, filter in enumerate(["@.n < 1", "@.n < 2"]):
            paths.append(os.path.join(self.directory, f"{place}.json"))
            with open(paths[-1], "w") as file:
                json.dump({"feeds": [{"feed": "c", "bins": [{"name": "x", "filter": filter}]}]}, file)
        _, a = self.start("a", "--config", paths[0])
        wait_for(lambda: a.call("feeds")["feeds"], 10, "feed")
        time.sleep(0.5)
        daemon = self.daemon("b", "--config", paths[1])
        daemon.start()
        daemon.process.wait(20)
        self.assertIn('feed "c" is defined differently by the configurations of the hosts b and a', daemon.text())


# MARK: A few lines of the NATS protocol

def publish(port, subject, payload):
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.recv(4096)
        sock.sendall(b'CONNECT {"verbose":false}\r\n')
        sock.sendall(f"PUB {subject} {len(payload)}\r\n".encode() + payload + b"\r\nPING\r\n")
        while b"PONG" not in sock.recv(4096):
            pass


def request(port, subject, body):
    payload = json.dumps(body).encode() if body else b""
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        file = sock.makefile("rb")
        file.readline()
        sock.sendall(b'CONNECT {"verbose":false}\r\nSUB reply 1\r\n')
        sock.sendall(f"PUB {subject} reply {len(payload)}\r\n".encode() + payload + b"\r\n")
        while True:
            line = file.readline()
            if line.startswith(b"PING"):
                sock.sendall(b"PONG\r\n")
            if line.startswith(b"MSG"):
                return json.loads(file.read(int(line.split()[-1])))


if __name__ == "__main__":
    unittest.main()
