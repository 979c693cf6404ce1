"""The guide to the sources names files and symbols that exist."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "Sources"
GUIDE = SOURCES / "README.md"


class SourcesGuideTests(unittest.TestCase):
    """The tables of Sources/README.md are compared with the tree."""

    def setUp(self):
        self.text = GUIDE.read_text(encoding="utf-8")
        self.by_name = {}
        for file in SOURCES.rglob("*.swift"):
            self.by_name.setdefault(file.name, []).append(file)

    def files(self, name):
        """The files that a name of the guide can mean: a path below Sources, or the name of a file alone."""
        whole = [file for file in [SOURCES / name, ROOT / name] if file.is_file()]
        return whole if "/" in name or whole else self.by_name.get(name, [])

    def test_named_files_exist(self):
        names = re.findall(r"`([\w+/]+\.swift)`", self.text)
        self.assertGreater(len(names), 50)
        self.assertEqual([name for name in names if not self.files(name)], [])

    def test_named_symbols_stand_in_their_files(self):
        missing = []
        pairs = re.findall(r"`(\w+)` in `([\w+/]+\.swift)`", self.text)
        self.assertGreater(len(pairs), 5)
        for symbol, name in pairs:
            word = re.compile(rf"\b{symbol}\b")
            if not any(word.search(file.read_text(encoding="utf-8")) for file in self.files(name)):
                missing.append(f"{symbol} in {name}")
        self.assertEqual(missing, [])

    def test_every_module_is_described(self):
        modules = sorted(folder.name for folder in SOURCES.iterdir() if folder.is_dir())
        self.assertEqual([name for name in modules if f"`{name}`" not in self.text], [])
