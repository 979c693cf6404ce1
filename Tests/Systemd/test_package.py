"""The Debian package in a container under a real systemd: installation, upgrade, removal and purge.

Needs root, systemd-nspawn and lintian, as far as they are there. FEEDD_PACKAGE names the package; without it, scripts/package
builds one. FEEDD_SYSTEMD_ROOT names the root of a clean system, which debootstrap has made; without it, debootstrap makes one if it
is installed and reaches a mirror (FEEDD_MIRROR), and otherwise the container has the files of this machine.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import test_systemd
from test_systemd import ROOT, PATIENCE, Container, missing


def prepared(test):
    """Returns the path of the package."""
    if os.environ.get("FEEDD_PACKAGE"):
        return os.environ["FEEDD_PACKAGE"]
    folder = tempfile.mkdtemp(prefix="feedd-package-")
    test.addClassCleanup(shutil.rmtree, folder)
    environment = {name: value for name, value in os.environ.items() if name != "FEEDD_BIN_DIR"}
    subprocess.run([ROOT / "scripts" / "package", "--output", folder], check=True, env=environment, capture_output=True)
    [package] = pathlib.Path(folder).glob("*.deb")
    return str(package)


def clean_system(test):
    """Returns the root of the system to boot."""
    if "FEEDD_SYSTEMD_ROOT" in os.environ or not shutil.which("debootstrap"):
        return test_systemd.SYSTEM
    folder = tempfile.mkdtemp(prefix="feedd-root-")
    test.addClassCleanup(shutil.rmtree, folder)
    packages = "--include=systemd,systemd-sysv,dbus,init-system-helpers,libsqlite3-0,libstdc++6"
    mirror = os.environ.get("FEEDD_MIRROR", "http://deb.debian.org/debian")
    done = subprocess.run(["debootstrap", "--variant=minbase", packages, "stable", folder, mirror], capture_output=True)
    return folder if done.returncode == 0 else test_systemd.SYSTEM


class Machine(Container):
    """A booted system with the package in its root directory and nothing of it installed."""

    def __init__(self, package):
        self.package = package
        super().__init__()

    def _install(self):
        shutil.copy(self.package, f"{self.root}/feedd.deb")
        pathlib.Path(f"{self.root}/etc/machine-id").write_text("")
        # On a machine that is itself a container, it often forbids packages to start services.
        pathlib.Path(f"{self.root}/usr/sbin/policy-rc.d").unlink(missing_ok=True)

    def install_package(self, name="feedd.deb"):
        self.run("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confold", "-i", f"/{name}")


@unittest.skipIf(missing(), missing())
class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("dpkg-deb"):
            raise unittest.SkipTest("there is no dpkg-deb")
        cls.package = prepared(cls)
        test_systemd.SYSTEM = clean_system(cls)
        cls.machine = Machine(cls.package)
        cls.addClassCleanup(cls.machine.close)

    def upgrade_of_the_package(self):
        """Puts a package of a later version, with the same content, into the container."""
        with tempfile.TemporaryDirectory(prefix="feedd-package-") as folder:
            subprocess.run(["dpkg-deb", "-R", self.package, folder], check=True)
            control = pathlib.Path(folder) / "DEBIAN/control"
            lines = [f"{line}+next" if line.startswith("Version:") else line for line in control.read_text().splitlines()]
            control.write_text("\n".join(lines) + "\n")
            target = f"{self.machine.root}/next.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", folder, target], check=True, capture_output=True)

    def test_from_installation_to_purge(self):
        machine = self.machine
        machine.install_package()
        self.assertEqual(machine.show("feedd.socket", "ActiveState"), "active", machine.log())
        self.assertEqual(machine.show("feedd.socket", "UnitFileState"), "enabled")
        self.assertEqual(machine.show("feedd.service", "ActiveState"), "inactive")

        # The first client starts the daemon.
        machine.run("feedclient", "define", "inbox")
        machine.run("feedclient", "push", "inbox", '{"id":1}')
        self.assertIn("--config /etc/feedd/feedd.conf", machine.show("feedd.service", "ExecStart"))
        self.assertEqual(machine.output("stat", "-c", "%U %a", "/var/lib/feedd"), "feedd 700")
        # Where the shells of Debian look.
        for path in ("bash-completion/completions/feedd", "zsh/vendor-completions/_feedd", "fish/vendor_completions.d/feedd.fish"):
            machine.run("test", "-f", f"/usr/share/{path}")
        # Links of the README.
        for path in ("Protocol/config.md", "Protocol/methods/README.md", "Protocol/clients/python/feedd/__init__.py", "scripts/systemd/group/leaf.conf"):
            machine.run("test", "-f", f"/usr/share/doc/feedd/{path}")
        command = machine.show("feedd.service", "ExecStart").split("argv[]=")[1].split(" ;")[0]
        drop_in = machine.output("grep", "^ExecStart=/", "/usr/share/doc/feedd/scripts/systemd/group/group.conf")
        self.assertEqual(drop_in, f"ExecStart={command} --group shop --log nats://127.0.0.1:4222")
        watcher = machine.connect()
        self.addCleanup(watcher.close)
        watch = watcher.watch("inbox")
        since = {"epoch": watch.result["epoch"], "revision": watch.result["revision"]}

        # An upgrade restarts the daemon, keeps what the administrator configured, and the watcher resumes.
        configuration = pathlib.Path(f"{machine.root}/etc/feedd/feedd.conf")
        configuration.write_text('{"feeds": [{"feed": "extra", "kind": "array"}]}\n')
        pid = machine.main_pid()
        self.upgrade_of_the_package()
        machine.install_package("next.deb")
        self.assertTrue(machine.output("dpkg-query", "-W", "-f", "${Version}", "feedd").endswith("+next"))
        machine.wait(lambda: machine.main_pid() not in (0, pid), "the restart")
        resumed = machine.connect()
        self.addCleanup(resumed.close)
        resumed.call("update", feed="inbox", element={"id": 2})
        watch = resumed.watch("inbox", since=since)
        self.assertTrue(watch.result["resumed"])
        delta = watch.next(PATIENCE)
        self.assertEqual((delta.method, delta.params["from"], delta.params["elements"]), ("delta", since["revision"], [b'{"id":2}']))
        self.assertEqual([feed["feed"] for feed in resumed.call("feeds")["feeds"]], ["extra", "inbox"])
        resumed.close()

        # A socket that the administrator disabled stays disabled.
        machine.run("systemctl", "disable", "--now", "feedd.socket", "feedd.service")
        machine.install_package("next.deb")
        self.assertEqual(machine.show("feedd.socket", "UnitFileState"), "disabled")
        machine.run("systemctl", "enable", "--now", "feedd.socket")
        machine.run("feedclient", "ping")

        machine.run("dpkg", "--remove", "feedd")
        for unit in ("feedd.socket", "feedd.service"):
            self.assertNotEqual(machine.show(unit, "ActiveState"), "active")
        self.assertIn("feedd", machine.output("ls", "/var/lib/feedd"))
        self.assertTrue(configuration.exists())
        # The administrator's own link goes, too.
        machine.install_package()
        machine.run("systemctl", "enable", "feedd.service")
        machine.run("dpkg", "--purge", "feedd")
        left = machine.output(
            "find", "/usr", "/lib", "/etc", "/var/lib/feedd", "/run/feedd", "-xdev", "-name", "*feedd*", "-not", "-path", "/usr/share/*"
        )
        self.assertEqual(left, "")

    def test_lintian_has_no_errors(self):
        if not shutil.which("lintian"):
            self.skipTest("lintian is not installed")
        command = ["lintian", "--allow-root", "--fail-on", "error", self.package]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
