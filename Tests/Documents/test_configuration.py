"""The configuration file: the example of its page is valid, and the daemon applies it."""

import getpass
import grp
import json
import os
import re
import sqlite3
import subprocess
import tempfile
import unittest

from documents import METHODS, PROTOCOL, blocks, support
from schemacheck import load, schema

PAGE = (PROTOCOL / "config.md").read_text(encoding="utf-8")


class Configuration(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = os.path.join(self.folder, "feedd.json")
        example = blocks(PAGE, "json")[0]
        example = example.replace('"ann"', f'"{getpass.getuser()}"')
        self.example = example.replace('"operators"', f'"{grp.getgrgid(os.getgid()).gr_name}"')
        self.write(self.example)
        with sqlite3.connect(os.path.join(self.folder, "contacts.sqlite")) as database:
            database.execute("CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, circle TEXT)")
            people = [(1, "Ann", "red"), (2, "Bob", None), (3, "Cid", "red")]
            database.executemany("INSERT INTO person VALUES (?, ?, ?)", people)
        database.close()

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(text)

    def check(self):
        program = [support.binary("feedd"), "--check-config", self.file]
        return subprocess.run(program, capture_output=True, text=True, timeout=support.PATIENCE)

    def test_the_example_is_valid(self):
        schema("configuration").check(load(self.example))
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_daemon_applies_the_example(self):
        daemon = support.Daemon("--config", self.file)
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            feeds = {feed["feed"]: feed for feed in connection.call("feeds")["feeds"]}
            self.assertEqual(set(feeds), {"inbox", "people", "home"})
            self.assertEqual(connection.hello["limits"]["maxElements"], 100000)
            for feed in feeds.values():
                schema("common", "/$defs/status").check(feed)
            watch = connection.watch("people")
            mirror = support.feedd.Mirror(watch.result)
            while not (mirror.whole and len(mirror.sections) == 2):
                mirror.apply(watch.next(support.PATIENCE))
            self.assertEqual([section.name for section in mirror.sections], ["people", "people/red"])
            self.assertEqual(mirror.sections[0].elements, [b'{"id":2,"name":"Bob","circle":null}'])
            with sqlite3.connect(os.path.join(self.folder, "contacts.sqlite")) as database:
                database.execute("UPDATE person SET name = 'Bea' WHERE id = 2")
            database.close()
            delta = watch.next(support.PATIENCE)
            self.assertEqual((delta.params["updated"], delta.params["deleted"]), ([[0, 0]], []))
            with self.assertRaises(support.feedd.Refused) as refused:
                connection.call("define", feed="x", kind="managed", database="x.sqlite", query="SELECT 1 AS id")
            self.assertEqual(refused.exception.code, -32006)

    def test_rows_are_followed_after_the_log_of_a_database_was_removed(self):
        for suffixes in (["-wal", "-shm"], ["-shm"]):
            for goes_on in (True, False):
                with self.subTest(suffixes=suffixes, writer="goes on" if goes_on else "is another one"):
                    self.follow_without_log(suffixes, goes_on)

    def follow_without_log(self, suffixes, goes_on):
        path = os.path.join(self.folder, f"{len(suffixes)}{goes_on}.sqlite")
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE t (id, v)")
        writer.execute("INSERT INTO t VALUES (1, 0)")
        writer.execute("PRAGMA wal_checkpoint")
        feed = {"feed": "rows", "kind": "managed", "database": path, "query": "SELECT id, v FROM t"}
        self.write(json.dumps({"feeds": [feed]}))
        daemon = support.Daemon("--config", self.file)
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            watch = connection.watch("rows")
            mirror = support.feedd.Mirror(watch.result)

            def follow(value):
                while not mirror.whole or mirror.sections[0].elements != [b'{"id":1,"v":%d}' % value]:
                    mirror.apply(watch.next(support.PATIENCE))

            follow(0)
            for suffix in suffixes:
                os.unlink(path + suffix)
            if not goes_on:
                writer.close()
                writer = sqlite3.connect(path, isolation_level=None)
            for value in (1, 2, 3):
                writer.execute("UPDATE t SET v = ?", [value])
                follow(value)
        writer.close()

    def test_the_error_of_a_misspelled_member_is_that_of_the_page(self):
        self.write(self.example.replace('"filter"', '"filters"'))
        done = self.check()
        self.assertEqual(done.returncode, 1)
        [shown] = re.findall(r"^/etc/feedd/feedd\.json(:.*)$", PAGE, re.MULTILINE)
        self.assertEqual(done.stderr, f"{self.file}{shown}\n")

    def test_the_table_of_rights_names_every_method_once(self):
        table = re.findall(r"^\| `(?:read|write|define|admin)` \| ([^;|]*)", PAGE, re.MULTILINE)
        free = re.search(r"^(`hello`.*) need no right; a `transaction` needs", PAGE, re.MULTILINE).group(1)
        named = [method for row in [*table, free] for method in re.findall(r"`(\w+)`", row)]
        named += ["feeds", "transaction"]
        self.assertEqual(sorted(named), sorted(METHODS))
