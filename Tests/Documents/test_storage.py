"""The statements and tables of the page of the state directory, compared with a state directory."""

import os
import re
import sqlite3
import subprocess
import tempfile
import unittest

from documents import PROTOCOL, blocks, support

PAGE = (PROTOCOL / "storage.md").read_text(encoding="utf-8")


class Storage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state = os.path.join(folder.name, "state")
        daemon = support.Daemon("--state", self.state, durability="process")
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            connection.call("define", feed="inbox", kind="collection")
            connection.push("inbox", ({"id": n} for n in range(20)))
        # A clean stop writes an image, which the views read.
        self.assertEqual(daemon.stop(), 0)

    def database(self):
        return sqlite3.connect(os.path.join(self.state, "feedd.sqlite"))

    def test_the_statements_return_the_stored_state(self):
        found = []
        database = self.database()
        self.addCleanup(database.close)
        [statements] = blocks(PAGE, "sql")
        for statement in statements.strip().split(";\n"):
            found.append(database.execute(statement).fetchall())
        feeds, elements, rows, _, facts = found
        self.assertEqual([name for name, *_ in feeds], ["inbox", "$feeds"])
        self.assertEqual(len(elements), 10)
        self.assertEqual([text for *_, text in rows], ['{"id":%d}' % n for n in range(10)])
        self.assertLessEqual({"epoch", "software"}, {key for key, _ in facts})

    def test_the_page_lists_every_table(self):
        database = self.database()
        self.addCleanup(database.close)
        existing = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        described = re.findall(r"^\| `(\w+)` \| ", PAGE, re.MULTILINE)
        self.assertEqual(sorted(described), sorted(existing))
        self.assertEqual(database.execute("PRAGMA application_id").fetchone(), (0x66656564,))
        self.assertEqual(database.execute("PRAGMA user_version").fetchone(), (4,))

    def test_check_accepts_the_state(self):
        program = [support.binary("feedd"), "--state", self.state, "--check"]
        done = subprocess.run(program, capture_output=True, text=True, timeout=support.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
