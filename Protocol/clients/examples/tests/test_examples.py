"""The examples against a daemon: from fixtures, and from a real bus where there is one."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = HERE.parents[1] / "python"
sys.path[:0] = [str(PYTHON / "tests")]

import support  # noqa: E402
from support import PATIENCE, feedd  # noqa: E402


class ExampleTest(support.DaemonTest):
    def environment(self, **more):
        path = f"{os.path.dirname(support.binary('feedclient'))}:{os.environ['PATH']}"
        return {**os.environ, "FEEDD_SOCKET": self.daemon.path, "PATH": path, "PYTHONPATH": str(PYTHON), **more}

    def run_example(self, name, *arguments, **more):
        command = [HERE.parent / name, *arguments]
        done = subprocess.run(command, env=self.environment(**more), capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def rows(self, feed):
        sections = self.connection.call("snapshot", feed=feed)["sections"]
        return {one["name"]: [json.loads(element) for element in one["elements"]] for one in sections}


class Notifications(ExampleTest):
    def test_lines_of_dbus_monitor(self):
        self.run_example("notifications", HERE / "fixtures" / "notifications.txt")
        battery = {"app": "battery", "icon": "", "summary": "Battery 4 %", "body": "", "time": 1700000003.5, "urgency": 2}
        self.assertEqual(
            self.rows("notifications"), {"notifications/critical": [{"id": 4, **battery}], "notifications/rest": []}
        )

    def test_a_text_with_lines_like_those_of_dbus_monitor(self):
        lines = (HERE / "fixtures" / "notifications.txt").read_text().split("signal time=1700000004")[0]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(lines)
            file.flush()
            self.run_example("notifications", file.name)
        [mail] = self.rows("notifications")["notifications/rest"]
        self.assertEqual((mail["id"], mail["body"]), (3, 'From "Ann"\n   uint32 7\n<b>Lunch?</b>'))

    def test_lines_that_dbus_monitor_never_prints(self):
        good = (HERE / "fixtures" / "notifications.txt").read_bytes()
        notify = good[good.index(b'   string "mail"') : good.index(b"method return")]
        call, back = b"method call time=%s sender=:1 -> destination=:2 %s member=Notify\n", b"method return sender=:2 -> destination=:1 %s\n"
        bad = b"\xff\xfe\n" + call % (b"abc", b"serial=5") + notify + back % b"reply_serial=5" + b"   uint32 7\n"
        bad += call % (b"1.2.3", b"serial=6") + notify + back % b"reply_serial=6" + b"   uint32 %s\n" % (b"9" * 5000)
        bad += call % (b"1", b"") + notify + back % b""
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(bad + good)
            file.flush()
            self.run_example("notifications", file.name)
        self.assertIn(4, [row["id"] for row in self.rows("notifications")["notifications/critical"]])

    def ended(self, *arguments, **more):
        """The exit status and the errors of the example."""
        command, environment = [HERE.parent / "notifications", *arguments], {**self.environment(), **more}
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
        return done.returncode, done.stderr

    def test_no_daemon(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            reason = f"notifications: [Errno 2] No such file or directory: '{folder}/s'\n"
            self.assertEqual(self.ended(os.devnull, FEEDD_SOCKET=f"{folder}/s"), (1, reason))

    def test_no_bus(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            monitor = pathlib.Path(folder) / "dbus-monitor"
            monitor.write_text("#!/bin/sh\necho no bus >&2\nexit 7\n")
            monitor.chmod(0o755)
            path = f"{folder}:{self.environment()['PATH']}"
            self.assertEqual(self.ended(PATH=path), (7, "no bus\n"))

    @unittest.skipUnless(
        all(map(shutil.which, ("dbus-run-session", "dbus-monitor", "busctl"))), "there is no dbus-monitor, or no busctl"
    )
    def test_a_real_bus(self):
        # The example has defined the feed when it has read a file.
        self.run_example("notifications", os.devnull)
        watch = self.connection.watch("notifications")
        self.assertEqual(watch.next(PATIENCE).method, "snapshot")
        call = "org.freedesktop.Notifications /org/freedesktop/Notifications org.freedesktop.Notifications Notify"
        # Nothing tells when dbus-monitor listens, so that the notification is sent until one arrives.
        script = f"""
        "$0" &
        while sleep 0.05; do
            busctl --user --address="$DBUS_SESSION_BUS_ADDRESS" call {call} 'susssasa{{sv}}i' weather 0 icon 'Rain "soon"' text \\
              0 1 urgency y 2 -- -1
        done
        """
        session = subprocess.Popen(
            ["dbus-run-session", "--", "bash", "-c", script, HERE.parent / "notifications"],
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            delta = watch.next(PATIENCE)
        finally:
            os.killpg(session.pid, signal.SIGKILL)
            session.wait(PATIENCE)
        element = json.loads(delta.params["elements"][0])
        self.assertEqual((element["app"], element["summary"], element["urgency"]), ("weather", 'Rain "soon"', 2))


class Journal(ExampleTest):
    def run_journal(self, lines):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            program = pathlib.Path(folder) / "journalctl"
            program.write_text('#!/bin/sh\necho "$@" >"$LINES.arguments"\nexec cat "$LINES"\n')
            program.chmod(0o755)
            file = pathlib.Path(folder) / "lines"
            file.write_text(lines)
            path = f"{folder}:{self.environment()['PATH']}"
            self.run_example("journal", "--user", PATH=path, LINES=str(file))
            return (pathlib.Path(folder) / "lines.arguments").read_text().split()

    def test_lines_in_bins_by_priority(self):
        arguments = self.run_journal((HERE / "fixtures" / "journal.ndjson").read_text())
        self.assertEqual(arguments, ["--output", "json", "--follow", "--lines", "500", "--user"])
        numbers = {
            name: [int(row["__CURSOR"].split("=")[-1]) for row in rows] for name, rows in self.rows("journal").items()
        }
        self.assertEqual(
            numbers, {"journal/error": [2, 6], "journal/warning": [3], "journal/notice": [5], "journal/rest": [1, 4]}
        )

    def test_the_newest_500_are_kept(self):
        self.run_journal("".join(f'{{"__CURSOR":"{n}","PRIORITY":"6"}}\n' for n in range(1200)))
        kept = [int(row["__CURSOR"]) for row in self.rows("journal")["journal/rest"]]
        self.assertEqual(kept, list(range(700, 1200)))


class Waybar(ExampleTest):
    def start(self, *arguments):
        bar = subprocess.Popen(
            [HERE.parent / "waybar", *arguments], env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.addCleanup(bar.communicate)
        self.addCleanup(bar.kill)
        return bar

    def test_a_line_for_each_change(self):
        bins = [{"name": "urgent", "filter": "@.priority >= 8"}, {"name": "rest"}]
        self.connection.call("define", feed="inbox", kind="collection", exclusive=True, bins=bins)
        bar = self.start("inbox", "2")
        shown = lambda: json.loads(bar.stdout.readline())  # noqa: E731
        self.assertEqual(shown(), {"text": "", "tooltip": "", "class": "empty"})
        self.connection.call("update", feed="inbox", element={"id": 1, "text": "Milk & <b>"})
        self.assertEqual(
            shown(), {"text": "1 Milk &amp; &lt;b&gt;", "tooltip": "Milk &amp; &lt;b&gt;", "class": "rest"}
        )
        more = [{"id": 2, "priority": 9, "summary": "Door\nopen\x1b"}, b'{"id":3,"n":1.10}']
        self.connection.call("update", feed="inbox", elements=more)
        tooltip = "Door\ufffdopen\ufffd\nMilk &amp; &lt;b&gt;\nand 1 more"
        self.assertEqual(shown(), {"text": "3 Door\ufffdopen\ufffd", "tooltip": tooltip, "class": "urgent"})
        self.connection.call("delete", feed="inbox", ids=[1, 2])
        self.assertEqual(shown()["text"], "1 {&quot;id&quot;:3,&quot;n&quot;:1.10}")

    def test_a_feed_that_is_not_defined(self):
        bar = self.start("nothing")
        self.assertRegex(bar.stderr.read().decode(), r"\Awaybar: unknown feed")
        self.assertEqual(bar.wait(PATIENCE), 1)
