"""How elements are grouped into requests: the state machine of `push`, without a daemon."""

import json
import random
import unittest

import support  # noqa: F401
from feedd import Refused
from feedd._push import ANSWER, END, NEXT, Failed, source as source_of, steps


def refusal(id):
    return Refused({"code": -32003, "message": "refused", "data": {"id": id}})


class Server:
    """Executes requests in order and answers them later; elements whose `bad` is true are refused."""

    def __init__(self):
        self.answers, self.state, self.requests = [], {}, []

    def execute(self, params):
        self.requests.append(params)
        given = json.loads(params["elements"]) if "elements" in params else [json.loads(params["element"])]
        if any(one.get("bad") for one in given):
            return self.answers.append(refusal(given[0]["id"]))
        for one in given:
            self.state[one["id"]] = one["v"]
        self.answers.append({"revision": len(self.requests)})


def play(elements, each=None, batch=4, window=3, max_frame=1 << 20, **options):
    """Plays a push against a server. Returns the server and the number of accepted elements, or the error."""
    server, source, most = Server(), iter(elements), 0
    machine, reply = steps("f", options, each, batch, window, max_frame), None
    try:
        while True:
            command = machine.send(reply)
            if command is NEXT:
                try:
                    reply = next(source, END)
                except KeyError as error:
                    reply = Failed(error)
            elif command is ANSWER:
                reply = server.answers.pop(0)
            else:
                reply = server.execute(command)
                most = max(most, len(server.answers))
                assert most <= window, "more requests in flight than allowed"
    except StopIteration as end:
        return server, end.value
    except (KeyError, Refused, TypeError, ValueError) as error:
        return server, error


class Pushing(unittest.TestCase):
    def test_all_in_batches(self):
        server, accepted = play([{"id": n, "v": n} for n in range(10)])
        self.assertEqual(accepted, 10)
        self.assertEqual([len(json.loads(r["elements"])) for r in server.requests], [4, 4, 2])

    def test_requests_fit_a_small_frame(self):
        # An element may have half of a frame.
        texts = ["x" * (size - len('{"id":0,"v":""}')) for size in (32766, 32768, 500, 16382, 32768)]
        server, accepted = play(({"id": n, "v": text} for n, text in enumerate(texts)), batch=256, max_frame=65536)
        self.assertEqual((accepted, server.state), (5, dict(enumerate(texts))))
        for request in server.requests:
            content = request["elements"] if "elements" in request else request["element"]
            self.assertLess(len(content), 65536 - 1500)

    def test_options_that_are_no_conditions(self):
        server, accepted = play([{"id": n, "v": n} for n in range(10)], result="counts", animation="fade")
        self.assertEqual([len(json.loads(r["elements"])) for r in server.requests], [4, 4, 2])
        self.assertTrue(all((r["result"], r["animation"]) == ("counts", "fade") for r in server.requests))

    def test_random_refusals(self):
        for seed in range(500):
            with self.subTest(seed=seed):
                numbers = random.Random(seed)
                elements = [
                    {"id": numbers.randrange(6), "v": place, "bad": numbers.random() < 0.1}
                    for place in range(numbers.randrange(40))
                ]
                seen = []
                server, accepted = play(
                    elements,
                    each=lambda place, result, refused: seen.append((place, refused is not None)),
                    batch=numbers.randrange(1, 6),
                    window=numbers.randrange(1, 5),
                )
                # Each element is reported once, in order, and of those with one identity the last good one is kept.
                self.assertEqual(seen, [(place, one["bad"]) for place, one in enumerate(elements)])
                self.assertEqual(accepted, sum(not one["bad"] for one in elements))
                self.assertEqual(server.state, {one["id"]: one["v"] for one in elements if not one["bad"]})

    def test_the_first_refusal_ends_it(self):
        taken = []

        def source():
            for n in range(100):
                taken.append(n)
                yield {"id": n, "v": n, "bad": n == 5}

        server, error = play(source())
        self.assertIsInstance(error, Refused)
        self.assertEqual(error.data, {"id": 5})
        self.assertEqual(server.state, {n: n for n in taken if n != 5})
        self.assertLess(len(taken), 20)

    def test_requests_with_a_condition_are_not_sent_twice(self):
        server, accepted = play([{"id": n, "v": n} for n in range(3)], absent=True)
        self.assertEqual(accepted, 3)
        self.assertEqual([json.loads(r["element"])["id"] for r in server.requests], [0, 1, 2])
        self.assertTrue(all(r["absent"] is True for r in server.requests))

    def test_an_element_that_json_does_not_have(self):
        server, error = play([{"id": 0, "v": 0}, {"id": 1, "v": [1, float("inf")]}, {"id": 2, "v": 2}])
        self.assertEqual((type(error), str(error)), (ValueError, "elements[1].v[1]: inf is not a JSON value"))
        self.assertEqual(server.state, {0: 0})

    def test_a_source_that_raises(self):
        def source():
            yield from ({"id": n, "v": n} for n in range(6))
            raise KeyError("of the program")

        server, error = play(source())
        self.assertEqual(error.args, ("of the program",))
        self.assertEqual(server.state, {n: n for n in range(6)})

    def test_numbers_below_one(self):
        for options, name in (({"batch": 0}, "batch"), ({"batch": -1}, "batch"), ({"window": 0}, "window")):
            server, error = play([{"id": 0, "v": 0}], **options)
            self.assertEqual((type(error), str(error), server.requests), (ValueError, f"{name} must be at least 1", []))

    def test_one_value_is_no_list(self):
        for one in ({"id": 1}, '{"id":1}', b'{"id":1}'):
            with self.assertRaisesRegex(TypeError, f"not a {type(one).__name__}"):
                source_of(one)


if __name__ == "__main__":
    unittest.main()
