"""Images: those that members begin with, and a member whose state differs."""

import base64
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import unittest
import zlib

from group_processes import Daemon, program, publish, request, wait_for
from group_testing import GroupTest, collection, state


class Images(GroupTest):
    options = ("--image-journal", "64K")

    def fill(self, client, rounds=1):
        for place in range(300 * rounds):
            client.call("update", feed="inbox", element={"id": f"e{place % 50}", "n": place % 100, "text": "x" * 500})

    def publish_image(self, client):
        before = client.call("group").get("image", {}).get("position", 0)
        client.call("update", feed="inbox", element={"id": "image", "n": before % 100})
        client.call("group", action="image")
        return wait_for(lambda: (p := client.call("group").get("image", {}).get("position", 0)) > before and p, 20, "image")

    def test_the_stream_is_trimmed_behind_the_image_before_the_newest(self):
        (first, a), (_, b) = self.start("a", *self.options), self.start("b", *self.options)
        a.call("define", **collection())
        self.fill(a)
        wait_for(lambda: a.call("group").get("image"), 30, "image")
        self.await_same(a, b)
        position = self.publish_image(a)
        wait_for(lambda: self.first_message() > 1, 30, "trimmed stream")
        self.assertLess(self.first_message(), position)
        _, c = self.start("c", *self.options)
        self.await_same(a, b, c)
        # A member that was away for long loads the image too.
        first.kill()
        shutil.rmtree(first.state + f"/group-{self.group}")
        first.start()
        a = first.ready()
        self.await_same(a, b, c)

    def first_message(self):
        return request(self.port, f"$JS.API.STREAM.INFO.{self.stream}", {})["state"]["first_seq"]

    def damage(self, name, **changes):
        """Publishes another description of an image, by default one with a wrong digest."""
        subject = f"$O.{self.stream}.M." + base64.b64encode(name.encode()).decode()
        found = request(self.port, f"$JS.API.STREAM.MSG.GET.OBJ_{self.stream}", {"last_by_subj": subject})
        facts = json.loads(base64.b64decode(found["message"]["data"]))
        facts.update(changes or {"digest": "SHA-256=" + "A" * 43 + "="})
        publish(self.port, subject, json.dumps(facts).encode())

    def newest(self):
        positions = {}
        for name in ("image", "image2"):
            subject = f"$O.{self.stream}.M." + base64.b64encode(name.encode()).decode()
            found = request(self.port, f"$JS.API.STREAM.MSG.GET.OBJ_{self.stream}", {"last_by_subj": subject})
            facts = json.loads(base64.b64decode(found["message"]["data"]))
            positions[name] = int(facts["metadata"]["position"])
        return sorted(positions, key=positions.get, reverse=True)

    def test_an_image_that_does_not_verify(self):
        _, a = self.start("a")
        a.call("define", **collection())
        self.fill(a)
        for _ in range(3):
            self.publish_image(a)
        wait_for(lambda: self.first_message() > 1, 30, "trimmed stream")
        newest, former = self.newest()
        self.damage(newest)
        _, b = self.start("b")
        self.await_same(a, b)
        self.damage(former)
        text = self.failure("c")
        self.assertIn(f"image feedd_{self.group} does not verify: its bytes do not match its SHA-256", text)
        self.assertIn("publish another one with: feedclient group image", text)
        self.publish_image(a)
        _, c = self.start("c")
        self.await_same(a, b, c)

    def test_an_image_with_a_description_that_means_nothing(self):
        _, a = self.start("a")
        a.call("define", **collection())
        for _ in range(2):
            self.publish_image(a)
        self.damage(self.newest()[0], chunks=-1)
        _, b = self.start("b")
        self.await_same(a, b)

    def test_an_image_that_was_published_without_a_state(self):
        _, a = self.start("a")
        a.call("define", **collection())
        for _ in range(2):
            self.publish_image(a)
        content = b"no state" * 1000
        publish(self.port, f"$O.{self.stream}.C.none", content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        self.damage(self.newest()[0], nuid="none", chunks=1, size=len(content), digest=f"SHA-256={digest}")
        self.assertEqual(
            self.failure("b").partition("error: ")[2].strip(),
            f"image feedd_{self.group} does not verify: file is not a database (SQLite 26); publish another one with: feedclient "
            "group image")
        self.publish_image(a)
        _, c = self.start("c")
        self.await_same(a, c)

    def test_an_image_that_the_servers_lost_is_published_again(self):
        _, a = self.start("a")
        a.call("define", **collection())
        self.fill(a)
        position = self.publish_image(a)
        request(self.port, f"$JS.API.STREAM.DELETE.OBJ_{self.stream}", {})
        wait_for(lambda: a.call("group")["image"]["position"] > position, 30, "image")
        _, b = self.start("b")
        self.await_same(a, b)


class DamagedImages(GroupTest):
    def test_a_member_with_a_damaged_image_loads_that_of_the_group(self):
        for has_image in (False, True):
            for place in (b"hellohello", b"batchesSinceMark"):
                with self.subTest(has_image=has_image, place=place):
                    self.play(f"{has_image}-{len(place)}", has_image, place)

    def play(self, name, has_image, place):
        first, a = self.start(name)
        a.call("define", **collection(), replace=True)
        for number in range(5):
            a.call("update", feed="inbox", element={"id": number, "n": number, "text": "hellohello"})
        if has_image:
            a.call("group", action="image")
            wait_for(lambda: a.call("group").get("image"), 20, "image")
        before = state(a)
        first.end()
        folder = os.path.join(first.state, f"group-{self.group}")
        path, kept = os.path.join(folder, "feedd.sqlite"), os.path.join(folder, "damaged.sqlite")
        with open(path, "rb") as file:
            damaged = file.read().replace(place, b"j" + place[1:])
        with open(path, "wb") as file:
            file.write(damaged)
        # Without servers there is nothing to load, and the image stays.
        first.arguments[first.arguments.index("--log") + 1] = "nats://127.0.0.1:1"
        first.start()
        first.process.wait(60)
        self.assertIn("cannot restore", first.text())
        self.assertIn("cannot be reached" if place == b"hellohello" else "cannot reach", first.text())
        with open(path, "rb") as file:
            self.assertEqual(file.read(), damaged)
        first.arguments[first.arguments.index("--log") + 1] = self.servers.url
        first.start()
        a = wait_for(lambda: (client := first.connect()) and client.call("hello") and client, 30, "member")
        self.assertEqual(state(a), before)
        self.assertIn(f"kept as {kept}", first.text())
        with open(kept, "rb") as file:
            self.assertEqual(file.read(), damaged)
        first.end()
        first.start()
        self.assertEqual(state(first.ready()), before)
        first.end()


class Backups(GroupTest):
    def test_a_backup_of_a_member_is_the_state_of_a_daemon_without_a_group(self):
        member, a = self.start("a")
        a.call("define", **collection())
        for place in range(100):
            a.call("update", feed="inbox", element={"id": f"e{place}", "n": place})
        before, snapshot = state(a), self.content(a)
        position = a.call("group")["position"]
        self.client(member, "group", "image")
        wait_for(lambda: a.call("group").get("image", {}).get("position", 0) >= position, 20, "image")
        backup, home = os.path.join(self.directory, "backup"), os.path.join(self.directory, "alone")
        self.client(member, "backup", backup)
        # The image is sound without a log beside it.
        image = os.path.join(member.state, f"group-{self.group}")
        done = subprocess.run([program("feedd"), "--check", "--state", image], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[0], f"{image}: sound")
        self.assertIn(f"epoch {a.call('hello')['epoch']},", done.stdout)
        self.assertNotIn("the next start begins a new epoch", done.stdout)
        a.call("update", feed="inbox", element={"id": "later", "n": 1})
        self.client(member, "restore", backup, "--state", home)
        alone = Daemon(program("feedd"), self.directory, "alone", None)
        alone.arguments = [program("feedd"), "--socket", alone.path, "--state", home]
        self.daemons.append(alone)
        alone.start()
        restored = alone.ready()
        self.assertEqual(restored.call("group"), {"group": None, "log": "local"})
        self.assertEqual(state(restored)[1], before[1])
        self.assertEqual(self.content(restored), snapshot)
        # Its history is another one, and not part of the group.
        self.assertNotEqual(restored.call("hello")["epoch"], a.call("hello")["epoch"])
        restored.call("update", feed="inbox", element={"id": "alone", "n": 2})
        self.assertNotIn("alone", json.dumps(a.call("snapshot", feed="inbox")))
        # The same state directory beside a group: the group's feeds are those of its log, and the own ones stay.
        alone.end()
        alone.arguments += ["--group", self.group, "--log", self.servers.url]
        alone.start()
        self.await_same(a, alone.ready())
        alone.end()
        alone.arguments = alone.arguments[:-4]
        alone.start()
        self.assertIn("alone", json.dumps(alone.ready().call("snapshot", feed="inbox")))

    @staticmethod
    def content(client):
        return client.call("snapshot", feed="inbox")["sections"]

    def client(self, daemon, *words):
        done = subprocess.run([program("feedclient"), *words], capture_output=True, text=True,
                              env={**os.environ, "FEEDD_SOCKET": daemon.path})
        self.assertEqual(done.returncode, 0, done.stderr)


class Divergence(GroupTest):
    def test_a_member_with_another_state_begins_again(self):
        (_, a), (second, b), (_, c) = self.start("a"), self.start("b"), self.start("c")
        a.call("define", feed="one", kind="array")
        old, new = same_checksum()
        a.call("set", feed="one", elements=[{"text": old}])
        a.call("define", feed="many", kind="array")
        self.await_same(a, b, c, feed="one")
        second.end()
        path = os.path.join(second.state, f"group-{self.group}", "feedd.sqlite")
        with sqlite3.connect(path) as database:
            database.execute("UPDATE element SET text = replace(text, ?, ?)", (old, new))
        database.close()
        second.start()
        b = second.ready()
        self.assertIn(new, json.dumps(b.call("snapshot", feed="one")))
        for place in range(4200):
            a.send("set", feed="many", elements=[{"n": place}])
            a.receive()
        wait_for(lambda: "the state differs" in second.text(), 40, "divergence")
        self.assertIn("stops serving and begins again from an image", second.text())
        b = wait_for(lambda: (client := second.connect()) and old in json.dumps(client.call("snapshot", feed="one")) and client,
                     40, "right state")
        self.await_same(a, b, c, feed="one")
        self.await_same(a, b, c, feed="many")


def same_checksum():
    """Two words with the same CRC-32, so that an image in which one replaces the other still verifies."""
    found, number = {}, 0
    while True:
        word = hashlib.sha256(str(number).encode()).hexdigest()[:16]
        checksum = zlib.crc32(word.encode())
        if checksum in found:
            return found[checksum], word
        found[checksum] = word
        number += 1


if __name__ == "__main__":
    unittest.main()
