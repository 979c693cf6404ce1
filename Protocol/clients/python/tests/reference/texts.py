"""JSON as text: parsing that keeps the digits and the escapes of the source, compact form, and printing."""

import json
import re
from decimal import Decimal

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')


class Node:
    """One JSON value: its kind, its compact text, and what it holds.

    `items` is a list of nodes for an array and a list of (name, node) pairs, in source order, for an object.
    """

    __slots__ = ("kind", "text", "items")

    def __init__(self, kind, text, items=None):
        self.kind, self.text, self.items = kind, text, items

    def __repr__(self):
        return f"Node({self.text})"

    def __getitem__(self, key):
        """The last member of that name, or the element at that index. KeyError or IndexError when there is none."""
        if self.kind == "object":
            for name, value in reversed(self.items):
                if name == key:
                    return value
            raise KeyError(key)
        return self.items[key]

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default

    @property
    def value(self):
        """The value as Python has it; numbers with a fraction or an exponent become Decimal."""
        return json.loads(self.text, parse_float=Decimal)

    @property
    def number(self):
        return Decimal(self.text)

    def equals(self, other):
        """Equality as RFC 9535 has it: numbers by value, objects as maps, arrays in order."""
        if self.kind != other.kind:
            return False
        if self.kind == "number":
            return self.number == other.number
        if self.kind == "string":
            return self.value == other.value
        if self.kind == "array":
            return len(self.items) == len(other.items) and all(map(Node.equals, self.items, other.items))
        if self.kind == "object":
            mine, theirs = dict(self.items), dict(other.items)
            return mine.keys() == theirs.keys() and all(mine[name].equals(theirs[name]) for name in mine)
        return True


def parse(text):
    """The one JSON value that `text` holds. ValueError when it holds anything else."""
    node, end = _value(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise ValueError(f"more than one value, at {end}")
    return node


def _skip(text, at):
    return _SPACE.match(text, at).end()


def _value(text, at):
    for kind in ("null", "false", "true"):
        if text.startswith(kind, at):
            return Node(kind, kind), at + len(kind)
    if text.startswith("{", at):
        return _object(text, at)
    if text.startswith("[", at):
        return _array(text, at)
    for kind, pattern in (("string", _STRING), ("number", _NUMBER)):
        found = pattern.match(text, at)
        if found:
            return Node(kind, found.group()), found.end()
    raise ValueError(f"no JSON value at {at}")


def _array(text, at):
    items, at = [], _skip(text, at + 1)
    while not text.startswith("]", at):
        if items:
            at = _skip(text, _comma(text, at))
        node, at = _value(text, at)
        items.append(node)
        at = _skip(text, at)
    return Node("array", "[" + ",".join(item.text for item in items) + "]", items), at + 1


def _object(text, at):
    items, texts, at = [], [], _skip(text, at + 1)
    while not text.startswith("}", at):
        if items:
            at = _skip(text, _comma(text, at))
        name, at = _value(text, at)
        at = _skip(text, at)
        if name.kind != "string" or not text.startswith(":", at):
            raise ValueError(f"no member at {at}")
        node, at = _value(text, _skip(text, at + 1))
        items.append((name.value, node))
        texts.append(name.text + ":" + node.text)
        at = _skip(text, at)
    return Node("object", "{" + ",".join(texts) + "}", items), at + 1


def _comma(text, at):
    if not text.startswith(",", at):
        raise ValueError(f"no comma at {at}")
    return at + 1


def node(value):
    """A node for a value built in Python, in which nodes may stand for themselves."""
    if isinstance(value, Node):
        return value
    if isinstance(value, dict):
        items = [(name, node(member)) for name, member in value.items()]
        inside = ",".join(json.dumps(name, ensure_ascii=False) + ":" + member.text for name, member in items)
        return Node("object", "{" + inside + "}", items)
    if isinstance(value, (list, tuple)):
        items = [node(item) for item in value]
        return Node("array", "[" + ",".join(item.text for item in items) + "]", items)
    return parse(json.dumps(value, ensure_ascii=False))


def pretty(value, width=110, indent=0, room=0):
    """The text of a value, each part on one line where it fits and on lines of its own where it doesn't."""
    value = node(value)
    spaced = _spaced(value)
    if value.kind not in ("array", "object") or not value.items or indent + len(spaced) + room <= width:
        return spaced
    inner = " " * (indent + 2)
    lines = []
    for item in value.items:
        name, member = item if value.kind == "object" else (None, item)
        head = "" if name is None else json.dumps(name, ensure_ascii=False) + ": "
        lines.append(inner + head + pretty(member, width, indent + 2, len(head) + 1))
    opening, closing = "[]" if value.kind == "array" else "{}"
    return opening + "\n" + ",\n".join(lines) + "\n" + " " * indent + closing


def _spaced(value):
    if value.kind == "array":
        return "[" + ", ".join(map(_spaced, value.items)) + "]"
    if value.kind == "object":
        inside = (json.dumps(name, ensure_ascii=False) + ": " + _spaced(item) for name, item in value.items)
        return "{" + ", ".join(inside) + "}"
    return value.text
