"""The package: it installs with pip, and its types are checked."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import support

FOLDER = support.HERE.parent


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=5 * support.PATIENCE, **options)


class Package(unittest.TestCase):
    @unittest.skipUnless(
        all(map(importlib.util.find_spec, ("pip", "setuptools", "wheel"))), "pip, setuptools or wheel is not installed"
    )
    def test_it_installs_from_the_folder(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as folder:
            # pip builds in the source directory.
            source = shutil.copytree(FOLDER, os.path.join(folder, "source"))
            target = os.path.join(folder, "target")
            options = ["--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--disable-pip-version-check"]
            done = run(sys.executable, "-m", "pip", "install", *options, "--target", target, source)
            self.assertEqual(done.returncode, 0, done.stderr)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            program = "import feedd.aio; print(feedd.aio.__file__)"
            done = run(sys.executable, "-c", program, cwd=folder, env={**environment, "PYTHONPATH": target})
            self.assertEqual(done.stdout.strip(), os.path.join(target, "feedd", "aio.py"), done.stderr)
            self.assertTrue(os.path.exists(os.path.join(target, "feedd", "py.typed")))

    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed")
    def test_types_are_strict(self):
        with tempfile.TemporaryDirectory(prefix="feedd-test-") as cache:
            done = run("mypy", "--strict", "--python-version", "3.9", "--cache-dir", cache, "feedd", cwd=FOLDER)
        self.assertEqual(done.returncode, 0, done.stdout)
