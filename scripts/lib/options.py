"""Shared by the Python scripts: an option parser, and errors of the same form as those of the shell scripts."""

import argparse
import pathlib
import subprocess
import sys


def run(main):
    """Runs a script. A file or a program that it cannot use is reported in one line."""
    try:
        sys.exit(main())
    except OSError as error:
        why = f"cannot use {error.filename}: {error.strerror}"
    except subprocess.CalledProcessError as error:
        why = f"{pathlib.Path(error.cmd[0]).name} failed with exit status {error.returncode}"
    sys.exit(f"scripts/{pathlib.Path(sys.argv[0]).name}: {why}")


class Parser(argparse.ArgumentParser):
    """The options of a script. Its help is the docstring of the script."""

    def __init__(self, documentation):
        self.script = "scripts/" + pathlib.Path(sys.argv[0]).name
        super().__init__(
            prog=self.script,
            description=documentation,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_args(self, arguments=None, namespace=None):
        found, unknown = self.parse_known_args(arguments, namespace)
        for word in unknown:
            kind = "unknown option" if word.startswith("-") else "unexpected argument"
            self.error(f"{kind} '{word}'")
        return found

    def error(self, message):
        sys.stderr.write(f"{self.script}: {message}; run {self.script} --help\n")
        sys.exit(2)
