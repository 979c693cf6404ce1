"""Shared by the Python scripts: an option parser whose errors have the same form as those of the shell scripts."""

import argparse
import pathlib
import sys


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
