"""The vectors say what the reference model works out, and the model agrees with itself."""

import random
import unittest

import support  # noqa: F401
from reference import changes, collection, filters, texts, vectors


class Vectors(unittest.TestCase):
    def test_expectations_are_the_ones_worked_out(self):
        for path in sorted(vectors.FOLDER.glob("*.json")):
            with self.subTest(path.name):
                source = path.read_text(encoding="utf-8")
                again = vectors.recompute(path.stem, texts.parse(source))
                self.assertEqual(texts.pretty(again) + "\n", source, "scripts/vectors writes the files again")

    def test_every_case_has_a_name_of_its_own(self):
        for path in sorted(vectors.FOLDER.glob("*.json")):
            names = [case["name"].value for case in support.cases(path.stem)]
            self.assertEqual(len(names), len(set(names)), path.name)
            self.assertGreater(len(names), 4, path.name)


class Model(unittest.TestCase):
    def test_order_is_total_over_kinds(self):
        sort = [{"by": "$.v"}]
        values = ["null", "false", "true", "-1", "0", "1", '""', '"a"', "[]"]
        elements = [texts.parse('{"v":%s}' % value) for value in values] + [texts.parse("{}")]
        for i, one in enumerate(elements):
            for j, other in enumerate(elements):
                self.assertEqual(filters.sorts_after(sort, one, other), i > j)

    def test_filters(self):
        element = texts.parse('{"a":1,"b":[1,2],"c":"x","d":null}')
        for text, expected in (
            ("@.a == 1 && @.c == 'x'", True),
            ("!(@.a == 1) || @.d", True),
            ("@.e == @.f", True),
            ("@.e < 1", False),
            ("@.a <= 1.0", True),
            ("@.b[-1] == 2", True),
            ("length(@.b) == 2", True),
            ("match(@.c, 'x') && !search(@.c, 'y')", True),
            ("@.a == '1'", False),
        ):
            self.assertEqual(filters.accepts(text, element), expected, text)

    def test_changes_lead_from_state_to_state(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        for _ in range(200):
            definition = {"feed": "f", "exclusive": rng.random() < 0.3, "bins": [{"name": "x", "filter": "@.v > 2"}]}
            definition["bins"].append({"name": "y", "sort": [{"by": "$.v", "order": "descending"}]})
            feed = collection.Collection(definition)
            for _ in range(8):
                before = feed.sections()
                many = [texts.node({"id": rng.randrange(5), "v": rng.randrange(6)}) for _ in range(rng.randrange(4))]
                change, elements = getattr(feed, rng.choice(["update", "update", "set"]))(many)
                after = changes.apply(before, change, elements)
                self.assertEqual(vectors.shown_text(after), vectors.shown_text(feed.sections()), f"seed {seed}")
