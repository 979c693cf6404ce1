"""Elements stay text: cutting values out of messages and putting them into messages."""

import datetime
import enum
import json
import os
import unittest
from decimal import Decimal

import support  # noqa: F401
from feedd._text import decode, encode, items, loads, members


class Cutting(unittest.TestCase):
    def test_items_are_the_source(self):
        source = rb'[1.10,"a]\"}",{"b":[1,{}],"a":"\u0061"},[],{},-0,1e400,null]'
        expected = [b"1.10", rb'"a]\"}"', rb'{"b":[1,{}],"a":"\u0061"}', b"[]", b"{}", b"-0", b"1e400", b"null"]
        self.assertEqual(items(source), expected)
        self.assertEqual(b"[" + b",".join(items(source)) + b"]", source)

    def test_items_of_nothing(self):
        self.assertEqual(items(b"[]"), [])
        self.assertEqual(items(b"[ ]"), [])

    def test_white_space_is_between_values(self):
        self.assertEqual(items(b"[ 1 ,\n[ 2 ] ]"), [b"1", b"[ 2 ]"])
        self.assertEqual(members(b'{ "a" : 1 , "b":[ ] }'), [("a", b"1"), ("b", b"[ ]")])

    def test_a_name_twice_is_two_members(self):
        self.assertEqual(members(rb'{"a":1,"\u0061":2}'), [("a", b"1"), ("a", b"2")])

    def test_messages_keep_elements_and_numbers(self):
        message = decode(b'{"id":12345678901234567890,"result":{"element":{"v":1.0},"at":[[0,1]],"lag":0.10}}')
        self.assertEqual(message["id"], 12345678901234567890)
        self.assertEqual(message["result"], {"element": b'{"v":1.0}', "at": [[0, 1]], "lag": Decimal("0.10")})

    def test_elements_of_sections_are_kept_too(self):
        result = decode(b'{"sections":[{"name":"a","count":1,"elements":[{"elements":[1.0]}]}],"nodes":[1.0]}')
        self.assertEqual(result["sections"][0]["elements"], [b'{"elements":[1.0]}'])
        self.assertEqual(result["nodes"], [b"1.0"])

    def test_names_like_those_of_elements_elsewhere(self):
        for text, elements in (
            (rb'{"params":{"feed":"\"elements\":[1","elements":[1.0,"]",[]]}}', [b"1.0", b'"]"', b"[]"]),
            (b'{"params":{"data":{"elements":[2]},"elements":[1.0]}}', [b"1.0"]),
            (b'{"params":{"elements":[{"elements":[1.0]}],"more":{"element":2.0}}}', [b'{"elements":[1.0]}']),
            (b'{"params":{"elements":[],"nodes":[1.0]}}', []),
            (b'{"params":{"elements":[ 1.0 , 2 ]}}', [b"1.0", b"2"]),
            (b'{"params":{"elements":[' + b"9" * 5000 + b"]}}", [b"9" * 5000]),
            (b'{"params":{"elements":[' + b"[" * 5000 + b"]" * 5000 + b"]}}", [b"[" * 5000 + b"]" * 5000]),
        ):
            with self.subTest(text=text[:60]):
                self.assertEqual(decode(text)["params"]["elements"], elements)
        self.assertEqual(decode(b'{"params":{"more":{"element":2.0}}}'), {"params": {"more": {"element": b"2.0"}}})

    def test_types_of_a_slots_feed_may_be_named_like_elements(self):
        definition = {"contents": {"element": "a", "elements": "b", "nodes": "c"}, "pattern": ["element", "nodes"]}
        self.assertEqual(decode(encode({"id": 1, "result": definition})), {"id": 1, "result": definition})
        self.assertEqual(decode(encode({"result": {"feeds": [definition]}})), {"result": {"feeds": [definition]}})

    def test_a_batch_of_answers(self):
        batch = decode(b'[{"id":1,"result":{"elements":[1.0]}},{"id":2,"result":{}}]')
        self.assertEqual(batch, [{"id": 1, "result": {"elements": [b"1.0"]}}, {"id": 2, "result": {}}])


class Writing(unittest.TestCase):
    def test_bytes_stand_for_themselves(self):
        self.assertEqual(encode({"elements": [b'{"v":1.0}', {"v": 1}]}), b'{"elements":[{"v":1.0},{"v":1}]}')

    def test_values(self):
        self.assertEqual(
            encode([None, True, "é\n", 10**30, Decimal("1.10")]), '[null,true,"é\\n",{},1.10]'.format(10**30).encode()
        )

    def test_text_with_lone_surrogates(self):
        name = os.fsdecode(b"caf\xc3\xa9 \xff")
        self.assertEqual(encode({name: [name, "é"]}), '{"caf\\u00e9 \\udcff":["caf\\u00e9 \\udcff","é"]}'.encode())
        for text in ("\ud800", "a\udfff", "\udc00\ud800", "\U0001f600\ud83d"):
            with self.subTest(text=ascii(text)):
                self.assertEqual(json.loads(encode([text])), [text])

    def test_values_of_other_classes(self):
        class Level(enum.IntEnum):
            HIGH = 9

        class Kind(str, enum.Enum):
            ALARM = "alarm"

        class Number(int):
            def __repr__(self):
                return "no JSON"

            __str__ = __repr__

        class Fraction(float):
            def __repr__(self):
                return "no JSON"

        digits = 7 * 10**400 + 1
        many = 10**5000 + 7
        for value, expected in (
            (Level.HIGH, b"9"),
            (Kind.ALARM, b'"alarm"'),
            ({Kind.ALARM: 1}, b'{"alarm":1}'),
            (Number(5), b"5"),
            (Fraction(0.5), b"0.5"),
            ((1, 2), b"[1,2]"),
            (digits, str(digits).encode()),
            (-many, b"-1" + b"0" * 4999 + b"7"),
            (Decimal("-0"), b"-0"),
            (Decimal("1E+5"), b"1E+5"),
            (Decimal(7) / 10**9, b"7E-9"),
            (bytearray(b"[1.0]"), b"[1.0]"),
            (memoryview(b' {"a":1} '), b' {"a":1} '),
            ({}, b"{}"),
            ([[], {}], b"[[],{}]"),
            (1e22, b"1e+22"),
        ):
            with self.subTest(expected=expected[:30]):
                self.assertEqual(encode(value), expected)

    def test_what_json_does_not_have_is_refused_with_its_place(self):
        class Color(enum.Enum):
            RED = 1

        deep = []
        for _ in range(100_000):
            deep = [deep]
        circle = {}
        circle["again"] = circle
        for value, kind, message in (
            (float("nan"), ValueError, "nan is not a JSON value"),
            ({"v": float("-inf")}, ValueError, "v: -inf is not a JSON value"),
            ({"a": [0, {"b": Decimal("NaN")}]}, ValueError, "a[1].b: Decimal('NaN') is not a JSON value"),
            ([Decimal("sNaN")], ValueError, "[0]: Decimal('sNaN') is not a JSON value"),
            ([Decimal("-Infinity")], ValueError, "[0]: Decimal('-Infinity') is not a JSON value"),
            ({"c": Color.RED}, TypeError, "c: a Color is not a JSON value"),
            ({"d": datetime.date(2026, 1, 2)}, TypeError, "d: a date is not a JSON value"),
            ({"s": {1}}, TypeError, "s: a set is not a JSON value"),
            ([1, 2j], TypeError, "[1]: a complex is not a JSON value"),
            ({"m": {1: 2}}, TypeError, "m.1: the name of a member is a int, not a str"),
            ({None: 2}, TypeError, "None: the name of a member is a NoneType, not a str"),
        ):
            with self.subTest(value=ascii(value)[:50]):
                with self.assertRaises(kind) as caught:
                    encode(value)
                self.assertEqual((type(caught.exception), str(caught.exception)), (kind, message))
        for value in (deep, circle):
            with self.assertRaisesRegex(ValueError, r"… \(\d+ levels\): more levels than Python's recursion limit allows"):
                encode(value)

    def test_bytes_that_are_not_json_are_refused(self):
        for text in (
            b"",
            b" ",
            b"{",
            b'{"id":1',
            b"[1,]",
            b"1 2",
            b"NaN",
            b"[Infinity]",
            b"01",
            b"\xff",
            b'"\xed\xa0\x80"',
            b"\xef\xbb\xbf1",
            "1".encode("utf-16"),
            b'"a\nb"',
            b"[" * 100_000,
            b"1\x00",
        ):
            with self.subTest(text=text[:20]):
                with self.assertRaisesRegex(ValueError, r"\Aelement: (bytes that are not JSON|more levels)"):
                    encode(text, "element")


class Reading(unittest.TestCase):
    def test_numbers_that_python_does_not_parse(self):
        many = b"9" * 5000
        self.assertEqual(loads(many), Decimal(many.decode()))
        self.assertEqual(loads(b"1e99999999999999999999"), b"1e99999999999999999999")
        for text in (b'{"a":[%s,1.50]}' % many, b'{"a":[1e99999999999999999999,1.50]}', b'{"a":12345678901234567890.10}'):
            self.assertEqual(encode(loads(text)), text)

    def test_what_is_no_json(self):
        for text in (b"NaN", b"[-Infinity]", b"\xff", b"[1", b"1 1", b""):
            with self.assertRaises(ValueError):
                loads(text)


if __name__ == "__main__":
    unittest.main()
