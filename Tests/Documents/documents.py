"""Shared by the tests of the documents: paths, pages, and the daemon and client of the Python tests."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "Protocol"
sys.path[:0] = [str(PROTOCOL / "clients" / "python" / "tests")]

import support  # noqa: E402, F401
from reference import texts  # noqa: E402, F401

#: The methods, in the order of the specification.
METHODS = list(
    dict.fromkeys(re.findall(r"\(methods/(\w+)\.md\)", (PROTOCOL / "README.md").read_text(encoding="utf-8")))
)


def page(method):
    return (PROTOCOL / "methods" / f"{method}.md").read_text(encoding="utf-8")


def blocks(text, language):
    """Returns the contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text, title):
    """Returns the text between a heading and the next heading."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title}"
    return found.group(1)
