"""Schemas, pages, OpenRPC and vectors agree."""

import re
import subprocess
import unittest

import documents
import schemacheck
from documents import METHODS, PROTOCOL, page, section, support
from schemacheck import Invalid, load, schema


def files():
    return sorted(schemacheck.SCHEMAS.rglob("*.json"))


def walk(value, found):
    """Appends every subschema of a schema to `found` and returns it."""
    found.append(value)
    for word, argument in value.items() if isinstance(value, dict) else ():
        if word in ("properties", "$defs"):
            for each in argument.values():
                walk(each, found)
        elif word in ("items", "additionalProperties"):
            walk(argument, found)
        elif word in ("allOf", "anyOf", "oneOf", "prefixItems"):
            for each in argument:
                walk(each, found)
    return found


class Schemas(unittest.TestCase):
    def test_every_keyword_is_known_and_every_reference_has_a_target(self):
        self.assertGreater(len(files()), 20)
        for path in files():
            whole = schemacheck.Schema(path.resolve())
            self.assertEqual(whole.value["$schema"], "https://json-schema.org/draft/2020-12/schema", path)
            for part in walk(whole.value, []):
                for word in part if isinstance(part, dict) else ():
                    known = word in schemacheck._WORDS or hasattr(schemacheck.Schema, "_" + word.lstrip("$"))
                    self.assertTrue(known, f"{path}: {word}")
                if isinstance(part, dict) and "$ref" in part:
                    self.assertIsNotNone(whole.within(part).target().value, f"{path}: {part['$ref']}")

    def test_every_method_has_a_page_and_a_schema(self):
        self.assertEqual(
            sorted(METHODS), sorted(p.stem for p in (PROTOCOL / "methods").glob("*.md") if p.stem != "README")
        )
        self.assertEqual(sorted(METHODS), sorted(p.stem for p in (schemacheck.SCHEMAS / "methods").glob("*.json")))

    def test_the_daemon_has_the_documented_methods_and_kinds(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        with daemon.connect() as connection:
            capabilities = connection.hello["capabilities"]
        self.assertEqual(sorted(METHODS), capabilities["methods"])
        kinds = schema("definition").value["properties"]["kind"]["enum"]
        self.assertEqual(sorted(kinds), capabilities["kinds"])

    def test_pages_and_schemas_name_the_same_members(self):
        for method in METHODS:
            for title, name in (("Parameters", "params"), ("Result", "result")):
                listed = set(re.findall(r"^\| `(\w+)` \|", section(page(method), title), re.MULTILINE))
                self.assertEqual(
                    listed, self.members(schema(f"methods/{method}", f"/$defs/{name}")), f"{method} {title}"
                )

    def members(self, one):
        names = set(one.value.get("properties", {}))
        for part in one.value.get("allOf", []):
            if part.get("$ref") != "../definition.json":
                names |= self.members(one.within(part))
        return names | self.members(one.target()) if "$ref" in one.value else names

    def test_codes_of_the_pages_are_codes_of_the_specification(self):
        specified = set(
            re.findall(r"^\| (-\d+) \|", (PROTOCOL / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
        )
        self.assertEqual({str(code) for code in schema("error").value["properties"]["code"]["enum"]}, specified)
        for method in METHODS:
            self.assertLessEqual(set(re.findall(r"^\| (-\d+) \|", page(method), re.MULTILINE)), specified, method)

    def test_openrpc_is_up_to_date(self):
        made = subprocess.run([documents.ROOT / "scripts" / "openrpc", "--check"], capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stdout), (0, ""), "run scripts/openrpc to update it")

    def test_links_have_targets(self):
        for path in [documents.ROOT / "README.md", *PROTOCOL.rglob("*.md")]:
            text = path.read_text(encoding="utf-8")
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
                if "://" not in link:
                    self.assertTrue((path.parent / link).exists(), f"{path}: {link}")
            for link, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
                target = (path.parent / link).read_text(encoding="utf-8") if link else text
                headings = re.findall(r"^#+ (.*)$", target, re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
                self.assertIn(anchor, slugs, f"{path}: {link}#{anchor}")


class Vectors(unittest.TestCase):
    def cases(self, name):
        return load((PROTOCOL / "vectors" / f"{name}.json").read_text(encoding="utf-8"))["cases"]

    def request(self, step):
        schema(f"methods/{step['method']}", "/$defs/params").check(step["params"])

    def test_changes(self):
        for case in self.cases("change"):
            schema("change").check(case["change"])
        for case in self.cases("compose"):
            for name in ("first", "second", "composed"):
                schema("change").check(case[name]["change"])

    def test_definitions_and_requests(self):
        for case in self.cases("bins"):
            schema("definition").check(case["definition"])
            for step in case["steps"]:
                if "error" not in step:
                    self.request(step)
                    schema("change").check(step["change"])
        for case in self.cases("transactions"):
            for definition in case["definitions"]:
                schema("definition").check(definition)
            for step in case["setup"]:
                self.request(step)
            schema("methods/transaction", "/$defs/params").check({"ops": case["ops"]})

    def test_the_validator_refuses_invalid_values(self):
        for name, pointer, wrong in (
            ("change", "", {"deleted": [[0]], "added": [], "updated": []}),
            ("change", "", {"deleted": [[0, 1, 2]], "added": [], "updated": []}),
            ("change", "", {"deleted": [], "added": []}),
            ("definition", "", {"feed": "a b", "kind": "collection"}),
            ("definition", "", {"feed": "a", "kind": "collection", "retain": {"seconds": 0}}),
            ("methods/update", "/$defs/params", {"feed": "a"}),
            ("methods/update", "/$defs/params", {"feed": "a", "element": 1, "elements": []}),
            ("methods/verify", "/$defs/result", {"revision": 1, "counts": [1], "digest": "XYZ"}),
            (
                "notifications/snapshot",
                "",
                {"feed": "a", "revision": 1, "at": [0, 0], "elements": [], "last": True, "reset": True},
            ),
            ("error", "", {"code": 1, "message": "x", "data": {}}),
        ):
            with self.assertRaises(Invalid):
                schema(name, pointer).check(wrong)


if __name__ == "__main__":
    unittest.main()
