"""Real posts through the command line: two watchers, a snapshot and `verify` agree byte for byte.

The posts are public ones, 100 lines of JSON, that stand beside a checkout on some machines; elsewhere this is skipped.
"""

import json
import subprocess
import unittest

import support
from support import PATIENCE, feedd
from feedd._text import decode, encode

POSTS = support.HERE.parents[4] / "shared" / "data" / "tweets.ndjson"
BINS = {
    "japanese": "@.metadata.iso_language_code == 'ja'",
    "other": "@.metadata.iso_language_code != 'ja'",
    "shared": "@.retweet_count > 10",
    "silent": "@.retweet_count == 0 && @.favorite_count == 0",
}


@unittest.skipUnless(POSTS.exists(), "the posts are not here")
class Posts(support.DaemonTest):
    def command(self, *arguments):
        return [support.binary("feedclient"), "--socket", self.daemon.path, "--json", *arguments]

    def run_command(self, *arguments, **options):
        done = subprocess.run(self.command(*arguments), capture_output=True, timeout=PATIENCE, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def watch(self):
        process = subprocess.Popen(self.command("watch", "posts"), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.terminate)
        return process.stdout

    def test_posts(self):
        bins = [word for name, filter in BINS.items() for word in ("--bin", f"{name}={filter}")]
        sort = ["--sort", "shared=$.retweet_count:desc", "--sort", "shared=$.id", "--sort", "other=$.user.screen_name"]
        self.run_command("define", "posts", "--id", "$.id_str", *bins, *sort)
        watchers = [self.watch(), self.watch()]
        lines = [[watcher.readline()] for watcher in watchers]

        source = POSTS.read_bytes()
        pushed = json.loads(self.run_command("push", "posts", "-", input=source))
        self.assertEqual((pushed["pushed"], pushed["refused"]), (len(source.splitlines()), 0))
        changed = [
            {**json.loads(line), "retweet_count": place % 40} for place, line in enumerate(source.splitlines()[::3])
        ]
        text = b"".join(encode(post) + b"\n" for post in changed)
        self.run_command("push", "posts", input=text)
        self.run_command("delete", "posts", *(json.dumps(post["id_str"]) for post in changed[::5]))

        verified = json.loads(self.run_command("verify", "posts"))
        for watcher, seen in zip(watchers, lines):
            while decode(seen[-1])["params"]["revision"] < verified["revision"]:
                seen.append(watcher.readline())
        self.assertEqual(lines[0][-1], lines[1][-1])

        mirrors = [self.mirror_of(seen) for seen in lines]
        snapshot = decode(self.run_command("snapshot", "posts").strip())
        elements = [section["elements"] for section in snapshot["sections"]]
        for mirror in mirrors:
            self.assertEqual([section.elements for section in mirror.sections], elements)
            self.assertEqual((mirror.digest(), mirror.counts()), (verified["digest"], verified["counts"]))
        self.kept_as_pushed(source, elements)

    def mirror_of(self, lines):
        """A copy made of nothing but what a watcher printed; the feed was empty when it began."""
        messages = [feedd.Notification(m["method"], m["params"]) for m in map(decode, lines)]
        head = {"feed": "posts", "epoch": "", "revision": messages[0].params["revision"], "resumed": False}
        mirror = feedd.Mirror({**head, "sections": [{"name": f"posts/{name}", "count": 0} for name in BINS]})
        for message in messages:
            mirror.apply(message)
        return mirror

    def kept_as_pushed(self, source, elements):
        """Every post that was not pushed again is there byte for byte."""
        rows = {row for section in elements for row in section}
        untouched = [line for place, line in enumerate(source.splitlines()) if place % 3]
        self.assertGreater(len(untouched), 50)
        for line in untouched:
            self.assertIn(line.strip(), rows)
