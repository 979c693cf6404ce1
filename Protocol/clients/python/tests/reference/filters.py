"""Filters, sort keys and identities: the part of RFC 9535 that the vectors use.

Filters: `&&`, `||`, `!`, parentheses, comparisons of literals and singular queries, existence of a singular query,
and `length`, `match` and `search` with a literal pattern that means the same in Python and in RFC 9485.
"""

import re
from decimal import Decimal

from . import texts

_TOKEN = re.compile(
    r"""\s*(?:(?P<op>&&|\|\||==|!=|<=|>=|<|>|!|\(|\)|,)
    |(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<query>[@$](?:\.[A-Za-z_\u0080-\U0010ffff][\w]*|\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[-?\d+\])*)
    |(?P<name>[a-z]+))""",
    re.VERBOSE,
)
_SEGMENT = re.compile(r"""\.(\w+)|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]|\[(-?\d+)\]""")

NOTHING = None


def resolve(path, element):
    """The node that a singular query such as `$.a['b'][0]` selects in `element`, or NOTHING."""
    at = element
    for plain, single, double, index in _SEGMENT.findall(path[1:]):
        if index:
            if at.kind != "array" or not -len(at.items) <= int(index) < len(at.items):
                return NOTHING
            at = at.items[int(index)]
        else:
            at = at.get(plain or single or double) if at.kind == "object" else None
            if at is None:
                return NOTHING
    return at


def accepts(text, element):
    """Whether the filter accepts the element. No filter accepts all."""
    return True if text is None else _Parser(text, element).run()


class _Parser:
    """Parses and evaluates in one go: the vectors are small."""

    def __init__(self, text, element):
        self.element, self.tokens, at = element, [], 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if not found:
                raise ValueError(f"filter {text!r} at {at}")
            self.tokens.append((found.lastgroup, found.group(found.lastgroup)))
            at = found.end()
        self.tokens.append(("end", ""))

    def run(self):
        result = self.either()
        assert self.tokens[0][0] == "end", self.tokens
        return result

    def take(self, *texts):
        if self.tokens[0][1] in texts and self.tokens[0][0] == "op":
            return self.tokens.pop(0)[1]
        return None

    def either(self):
        result = self.both()
        while self.take("||"):
            result = self.both() or result
        return result

    def both(self):
        result = self.basic()
        while self.take("&&"):
            result = self.basic() and result
        return result

    def basic(self):
        if self.take("!"):
            return not self.basic()
        if self.take("("):
            result = self.either()
            assert self.take(")")
            return result
        left = self.operand()
        operator = self.take("==", "!=", "<=", ">=", "<", ">")
        if operator:
            return compare(operator, left, self.operand())
        return left is True or isinstance(left, texts.Node)

    def operand(self):
        kind, text = self.tokens.pop(0)
        if kind == "query":
            return resolve(text, self.element)
        if kind == "number":
            return texts.Node("number", text)
        if kind == "string":
            return texts.node(re.sub(r"\\(.)", r"\1", text[1:-1]))
        if text in ("true", "false", "null"):
            return texts.Node(text, text)
        return self.function(text)

    def function(self, name):
        assert self.take("(")
        arguments = [self.operand()]
        while self.take(","):
            arguments.append(self.operand())
        assert self.take(")")
        if name == "length":
            node = arguments[0]
            if node is NOTHING or node.kind not in ("string", "array", "object"):
                return NOTHING
            return texts.node(len(node.value if node.kind != "object" else dict(node.items)))
        subject, pattern = arguments
        if subject is NOTHING or subject.kind != "string":
            return False
        find = {"match": re.fullmatch, "search": re.search}[name]
        return find(pattern.value, subject.value) is not None


def compare(operator, left, right):
    if operator == "!=":
        return not compare("==", left, right)
    if operator in (">", ">="):
        return compare({">": "<", ">=": "<="}[operator], right, left)
    equal = left is right if NOTHING in (left, right) else left.equals(right)
    if operator == "==":
        return equal
    if NOTHING in (left, right) or left.kind != right.kind or left.kind not in ("number", "string"):
        less = False
    elif left.kind == "number":
        less = left.number < right.number
    else:
        less = points(left.value) < points(right.value)
    return less or (operator == "<=" and equal)


def points(string):
    """The code points of a string; an escaped surrogate that has no partner counts as itself."""
    return [ord(character) for character in string]


_RANKS = {"null": 0, "false": 1, "true": 2, "number": 3, "string": 4, "array": 5, "object": 5}


def key(node):
    """The sort key of a present value: rank first, then numbers by value and strings by code point."""
    if node.kind == "number":
        return (3, node.number)
    if node.kind == "string":
        return (4, points(node.value))
    return (_RANKS[node.kind], 0)


def sorts_after(sort, one, other):
    """Whether element `one` sorts strictly after element `other`."""
    for criterion in sort:
        a, b = (resolve(criterion["by"], element) for element in (one, other))
        if a is NOTHING or b is NOTHING:
            if (a is NOTHING) != (b is NOTHING):
                return a is NOTHING
            continue
        a, b = key(a), key(b)
        if a != b:
            return (a < b) if criterion.get("order") == "descending" else (a > b)
    return False


def same_key(sort, one, other):
    return not sorts_after(sort, one, other) and not sorts_after(sort, other, one)


def identity(path, element):
    """What two elements have alike when they are one: ("n", value) or ("s", string). None when there is none."""
    node = resolve(path, element)
    if node is NOTHING:
        return None
    if node.kind == "number":
        return ("n", Decimal(node.text))
    return ("s", node.value) if node.kind == "string" else None
