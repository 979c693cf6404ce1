"""The help of the programs, the man pages, the specification and the completions agree."""

import contextlib
import grp
import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest

from documents import METHODS, PROTOCOL, ROOT, section, support

MAN = ROOT / "scripts" / "man"


def help_of(program, *words):
    done = subprocess.run([support.binary(program), *words, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def options(text):
    """Returns the options listed in a help text."""
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)) - {"--help", "--version"}


def commands():
    return re.findall(r"^  ([a-z][A-Za-z-]*)  ", help_of("feedclient"), re.MULTILINE)


def manual(name):
    return (MAN / name).read_text(encoding="utf-8").replace("\\-", "-")


def section_of_manual(text, title):
    return re.search(rf"^\.SH {title}\n(.*?)(?=^\.SH |\Z)", text, re.MULTILINE | re.DOTALL).group(1)


def lowered(conditions):
    """Returns the conditions of errors without code marks, starting in lower case."""
    return {code: text.replace("`", "")[0].lower() + text.replace("`", "")[1:] for code, text in conditions.items()}


class Manuals(unittest.TestCase):
    def test_man_formats_the_pages_without_warnings(self):
        if not shutil.which("man"):
            self.skipTest("man is not installed")
        for page in MAN.iterdir():
            command = ["man", "--warnings", "--local-file", "-Tutf8", "--no-hyphenation", str(page)]
            environment = {**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"}
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(re.sub(".\b", "", line)), 80, f"{page.name}: {line}")

    def test_help_fits_80_columns(self):
        texts = {"feedd": help_of("feedd"), "feedclient": help_of("feedclient")}
        texts |= {command: help_of("feedclient", command) for command in commands()}
        for name, text in texts.items():
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, f"{name}: {line}")

    def test_every_option_of_feedd_has_a_paragraph(self):
        listed = set(re.findall(r"^\.BI? (--[a-z-]+)", manual("feedd.8"), re.MULTILINE))
        self.assertEqual(listed - {"--help", "--version"}, options(help_of("feedd")))

    def test_every_command_of_feedclient_has_a_paragraph(self):
        text = manual("feedclient.1")
        self.assertEqual(sorted(re.findall(r"^\.SS ([a-z][A-Za-z-]*)", text, re.MULTILINE)), sorted(commands()))
        for command in commands():
            paragraph = re.split(r"^\.S[SH] ", re.split(rf"^\.SS {command}\b", text, flags=re.M)[1], flags=re.M)[0]
            own = options(help_of("feedclient", command)) - {"--socket", "--timeout", "--json", "--verbose"}
            self.assertEqual(set(re.findall(r"(--[a-z-]+)", paragraph)) - {"--json"}, own, command)

    def test_the_options_that_may_be_repeated_are_the_same_everywhere(self):
        def repeated(text, mark):
            paragraphs = re.split(mark, text, flags=re.MULTILINE)[1:]
            return {re.match(r"--[a-z-]+", p)[0] for p in paragraphs if re.search(r"may\s+be\s+repeated", p, re.I)}

        helped = set().union(*(repeated(help_of("feedclient", c), r"^ +(?=--)") for c in commands()))
        self.assertIn("--bin", helped)
        self.assertEqual(repeated(manual("feedclient.1").split(".SH COMMANDS")[1], r"^\.BI? (?=--)"), helped)
        self.assertEqual(repeated(help_of("feedd"), r"^ +(?=--)"), set())
    def test_the_page_of_the_protocol_has_every_method_notification_and_error(self):
        text = manual("feedd-protocol.7")
        methods = section_of_manual(text, "METHODS")
        self.assertEqual(sorted(re.findall(r"^\.BR? (\w+)", methods, re.MULTILINE)), sorted(METHODS))
        notifications = {path.stem for path in (PROTOCOL / "schemas" / "notifications").iterdir()}
        found = re.findall(r"^\.BR? (\w+)", section_of_manual(text, "NOTIFICATIONS"), re.MULTILINE)
        self.assertEqual(set(found), notifications)
        table = section((PROTOCOL / "README.md").read_text(encoding="utf-8"), "8. Errors")
        specified = {
            code: condition for code, condition in re.findall(r"^\| (-\d+) \| ([^|]*) \|", table, re.MULTILINE)
        }
        errors = re.findall(r"^\.B (-\d+)\n(.*)\.$", section_of_manual(text, "ERRORS"), re.MULTILINE)
        self.assertEqual({code: why[0].lower() + why[1:] for code, why in errors}, lowered(specified))

    def test_the_page_of_the_configuration_has_every_member_and_its_example_is_valid(self):
        text = manual("feedd.conf.5")
        schemas = PROTOCOL / "schemas" / "configuration.json"
        whole = json.loads(schemas.read_text(encoding="utf-8"))
        self.assertEqual(set(re.findall(r"^\.B (\w+)", section_of_manual(text, "MEMBERS"), re.M)) - {"feedclient"}, set(whole["properties"]))
        rule = whole["properties"]["access"]["items"]["properties"]
        rules = re.findall(r"^\.BR? ([a-z, \"]+)", section_of_manual(text, "RULES"), re.MULTILINE)
        words = set(re.findall(r"[a-z]+", " ".join(rules))) - {"and", "read", "write", "define", "admin"}
        self.assertEqual(words, set(rule))
        example = re.search(r"^\.nf\n(.*?)^\.fi", text, re.MULTILINE | re.DOTALL).group(1)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(example.replace("staff", grp.getgrgid(os.getgid()).gr_name))
            file.flush()
            done = subprocess.run([support.binary("feedd"), "--check-config", file.name], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Limits(unittest.TestCase):
    def test_the_table_of_the_specification_agrees_with_the_daemon(self):
        table = section((PROTOCOL / "README.md").read_text(encoding="utf-8"), "9. Limits")
        rows = re.findall(r"^\| `(\w+)` \| `(--[a-z-]+)` \| (\S+) \| (.*) \|$", table, re.MULTILINE)
        text = re.sub(r"\s+", " ", help_of("feedd"))
        for _, flag, default, meaning in rows:
            self.assertRegex(text, re.escape(flag) + r" \w+ " + re.escape(f"{meaning} (default: {default})"))
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            units = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1, "m": 60, "h": 3600}
            reported = connection.hello["limits"]
        parts = {name: re.fullmatch(r"([\d,]+)(.*)", default).groups() for name, _, default, _ in rows}
        values = {name: int(digits.replace(",", "")) * units[unit] for name, (digits, unit) in parts.items()}
        self.assertEqual(values, reported, "run scripts/limits to update the table and the man page")


class Completions(unittest.TestCase):
    FOLDER = ROOT / "scripts" / "completions"

    def complete(self, *words):
        """Returns the completions that bash offers for the last word."""
        script = f"""
            source {self.FOLDER}/{words[0]}.bash
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
            _{words[0]}; printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        path = os.path.dirname(support.binary("feedd")) + ":" + os.environ["PATH"]
        environment = {**os.environ, "PATH": path, "FEEDD_SOCKET": self.socket}
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        self.socket = daemon.path
        with daemon.connect() as connection:
            for feed in ("inbox", "tasks"):
                connection.call("define", feed=feed, kind="collection", bins=[{"name": "all"}])
        self.assertEqual(self.complete("feedclient", ""), {*commands(), "help"})
        self.assertEqual(self.complete("feedclient", "wa"), {"watch"})
        self.assertEqual(self.complete("feedclient", "--socket", "x", "und"), {"undefine"})
        self.assertEqual(self.complete("feedclient", "watch", ""), {"inbox", "inbox/all", "tasks", "tasks/all"})
        self.assertEqual(self.complete("feedclient", "push", ""), {"inbox", "tasks"})
        self.assertEqual(self.complete("feedclient", "define", "home", "--child", "inbox/"), {"inbox/all"})
        self.assertEqual(self.complete("feedclient", "--json", "push", "in"), {"inbox"})
        self.assertIn("--since-file", self.complete("feedclient", "watch", "inbox", "--s"))
        self.assertEqual(self.complete("feedclient", "define", "x", "--kind", "se"), {"segmented"})
        self.assertIn("transaction", self.complete("feedclient", "call", "t"))
        self.assertEqual(self.complete("feedclient", "help", "ver"), {"verify"})
        self.assertEqual(self.complete("feedd", "--max-fr"), {"--max-frame"})
        self.assertEqual(self.complete("feedd", "--durability", "m"), {"memory"})
        self.assertEqual(self.complete("feedd", "--chec"), {"--check", "--check-config", "--check-reload"})

    def test_every_option_of_feedd_that_takes_a_file_or_a_word_completes_it(self):
        values = re.findall(r"^ +--([a-z-]+) (?:PATH|DIR|FILE|[a-z]+(?:\|[a-z]+)+)", help_of("feedd"), re.MULTILINE)
        self.assertIn("state", values)
        for name in ("feedd.bash", "_feedd", "feedd.fish"):
            text = (self.FOLDER / name).read_text(encoding="utf-8")
            for value in values:
                self.assertRegex(text, rf"(--|-l ){value}\b", name)

    def test_names_of_feeds_are_never_expanded(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        names = ["plain", "$(touch hostile)", "`touch hostile`", "two words"]
        feeds = "\n".join(names)
        fake = os.path.join(folder.name, "feedclient")
        with open(fake, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncat <<'END'\n{feeds}\nEND\n")
        os.chmod(fake, 0o755)
        script = f"""
            cd {folder.name}; source {self.FOLDER}/feedclient.bash
            COMP_WORDS=(feedclient watch ''); COMP_CWORD=2
            _feedclient; printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        environment = {**os.environ, "PATH": folder.name + ":" + os.environ["PATH"]}
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment)
        self.assertEqual(done.stderr, "")
        self.assertEqual(os.listdir(folder.name), ["feedclient"])
        offered = [line.replace("\\", "") for line in done.stdout.splitlines()]
        self.assertEqual(offered, names)

    def test_bash_inserts_one_quoted_word(self):
        """Completes in an interactive bash, and runs the line: the program receives the name, and nothing is expanded."""
        names = ["aone two", "b$(touch hostile)", "c`touch hostile`", "d'quote", 'e"quote', "f\\back", "g;touch hostile"]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in names:
            with open(os.path.join(folder.name, name), "w", encoding="utf-8"):
                pass
        programs = os.path.join(folder.name, "programs")
        os.mkdir(programs)
        fake = os.path.join(programs, "feedclient")
        with open(fake, "w", encoding="utf-8") as file:
            feeds = "\n".join(names)
            lines = "printf '%s\\n' \"$#\" \"$@\" >&3"
            file.write(f"#!/bin/bash\n[ -e /dev/fd/3 ] && {{ {lines}; exit; }}\ncat <<'END'\n{feeds}\n  get  x\n  import  x\nEND\n")
        os.chmod(fake, 0o755)
        environment = {**os.environ, "PATH": programs + ":" + os.environ["PATH"], "TERM": "dumb", "PS1": "$ "}
        environment.pop("INPUTRC", None)
        for command in ("get", "import"):
            for name in names:
                for typed in (name[0], "'" + name[0], '"' + name[0]):
                    with self.subTest(command=command, typed=typed):
                        self.assertEqual(self.run_completed(folder.name, command, typed, environment), ["2", command, name])
        self.assertEqual(sorted(os.listdir(folder.name)), sorted([*names, "programs", "out"]))

    def run_completed(self, folder, command, typed, environment):
        """Returns what the program received when the completed line was executed."""
        main, terminal = pty.openpty()
        output = os.path.join(folder, "out")
        setup = f"source {self.FOLDER}/feedclient.bash; bind 'set bell-style none'\n"
        keys = setup + f"feedclient {command} {typed}\t 3>out; exit\n"
        try:
            bash = subprocess.Popen(
                ["bash", "--norc", "--noprofile", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder,
                env=environment, start_new_session=True)
            os.close(terminal)
            os.write(main, keys.encode())
            with contextlib.suppress(OSError):  # EIO: the shell has ended.
                while os.read(main, 4096):
                    pass
            bash.wait()
        finally:
            os.close(main)
        with open(output, encoding="utf-8") as file:
            return file.read().splitlines()

    def test_the_shells_accept_the_scripts(self):
        scripts = [("zsh", "_feedclient"), ("zsh", "_feedd"), ("fish", "feedclient.fish"), ("fish", "feedd.fish")]
        for shell, name in scripts:
            if shutil.which(shell):
                done = subprocess.run([shell, "-n", str(self.FOLDER / name)], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
