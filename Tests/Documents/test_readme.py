"""Runs the commands of the README, in order, in a temporary folder.

An HTML comment directly before each `sh` block says whether it is run: `<!-- run -->`, `<!-- run: 'this' => 'that' -->` to
replace a text first, for example so that the command ends, or `<!-- not run: reason -->`.
"""

import html
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unicodedata
import unittest
import xml.etree.ElementTree

from documents import ROOT, support

BLOCK = re.compile(r"(?:^<!-- (?P<mark>.*?) -->\n)?^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    return [
        (found["mark"], found["text"]) for found in BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))
    ]


class Readme(unittest.TestCase):
    def setUp(self):
        self.bin = os.path.dirname(support.binary("feedd"))
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_every_block_says_whether_it_is_run(self):
        marks = [mark or "" for mark, _ in blocks()]
        self.assertGreater(len(marks), 4)
        for mark in marks:
            self.assertRegex(mark, r"^(run\b|not run: .+)")

    def test_the_two_commands_come_first(self):
        self.assertEqual([text.strip() for _, text in blocks()[:2]], ["scripts/run", "scripts/test"])

    def test_it_is_short(self):
        self.assertLess(len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), 200)

    def test_links_lead_to_files(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
        self.assertIn("Tests/Documents/watch.svg", links)
        for link in links:
            self.assertTrue((ROOT / link).exists(), link)

    def test_the_status_bar_prints_what_is_shown(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        command, *lines = re.search(r"^```console\n\$ (.*?)^```$", text, re.MULTILINE | re.DOTALL)[1].splitlines()
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            bins = [{"name": "urgent", "filter": "@.priority >= 8"}, {"name": "rest"}]
            for section in bins:
                section["sort"] = [{"by": "$.priority", "order": "descending"}]
            connection.call("define", feed="inbox", kind="collection", exclusive=True, bins=bins)
            rows = [(1, 9, "Door open"), (2, 3, "Milk"), (3, 8, "Rain at five")]
            connection.push("inbox", [{"id": row, "priority": priority, "text": words} for row, priority, words in rows])
            environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "FEEDD_SOCKET": daemon.path}
            with subprocess.Popen(shlex.split(command), env=environment, stdout=subprocess.PIPE, text=True) as bar:
                try:
                    self.assertEqual(bar.stdout.readline(), lines[0] + "\n")
                    connection.push("inbox", [{"id": 2, "priority": 10, "text": "Milk boils over"}])
                    self.assertEqual(bar.stdout.readline(), lines[1] + "\n")
                finally:
                    bar.terminate()

    def test_the_waybar_module_is_json_and_markup_for_every_text(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        block = re.search(r"^Waybar .*?^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
        self.assertLessEqual(len(block.splitlines()), 5)
        module = json.loads(block)["custom/inbox"]
        self.assertEqual(module["return-type"], "json")
        texts = [
            "plain", "say \"hi\" \\ & <b>'x'</b> &amp; ]]>", "two\nlines\r\nand\ta tab", "\u0000\u0001\u001b[2J\u007f\u0085\u2028\u2029",
            "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea e\u0301 \u2764\ufe0f", "\u05e9\u05dc\u05d5\u05dd \u202eevil\u202c \u2066x\u2069",
            "\ud800 \udc00 \U0001f600", "\ufffe\uffff\ufeff", "", "{text!json}", "x" * 100_000,
        ]
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "FEEDD_SOCKET": daemon.path}
        with subprocess.Popen(["sh", "-c", "exec " + module["exec"]], env=environment, stdout=subprocess.PIPE) as bar:
            try:
                with daemon.connect() as connection:
                    connection.call("define", feed="inbox", kind="single")
                    self.assertEqual(bar.stdout.readline(), b"\n")
                    for number, words in enumerate(texts):
                        element = {"text": words, **({"level": 'hi"gh'} if number % 2 else {})}
                        connection.call("put", feed="inbox", element=element)
                        line = bar.stdout.readline().decode("utf-8")
                        self.assertFalse(any(unicodedata.category(mark) in ("Cc", "Zl", "Zp") for mark in line[:-1]), line)
                        shown = json.loads(line)
                        self.assertEqual(shown["class"], element.get("level", "low"))
                        # XML allows neither these controls and surrogates nor noncharacters, and reads CR LF as LF.
                        allowed = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", words)
                        self.assertEqual(html.unescape(shown["text"]), allowed)
                        for member in ("text", "tooltip"):
                            # Pango reads entities and text as XML does.
                            whole = xml.etree.ElementTree.fromstring(f"<markup>{shown[member]}</markup>")
                            self.assertEqual(len(whole), 0)
                        xml_only = words.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
                        self.assertIn(json.loads(whole.text)["text"], (words, xml_only))
            finally:
                bar.terminate()

    def program(self, name):
        """A small program of the README, or of the man page of feedclient."""
        page = (ROOT / "scripts" / "man" / "feedclient.1").read_text(encoding="utf-8").replace("\\-", "-").replace("\\e", "\\")
        texts = [text for _, text in blocks()] + re.findall(r"^\.nf\n(.*?)^\.fi$", page, re.MULTILINE | re.DOTALL)
        text = next(text for text in texts if name in text)
        self.assertLessEqual(len(text.splitlines()), 5)
        return text

    def shell(self, daemon, script, **options):
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "FEEDD_SOCKET": daemon.path}
        return subprocess.Popen(["sh", "-c", script], env=environment, cwd=self.folder.name, text=True, **options)

    def test_an_item_of_the_to_do_list_is_claimed_once(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with self.shell(daemon, self.program("feedclient patch todo"), stdout=-1, stderr=-1) as program:
            output, errors = program.communicate(timeout=support.PATIENCE)
        self.assertEqual(program.returncode, 0)
        lines = [line for line in output.splitlines() if not line.startswith("{")]
        self.assertEqual(lines, ["mine", "taken"])
        self.assertIn("condition failed", errors)
        with daemon.connect() as connection:
            # Of many that claim at once, one gets the item.
            connection.push("todo", [{"id": "roof"}])
            claim = self.program("feedclient patch todo").splitlines()[2].replace("door", "roof")
            claims = [self.shell(daemon, claim, stdout=-1, stderr=-1) for _ in range(20)]
            done = [one.communicate(timeout=support.PATIENCE)[0] for one in claims]
            self.assertEqual(sum("mine" in output for output in done), 1)
            self.assertEqual(sorted(one.returncode for one in claims), [0] + [1] * 19)

    def test_the_trigger_reacts_once_to_each_urgent_element(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        folder = pathlib.Path(self.folder.name)

        def lines(name):
            return (folder / name).read_text(encoding="utf-8").splitlines() if (folder / name).exists() else []

        def reactions(count):
            """Runs the trigger until it has a position and the log as many lines; the identities in them."""
            with self.shell(daemon, "exec " + self.program("feedclient trigger inbox")) as trigger:
                try:
                    limit = time.monotonic() + support.PATIENCE
                    while not lines("seen") or len(lines("urgent.log")) < count:
                        self.assertLess(time.monotonic(), limit)
                        time.sleep(0.01)
                finally:
                    trigger.terminate()
            return [json.loads(line)["id"] for line in lines("urgent.log")]

        with daemon.connect() as connection:
            bins = [{"name": "all", "sort": [{"by": "$.priority"}]}]
            connection.call("define", feed="inbox", kind="collection", bins=bins)
            connection.push("inbox", [{"id": 1, "priority": 9}])
            self.assertEqual(reactions(0), [])
            # What is there at the start, what only moves and what is not urgent are no reasons to react.
            connection.push("inbox", [{"id": 2, "priority": 9}, {"id": 3, "priority": 7}])
            connection.push("inbox", [{"id": 1, "priority": 10}])
            self.assertEqual(reactions(1), [2])
            connection.push("inbox", [{"id": 4, "priority": 8}])
            self.assertEqual(reactions(2), [2, 4])

    def test_the_picture_shows_what_the_program_shows(self):
        environment = {**os.environ, "FEEDD_BIN_DIR": self.bin}
        command = [sys.executable, ROOT / "scripts" / "picture", "--text"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=support.PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        svg = xml.etree.ElementTree.parse(ROOT / "Tests" / "Documents" / "watch.svg")
        texts = ["".join(text.itertext()) for text in svg.iter("{http://www.w3.org/2000/svg}text")]
        for line in done.stdout.splitlines():
            if found := re.search(r"\d+  (\S.*)$", line):
                self.assertTrue(any(found[1] in text for text in texts), f"{line}; run scripts/picture")

    def test_commands(self):
        environment = {
            # The environment of a user who installed below ~/.local. Only these programs are in the PATH.
            "PATH": f"{self.folder.name}/.local/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
            "HOME": self.folder.name,
            "XDG_RUNTIME_DIR": self.folder.name,
            "FEEDD_BIN_DIR": self.bin,
            "LANG": "C.UTF-8",
            "STATE_DIRECTORY": os.path.join(self.folder.name, "state"),
        }
        script = ["set -euo pipefail", "trap 'jobs -p | xargs -r kill' EXIT"]
        for name in ("scripts", "Protocol", ".git"):
            os.symlink(ROOT / name, os.path.join(self.folder.name, name))
        for mark, text in blocks():
            if mark and mark.startswith("run"):
                if mark.startswith("run: "):
                    this, _, that = shlex.split(mark[len("run: ") :])
                    self.assertIn(this, text)
                    text = text.replace(this, that)
                script += [f"echo {shlex.quote(line)}" for line in ("== " + text).splitlines()] + [text]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)],
            cwd=self.folder.name,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=10 * support.PATIENCE,
        )
        output = done.stdout.decode("utf-8", "replace")
        self.assertEqual(done.returncode, 0, output)
        self.assertRegex(output, r"(?m)^\d+ \['inbox/urgent', 'inbox/rest'\] \[\d+, \d+\]\nTrue$")
