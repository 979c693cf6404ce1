"""Runs the commands of the README, in order, in a temporary folder.

An HTML comment directly before each `sh` block says whether it is run: `<!-- run -->`, `<!-- run: 'this' => 'that' -->` to
replace a text first, for example so that the command ends, or `<!-- not run: reason -->`.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()
