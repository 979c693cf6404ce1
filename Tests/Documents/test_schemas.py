"""Schemas, pages, OpenRPC and vectors agree, and the schemas refuse what the daemon refuses."""

import json
import re
import subprocess
import tempfile
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
        elif word in ("items", "additionalProperties", "unevaluatedProperties", "if", "then", "not"):
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
        kinds = schema("definition", "/$defs/definitionMembers").value["properties"]["kind"]["enum"]
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
            if not part.get("$ref", "").startswith("../definition.json"):
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

    def test_openrpc_names_each_member_of_a_definition_and_has_a_target_for_each_reference(self):
        whole = load((PROTOCOL / "openrpc.json").read_text(encoding="utf-8"))
        [define] = [method for method in whole["methods"] if method["name"] == "define"]
        names = [parameter["name"] for parameter in define["params"]]
        definition = schema("definition", "/$defs/definitionMembers").value
        kinds = [branch["properties"] for branch in definition["oneOf"]]
        # Clients cannot define managed feeds.
        members = set(definition["properties"]).union(*(kind for kind in kinds if kind["kind"]["const"] != "managed"))
        self.assertEqual(sorted(names), sorted(members | {"replace", "animation", "if"}))
        self.assertEqual([each["name"] for each in define["params"] if each["required"]], ["feed", "kind"])
        for reference in re.findall(r'"\$ref": "([^"]*)"', json.dumps(whole, default=str)):
            self.assertIn(reference.removeprefix("#/components/schemas/"), whole["components"]["schemas"])

    def test_definitions_of_the_specification_are_valid(self):
        text = (PROTOCOL / "README.md").read_text(encoding="utf-8")
        chapter = text.split("\n## 6. Definitions\n")[1].split("\n## ")[0]
        values = [value for block in documents.blocks(chapter, "json") for value in self.values(block)]
        found = [value for value in values if "definition" not in value]  # not a row of $feeds
        self.assertGreater(len(found), 8)
        for definition in found:
            schema("definition").check(definition)
            schema("methods/define", "/$defs/params").check(definition)

    def values(self, text):
        """Returns the JSON values that follow one another in a text."""
        values, rest = [], text.strip()
        while rest:
            value, end = json.JSONDecoder().raw_decode(rest)
            values.append(value)
            rest = rest[end:].lstrip()
        return values

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


class Validator(unittest.TestCase):
    """The keywords of `schemacheck` whose meaning depends on other keywords."""

    def check(self, value, valid=(), invalid=()):
        one = schema("common").within(value)
        for each in valid:
            one.check(each)
        for each in invalid:
            with self.assertRaises(Invalid, msg=f"{value}: {each}"):
                one.check(each)

    def test_unevaluated_properties_are_those_that_no_matching_subschema_evaluates(self):
        closed = {"unevaluatedProperties": False}
        a, b = {"properties": {"a": True}}, {"properties": {"b": {"type": "integer"}}}
        self.check(closed, [{}, [1], "a", 1], [{"a": 1}])
        self.check({"unevaluatedProperties": {"type": "string"}, **a}, [{"a": 1, "x": "s"}], [{"a": 1, "x": 1}])
        self.check({**closed, **a}, [{}, {"a": 1}], [{"a": 1, "b": 1}])
        self.check({**closed, **a, "additionalProperties": {"type": "null"}}, [{"a": 1, "x": None}], [{"x": 1}])
        self.check({**closed, "allOf": [a, b]}, [{"a": 1, "b": 1}], [{"a": 1, "x": 1}, {"b": "s"}])
        self.check({**closed, "anyOf": [a, b]}, [{"a": 1, "b": 1}], [{"a": 1, "b": "s"}, {"x": 1}])
        one = {**closed, "oneOf": [{**a, "required": ["a"]}, {**b, "required": ["b"]}]}
        self.check(one, [{"a": 1}, {"b": 1}], [{"a": 1, "b": 1}, {"a": 1, "b": "s"}, {"a": 1, "x": 1}, {}])
        point = {"$ref": "common.json#/$defs/since"}
        self.check({**closed, **point}, [{"epoch": "e", "revision": 1}], [{"epoch": "e", "revision": 1, "x": 1}])

    def test_unevaluated_properties_of_a_subschema_are_its_own(self):
        closed, a = {"unevaluatedProperties": False}, {"properties": {"a": True}}
        self.check({**a, "allOf": [closed]}, [{}], [{"a": 1}])
        self.check({**closed, "allOf": [{**closed, **a}]}, [{"a": 1}], [{"b": 1}])
        self.check({**closed, "allOf": [{"unevaluatedProperties": True}]}, [{"a": 1}])
        self.check({**closed, "properties": {"o": a}}, [{"o": {"a": 1, "x": 1}}], [{"o": {}, "a": 1}])

    def test_if_applies_then_and_evaluates_only_when_it_matches(self):
        both = {
            "if": {"properties": {"a": True}, "required": ["a"]},
            "then": {"properties": {"b": {"type": "null"}}},
            "unevaluatedProperties": False,
        }
        self.check(both, [{}, {"a": 1}, {"a": 1, "b": None}], [{"b": None}, {"a": 1, "b": 1}, {"a": 1, "x": 1}])
        self.check({"if": {"required": ["a"]}}, [{}, {"a": 1}, 1])

    def test_a_schema_under_not_must_not_match_and_evaluates_nothing(self):
        self.check({"not": {"required": ["a"]}}, [{}, {"b": 1}], [{"a": 1}, 1])
        self.check({"not": {"not": {"properties": {"a": True}}}, "unevaluatedProperties": False}, [{}], [{"a": 1}])

    def test_maximum_applies_to_numbers(self):
        self.check({"maximum": 2}, [2, -1, "3", None], [3])

    def test_items_are_counted(self):
        self.check({"maxItems": 1}, [[], [1], {"a": 1, "b": 2}], [[1, 2]])


#: Definitions that the daemon refuses with -32602 for their members.
REFUSED_DEFINITIONS = [
    {"kind": "collection", "filtre": 1},
    {"kind": "collection", "of": "x"},
    {"kind": "collection", "bins": [{"name": "all", "filtre": "@.x"}]},
    {"kind": "collection", "section": "$.day", "bins": [{"name": "a"}, {"name": "b"}]},
    {"kind": "collection", "sectionOrder": "descending"},
    {"kind": "array", "bins": []},
    {"kind": "array", "exclusive": True},
    {"kind": "single", "retain": {"count": 1}},
    {"kind": "single", "id": "$.id"},
    {"kind": "composed", "children": ["x"], "current": 0},
    {"kind": "segmented", "children": ["x"], "contents": {}},
    {"kind": "slots", "contents": {"X": "x"}, "pattern": ["X"], "of": "x"},
    {"kind": "view", "of": "x", "bins": []},
    {"kind": "view", "of": "x", "sectionOrder": "ascending"},
    {"kind": "managed", "database": "x.sqlite", "query": "SELECT 1 AS id", "sort": []},
]
#: Definitions that it accepts: each kind, with each of its members.
ACCEPTED_DEFINITIONS = [
    {"kind": "collection"},
    {"kind": "collection", "retain": None},
    {"kind": "collection", "id": "$.key", "exclusive": True, "bins": [{"name": "a", "filter": "@.x"}, {"name": "b"}]},
    {"kind": "collection", "section": "$.day", "sectionOrder": "descending", "type": "$.kind", "retain": {"count": 9}},
    {"kind": "collection", "section": "$.day", "bins": []},
    {"kind": "collection", "section": "$.day", "bins": [{"name": "a", "sort": [{"by": "$.x", "order": "descending"}]}]},
    {"kind": "array", "id": "$.id", "type": "$.kind", "retain": {"until": "$.end"}},
    {"kind": "array", "editable": False, "movable": False},
    {"kind": "single", "type": "$.kind", "selectable": False, "multiple": False},
    {"kind": "composed", "children": ["x"]},
    {"kind": "segmented", "children": ["x"], "current": -1},
    {
        "kind": "slots",
        "contents": {"X": "x"},
        "pattern": ["X"],
        "repeatables": ["X"],
        "header": ["X"],
        "default": "X",
        "fixed": {"1": "X"},
        "types": "element",
    },
    {"kind": "view", "of": "x/all", "filter": "@.x", "sort": [{"by": "$.x"}], "offset": 1, "limit": 2},
]


class Refusals(unittest.TestCase):
    """The schemas refuse what the daemon refuses with -32602, and accept what it accepts."""

    def setUp(self):
        daemon = support.Daemon()
        self.addCleanup(daemon.stop)
        self.connection = daemon.connect()
        self.addCleanup(self.connection.close)
        self.accept("define", {"feed": "x", "kind": "collection"})

    def accept(self, method, params):
        with self.subTest(method, params=params):
            schema(f"methods/{method}", "/$defs/params").check(params)
            return self.connection.call(method, **params)

    def refuse(self, method, params):
        with self.subTest(method, params=params):
            with self.assertRaises(support.feedd.Refused) as refused:
                self.connection.call(method, **params)
            self.assertEqual(refused.exception.code, -32602)
            with self.assertRaises(Invalid):
                schema(f"methods/{method}", "/$defs/params").check(params)

    def test_members_of_definitions(self):
        for definition in REFUSED_DEFINITIONS:
            self.refuse("define", {"feed": "a", **definition})
        for place, definition in enumerate(ACCEPTED_DEFINITIONS):
            self.accept("define", {"feed": f"a{place}", **definition})

    def test_define_accepts_members_of_the_request(self):
        conditions = [{"feed": "x", "revision": 1}, {"feed": "y", "revision": None}]
        definition = {"feed": "a", "kind": "single", "replace": True, "animation": "fade", "if": conditions}
        self.accept("define", definition)
        self.refuse("define", {**definition, "replaces": True})

    def test_define_accepts_a_whole_result_of_describe(self):
        for place, definition in enumerate(ACCEPTED_DEFINITIONS):
            self.accept("define", {"feed": f"a{place}", **definition})
            described = self.connection.call("describe", feed=f"a{place}")
            self.assertEqual(self.accept("define", described), {"revision": place + 2})
            self.accept("define", {**described, "source": {"status": "ok"}, "shows": [], "if": []})
            self.refuse("define", {**described, "filtre": 1})
            for name in ("sections", "counts", "count", "revision", "watchers"):
                self.refuse("define", {member: value for member, value in described.items() if member != name})
                self.refuse("define", {"feed": f"a{place}", **definition, name: described[name]})
            for name in ("source", "shows"):
                self.refuse("define", {"feed": f"a{place}", **definition, name: []})

    def test_patch_names_each_element_once(self):
        self.accept("define", {"feed": "list", "kind": "array", "id": "$.id"})
        self.accept("insert", {"feed": "list", "element": {"id": 1}})
        for patch in (
            {"id": 1, "at": 0, "patch": {}},
            {"id": 1, "patches": []},
            {"at": 0, "patches": []},
            {"id": 1, "patches": [{"at": 0, "patch": {}}]},
            {"patches": [{"id": 1, "patch": {}}, {"id": 1, "at": 0, "patch": {}}]},
            {"patches": [{"patch": {}}]},
            {"patches": [{"id": 1}]},
            {"patch": {}, "patches": []},
            {"id": 1},
        ):
            self.refuse("patch", {"feed": "list", **patch})
        for patch in (
            {"id": 1, "patch": {}},
            {"at": 0, "patch": {}},
            {"patches": []},
            {"patches": [{"id": 1, "patch": {}}, {"at": 0, "patch": {}}]},
        ):
            self.accept("patch", {"feed": "list", **patch})
        self.accept("define", {"feed": "one", "kind": "single"})
        self.accept("put", {"feed": "one", "element": {}})
        self.accept("patch", {"feed": "one", "patch": {}})

    def test_the_range_of_revisions_in_conditions(self):
        for revision in (-1, 2**63, 2**64, "1"):
            self.refuse("define", {"feed": "a", "kind": "single", "if": {"feed": "x", "revision": revision}})
            self.refuse("transaction", {"ops": [], "if": [{"feed": "x", "revision": revision}]})
        self.accept("define", {"feed": "a", "kind": "single", "if": {"feed": "x", "revision": 1}})
        highest = {"feed": "x", "if": {"feed": "x", "revision": 2**63 - 1}}
        schema("methods/undefine", "/$defs/params").check(highest)
        with self.assertRaises(support.feedd.Refused) as refused:
            self.connection.call("undefine", **highest)
        self.assertEqual(refused.exception.code, -32009)

    def test_path_of_a_missing_identity_is_that_of_an_element(self):
        self.accept("define", {"feed": "list", "kind": "array", "id": "$.key"})
        for method, params, data in (
            ("update", {"feed": "x", "elements": [{"id": 1}, {}]}, {"feed": "x", "index": 1, "path": "$.id"}),
            ("insert", {"feed": "list", "element": {"key": None}}, {"feed": "list", "index": 0, "path": "$.key"}),
            ("delete", {"feed": "x", "id": None}, {"feed": "x", "index": 0}),
            ("delete", {"feed": "list", "ids": [1, None]}, {"feed": "list", "index": 1}),
            ("get", {"feed": "x/all", "id": []}, {"feed": "x", "index": 0}),
            ("move", {"feed": "list", "id": True, "to": 0}, {"feed": "list", "index": 0}),
            ("patch", {"feed": "x", "patches": [{"id": None, "patch": {}}]}, {"feed": "x", "index": 0}),
        ):
            with self.subTest(method, params=params):
                with self.assertRaises(support.feedd.Refused) as refused:
                    self.connection.call(method, **params)
                error = refused.exception
                self.assertEqual((error.code, error.data), (-32003, data))
                schema("error").check({"code": error.code, "message": str(error), "data": error.data})
                if "path" not in data:
                    with self.assertRaises(Invalid):
                        schema(f"methods/{method}", "/$defs/params").check(params)

    def test_members_of_definitions_in_the_configuration(self):
        request = [{"replace": True}, {"animation": "fade"}, {"if": []}]
        status = [{"sections": [], "counts": [], "count": 0, "revision": 1, "watchers": 0}]
        refused = REFUSED_DEFINITIONS + [{"kind": "collection", **members} for members in request + status]
        for definition in refused:
            with self.subTest(definition), self.assertRaises(Invalid):
                schema("configuration").check(self.configuration(definition))
            self.assertEqual(self.exit_code(definition), 1, definition)
        for definition in ACCEPTED_DEFINITIONS:
            schema("configuration").check(self.configuration(definition))
            self.assertEqual(self.exit_code(definition), 0, definition)

    def configuration(self, definition):
        return {"feeds": [{"feed": "x", "kind": "collection"}, {"feed": "a", **definition}]}

    def exit_code(self, definition):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self.configuration(definition), file)
            file.flush()
            program = [support.binary("feedd"), "--check-config", file.name]
            return subprocess.run(program, capture_output=True, timeout=support.PATIENCE).returncode
