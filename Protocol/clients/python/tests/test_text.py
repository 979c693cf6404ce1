"""Elements stay text: cutting values out of messages and putting them into messages."""

import unittest
from decimal import Decimal

import support  # noqa: F401
from feedd_text import decode, encode, items, members


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

    def test_what_json_has_no_text_for_is_refused(self):
        with self.assertRaises(ValueError):
            encode({"v": float("nan")})


if __name__ == "__main__":
    unittest.main()
