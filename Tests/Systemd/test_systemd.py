"""The services of the system and of a user under a real systemd, booted in a container on an overlay of this machine.

Needs root, systemd-nspawn (package systemd-container) and the programs named by FEEDD_BIN_DIR; skipped otherwise. Nothing
outside a temporary folder is changed. FEEDD_SYSTEMD_ROOT names the root of another system to boot, for example one with a
newer systemd that debootstrap has made; the programs must run there.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Protocol" / "clients" / "python" / "tests")]

import support  # noqa: E402
from support import feedd  # noqa: E402

PATIENCE = 60
SYSTEM = os.environ.get("FEEDD_SYSTEMD_ROOT", "/")
USER = 4242


def missing():
    """Why the tests cannot run here; None when they can."""
    if os.geteuid() != 0:
        return "only root can boot a container"
    for program in ("systemd-nspawn", "nsenter"):
        if not shutil.which(program):
            return f"there is no {program}; install the package systemd-container"
    if not os.path.exists(f"{SYSTEM}/lib/systemd/systemd"):
        return f"{SYSTEM} has no systemd"
    if not os.environ.get("FEEDD_BIN_DIR"):
        return "FEEDD_BIN_DIR names no folder with feedd in it"
    return None


class Container:
    """A booted system: this machine's files, with changes kept in a tmpfs."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="feedd-systemd-")
        self.root = f"{self.folder}/root"
        self.process = None
        self.mounts = []
        try:
            self._mount()
            self._install()
            self._boot()
        except BaseException:
            self.close()
            raise

    def _mount(self):
        changes = f"{self.folder}/changes"
        os.mkdir(changes)
        os.mkdir(self.root)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", changes], check=True)
        self.mounts.append(changes)
        os.mkdir(f"{changes}/upper")
        os.mkdir(f"{changes}/work")
        layers = f"lowerdir={SYSTEM},upperdir={changes}/upper,workdir={changes}/work"
        done = subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], capture_output=True, text=True)
        if done.returncode != 0:
            raise unittest.SkipTest(f"an overlay cannot be mounted here: {done.stderr.strip()}")
        self.mounts.append(self.root)

    def _install(self):
        self.install()
        # An empty file gives the container an identity of its own.
        pathlib.Path(f"{self.root}/etc/machine-id").write_text("")

    def install(self, *options, **variables):
        """Installs the programs and units, with those lines of the units that this systemd knows."""
        environment = {name: value for name, value in os.environ.items() if name != "PREFIX"}
        tools = pathlib.Path(f"{self.folder}/tools")
        tools.mkdir(exist_ok=True)
        (tools / "systemctl").write_text(f"#!/bin/sh\nexec chroot {self.root} systemctl \"$@\"\n")
        (tools / "systemctl").chmod(0o755)
        environment |= {"DESTDIR": self.root, "PATH": f"{tools}:{os.environ['PATH']}", **variables}
        subprocess.run([ROOT / "scripts" / "install", *options], check=True, capture_output=True, env=environment)

    def _boot(self):
        self.console = open(f"{self.folder}/console", "wb")
        self.process = subprocess.Popen(
            ["systemd-nspawn", "-D", self.root, "--register=no", "--keep-unit", "-b", "systemd.unit=basic.target"],
            stdin=subprocess.DEVNULL,
            stdout=self.console,
            stderr=subprocess.STDOUT,
        )
        self.leader = self.wait(self._leader, "the container's first process")
        self.wait(lambda: self.output("systemctl", "is-system-running") in ("running", "degraded"), "the container's boot")
        self.run("systemd-sysusers")

    def _leader(self):
        if self.process.poll() is not None:
            console = pathlib.Path(f"{self.folder}/console").read_text(errors="replace")
            raise unittest.SkipTest(f"systemd-nspawn cannot boot here: {console[-500:]}")
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        # The first child only prepares the container; the system manager follows.
        for child in children:
            try:
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
            except FileNotFoundError:
                pass
        return None

    def wait(self, condition, what):
        """Waits until the condition gives something true, and returns it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            result = condition()
            if result:
                return result
            time.sleep(0.05)
        raise AssertionError(f"waited {PATIENCE} s for {what}\n{self.log()}")

    def command(self, *arguments, **options):
        # A temporary folder of this machine does not exist in the container.
        environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
        command = ["nsenter", "-t", str(self.leader), "-a", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment, **options)

    def run(self, *arguments):
        done = self.command(*arguments)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}\n{self.log()}")
        return done.stdout.strip()

    def output(self, *arguments):
        return self.command(*arguments).stdout.strip()

    def show(self, unit, name):
        return self.output("systemctl", "show", "--value", "-p", name, unit)

    def version(self):
        return int(self.output("systemctl", "--version").split()[1])

    def main_pid(self):
        return int(self.show("feedd.service", "MainPID") or 0)

    def kill(self, signal):
        """Sends a signal to the daemon."""
        self.run("systemctl", "kill", "--kill-whom=main", f"--signal={signal}", "feedd.service")

    def log(self):
        if not getattr(self, "leader", None):
            return ""
        return self.output("journalctl", "--no-pager", "-u", "feedd.service", "-u", "feedd.socket", "-o", "cat")

    def connect(self):
        """A client of the daemon's socket, from outside the container."""
        return feedd.Connection(f"/proc/{self.leader}/root/run/feedd/feedd.sock", timeout=PATIENCE)

    def close(self):
        if self.process:
            if getattr(self, "leader", None):
                self.command("systemctl", "poweroff", "--force", "--force")
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.console.close()
        for mount in reversed(self.mounts):
            subprocess.run(["umount", mount], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


@unittest.skipIf(missing(), missing())
class Service(unittest.TestCase):
    """One container for all tests; each leaves the service stopped and its state empty."""

    @classmethod
    def setUpClass(cls):
        cls.container = Container()

    @classmethod
    def tearDownClass(cls):
        cls.container.close()

    def setUp(self):
        self.container.run("systemctl", "start", "feedd.socket")

    def tearDown(self):
        container = self.container
        container.command("systemctl", "stop", "feedd.socket", "feedd.service")
        container.command("systemctl", "reset-failed")
        shutil.rmtree(f"{container.root}/etc/systemd/system/feedd.service.d", ignore_errors=True)
        container.command("sh", "-c", "rm -rf /var/lib/feedd/*")
        container.command("systemctl", "daemon-reload")

    def configure(self, text):
        """Adds lines to the service's section of the unit."""
        folder = pathlib.Path(self.container.root) / "etc/systemd/system/feedd.service.d"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "test.conf").write_text(f"[Service]\n{text}\n")
        self.container.run("systemctl", "daemon-reload")

    def start(self):
        """Starts the service by connecting, and returns the connection."""
        connection = self.container.connect()
        self.addCleanup(connection.close)
        connection.call("ping")
        return connection

    def wait_for_new_pid(self, old):
        def check():
            pid = self.container.main_pid()
            return pid if pid not in (0, old) and self.container.show("feedd.service", "ActiveState") == "active" else None

        return self.container.wait(check, "the service's restart")

    def fill(self, connection):
        """Defines a feed with three elements; returns epoch and revision of a watch."""
        connection.call("define", feed="inbox", kind="collection")
        for number in range(3):
            connection.call("update", feed="inbox", element={"id": number})
        watch = connection.watch("inbox")
        return watch.result["epoch"], watch.result["revision"]

    def resume(self, epoch, revision):
        """Resumes the watch on a new connection; returns its result."""
        connection = self.start()
        return connection.watch("inbox", since={"epoch": epoch, "revision": revision}).result

    def test_a_client_starts_the_service_and_is_served(self):
        self.assertEqual(self.container.show("feedd.service", "ActiveState"), "inactive")
        connection = self.start()
        self.assertEqual(self.container.show("feedd.service", "ActiveState"), "active")
        self.assertIn("listening", self.container.show("feedd.service", "StatusText"))
        self.assertEqual(self.container.show("feedd.service", "MainPID"), str(self.container.main_pid()))

    def test_after_a_crash_watchers_resume_by_deltas(self):
        epoch, revision = self.fill(self.start())
        for _ in range(2):
            pid = self.container.main_pid()
            self.container.kill("KILL")
            self.wait_for_new_pid(pid)
            result = self.resume(epoch, revision)
            self.assertEqual((result["epoch"], result["resumed"]), (epoch, True), self.container.log())

    def test_a_stop_keeps_everything_for_the_next_start(self):
        epoch, revision = self.fill(self.start())
        self.container.run("systemctl", "stop", "feedd.service")
        self.assertEqual(self.container.show("feedd.service", "Result"), "success")
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"]), (epoch, True))

    def test_the_watchdog_restarts_a_daemon_that_hangs(self):
        self.configure("WatchdogSec=2")
        epoch, revision = self.fill(self.start())
        pid = self.container.main_pid()
        self.container.kill("STOP")
        self.wait_for_new_pid(pid)
        self.assertIn("Watchdog timeout", self.container.output("journalctl", "--no-pager", "-o", "cat", "-u", "feedd.service"))
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"]), (epoch, True))

    def test_signals_of_a_crash_end_the_daemon_without_a_backtrace(self):
        self.start()
        for signal in ("ABRT", "QUIT", "SEGV"):
            pid = self.container.main_pid()
            self.container.kill(signal)
            self.wait_for_new_pid(pid)
        self.assertNotIn("Registers", self.container.log())

    def test_an_upgrade_continues_with_the_same_state(self):
        epoch, revision = self.fill(self.start())
        program = f"{self.container.root}/usr/local/bin/feedd"
        shutil.copy2(program, f"{program}.new")
        os.rename(f"{program}.new", program)
        pid = self.container.main_pid()
        self.container.run("systemctl", "restart", "feedd.service")
        self.wait_for_new_pid(pid)
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"]), (epoch, True))

    def configure_file(self, text):
        path = pathlib.Path(self.container.root) / "etc/feedd.json"
        path.write_text(text)
        return "/etc/feedd.json"

    def test_reload_reads_the_configuration_and_fails_when_it_is_bad(self):
        path = self.configure_file('{"feeds": [{"feed": "a", "kind": "collection"}]}')
        self.configure(f"ExecStart=\nExecStart=/usr/local/bin/feedd --config {path}")
        connection = self.start()
        self.assertEqual([feed["feed"] for feed in connection.call("feeds")["feeds"]], ["a"])
        self.configure_file('{"feeds": [{"feed": "a", "kind": "collection"}, {"feed": "b", "kind": "collection"}]}')
        self.container.run("systemctl", "reload", "feedd.service")
        self.container.wait(lambda: len(connection.call("feeds")["feeds"]) == 2, "the new feed")
        self.configure_file('{"feeds": [')
        self.assertNotEqual(self.container.command("systemctl", "reload", "feedd.service").returncode, 0)
        self.assertEqual(len(connection.call("feeds")["feeds"]), 2)
        self.assertEqual(self.container.show("feedd.service", "ActiveState"), "active")

    def test_reload_waits_for_the_daemon_where_systemd_can(self):
        if self.container.version() < 253:
            self.skipTest("Type=notify-reload needs systemd 253")
        self.assertEqual(self.container.show("feedd.service", "Type"), "notify-reload")
        path = self.configure_file("{}")
        self.configure(f"ExecStart=\nExecStart=/usr/local/bin/feedd --config {path}")
        connection = self.start()
        for number in range(5):
            feeds = [{"feed": f"f{index}", "kind": "collection"} for index in range(number)]
            self.configure_file(json.dumps({"feeds": feeds}))
            self.container.run("systemctl", "reload", "feedd.service")
            self.assertEqual(len(connection.call("feeds")["feeds"]), number)

    def test_many_crashes_keep_the_socket(self):
        self.configure("RestartSec=10ms\nRestartSteps=0")
        epoch, revision = self.fill(self.start())
        for _ in range(12):
            pid = self.container.main_pid()
            self.container.kill("KILL")
            self.wait_for_new_pid(pid)
        self.assertEqual(self.container.show("feedd.socket", "ActiveState"), "active")
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"]), (epoch, True))

    def wait_for_status(self, words):
        self.container.wait(lambda: words in self.container.show("feedd.service", "StatusText"), f"the status '{words}'")

    def test_the_status_of_a_service_that_cannot_start_says_what_to_do(self):
        self.configure("RestartSec=1s")
        epoch, revision = self.fill(self.start())
        self.container.run("systemctl", "stop", "feedd.service")
        database = pathlib.Path(self.container.root) / "var/lib/feedd/feedd.sqlite"
        sound = database.read_bytes()
        database.write_bytes(sound[:8192] + b"\x5a" * (len(sound) - 8192))
        self.container.command("systemctl", "start", "feedd.service")
        self.wait_for_status("restore a backup")
        database.write_bytes(sound)
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"]), (epoch, True))
        path = self.configure_file('{"feeds": [{"feed": "a", "kind": "colection"}]}')
        self.configure(f"ExecStart=\nExecStart=/usr/local/bin/feedd --config {path}")
        self.container.command("systemctl", "restart", "feedd.service")
        self.wait_for_status(f"{path}:1:")
        self.configure_file("{}")
        self.start()

    def test_a_stop_during_the_start_succeeds_and_loses_nothing(self):
        self.configure("Restart=no")
        connection = self.start()
        epoch, _ = self.fill(connection)
        elements = [{"id": number} for number in range(20000)]
        revision = connection.call("update", feed="inbox", elements=elements)["revision"]
        self.container.kill("KILL")
        self.container.wait(lambda: self.container.show("feedd.service", "ActiveState") == "failed", "the crash")
        self.container.run("systemctl", "stop", "feedd.socket")
        self.container.run("systemctl", "reset-failed", "feedd.service")
        self.container.run("systemctl", "start", "--no-block", "feedd.service")
        self.container.run("systemctl", "stop", "feedd.service")
        self.assertEqual(self.container.show("feedd.service", "Result"), "success", self.container.log())
        self.container.run("systemctl", "start", "feedd.socket")
        result = self.resume(epoch, revision)
        self.assertEqual((result["epoch"], result["resumed"], result["revision"]), (epoch, True, revision))

    def test_lines_about_a_client_have_fields(self):
        if self.container.command("sh", "-c", "command -v python3").returncode != 0:
            self.skipTest("no python3 in the container")
        self.start()
        client = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('/run/feedd/feedd.sock'); s.send(b'\\xff' * 8); s.recv(9999)"
        self.container.run("python3", "-c", client)

        def entry():
            lines = self.container.output("journalctl", "-u", "feedd", "-o", "json", "FEEDD_CLIENT_UID=0").splitlines()
            return json.loads(lines[-1]) if lines else None

        found = self.container.wait(entry, "an entry about the client")
        self.assertIn("is being closed", found["MESSAGE"])
        self.assertRegex(found["FEEDD_CLIENT_PID"], "^[1-9][0-9]*$")
        self.assertEqual((found["_SYSTEMD_UNIT"], found["SYSLOG_IDENTIFIER"]), ("feedd.service", "feedd"))

    def test_an_uninstallation_stops_the_service_and_keeps_the_state(self):
        source = pathlib.Path(self.container.root) / "opt/feedd"
        shutil.copytree(ROOT / "scripts", source / "scripts")
        self.container.run("systemctl", "enable", "feedd.socket")
        self.fill(self.start())
        script = ["env", "FEEDD_BIN_DIR=/usr/local/bin", "/opt/feedd/scripts/install"]
        self.container.run(*script, "--uninstall")
        self.assertNotEqual(self.container.show("feedd.socket", "ActiveState"), "active")
        self.assertNotEqual(self.container.show("feedd.service", "ActiveState"), "active")
        left = self.container.output("find", "/usr/local", "/etc/systemd", "-name", "*feed*")
        self.assertEqual(left, "")
        self.assertIn("feedd.sqlite", self.container.output("ls", "/var/lib/feedd"))
        self.container.install()
        self.container.run("systemctl", "daemon-reload")
        self.container.run("systemctl", "start", "feedd.socket")
        self.assertEqual(len(self.start().call("feeds")["feeds"]), 1)

    def test_a_daemon_beside_the_service_is_told_that_systemd_has_the_socket(self):
        done = self.container.command("env", "-u", "XDG_RUNTIME_DIR", "/usr/local/bin/feedd", "--durability", "memory")
        self.assertEqual(done.returncode, 1)
        self.assertIn("systemd listens there for the service feedd", done.stderr)

    def test_members_of_the_group_can_connect_and_others_cannot(self):
        for user, options in (("member", ["--groups", "feedd"]), ("stranger", [])):
            self.container.run("useradd", "--no-create-home", *options, user)
            command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "/usr/local/bin/feedclient", "ping"]
            done = self.container.command(*command)
            self.assertEqual(done.returncode, 0 if options else 3, done.stderr)
        self.assertIn("permission denied", done.stderr)

    def test_the_unit_has_limits(self):
        self.assertEqual(self.container.show("feedd.service", "TasksMax"), "1024")
        self.assertNotIn(self.container.show("feedd.service", "MemoryMax"), ("", "infinity"))
        self.assertEqual(self.container.show("feedd.service", "StartLimitIntervalUSec"), "0")
        self.assertEqual(self.container.show("feedd.socket", "TriggerLimitBurst"), "100")
        if self.container.version() >= 254:
            self.assertEqual(self.container.show("feedd.service", "RestartSteps"), "10")

    def test_a_crash_loop_keeps_the_socket(self):
        path = self.configure_file('{"feeds": [')
        self.configure(f"ExecStart=\nExecStart=/usr/local/bin/feedd --config {path}\nRestartSec=100ms\nRestartSteps=0")
        with socket.socket(socket.AF_UNIX) as waiting:
            waiting.connect(f"/proc/{self.container.leader}/root/run/feedd/feedd.sock")
            self.container.wait(lambda: int(self.container.show("feedd.service", "NRestarts") or 0) >= 12, "restarts")
            self.assertEqual(self.container.show("feedd.socket", "ActiveState"), "active", self.container.log())
            self.configure_file("{}")
            self.container.wait(
                lambda: self.container.show("feedd.service", "ActiveState") == "active", "the service after the repair"
            )
        self.start()


@unittest.skipIf(missing(), missing())
class UserService(unittest.TestCase):
    """The commands of the README for a daemon of one's own, as a user without rights."""

    @classmethod
    def setUpClass(cls):
        cls.container = Container()
        try:
            cls.container.run("useradd", "--create-home", "--uid", str(USER), "ann")
            cls.container.install("--user", PREFIX="/home/ann/.local")
            cls.container.run("chown", "-R", "ann:", "/home/ann/.local")
            started = cls.container.command("systemctl", "start", f"user@{USER}.service")
            if started.returncode != 0:
                raise unittest.SkipTest(f"no user manager here: {started.stderr}")
        except BaseException:
            cls.container.close()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.container.close()

    def command(self, *arguments):
        runtime = f"/run/user/{USER}"
        user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", "env", "-i", "LANG=C.UTF-8"]
        variables = ["HOME=/home/ann", f"XDG_RUNTIME_DIR={runtime}", "PATH=/home/ann/.local/bin:/usr/bin:/bin"]
        return self.container.command(*user, *variables, *arguments)

    def run_as_user(self, *arguments):
        done = self.command(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def show(self, name):
        return self.run_as_user("systemctl", "--user", "show", "--value", "-p", name, "feedd.service")

    def test_a_client_starts_the_service_which_keeps_its_state_at_home(self):
        self.run_as_user("systemctl", "--user", "enable", "--now", "feedd.socket")
        self.assertEqual(self.show("ActiveState"), "inactive")
        self.run_as_user("feedclient", "define", "inbox")
        self.run_as_user("feedclient", "push", "inbox", '{"id":1}')
        self.assertEqual(self.show("ActiveState"), "active")
        state = pathlib.Path(self.container.root) / "home/ann/.local/state/feedd"
        self.assertEqual((state / "feedd.sqlite").stat().st_uid, USER)
        self.assertEqual(os.stat(f"/proc/{self.container.leader}/root/run/user/{USER}/feedd.sock").st_mode & 0o777, 0o600)
        pid = self.show("MainPID")
        self.run_as_user("systemctl", "--user", "kill", "--kill-whom=main", "--signal=KILL", "feedd.service")
        self.container.wait(lambda: self.show("ActiveState") == "active" and self.show("MainPID") != pid, "the restart")
        self.assertIn('"id":1', self.run_as_user("feedclient", "--json", "get", "inbox", "1"))
        self.run_as_user("systemctl", "--user", "reload", "feedd.service")
        self.run_as_user("systemctl", "--user", "stop", "feedd.service")
        self.assertEqual(self.show("Result"), "success")
        self.assertIn('"id":1', self.run_as_user("feedclient", "--json", "get", "inbox", "1"))
        self.run_as_user("systemctl", "--user", "disable", "--now", "feedd.socket", "feedd.service")
