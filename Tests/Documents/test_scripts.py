"""The options of the scripts, and the files that scripts/install installs."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from documents import ROOT, support

SCRIPTS = ROOT / "scripts"
NAMES = sorted(path.name for path in SCRIPTS.iterdir() if path.is_file())


def run(*words, **options):
    return subprocess.run([SCRIPTS / words[0], *words[1:]], capture_output=True, text=True, **options)


class Options(unittest.TestCase):
    def test_every_script_has_help(self):
        self.assertIn("install", NAMES)
        for name in NAMES:
            for option in ("-h", "--help"):
                done = run(name, option)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
                self.assertRegex(done.stdout, rf"(?i)\Ausage: scripts/{name}\b", name)
                self.assertIn("--help", done.stdout)

    def test_every_script_refuses_unknown_options(self):
        for name in NAMES:
            done = run(name, "--nonsense")
            expected = f"scripts/{name}: unknown option '--nonsense'; run scripts/{name} --help\n"
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", expected))

    def test_unexpected_arguments_are_refused(self):
        for name in ("run", "test", "lint", "vectors", "limits", "openrpc", "install"):
            done = run(name, "nonsense")
            expected = f"scripts/{name}: unexpected argument 'nonsense'; run scripts/{name} --help\n"
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", expected))

    def test_a_search_path_of_cd_changes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/scripts")
            done = subprocess.run(
                ["scripts/install", "--help"], cwd=ROOT, env={**os.environ, "CDPATH": folder}, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, run("install", "--help").stdout, ""))

    def test_what_a_script_cannot_use_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "FEEDD_BIN_DIR": folder, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)}
            done = run("limits", env=environment)
            why = f"cannot use {folder}/feedd: No such file or directory"
            self.assertEqual((done.returncode, done.stderr), (1, f"scripts/limits: {why}\n"))
            done = run("commits", folder, env=environment)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            # The first line is that of git.
            self.assertEqual(done.stderr.splitlines()[1:], ["scripts/commits: git failed with exit status 128"])

    def test_invalid_values_of_the_test_script(self):
        for words, why in (
            (["--sanitize=memory"], "unknown sanitizer 'memory'; use address or thread"),
            (["--sanitize"], "missing value of --sanitize; use --sanitize=address or --sanitize=thread"),
            (["--filter"], "missing value of --filter"),
        ):
            done = run("test", *words)
            self.assertEqual((done.returncode, done.stderr), (2, f"scripts/test: {why}; run scripts/test --help\n"))


class Install(unittest.TestCase):
    SHARED = (
        "bin/feedd",
        "bin/feedclient",
        *(f"share/man/man{path.suffix[1:]}/{path.name}" for path in sorted((SCRIPTS / "man").iterdir())),
        "share/bash-completion/completions/feedclient",
        "share/bash-completion/completions/feedd",
        "share/zsh/site-functions/_feedclient",
        "share/zsh/site-functions/_feedd",
        "share/fish/vendor_completions.d/feedclient.fish",
        "share/fish/vendor_completions.d/feedd.fish",
    )
    SYSTEM = (
        "lib/systemd/system/feedd.service",
        "lib/systemd/system/feedd.socket",
        "lib/systemd/user/feedd.service",
        "lib/systemd/user/feedd.socket",
        "lib/sysusers.d/feedd.conf",
    )
    USER = ("share/systemd/user/feedd.service", "share/systemd/user/feedd.socket")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.bin = os.path.dirname(support.binary("feedd"))

    def run_install(self, *options, **variables):
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment |= {"HOME": self.folder, "FEEDD_BIN_DIR": self.bin, **variables}
        return run("install", *options, env=environment)

    def install(self, *options, **variables):
        done = self.run_install(*options, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def files(self):
        return sorted(str(path) for path in pathlib.Path(self.folder).rglob("*") if path.is_file())

    def test_a_package_has_every_file(self):
        listed = self.install(DESTDIR=self.folder, PREFIX="/opt/feedd")
        root = f"{self.folder}/opt/feedd"
        self.assertEqual(sorted(listed), sorted(f"{root}/{file}" for file in self.SHARED + self.SYSTEM))
        self.assertEqual(self.files(), sorted(listed))
        for kind in ("system", "user"):
            with open(f"{root}/lib/systemd/{kind}/feedd.service", encoding="utf-8") as unit:
                self.assertRegex(unit.read(), r"(?m)^ExecStart=[-@:+!]*/opt/feedd/bin/feedd$")
        done = subprocess.run([f"{root}/bin/feedd", "--version"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"\Afeedd \d+\.\d+")

    def test_user_installation_writes_only_below_home(self):
        listed = self.install("--user")
        root = f"{self.folder}/.local"
        self.assertEqual(sorted(listed), sorted(f"{root}/{file}" for file in self.SHARED + self.USER))
        with open(f"{root}/share/systemd/user/feedd.service", encoding="utf-8") as unit:
            self.assertIn(f"\nExecStart={root}/bin/feedd\n", unit.read())

    def test_uninstall_removes_only_installed_files(self):
        for options in ([], ["--user"]):
            variables = {} if options else {"PREFIX": f"{self.folder}/prefix"}
            kept = pathlib.Path(self.folder) / ("prefix" if not options else ".local") / "bin" / "other"
            installed = self.install(*options, **variables)
            kept.write_text("kept")
            self.assertEqual(
                self.install(*options, "--uninstall", **variables), [f"removed {path}" for path in installed]
            )
            self.assertEqual(self.files(), [str(kept)])
            self.assertEqual(self.install(*options, "--uninstall", **variables), [])
            kept.unlink()

    def test_missing_programs_are_named(self):
        done = self.run_install("--no-build", FEEDD_BIN_DIR="/nonexistent", PREFIX=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            "scripts/install: cannot find /nonexistent/feedd; run scripts/install without --no-build\n",
        )

    def test_building_under_sudo_is_refused(self):
        done = self.run_install(FEEDD_BIN_DIR="", SUDO_USER="ann", PREFIX=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Ascripts/install: cannot build under sudo; ")

    def test_a_user_without_a_home_is_told(self):
        done = self.run_install("--user", HOME="")
        why = "cannot find the directory of the user: HOME is not set; set HOME or PREFIX"
        self.assertEqual((done.returncode, done.stderr), (1, f"scripts/install: {why}\n"))

    def test_a_daemon_that_runs_during_an_upgrade_is_named(self):
        """The service manager is a script that knows the installed socket and notes its commands."""
        tools = pathlib.Path(self.folder) / "tools"
        tools.mkdir()
        for options, units, words in (([], "lib/systemd/system", ""), (["--user"], "share/systemd/user", "--user ")):
            (tools / "systemctl").write_text(
                f"#!/bin/sh\ncase $* in\n  --version) echo 'systemd 252 (252.1)' ;;\n  *show*) echo {self.folder}/{units}/feedd.socket ;;\n"
                f'  *) echo "$*" >>{self.folder}/commands ;;\nesac\n')
            (tools / "systemctl").chmod(0o755)
            path = f"{tools}:{self.folder}/bin:{os.environ['PATH']}"
            # A slash at the end is not part of the path that systemd has.
            done = self.run_install(*options, PREFIX=f"{self.folder}/", PATH=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            hint = f"scripts/install: the former feedd still runs; replace it with: systemctl {words}restart feedd"
            self.assertEqual(done.stderr.splitlines()[:1], [hint])
            done = self.run_install(*options, "--uninstall", PREFIX=f"{self.folder}/", PATH=path)
            self.assertNotIn("still runs", done.stderr)
            commands = pathlib.Path(self.folder) / "commands"
            self.assertEqual(commands.read_text().splitlines(), [
                f"{words}daemon-reload", f"{words}--quiet is-active feedd.service",
                f"{words}disable --now feedd.socket feedd.service", f"{words}daemon-reload"])
            commands.unlink()

    def test_relative_prefix_is_refused(self):
        done = self.run_install(PREFIX="local")
        self.assertEqual(done.returncode, 2)
        self.assertIn("PREFIX must be an absolute path: 'local'", done.stderr)

    def test_paths_of_the_environment_are_relative_to_the_directory_of_the_caller(self):
        os.symlink(self.bin, f"{self.folder}/programs")
        variables = {"FEEDD_BIN_DIR": "programs", "DESTDIR": "root of it", "PREFIX": "/usr", "HOME": self.folder, "PATH": os.environ["PATH"]}
        done = run("install", cwd=self.folder, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        root = f"{self.folder}/root of it/usr"
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(f"{root}/{file}" for file in self.SHARED + self.SYSTEM))

    def test_units_name_the_program_below_any_prefix(self):
        for prefix, word in (
            ("/opt/my feedd", '"/opt/my feedd/bin/feedd"'),
            ("/opt/a&b|c", '"/opt/a&b|c/bin/feedd"'),
            ("/opt/100%h$x", '"/opt/100%%h$x/bin/feedd"'),
            ("/opt/feedd//", "/opt/feedd/bin/feedd"),
            ("/", "/bin/feedd"),
        ):
            self.install(DESTDIR=self.folder, PREFIX=prefix)
            for kind in ("system", "user"):
                unit = pathlib.Path(f"{self.folder}{prefix}/lib/systemd/{kind}/feedd.service").read_text(encoding="utf-8")
                words = re.findall(r"(?m)^Exec(?:Start|Reload)=(.*?)(?: --.*)?$", unit)
                self.assertEqual(set(words) - {""}, {word}, prefix)
        for character in "\"'\\\n":
            prefix = f"{self.folder}/a{character}b"
            done = self.run_install(PREFIX=prefix)
            why = f"PREFIX must not contain quotation marks, backslashes or line breaks: '{prefix}'"
            self.assertEqual((done.returncode, done.stderr), (2, f"scripts/install: {why}; run scripts/install --help\n"))

    @unittest.skipIf(os.getuid() != 0 or not shutil.which("setpriv"), "needs root and setpriv")
    def test_only_copying_runs_under_sudo(self):
        os.chmod(self.folder, 0o755)
        os.mkdir(f"{self.folder}/tools")
        sudo = pathlib.Path(self.folder) / "tools" / "sudo"
        sudo.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
        sudo.chmod(0o755)
        tools = pathlib.Path(self.folder) / "bin"
        tools.mkdir()
        for program in ("feedd", "feedclient"):
            (tools / program).write_text("")
            (tools / program).chmod(0o755)
        package = pathlib.Path(self.folder) / "package"
        shutil.copytree(SCRIPTS, package / "scripts")
        command = ["setpriv", "--reuid=65534", "--clear-groups", package / "scripts" / "install", "--uninstall"]
        environment = {
            "PATH": f"{sudo.parent}:{os.environ['PATH']}",
            "HOME": "/",
            "PREFIX": "/usr/local",
            "FEEDD_BIN_DIR": str(tools),
        }
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        self.assertEqual(done.stderr, "scripts/install: removing files below /usr/local with sudo\n")
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "env",
                "PREFIX=/usr/local",
                "DESTDIR=",
                f"FEEDD_BIN_DIR={tools}",
                str(package / "scripts" / "install"),
                "--no-build",
                "--uninstall",
            ],
        )

    def test_lines_of_a_newer_systemd_are_installed_if_it_is_there(self):
        tools = pathlib.Path(self.folder) / "tools"
        tools.mkdir()
        for version in (None, 252, 253, 257):
            (tools / "systemctl").write_text(f"#!/bin/sh\necho 'systemd {version} ({version}.1)'" if version else "exit 1")
            (tools / "systemctl").chmod(0o755)
            self.install(DESTDIR=self.folder, PATH=f"{tools}:{os.environ['PATH']}")
            for installed, source in (("system", ""), ("user", "user/")):
                for name in ("feedd.service", "feedd.socket"):
                    lines = []
                    for line in (SCRIPTS / "systemd" / (source + name)).read_text(encoding="utf-8").splitlines():
                        needed = re.match(r"# systemd (\d+): (.*)", line)
                        if not needed:
                            lines.append(line)
                        elif int(needed[1]) <= (version or 0):
                            lines.append(needed[2])
                    unit = pathlib.Path(f"{self.folder}/usr/local/lib/systemd/{installed}/{name}")
                    self.assertEqual(unit.read_text(encoding="utf-8").splitlines(), lines)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_accepts_the_installed_units(self):
        self.install(PREFIX=self.folder)
        for kind in ("system", "user"):
            units = [f"{self.folder}/lib/systemd/{kind}/feedd.{suffix}" for suffix in ("service", "socket")]
            environment = {**os.environ, "XDG_RUNTIME_DIR": self.folder}
            command = ["systemd-analyze", f"--{kind}", "verify", *units]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), kind)


class Package(unittest.TestCase):
    TOOLS = ("dpkg-deb", "dpkg-shlibdeps", "strip", "objdump")

    @unittest.skipUnless(all(map(shutil.which, TOOLS)), "the tools of Debian packages are not installed")
    def test_programs_without_the_swift_runtime_are_refused(self):
        program = support.binary("feedd")
        listed = subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"NEEDED +(\S*swift\S*)", listed)
        if not needed:
            self.skipTest("the built programs contain the Swift runtime")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "FEEDD_BIN_DIR": os.path.dirname(program)}
            done = run("package", "--output", "out", cwd=folder, env=environment)
            why = f"cannot package {program}: it needs {needed[0]}; build it with --static-swift-stdlib"
            self.assertEqual((done.returncode, done.stderr), (1, f"scripts/package: {why}\n"))
            self.assertEqual(os.listdir(folder), [])


class Tests(unittest.TestCase):
    def test_the_help_of_the_test_script_names_the_variable_of_long_tests(self):
        text = run("test", "--help").stdout
        effort = (ROOT / "Tests" / "TestSupport" / "TestEnvironment.swift").read_text(encoding="utf-8")
        [variable] = set(re.findall(r"FEEDD_LONG\w*", effort))
        self.assertIn(f"{variable}=1", text)
