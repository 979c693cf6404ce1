"""Feeds that the configurations of hosts define, and managed feeds."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

from group_processes import program, request, wait_for
from group_testing import GroupTest


class ManagedFeeds(GroupTest):
    """Feeds whose rows one host reads from a database of its own."""

    def configuration(self, name, feeds):
        path = os.path.join(self.directory, f"{name}.json")
        with open(path, "w") as file:
            json.dump({"feeds": feeds}, file)
        return path

    def database(self, name="rows", rows=()):
        path = os.path.join(self.directory, f"{name}.db")
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, kind TEXT, text TEXT)")
            database.executemany("INSERT OR REPLACE INTO row VALUES (?, ?, ?)", rows)
        database.close()
        return path

    @staticmethod
    def managed(path, **more):
        return {"feed": "rows", "kind": "managed", "database": path, "query": "SELECT id, kind, text FROM row ORDER BY id",
                **more}

    @staticmethod
    def texts(client):
        return [[element["text"] for element in section["elements"]]
                for section in client.call("snapshot", feed="rows")["sections"]]

    def test_every_member_has_the_rows_that_one_host_reads(self):
        path = self.database(rows=[(1, "x", "one"), (2, "y", "two"), (3, "x", "three")])
        (first, a), (_, b) = self.start("a", "--config", self.configuration("a", [self.managed(path, section="kind")])), \
            self.start("b")
        wait_for(lambda: self.texts(b) == [["one", "three"], ["two"]], 20, "rows on b")
        self.await_same(a, b, feed="rows")
        self.assertEqual(b.call("describe", feed="rows")["source"]["status"], "ok")
        b.call("define", feed="top", kind="view", of="rows", limit=2)
        watch = b.call("watch", feed="rows")
        while not b.notification()["params"].get("last"):
            pass
        self.database(rows=[(2, "y", "zwei")])
        delta = b.notification()
        self.assertEqual((delta["method"], delta["params"]["from"]), ("delta", watch["revision"]))
        self.await_same(a, b, feed="rows")
        # The rows and the selection are part of the images, so a member that joins has them, also while the host is away.
        b.call("select", feed="rows", at=[[1, 0]])
        self.await_image(a, b)
        first.kill()
        _, c = self.start("c")
        self.await_same(b, c, feed="rows")
        self.await_same(b, c, feed="top")
        self.assertEqual(self.texts(c), [["one", "three"], ["zwei"]])
        self.assertEqual(b.call("selected", feed="rows"), c.call("selected", feed="rows"))
        first.start()
        a = first.ready()
        self.database(rows=[(4, "z", "four")])
        wait_for(lambda: self.texts(c) == [["one", "three"], ["zwei"], ["four"]], 20, "rows after the restart")
        self.await_same(a, b, c, feed="rows")

    def await_image(self, *clients):
        before = clients[0].call("group").get("image", {}).get("position", 0)
        clients[0].call("group", action="image")
        for client in clients:
            wait_for(lambda: client.call("group").get("image", {}).get("position", 0) > before, 20, "image")

    def test_one_of_two_hosts_with_the_same_definition_reads_it(self):
        path = self.database(rows=[(1, "x", "one")])
        configuration = self.configuration("both", [self.managed(path)])
        (first, a), (second, b) = self.start("a", "--config", configuration), self.start("b", "--config", configuration)
        wait_for(lambda: self.texts(a) == [["one"]] == self.texts(b), 20, "rows")
        self.database(rows=[(2, "x", "two")])
        wait_for(lambda: self.texts(a) == [["one", "two"]] == self.texts(b), 20, "rows")
        self.await_same(a, b, feed="rows")
        # The other one goes on when the first one has left.
        for daemon in (first, second):
            before = len(daemon.text())
            daemon.end()
            client = b if daemon is first else a
            number = 3 if daemon is first else 4
            self.database(rows=[(number, "x", str(number))])
            wait_for(lambda: self.texts(client)[0][-1] == str(number), 20, "rows of the other host")
            self.assertNotIn("error", daemon.text()[before:])
            daemon.start()
            if daemon is first:
                a = daemon.ready()
            else:
                b = daemon.ready()
        self.await_same(a, b, feed="rows")

    def test_hosts_that_define_a_managed_feed_differently(self):
        path = self.database(rows=[(1, "x", "one")])
        _, a = self.start("a", "--config", self.configuration("a", [self.managed(path)]))
        a.call("hello")
        text = self.failure("b", "--config", self.configuration("b", [self.managed(path, section="kind")]))
        self.assertIn('feed "rows" is defined differently by the configurations of the hosts b and a', text)
        wait_for(lambda: self.texts(a) == [["one"]], 20, "rows")

    def test_a_configuration_that_was_refused_leaves_the_former_one_in_use(self):
        path = self.database(rows=[(1, "x", "one")])
        (first, a), (second, b) = self.start("a", "--config", self.configuration("a", [self.managed(path)])), \
            self.start("b", "--config", self.configuration("b", [self.list_of("c", 1)]))
        wait_for(lambda: self.texts(b) == [["one"]], 20, "rows")
        # The managed feed leaves the file, which the group refuses because of another feed.
        self.configuration("a", [self.list_of("c", 2)])
        self.assertEqual(self.reload(first, a)["status"], "refused")
        # What the member reads for the group is decided when it knows this.
        a.call("define", feed="behind", kind="array")
        last = request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["last_seq"]
        wait_for(lambda: a.call("group")["position"] >= last, 20, "position")
        self.database(rows=[(2, "x", "two")])
        wait_for(lambda: self.texts(b) == [["one", "two"]], 20, "rows of the former configuration")
        # The group does not count the refused one, also when the member joins again and it would be accepted.
        self.configuration("b", [])
        self.assertEqual(self.reload(second, b)["status"], "applied")
        a.call("group", action="leave")
        wait_for(lambda: len(b.call("group")["members"]) == 1, 20, "one member")
        a.call("group", action="join")
        wait_for(lambda: a.error("define", feed="behind", kind="array", replace=True) is None, 20, "membership")
        self.configuration("b", [self.list_of("c", 3)])
        self.assertEqual(self.reload(second, b)["status"], "applied")

    def test_a_member_that_joins_again_tells_of_another_definition(self):
        (first, a), (second, b) = self.start("a", "--config", self.configuration("a", [self.list_of("c", 1)])), \
            self.start("b", "--config", self.configuration("b", []))
        a.call("group", action="leave")
        wait_for(lambda: [member["host"] for member in b.call("group")["members"]] == ["b"], 20, "one member")
        self.configuration("b", [self.list_of("c", 2)])
        self.assertEqual(self.reload(second, b)["status"], "applied")
        a.call("group", action="join")
        text = 'feed "c" is defined differently by the configurations of the hosts a and b'
        for daemon in (first, second):
            wait_for(lambda: text in daemon.text(), 20, "warning")

    def test_a_start_that_is_refused_leaves_the_feeds_that_fit_in_use(self):
        path = self.database(rows=[(1, "x", "one")])
        (first, a), (_, b) = self.start("a", "--config", self.configuration("a", [self.managed(path), self.list_of("c", 1)])), \
            self.start("b")
        wait_for(lambda: self.texts(b) == [["one"]], 20, "rows")
        first.kill()
        b.call("undefine", feed="c")
        b.call("define", feed="c", kind="collection")
        first.start()
        a = first.ready()
        report = wait_for(lambda: a.call("stats").get("configuration"), 20, "report")
        self.assertEqual(report["status"], "refused")
        self.database(rows=[(2, "x", "two")])
        wait_for(lambda: self.texts(b) == [["one", "two"]], 20, "rows of the host whose file does not fit")

    def test_a_host_takes_over_a_feed_that_it_begins_to_configure(self):
        path = self.database(rows=[(1, "x", "one")])
        daemons = {name: self.start(name, "--config", self.configuration(name, [])) for name in ("a", "b")}
        for _, client in daemons.values():
            wait_for(lambda: len(client.call("group")["members"]) == 2, 20, "two members")
        places = {member["host"]: member["member"] for member in client.call("group")["members"]}
        for name in sorted(daemons, key=places.get, reverse=True):
            daemon, client = daemons[name]
            self.configuration(name, [self.managed(path)])
            # The member that is first of all knows that it is to read the database before the log has its configuration, which changes
            # no feed.
            self.servers.processes[0].stop()
            try:
                daemon.signal(signal.SIGHUP)
                time.sleep(0.5)
            finally:
                self.servers.processes[0].resume()
            wait_for(lambda: client.call("stats")["configuration"]["reads"] == 2, 20, "configuration")
            wait_for(lambda: self.texts(client) == [["one"]], 20, "rows")
        other, _ = next(found for found in daemons.values() if found[0] is not daemon)
        other.stop()
        self.database(rows=[(2, "x", "two")])
        wait_for(lambda: self.texts(client) == [["one", "two"]], 20, "rows that the first member reads")

    def test_a_member_whose_start_is_refused_leaves(self):
        _, a = self.start("a")
        bad = [self.list_of("c", 1), {"feed": "home", "kind": "composed", "children": ["absent"]}]
        self.assertIn('shows "absent"', self.failure("b", "--config", self.configuration("b", bad)))
        wait_for(lambda: [member["host"] for member in a.call("group")["members"]] == ["a"], 20, "one member")
        self.start("d", "--config", self.configuration("d", [self.list_of("c", 2)]))

    def test_a_configuration_that_a_full_stream_does_not_store_is_applied_later(self):
        path = self.database(rows=[(1, "x", "one")])
        daemon, a = self.start("a", "--config", self.configuration("a", [self.list_of("c", 1), self.managed(path)]))
        wait_for(lambda: self.texts(a) == [["one"]], 20, "rows")
        # There is room for its announcement.
        state = request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})
        settings = state["config"] | {"max_bytes": state["state"]["bytes"] + 1500}
        request(self.port, f"$JS.API.STREAM.UPDATE.{self.stream}", settings)
        filter = " || ".join(f"@.k == {place}" for place in range(400))
        self.configuration("a", [self.list_of("c", 2), {"feed": "d", "bins": [{"name": "x", "filter": filter}]}])
        report = self.reload(daemon, a)
        self.assertEqual(report["status"], "refused")
        self.assertIn("could not be stored and is not applied", report["text"])
        request(self.port, f"$JS.API.STREAM.UPDATE.{self.stream}", settings | {"max_bytes": -1})
        wait_for(lambda: a.error("define", feed="room", kind="array", replace=True) is None, 20, "room")
        # Until then, the feeds of the former configuration are in use.
        self.database(rows=[(2, "x", "two")])
        wait_for(lambda: self.texts(a) == [["one", "two"]], 20, "rows of the former configuration")
        report = self.reload(daemon, a)
        self.assertEqual(
            (report["status"], report["defined"], report["redefined"], report["undefined"]), ("applied", ["d"], ["c"], ["rows"]))
        self.assertEqual(a.call("describe", feed="c")["retain"], {"count": 2})

    def test_a_reload_names_settings_of_the_group_that_need_a_start(self):
        path = self.configuration("a", [])
        daemon, a = self.start("a", "--config", path)
        self.assertEqual(self.reload(daemon, a)["restart"], [])
        # The command line names the servers.
        for group, restart in (({"log": "nats://127.0.0.1:1"}, []), ({"user": "u", "password": "p"}, ["group"])):
            with open(path, "w") as file:
                json.dump({"group": group}, file)
            self.assertEqual(self.reload(daemon, a)["restart"], restart)

    @staticmethod
    def list_of(name, count):
        return {"feed": name, "kind": "array", "retain": {"count": count}}

    def test_a_managed_feed_that_leaves_the_configuration(self):
        path = self.database(rows=[(1, "x", "one")])
        configuration = self.configuration("a", [self.managed(path)])
        (first, a), (_, b) = self.start("a", "--config", configuration), self.start("b")
        wait_for(lambda: self.texts(b) == [["one"]], 20, "rows")
        self.configuration("a", [])
        first.signal(signal.SIGHUP)
        wait_for(lambda: b.error("snapshot", feed="rows") is not None, 20, "end of the feed")
        # One whose host left for good is removed by hand.
        self.configuration("a", [self.managed(path)])
        first.signal(signal.SIGHUP)
        wait_for(lambda: self.texts(b) == [["one"]], 20, "rows")
        # It leaves the file while its host is stopped.
        first.end()
        self.configuration("a", [])
        first.start()
        wait_for(lambda: b.error("snapshot", feed="rows") is not None, 20, "end of the feed")
        self.configuration("a", [self.managed(path)])
        first.ready().call("hello")
        first.signal(signal.SIGHUP)
        wait_for(lambda: self.texts(b) == [["one"]], 20, "rows")
        first.kill()
        b.call("undefine", feed="rows")
        self.assertIsNotNone(b.error("snapshot", feed="rows"))

    def test_a_managed_feed_that_leaves_one_of_two_configurations(self):
        path = self.database(rows=[(1, "x", "one")])
        daemons = {name: self.start(name, "--config", self.configuration(name, [self.managed(path)]))
                   for name in ("a", "b")}
        clients = [client for _, client in daemons.values()]
        for client in clients:
            wait_for(lambda: self.texts(client) == [["one"]], 20, "rows")
        # Once the host that reads the database, and once the other one.
        members = wait_for(lambda: len(found := clients[0].call("group")["members"]) == 2 and found, 20, "two members")
        places = {member["host"]: member["member"] for member in members}
        names = sorted(daemons, key=places.get)
        for place, name in enumerate(names):
            daemon, client = daemons[name]
            reads = client.call("stats")["configuration"]["reads"]
            self.configuration(name, [])
            daemon.signal(signal.SIGHUP)
            wait_for(lambda: client.call("stats")["configuration"]["reads"] > reads, 20, "configuration")
            self.assertIn("kept rows", client.call("stats")["configuration"]["text"])
            self.database(rows=[(place + 2, "x", str(place))])
            texts = [["one"] + [str(number) for number in range(place + 1)]]
            for client in clients:
                wait_for(lambda: self.texts(client) == texts, 20, "rows of the host that still has the feed")
            self.configuration(name, [self.managed(path)])
            daemon.signal(signal.SIGHUP)
            wait_for(lambda: daemons[name][1].call("stats")["configuration"]["reads"] > reads + 1, 20, "configuration")
        for name in names:
            self.configuration(name, [])
            daemons[name][0].signal(signal.SIGHUP)
        for client in clients:
            wait_for(lambda: client.error("snapshot", feed="rows") is not None, 20, "end of the feed")


class Configurations(GroupTest):
    """Feeds that the configurations of several hosts define."""

    def files(self, *filters):
        paths = []
        for place, filter in enumerate(filters):
            paths.append(os.path.join(self.directory, f"{place}.json"))
            with open(paths[-1], "w") as file:
                json.dump({"feeds": [{"feed": "c", "bins": [{"name": "x", "filter": filter}]}]}, file)
        return paths

    def start_with_file(self):
        """Starts a member whose file defines a feed, which is in effect."""
        path, = self.files("@.n < 1")
        daemon, member = self.start("a", "--config", path)
        wait_for(lambda: member.call("describe", feed="c"), 10, "feed")
        return path, daemon, member

    def test_equal_ones_define_a_feed_once(self):
        path, = self.files("@.n < 1")
        (_, a), (_, b) = self.start("a", "--config", path), self.start("b", "--config", path)
        self.await_same(a, b, feed="c")
        self.assertEqual(a.call("describe", feed="c")["revision"], b.call("describe", feed="c")["revision"])

    def test_a_start_with_another_one_is_refused(self):
        paths = self.files("@.n < 1", "@.n < 2")
        _, a = self.start("a", "--config", paths[0])
        a.call("hello")
        text = self.failure("b", "--config", paths[1])
        self.assertIn('feed "c" is defined differently by the configurations of the hosts b and a', text)
        self.assertIn("@.n < 1", json.dumps(a.call("describe", feed="c")))

    def test_one_of_two_that_start_together_is_refused(self):
        paths = self.files("@.n < 1", "@.n < 2")
        daemons = [self.daemon(name, "--config", path) for name, path in zip("ab", paths)]
        for daemon in daemons:
            daemon.start()
        refused = wait_for(lambda: next((d for d in daemons if not d.is_running()), None), 30, "refusal")
        other = daemons[1 - daemons.index(refused)]
        self.assertIn('feed "c" is defined differently by the configurations of the hosts '
                      f"{refused.host} and {other.host}", refused.text())
        filter = ["@.n < 1", "@.n < 2"][daemons.index(other)]
        self.assertIn(filter, json.dumps(other.ready().call("describe", feed="c")))

    def test_a_reload_with_another_one_is_refused(self):
        paths = self.files("@.n < 1", "@.n < 1")
        (first, a), (second, b) = self.start("a", "--config", paths[0]), self.start("b", "--config", paths[1])
        self.files("@.n < 1", "@.n < 2")
        report = self.reload(second, b)
        self.assertEqual(report["status"], "refused")
        self.assertIn('feed "c" is defined differently by the configurations of the hosts b and a', report["text"])
        self.await_same(a, b, feed="c")
        self.assertIn("@.n < 1", json.dumps(b.call("describe", feed="c")))
        self.assertIn('feed "c" is defined differently by the configurations of the hosts b and a', first.text())
        # The other one gives its definition up before.
        with open(paths[0], "w") as file:
            file.write("{}")
        self.assertEqual(self.reload(first, a)["status"], "applied")
        self.assertEqual(self.reload(second, b)["status"], "applied")
        wait_for(lambda: "@.n < 2" in json.dumps(a.call("describe", feed="c")), 20, "definition")

    def test_a_host_that_lost_its_state_takes_its_former_name(self):
        (_, daemon, _), (_, b) = self.start_with_file(), self.start("b")
        members = wait_for(lambda: len(found := b.call("group")["members"]) == 2 and found, 20, "two members")
        daemon.kill()
        shutil.rmtree(daemon.state)
        self.files("@.n < 2")
        daemon.start()
        daemon.process.wait(60)
        self.assertIn('feed "c" is defined differently by the configurations of the hosts a and a', daemon.text())
        with open(os.path.join(daemon.state, "member"), "w") as file:
            file.write(next(member["member"] for member in members if member["host"] == "a"))
        daemon.start()
        wait_for(lambda: "@.n < 2" in json.dumps(b.call("describe", feed="c")), 20, "definition")
        self.assertEqual([member["host"] for member in b.call("group")["members"]], ["a", "b"])

    @staticmethod
    def write_access_rules(path, uid):
        """Writes a configuration with the feed d, which one user may read."""
        with open(path, "w") as file:
            json.dump({"feeds": [{"feed": "d", "kind": "array"}],
                       "access": [{"uid": uid, "feeds": ["*"], "allow": ["read"]}]}, file)

    def reload_access_rules(self, daemon, path, seconds):
        """Gives the daemon other access rules while the log is away, and waits at most so long until they apply."""
        self.write_access_rules(path, os.getuid() + 1)
        line = f"{path}: replaced the access rules; the feeds wait for the log of the group"
        before = daemon.text().count(line)
        daemon.signal(signal.SIGHUP)
        wait_for(lambda: daemon.text().count(line) > before, seconds, "access rules")

    def test_access_rules_hold_while_the_feeds_wait_for_the_log(self):
        path, daemon, a = self.start_with_file()
        daemon.end()
        self.write_access_rules(path, os.getuid())
        self.servers.processes[0].stop()
        try:
            daemon.arguments += ["--log-timeout", "1s"]
            daemon.start()
            a = daemon.ready()
            # Nobody is refused here, because this user may do everything.
            self.assertIn("access rules", a.call("stats")["configuration"]["text"])
            self.assertIsNotNone(a.error("describe", feed="d"))
            # So does a reload, which may take rights away.
            self.reload_access_rules(daemon, path, 10)
        finally:
            self.servers.processes[0].resume()
        wait_for(lambda: a.call("describe", feed="d"), 20, "feed that waited")

    def test_a_reload_at_the_beginning_of_an_outage_applies_access_rules(self):
        path, daemon, a = self.start_with_file()
        wait_for(lambda: a.call("group")["log"] == "connected", 10, "log")
        self.servers.processes[0].stop()
        try:
            # The member does not know yet that the servers stand still.
            self.reload_access_rules(daemon, path, 20)
        finally:
            self.servers.processes[0].resume()
        wait_for(lambda: a.call("describe", feed="d"), 20, "feed that waited")
        report = a.call("stats")["configuration"]
        self.assertEqual((report["defined"], report["access"]), (["d"], True))

    def test_a_reload_answers_while_the_feeds_wait_for_the_log(self):
        path, daemon, a = self.start_with_file()
        reads = a.call("stats")["configuration"]["reads"]
        self.servers.processes[0].stop()
        try:
            self.write_access_rules(path, os.getuid() + 1)
            found = subprocess.run([program("feedd"), "--reload", str(daemon.process.pid)], capture_output=True, text=True, timeout=50)
            self.assertEqual((found.returncode, found.stdout), (1, ""))
            self.assertEqual(
                found.stderr,
                "feedd: timed out: the feeds of the file are not stored yet; the daemon logs it if they are refused: "
                "replaced the access rules; "
                "the feeds wait for the log of the group\n")
            self.assertEqual(a.call("stats")["configuration"]["status"], "storing")
        finally:
            self.servers.processes[0].resume()
        wait_for(lambda: a.call("describe", feed="d"), 20, "feed that waited")
        report = a.call("stats")["configuration"]
        self.assertEqual((report["status"], report["reads"]), ("applied", reads + 1))

    def test_a_start_keeps_the_feeds_of_the_group_if_the_file_does_not_fit_them(self):
        _, a = self.start("a")
        a.call("define", feed="c", kind="array")
        path, = self.files("@.n < 1")
        daemon, b = self.start("b", "--config", path)
        report = b.call("stats")["configuration"]
        self.assertEqual(report["status"], "refused")
        self.assertIn("its kind is array", report["text"])
        # The host defines no feed of the group.
        with open(path, "w") as file:
            json.dump({"feeds": [{"feed": "d", "kind": "array"}]}, file)
        self.assertEqual(self.reload(daemon, b)["defined"], ["d"])

    def test_a_reload_that_is_refused_after_an_outage_says_that_it_replaced_access_rules(self):
        path, = self.files("@.n < 1")
        (daemon, a), _ = self.start("a", "--config", path), self.start("b", "--config", self.other_list())
        wait_for(lambda: a.call("describe", feed="d"), 20, "feed of the other host")
        self.servers.processes[0].stop()
        try:
            self.reload_access_rules(daemon, path, 20)
        finally:
            self.servers.processes[0].resume()
        report = wait_for(lambda: (found := a.call("stats")["configuration"])["status"] == "refused" and found, 30, "refusal")
        self.assertTrue(report["access"])
        self.assertTrue(report["text"].endswith("; only the access rules were replaced"), report["text"])

    def test_an_invalid_file_does_not_hide_the_report_of_one_that_waits(self):
        path, daemon, a = self.start_with_file()
        reads = a.call("stats")["configuration"]["reads"]
        self.servers.processes[0].stop()
        try:
            self.reload_access_rules(daemon, path, 20)
            with open(path, "w") as file:
                file.write("{")
            self.assertEqual(self.reload(daemon, a)["status"], "refused")
        finally:
            self.servers.processes[0].resume()
        wait_for(lambda: a.call("describe", feed="d"), 20, "feed that waited")
        # The former reading has a report after that of the invalid file.
        report = a.call("stats")["configuration"]
        self.assertEqual((report["status"], report["reads"]), ("applied", reads + 3))

    def other_list(self):
        """The path of a configuration that defines the feed d differently."""
        path = os.path.join(self.directory, "other.json")
        with open(path, "w") as file:
            json.dump({"feeds": [{"feed": "d", "kind": "array", "retain": {"count": 1}}]}, file)
        return path


if __name__ == "__main__":
    unittest.main()
