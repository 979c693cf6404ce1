"""The help of the programs, the man pages, the specification and the completions agree."""

import contextlib
import grp
import json
import os
import pty
import re
import shutil
import subprocess
import sys
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


COMMON = {"--socket", "--timeout", "--json", "--quiet", "--verbose"}


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
            own = options(help_of("feedclient", command)) - COMMON
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
            # Nothing but that the database of the example does not exist.
            [warning] = done.stderr.splitlines()
            self.assertRegex(warning, r"^\S+: warning: feeds\[1\]\.database: there is no file ")
            self.assertEqual(done.returncode, 0)


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


class Outputs(unittest.TestCase):
    """In a pipe, and with --json, every command prints JSON, one value a line."""

    # One call of each command in this order, after the preparation below; None: its lines are for another program.
    CALLS = {
        "push": ["push", "f", '{"id":3,"s":"a"}'],
        "set": ["set", "l", "1", "2", "3"],
        "patch": ["patch", "f", "3", '{"t":1}'],
        "delete": ["delete", "f", "1"],
        "watch": ["watch", "f", "--snapshot-only"],
        "get": ["get", "f", "3"],
        "range": ["range", "f", "0", "0", "9"],
        "query": ["query", "f", "$[*]"],
        "snapshot": ["snapshot", "f"],
        "insert": ["insert", "l", "4"],
        "replace": ["replace", "l", "--at", "0", "5"],
        "remove": ["remove", "l", "0"],
        "move": ["move", "l", "0", "1"],
        "put": ["put", "one", "7"],
        "select": ["select", "f", "0,0"],
        "deselect": ["deselect", "f", "--all"],
        "selected": ["selected", "f"],
        "define": ["define", "g"],
        "undefine": ["undefine", "g"],
        "feeds": ["feeds"],
        "describe": ["describe", "f"],
        "activate": ["activate", "tabs", "0"],
        "insertChild": ["insertChild", "tabs", "one"],
        "removeChild": ["removeChild", "tabs", "one"],
        "export": ["export", "f"],
        "import": ["import", "{export}"],
        "backup": ["backup", "{backup}"],
        "restore": ["restore", "{backup}", "--state", "{state}"],
        "verify": ["verify", "f"],
        "sync": ["sync"],
        "stats": ["stats"],
        "top": ["top", "--interval", "100ms"],
        "clients": ["clients"],
        "quotas": ["quotas"],
        "kick": ["kick", "{connection}"],
        "log-level": ["log-level"],
        "group": ["group", "status"],
        "ping": ["ping"],
        "call": ["call", "ping"],
        "completion": None,
    }
    # Options that choose another output.
    MORE = [
        ["watch", "f", "--counts", "--snapshot-only"], ["stats", "--watch", "--interval", "100ms", "--timeout", "150ms"],
        ["query", "f", "$[*]", "--places"], ["log-level", "info"], ["define", '{"feed":"f2"}'], ["feeds", "--json", "--names"],
        ["feeds", "--json", "--tree"], ["get", "f", "unknown"],
    ]

    def run_client(self, *words):
        return subprocess.run(
            [support.binary("feedclient"), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "FEEDD_SOCKET": self.daemon.path, "COLUMNS": "40"})

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        state = os.path.join(folder.name, "of the daemon")
        self.daemon = support.Daemon("--state", state, durability="process")
        self.addCleanup(self.daemon.stop)
        names = ("export", "backup", "state", "connection")
        self.places = {name: os.path.join(folder.name, name) for name in names}
        other = self.daemon.connect()
        self.addCleanup(other.close)
        own = [client["connection"] for client in other.call("clients")["clients"] if client.get("self")]
        self.places["connection"] = str(own[0])
        with open(self.places["export"], "w", encoding="utf-8") as file:
            file.write('{"feed":"imported","kind":"array","count":1}\n1\n')
        for words in (
            ["define", "f", "--section", "$.s"], ["define", "l", "--kind", "array"], ["define", "one", "--kind", "single"],
            ["define", "tabs", "--kind", "segmented", "--child", "l"], ["push", "f", '{"id":1,"s":"b c"}', '{"id":2}'],
        ):
            self.assertEqual(self.run_client(*words).returncode, 0)

    def test_every_command_prints_lines_of_json(self):
        # trigger prints what its command prints.
        self.assertEqual(set(self.CALLS), set(commands()) - {"trigger"})
        for option in ([], ["--json"]):
            for words in [words for words in self.CALLS.values() if words] + self.MORE:
                if option and words[0] in ("kick", "backup", "undefine"):
                    continue
                if option and words[0] in ("import", "restore"):
                    words = [*words, "--replace"]
                words = [word.format(**self.places) if word[1:-1] in self.places else word for word in words]
                done = self.run_client(*words, *option)
                self.assertIn(done.returncode, (0, 1) if "unknown" in words else (0, 4) if "--timeout" in words else (0,), (words, done.stderr))
                self.assertTrue(done.stdout.endswith("\n"), words)
                for line in done.stdout.splitlines():
                    json.loads(line)

    def test_quiet_prints_only_errors(self):
        for words in self.CALLS.values():
            if not words or words[0] in ("export", "kick", "backup", "restore"):
                continue
            words = [word.format(**self.places) if word[1:-1] in self.places else word for word in words]
            done = self.run_client(words[0], "--quiet", *words[1:])
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), words)
        self.assertNotEqual(self.run_client("-q", "get", "nowhere", "1").stderr, "")
        self.assertEqual(self.run_client("export", "-q", "f").returncode, 2)


class Sockets(unittest.TestCase):
    def test_all_clients_choose_the_same_socket(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        home, runtime, state = (os.path.join(folder.name, name) for name in ("home", "runtime", "state"))
        own, system = os.path.join(runtime, "feedd.sock"), "/run/feedd/feedd.sock"
        for path in (home, runtime):
            os.mkdir(path)
        both = {"HOME": home, "XDG_RUNTIME_DIR": runtime}
        python = [sys.executable, "-c", "import feedd; print(feedd.socket_path())"]
        node = ["node", "--input-type=module", "-e", f"import * as c from '{PROTOCOL}/clients/javascript/node.js'; console.log(c.socketPath())"]

        def check(expected, environment):
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{PROTOCOL}/clients/python", **environment}
            done = subprocess.run([support.binary("feedclient"), "-v", "ping"], capture_output=True, text=True, env=env)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(re.match(r"feedclient: socket (\S+): ", done.stderr)[1], expected)
            for command in [python] + ([node] if shutil.which("node") else []):
                done = subprocess.run(command, capture_output=True, text=True, env=env)
                self.assertEqual((done.stdout, done.stderr), (expected + "\n", ""), (command[0], environment))

        check("/nonexistent/socket", {**both, "FEEDD_SOCKET": "/nonexistent/socket"})
        check(system, {**both, "FEEDD_SOCKET": ""})
        check(system, {"HOME": home})
        check(system, {"XDG_RUNTIME_DIR": runtime})
        for trace in (own, own + ".own"):
            with open(trace, "w", encoding="utf-8"):
                check(own, both)
            os.unlink(trace)
        os.makedirs(os.path.join(home, ".local", "state", "feedd"))
        check(own, both)
        check(own, {**both, "XDG_STATE_HOME": "relative"})
        check(system, {**both, "XDG_STATE_HOME": state})
        os.makedirs(os.path.join(state, "feedd"))
        check(own, {"XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": state})


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

    def feeds_with_rows(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        self.socket = daemon.path
        with daemon.connect() as connection:
            connection.call("define", feed="k", kind="collection", section="$.s")
            connection.call("define", feed="q", kind="array", id="$.id")
            rows = [{"id": 3, "s": "x y"}, {"id": "17", "s": 2}, {"id": "a b", "s": "x y"}, {"id": "it's", "s": "x y"}]
            connection.push("k", rows + [{"id": "line\nbreak", "s": "x y"}])
            connection.push("q", rows)
        path = os.path.dirname(support.binary("feedd")) + ":" + os.environ["PATH"]
        return {**os.environ, "PATH": path, "FEEDD_SOCKET": self.socket, "XDG_RUNTIME_DIR": "/nonexistent"}

    # What the shells offer after these words, the first feed of which has rows.
    OFFERS = [
        (["range", "k"], ["k/2", "x y"]),
        (["select", "k"], ["k/2,", "x y,"]),
        (["get", "k", "--at"], ["k/2,", "x y,"]),
        (["get", "k"], ['"17"', "3", "a b", "it's"]),
        (["patch", "q", "--at", "0"], ['"17"', "3", "a b", "it's"]),
        (["delete", "q", "3"], ['"17"', "3", "a b", "it's"]),
        (["move", "q", "--before"], ['"17"', "3", "a b", "it's"]),
        (["move", "q", "--id"], ['"17"', "3", "a b", "it's"]),
        (["completion"], ["bash", "fish", "zsh"]),
        (["call"], sorted(METHODS)),
        (["watch", "k", "--section"], ["k/2", "x y"]),
        (["trigger", "--state", "seen", "--on", "added", "k", "--section"], ["k/2", "x y"]),
        (["trigger", "k", "--on"], ["added", "deleted", "moved", "updated"]),
        (["watch", "k", "--only"], ["added", "deleted", "moved", "updated"]),
        # Behind --, no word is an option.
        (["get", "--", "k"], ['"17"', "3", "a b", "it's"]),
        (["delete", "--", "q", "--id"], ['"17"', "3", "a b", "it's"]),
        (["trigger", "--state", "seen", "--"], ["k", "q"]),
    ]

    def test_the_values_of_options_are_no_operands(self):
        lines = "".join(help_of("feedclient", command) for command in commands())
        names = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+) [A-Z[]", lines, re.MULTILINE))
        self.assertGreater(len(names), 30)
        lists = {
            "feedclient.bash": r"--socket\)(?:.*\n){4} +(--after .*?)\) \(\(index",
            "_feedclient": r"--socket\).*\n +(--after .*?)\) \(\(index",
            "feedclient.fish": r"contains -- \$word \\\n +(--socket .*?)\n +set skip 1",
        }
        for name, pattern in lists.items():
            text = re.search(pattern, (self.FOLDER / name).read_text(encoding="utf-8"), re.DOTALL)[1]
            self.assertEqual(set(re.findall(r"--[a-z-]+", text)) | {"--socket"}, names, name)

    def test_bash_offers_sections_and_identities(self):
        environment = self.feeds_with_rows()
        script = f"""
            source {self.FOLDER}/feedclient.bash
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _feedclient
            for word in "${{COMPREPLY[@]}}"; do eval "printf '%s\n' $word"; done
        """
        for words, offered in self.OFFERS:
            for socket in ([], ["--socket", self.socket], [f"--socket={self.socket}"]):
                env = environment if not socket else {**environment, "FEEDD_SOCKET": "/nonexistent"}
                command = ["bash", "-c", script, "bash", "feedclient", *socket, *words, ""]
                done = subprocess.run(command, capture_output=True, text=True, env=env)
                self.assertEqual((sorted(done.stdout.splitlines()), done.stderr), (offered, ""), words)
        done = subprocess.run(
            ["bash", "-c", script, "bash", "feedclient", "--", "trig"], capture_output=True, text=True, env=environment)
        self.assertEqual(done.stdout.splitlines(), ["trigger"])
        done = subprocess.run(
            ["bash", "-c", script, "bash", "feedclient", "--socket", ""], capture_output=True, text=True,
            env={**environment, "XDG_RUNTIME_DIR": os.path.dirname(self.socket)})
        self.assertEqual(done.stdout.splitlines(), [self.socket])

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_offers_sections_and_identities(self):
        environment = self.feeds_with_rows()
        for words, offered in self.OFFERS:
            for socket in ([], ["--socket", self.socket], [f"--socket={self.socket}"]):
                env = environment if not socket else {**environment, "FEEDD_SOCKET": "/nonexistent"}
                line = " ".join(["feedclient", *socket, *words, ""])
                script = f"source {self.FOLDER}/feedclient.fish; complete -C '{line}'"
                done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=env)
                found = [line.split("\t")[0] for line in done.stdout.splitlines() if not line.startswith("-")]
                self.assertEqual((sorted(found), done.stderr), (offered, ""), words)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_offers_sections_and_identities(self):
        environment = self.feeds_with_rows()
        script = """
            compadd() {
              local -a given=("$@") names
              local suffix=""
              while (( $# )); do
                case $1 in
                  -S) shift; suffix=$1 ;;
                  -a | --) ;;
                  *) if (( ${given[(I)-a]} )); then names+=("${(@P)1}"); else names+=("$1"); fi ;;
                esac
                shift
              done
              print -rl -- "${(@)^names}$suffix"
            }
            compdef() { registered=$2 }
            eval "$(feedclient completion zsh)"
            [[ $registered == feedclient ]] || exit 9
            words=("$@"); CURRENT=$#words; _feedclient
        """
        for words, offered in self.OFFERS:
            for socket in ([], ["--socket", self.socket], [f"--socket={self.socket}"]):
                env = environment if not socket else {**environment, "FEEDD_SOCKET": "/nonexistent"}
                command = ["zsh", "-f", "-c", script, "zsh", "feedclient", *socket, *words, ""]
                done = subprocess.run(command, capture_output=True, text=True, env=env)
                self.assertEqual((sorted(done.stdout.splitlines()), done.stderr), (offered, ""), words)

    # The line before the words that trigger runs, and what the shells offer for these words.
    RUNS = "feedclient trigger --state seen k --on added --"
    PROGRAMS = [(["do-it-n"], ["do-it-now"]), (["do-it-now", "--on", "fi"], ["first"])]

    def folder_with_program(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, mode in (("do-it-now", 0o755), ("first", 0o644)):
            with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), mode)
        return folder.name, {**os.environ, "HOME": folder.name, "PATH": folder.name + ":" + os.environ["PATH"]}

    def test_bash_completes_the_command_of_trigger(self):
        folder, environment = self.folder_with_program()
        # Where nothing is offered, bash completes the names of files.
        script = f"""
            source {self.FOLDER}/feedclient.bash
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _feedclient
            printf '%s\n' "${{COMPREPLY[@]:-$(compgen -f -- "${{!#}}")}}"
        """
        # A tilde that is quoted would stay one.
        more = [(["~/do-it-n"], ["~/do-it-now"]), (['"do-it-n'], ["do-it-now"])]
        for words, offered in self.PROGRAMS + more:
            done = subprocess.run(
                ["bash", "-c", script, "bash", *self.RUNS.split(), *words], capture_output=True, text=True, env=environment,
                cwd=folder)
            self.assertEqual((done.stdout.splitlines(), done.stderr), (offered, ""), words)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes_the_command_of_trigger(self):
        folder, environment = self.folder_with_program()
        for words, offered in self.PROGRAMS:
            script = f"source {self.FOLDER}/feedclient.fish; complete -C '{self.RUNS} {' '.join(words)}'"
            done = subprocess.run(
                ["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment, cwd=folder)
            found = [line.split("\t")[0] for line in done.stdout.splitlines()]
            self.assertEqual((found, done.stderr), (offered, ""), words)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes_the_command_of_trigger(self):
        script = f"""
            compdef() {{ }}
            _normal() {{ print -r -- $CURRENT $words }}
            source {self.FOLDER}/_feedclient
            words=("$@"); CURRENT=$#words; _feedclient
        """
        for words, _ in self.PROGRAMS:
            done = subprocess.run(
                ["zsh", "-f", "-c", script, "zsh", *self.RUNS.split(), *words], capture_output=True, text=True)
            self.assertEqual((done.stdout, done.stderr), (f"{len(words)} {' '.join(words)}\n", ""))

    def test_the_program_prints_the_files(self):
        for shell, file in (("bash", "feedclient.bash"), ("zsh", "_feedclient"), ("fish", "feedclient.fish")):
            done = subprocess.run([support.binary("feedclient"), "completion", shell], capture_output=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, (self.FOLDER / file).read_bytes(), b""))

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
            feeds = "\n".join([*names, *(name for name, _ in self.BROKEN)])
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
        for name, beginnings in self.BROKEN:
            for typed in [name[0], *beginnings]:
                with self.subTest(typed=typed):
                    self.assertEqual(self.run_completed(folder.name, "get", typed, environment), ["2", "get", name])
        # An option and its value before it, and the value again in the words behind it.
        words = "--section u:b:1 --timeout=1s u:b:1 urn:"
        found = self.run_completed(folder.name, "delete", words, environment)
        self.assertEqual(found, ["6", "delete", "--section", "u:b:1", "--timeout=1s", "u:b:1", "urn:a:1"])
        self.assertEqual(sorted(os.listdir(folder.name)), sorted([*names, "programs", "out"]))

    # Names with characters at which readline breaks words, and beginnings that contain these.
    BROKEN = [
        ("urn:a:1", ["urn:", "urn:a", "urn:a:", "'urn:a"]),
        ("k=v", ["k=", '"k=']),
        ("mail@example.org", ["mail@", "mail@ex"]),
        ("one two:three", ["one\\ two:", "one\\ two:t", "'one two:"]),
    ]

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
