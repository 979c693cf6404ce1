"""Tests of groups with real daemons and NATS servers. Skipped if nats-server is not installed."""

import base64
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
import unittest

from group_processes import Daemon, program, publish, request, wait_for
from group_testing import GroupTest, collection, state


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

    def test_members_execute_a_stream_of_older_rules_by_these_rules(self):
        request(self.port, f"$JS.API.STREAM.CREATE.{self.stream}",
                {"name": self.stream, "subjects": [self.subject],
                 "description": json.dumps({"feedd": 1, "rules": 3, "epoch": "e" * 32, "limits": {}})})
        (_, a), (second, b) = self.start("a", "--max-bytes", "1KiB"), self.start("b", "--max-bytes", "1KiB")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "x", "n": 1, "text": "y" * 700})
        self.await_same(a, b)
        second.kill()
        # By rules 3, an element needs room beside the one that it replaces. The restarted member reads that from the log.
        error = a.error("update", feed="inbox", element={"id": "x", "n": 1, "text": "z" * 600})
        self.assertEqual(error["data"]["limit"], "maxBytes")
        second.start()
        b = second.ready()
        self.await_same(a, b)
        # A member that begins cut off knows the rules from its image, and goes on when the log is back.
        second.end()
        second.arguments += ["--log-timeout", "1s"]
        self.servers.processes[0].stop()
        try:
            second.start()
            b = second.ready()
            self.assertIn("unreachable since", b.call("hello")["log"])
        finally:
            self.servers.processes[0].resume()
        wait_for(lambda: b.error("update", feed="inbox", element={"id": "y", "n": 1}) is None, 20, "the log")
        self.await_same(a, b)
        self.assertNotIn("begins again", second.text())

    def test_large_requests_are_several_messages(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", feed="big", kind="array")
        elements = [{"id": place, "text": "x" * 1000} for place in range(3000)]
        a.call("set", feed="big", elements=elements)
        self.await_same(a, b, feed="big")
        self.assertEqual(b.call("describe", feed="big")["count"], 3000)

    def test_one_member_evicts_for_all(self):
        (first, a), (second, b) = self.start("a"), self.start("b")
        a.call("define", feed="short", kind="array", retain={"seconds": 1})
        a.call("define", feed="list", kind="array")
        for client in (a, b):
            wait_for(lambda: len(client.call("group")["members"]) == 2, 20, "two members")
            wait_for(lambda: client.call("describe", feed="list"), 20, "feeds")
        own = {member["member"]: client for client in (a, b) for member in client.call("group")["members"] if member.get("self")}
        ahead = own[min(own)]
        other, daemon = (b, first) if ahead is a else (a, second)

        def is_evicted(client):
            return client.call("describe", feed="short")["count"] == 0

        # The first member evicts at once. The other one would a quarter of a second later, which a busy machine may need for the first.
        for _ in range(20):
            before = self.last_message()
            ahead.call("insert", feed="short", elements=[{"n": "mark"}])
            for client in (a, b):
                wait_for(lambda: is_evicted(client), 20, "eviction")
            # What they have proposed is in the log before these.
            for client in (a, b):
                client.call("insert", feed="list", elements=[1])
            inserted, evictions = self.evictions(before)
            if [origin for origin, _ in evictions] == [inserted[0]]:
                break
        else:
            self.fail("both members evict")
        # Without the member that acts first, the other one does, later.
        daemon.stop()
        before = self.last_message()
        other.call("insert", feed="short", elements=[{"n": "mark"}])
        wait_for(lambda: is_evicted(other), 20, "eviction by the other member")
        inserted, evictions = self.evictions(before)
        self.assertEqual([origin for origin, _ in evictions], [inserted[0]])
        self.assertGreaterEqual(evictions[0][1] - inserted[1], 1_250_000_000)
        daemon.resume()
        self.await_same(a, b, feed="short")

    def evictions(self, before):
        """The origin and the moment of the batch with the element that is marked, and those of evictions, behind a message."""
        inserted, evictions = None, []
        for place in range(before + 1, self.last_message() + 1):
            found = request(self.port, f"$JS.API.STREAM.MSG.GET.{self.stream}", {"seq": place})
            message = base64.b64decode(found["message"]["data"])
            origin, _, moment = struct.unpack_from("<QQQ", message, 16)
            if b"$evict" in message:
                evictions.append((origin, moment))
            if b'"mark"' in message:
                inserted = (origin, moment)
        return inserted, evictions

    def last_message(self):
        return request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["last_seq"]

    def test_one_error_is_the_same_everywhere(self):
        (_, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        wrong = {"feed": "inbox", "element": {"no": "id"}}
        self.assertEqual(a.error("update", **wrong), b.error("update", **wrong))
        self.await_same(a, b)


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
        self.assertEqual((status["group"], status["log"]), (self.group, "connected"))
        self.assertEqual(self.client(second, "group", "leave")["log"], "left")
        error = wait_for(lambda: b.error("update", feed="inbox", element={"id": "x", "n": 1}), 10, "refusal")
        self.assertEqual(error["code"], -32008)
        self.assertIn("feedclient group join", error["message"])
        wait_for(lambda: len(self.client(first, "group")["members"]) == 1, 10, "one member")
        a.call("update", feed="inbox", element={"id": "y", "n": 1})
        self.await_same(a, b)
        self.assertEqual(self.client(second, "group", "join")["log"], "connected")
        wait_for(lambda: b.error("update", feed="inbox", element={"id": "x", "n": 1}) is None, 10, "membership")
        self.await_same(a, b)

    def test_a_member_that_leaves_during_changes_stays_away(self):
        (first, a), (_, b) = self.start("a"), self.start("b")
        a.call("define", **collection())
        self.await_same(a, b)
        clients = [first.connect() for _ in range(6)]
        pushed, errors = [], []

        def push(client):
            while not (error := client.error("update", feed="inbox", element={"id": len(pushed), "n": 1})):
                pushed.append(1)
            errors.append(error["message"])
        threads = [threading.Thread(target=push, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(pushed) > 500, 20, "changes")
        a.call("group", action="leave")
        for thread in threads:
            thread.join()
        refusal = "this member left the group; rejoin with: feedclient group join; nothing was changed"
        self.assertEqual(set(errors), {f"cannot store the change: {refusal}"})
        wait_for(lambda: [member["host"] for member in b.call("group")["members"]] == ["b"], 10, "one member")

    def test_a_copy_of_a_state_directory_gets_another_name(self):
        first, a = self.start("a")
        a.call("define", **collection())
        first.end()
        second = self.daemon("b")
        shutil.copytree(first.state, second.state)
        first.start()
        second.start()

        def name(daemon):
            return {member["member"] for member in daemon.connect().call("group")["members"] if member.get("self")}
        wait_for(lambda: name(first) and name(second) and name(first) != name(second), 30, "two names")
        wait_for(lambda: len(first.connect().call("group")["members"]) == 2, 30, "two members")
        a, b = first.ready(), second.ready()
        self.assertEqual([client.error("update", feed="inbox", element={"id": "x", "n": 1}) for client in (a, b)], [None, None])
        self.await_same(a, b)

    def test_a_short_timeout(self):
        _, a = self.start("a", "--log-timeout", "200ms")
        wait_for(lambda: a.error("define", **collection()) is None, 20, "storing")

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


class BadInput(GroupTest):
    def test_no_server(self):
        text = self.failure("a", "--log-timeout", "500ms", url="nats://127.0.0.1:1")
        self.assertEqual(
            text.partition("error: ")[2].strip(),
            "cannot reach nats://127.0.0.1:1: No server available for connection, and this host has no copy of the group's "
            "state; start nats-server or correct --log")

    def test_other_limits(self):
        self.start("a")
        text = self.failure("b", "--max-elements", "10")
        self.assertIn("maxElements is 10 here and 10000000 in the group", text)

    def test_a_message_of_somebody_else_is_skipped(self):
        first, a = self.start("a")
        a.call("define", **collection())
        publish(self.port, self.subject, b"hello")
        a.call("update", feed="inbox", element={"id": "e", "n": 1})
        _, b = self.start("b")
        self.await_same(a, b)
        wait_for(lambda: "is not of feedd and is skipped" in first.text(), 10, "warning")

    def test_a_foreign_stream(self):
        request(self.port, f"$JS.API.STREAM.CREATE.{self.stream}",
                {"name": self.stream, "subjects": ["other"], "storage": "memory"})
        self.assertIn(f"stream {self.stream} does not belong to this group", self.failure("a"))

    def test_a_stream_that_takes_the_subject(self):
        name = f"other_{self.group}"
        request(self.port, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "subjects": [self.subject], "storage": "memory"})
        self.assertEqual(
            self.failure("a").partition("error: ")[2].strip(),
            f"cannot create stream {self.stream}: subjects overlap with an existing stream; find the stream that takes the "
            f"subjects of {self.stream} and change it, or choose another name with --group")

    def test_more_copies_than_servers(self):
        path = os.path.join(self.directory, "a.json")
        with open(path, "w") as file:
            json.dump({"group": {"name": self.group, "replicas": 3}}, file)
        self.assertEqual(
            self.failure("a", "--config", path).partition("error: ")[2].strip(),
            f"cannot create stream {self.stream}: replicas > 1 not supported in non-clustered mode; lower \"replicas\" in the "
            "configuration, or run a cluster of servers")

    def test_a_stream_of_another_version(self):
        request(self.port, f"$JS.API.STREAM.CREATE.{self.stream}",
                {"name": self.stream, "subjects": [self.subject], "storage": "memory",
                 "description": '{"feedd":2,"rules":2,"epoch":"e","limits":{}}'})
        self.assertIn("written by another version (format 2)", self.failure("a"))

    def test_a_bad_name(self):
        daemon = Daemon(program("feedd"), self.directory, "a", self.servers.url, group="a.b")
        self.daemons.append(daemon)
        daemon.start()
        daemon.process.wait(10)
        self.assertIn("group name 'a.b'", daemon.text())


class SmallMessages(GroupTest):
    server_text = "max_payload: 65536"

    def test_long_changes_and_images_fit_in_the_messages_of_the_servers(self):
        _, a = self.start("a")
        a.call("define", **collection())
        a.call("update", feed="inbox", element={"id": "long", "n": 1, "text": "x" * 300_000})
        a.call("group", action="image")
        wait_for(lambda: a.call("group").get("image"), 20, "image")
        _, b = self.start("b")
        self.await_same(a, b)

    def test_a_configuration_of_too_many_feeds_for_a_message(self):
        path = os.path.join(self.directory, "a.json")

        def configure(*names):
            with open(path, "w") as file:
                json.dump({"feeds": [{"feed": name, "kind": "array"} for name in names]}, file)

        many = [f"{'x' * 90}{place:05}" for place in range(1000)]
        configure(*many)
        refusal = "raise max_payload of nats-server, or define fewer feeds"
        self.assertIn(refusal, self.failure("a", "--config", path))
        # A member that runs goes on.
        configure("few")
        daemon, b = self.start("b", "--config", path)
        configure(*many)
        reads = b.call("stats")["configuration"]["reads"]
        daemon.signal(signal.SIGHUP)
        report = wait_for(lambda: (found := b.call("stats")["configuration"])["reads"] > reads and found, 20, "report")
        self.assertEqual(report["status"], "refused")
        self.assertIn(refusal, report["text"])
        b.call("set", feed="few", elements=[{"id": 1}])


class FullStore(GroupTest):
    def test_a_full_stream_refuses_changes(self):
        _, a = self.start("a", "--log-timeout", "2s")
        a.call("define", feed="big", kind="array")
        info = request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})
        config = info["config"]
        config["max_bytes"] = 100_000
        request(self.port, f"$JS.API.STREAM.UPDATE.{self.stream}", config)
        error = None
        for place in range(40):
            error = a.error("set", feed="big", elements=[{"id": place, "text": "x" * 10_000}])
            if error:
                break
        self.assertEqual(error["code"], -32008, error)
        self.assertIn("is full", error["message"])
        # Also while the member cannot say that it joins again.
        def refusal():
            # It has joined again by then, if there is room for that.
            time.sleep(0.1)
            return a.error("set", feed="big", elements=[{"id": 1, "text": "x" * 200}])
        while not (refusal() and refusal()):
            pass
        for _ in range(50):
            self.assertIn("is full", refusal()["message"])
        before = state(a, "big")
        config["max_bytes"] = -1
        request(self.port, f"$JS.API.STREAM.UPDATE.{self.stream}", config)
        wait_for(lambda: a.error("set", feed="big", elements=[{"id": 1}]) is None, 20, "room")
        self.assertEqual(state(a, "big")[0], before[0] + 1)


if __name__ == "__main__":
    unittest.main()
