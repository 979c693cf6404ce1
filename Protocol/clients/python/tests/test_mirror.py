"""The mirror, fed with the vectors of change and compose, and with messages that don't follow."""

import unittest

import support
from feedd import Counts, Gap, Mirror, Notification
from support import raw
from reference import texts


def started(sections, feed="feed", revision=7):
    """A mirror that is whole, with the sections of a vector."""
    head = [{"name": s["name"].value, "count": len(s["elements"].items)} for s in sections.items]
    mirror = Mirror({"feed": feed, "epoch": "e", "revision": revision, "resumed": False, "sections": head})
    elements = [raw(element) for section in sections.items for element in section["elements"].items]
    first = next((place for place, section in enumerate(head) if section["count"]), 0)
    part = {"feed": feed, "revision": revision, "at": [first, 0], "elements": elements, "last": True}
    mirror.apply(Notification("snapshot", part))
    return mirror


def delta(change, elements, start=7, end=8):
    return Notification(
        "delta", {"from": start, "revision": end, **change.value, "elements": [raw(e) for e in elements.items]}
    )


def shown(mirror):
    return [[s.name, s.elements] for s in mirror.sections]


def expected(sections):
    return [[s["name"].value, [raw(element) for element in s["elements"].items]] for s in sections.items]


class Vectors(unittest.TestCase):
    def test_change(self):
        for case in support.cases("change"):
            with self.subTest(case["name"].value):
                mirror = started(case["before"])
                self.assertTrue(mirror.apply(delta(case["change"], case["elements"])))
                self.assertEqual(shown(mirror), expected(case["after"]))
                self.assertEqual(mirror.revision, 8)

    def test_compose(self):
        for case in support.cases("compose"):
            with self.subTest(case["name"].value):
                one, two = started(case["before"]), started(case["before"])
                one.apply(delta(case["composed"]["change"], case["composed"]["elements"], 7, 9))
                two.apply(delta(case["first"]["change"], case["first"]["elements"], 7, 8))
                two.apply(delta(case["second"]["change"], case["second"]["elements"], 8, 9))
                self.assertEqual(shown(one), expected(case["after"]))
                self.assertEqual(shown(two), expected(case["after"]))

    def test_snapshots(self):
        for case in support.cases("snapshots"):
            with self.subTest(case["name"].value):
                head = {"feed": "feed", "epoch": "e", "revision": case["parts"].items[0]["revision"].value, "resumed": False}
                mirror = Mirror({**head, "sections": case["sections"].value})
                for place, part in enumerate(case["parts"].items):
                    members = {**part.value, "elements": [raw(element) for element in part["elements"].items]}
                    if case.get("fault") and case["fault"].value == place:
                        with self.assertRaises(Gap):
                            mirror.apply(Notification("snapshot", members))
                    else:
                        whole = mirror.apply(Notification("snapshot", members))
                        self.assertEqual(whole, members["last"])
                if case.get("after"):
                    self.assertEqual(shown(mirror), expected(case["after"]))
                    types = [section["types"].value for section in case["after"].items]
                    self.assertEqual([section.types for section in mirror.sections], types)

    def test_digest(self):
        for case in support.cases("digest"):
            with self.subTest(case["name"].value):
                self.assertEqual(started(case["sections"]).digest(), case["digest"].value)


LIST = texts.parse('[{"name":"one","elements":["a","b"]},{"name":"two","elements":["c"]}]')


def change(text):
    node = texts.parse(text)
    return {"deleted": [], "added": [], "updated": [], "elements": [], "from": 7, "revision": 8, **node.value}


class Gaps(unittest.TestCase):
    def refuse(self, method, params):
        with self.assertRaises(Gap):
            started(LIST).apply(Notification(method, params))

    def test_deltas_that_do_not_follow(self):
        for text in (
            '{"from":6}',
            '{"from":8}',
            '{"deleted":[[0,2]]}',
            '{"deleted":[[2,0]]}',
            '{"added":[[0,4]],"elements":["x"]}',
            '{"added":[[2,0]],"elements":["x"]}',
            '{"added":[[0,0]]}',
            '{"updated":[[1,1]],"elements":["x"]}',
            '{"updated":[[0,0]],"elements":["x","y"]}',
            '{"sections":{"deleted":[2],"added":[]}}',
            '{"sections":{"deleted":[],"added":[{"at":3,"name":"x"}]}}',
        ):
            with self.subTest(text):
                self.refuse("delta", change(text))

    def test_a_bookmark_of_another_revision(self):
        self.refuse("bookmark", {"epoch": "e", "revision": 6, "current": 9})

    def test_a_snapshot_that_nobody_announced(self):
        self.refuse("snapshot", {"revision": 8, "at": [0, 0], "elements": [], "last": True})

    def test_parts_out_of_place(self):
        head = {"feed": "f", "epoch": "e", "revision": 7, "resumed": False, "sections": [{"name": "s", "count": 3}]}
        part = {"revision": 7, "at": [0, 0], "elements": [b"1"], "last": False}
        for second in ({"at": [0, 2]}, {"revision": 8, "at": [0, 1]}, {"at": [0, 1], "last": True}, {"at": [1, 0]}):
            with self.subTest(second):
                mirror = Mirror(head)
                self.assertFalse(mirror.apply(Notification("snapshot", part)))
                with self.assertRaises(Gap):
                    mirror.apply(Notification("snapshot", {**part, **second}))

    def test_a_delta_before_the_snapshot_is_whole(self):
        head = {"feed": "f", "epoch": "e", "revision": 7, "resumed": False, "sections": [{"name": "s", "count": 3}]}
        with self.assertRaises(Gap):
            Mirror(head).apply(Notification("delta", change("{}")))


class Courses(unittest.TestCase):
    def test_parts_of_a_snapshot_run_over_sections(self):
        counts = [{"name": n, "count": c} for n, c in (("a", 2), ("b", 0), ("c", 2))]
        mirror = Mirror({"feed": "f", "epoch": "e", "revision": 3, "resumed": False, "sections": counts})
        part = {"revision": 3, "at": [0, 0], "elements": [b"1", b"2", b"3"], "last": False}
        self.assertFalse(mirror.apply(Notification("snapshot", part)))
        part = {"revision": 3, "at": [2, 1], "elements": [b"4"], "types": ["T"], "last": True}
        self.assertTrue(mirror.apply(Notification("snapshot", part)))
        self.assertEqual(shown(mirror), [["a", [b"1", b"2"]], ["b", []], ["c", [b"3", b"4"]]])
        self.assertEqual(mirror.sections[2].types, [None, "T"])
        self.assertEqual(mirror.counts(), [2, 0, 2])

    def test_a_reset_replaces_everything(self):
        mirror = started(LIST)
        reset = {"revision": 20, "at": [0, 0], "elements": [b"1"], "last": True, "reset": True}
        reset["sections"] = [{"name": "new", "count": 1}]
        self.assertTrue(mirror.apply(Notification("snapshot", reset)))
        self.assertEqual((shown(mirror), mirror.revision), ([["new", [b"1"]]], 20))

    def test_deltas_of_few_and_of_many_rows(self):
        rows = {"feed": "f", "revision": 1, "at": [0, 0], "last": True}
        head = {"feed": "f", "epoch": "e", "revision": 1, "resumed": False}
        for count, step in ((30, 7), (100, 3), (1000, 2), (1000, 1)):
            with self.subTest((count, step)):
                mirror = Mirror({**head, "sections": [{"name": "a", "count": count}, {"name": "b", "count": count}]})
                old = [b"%d" % number for number in range(2 * count)]
                mirror.apply(Notification("snapshot", {**rows, "elements": old, "types": [None] * len(old)}))
                deleted = [[section, row] for section in range(2) for row in range(step - 1, count, step)]
                added = [[section, row] for section in range(2) for row in range(0, count // step, 1 + section * (step > 1))]
                fresh = [b'"%d"' % number for number in range(len(added))]
                types = [f"t{number}" for number in range(len(added))]
                expected = [[(text, None) for text in part] for part in (old[:count], old[count:])]
                for section, row in reversed(deleted):
                    del expected[section][row]
                for (section, row), pair in zip(added, zip(fresh, types)):
                    expected[section].insert(row, pair)
                change = {"deleted": deleted, "added": added, "updated": [], "elements": fresh, "types": types}
                mirror.apply(Notification("delta", {"feed": "f", "from": 1, "revision": 2, **change}))
                self.assertEqual([list(zip(one.elements, one.types)) for one in mirror.sections], expected)
                beyond = [[0, mirror.counts()[0] + row] for row in range(1, 40)]
                change = {"deleted": [], "added": beyond, "updated": [], "elements": [b"1"] * len(beyond)}
                with self.assertRaises(Gap):
                    mirror.apply(Notification("delta", {"feed": "f", "from": 2, "revision": 3, **change}))

    def test_deltas_of_few_and_of_many_sections(self):
        head = {"feed": "f", "epoch": "e", "revision": 1, "resumed": False}
        for count, step in ((20, 3), (100, 3), (100, 1)):
            with self.subTest((count, step)):
                names = [f"s{place}" for place in range(count)]
                result = {**head, "sections": [{"name": name, "count": 1} for name in names]}
                mirror, counts = Mirror(result), Counts(result)
                elements = [b'"%s"' % name.encode() for name in names]
                mirror.apply(Notification("snapshot", {"revision": 1, "at": [0, 0], "elements": elements, "last": True}))
                deleted = list(range(0, count, step))
                added = [{"at": step * place, "name": f"new{place}"} for place in range(len(deleted))]
                expected = [[name, [element]] for name, element in zip(names, elements)]
                for place in reversed(deleted):
                    del expected[place]
                for addition in added:
                    expected.insert(addition["at"], [addition["name"], []])
                change = {"feed": "f", "from": 1, "revision": 2, "sections": {"deleted": deleted, "added": added}}
                rows = {"deleted": [], "added": [], "updated": [], "elements": []}
                mirror.apply(Notification("delta", {**change, **rows}))
                counts.apply(Notification("delta", {**change, "counts": [len(rows) for _, rows in expected]}))
                self.assertEqual(shown(mirror), expected)
                self.assertEqual(counts.names, [name for name, _ in expected])
                beyond = [{"at": count + place, "name": "x"} for place in range(1, 40)]
                for wrong in ({"deleted": [*deleted, count], "added": []}, {"deleted": [], "added": beyond}):
                    later = {**change, "from": 2, "revision": 3, "sections": wrong}
                    for copy, more in ((mirror, rows), (counts, {"counts": []})):
                        with self.assertRaises(Gap):
                            copy.apply(Notification("delta", {**later, **more}))

    def test_a_bookmark_moves_the_place_to_resume_from(self):
        mirror = started(LIST)
        self.assertEqual(mirror.since, {"epoch": "e", "revision": 7})
        self.assertFalse(mirror.apply(Notification("bookmark", {"epoch": "e", "revision": 7, "current": 12})))
        self.assertEqual((mirror.since, mirror.revision), ({"epoch": "e", "revision": 12}, 7))
        mirror.restart({"feed": "feed", "epoch": "e", "revision": 15, "resumed": True, "sections": []})
        self.assertTrue(
            mirror.apply(Notification("delta", {**change('{"deleted":[[0,0]]}'), "from": 12, "revision": 15}))
        )
        self.assertEqual(mirror.counts(), [1, 1])

    def test_a_watch_that_was_not_resumed_starts_over(self):
        mirror = started(LIST)
        head = {
            "feed": "feed",
            "epoch": "other",
            "revision": 2,
            "resumed": False,
            "sections": [{"name": "s", "count": 0}],
        }
        mirror.restart(head)
        self.assertFalse(mirror.whole)
        mirror.apply(Notification("snapshot", {"revision": 2, "at": [0, 0], "elements": [], "last": True}))
        self.assertEqual((shown(mirror), mirror.since), ([["s", []]], {"epoch": "other", "revision": 2}))

    def test_resuming_in_another_epoch_is_a_gap(self):
        with self.assertRaises(Gap):
            started(LIST).restart({"feed": "feed", "epoch": "x", "revision": 7, "resumed": True, "sections": []})

    def test_values_are_decoded_without_rounding(self):
        mirror = started(texts.parse('[{"name":"s","elements":[{"v":0.1000000000000000000001},12345678901234567890]}]'))
        self.assertEqual(str(mirror.values()[0][0]["v"]), "0.1000000000000000000001")
        self.assertEqual(mirror.values()[0][1], 12345678901234567890)
