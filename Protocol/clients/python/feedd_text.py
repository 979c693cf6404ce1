"""JSON for the client of feedd: decoded values in which elements remain the text that was pushed, digit for digit.

The daemon sends valid, compact JSON. To extract a value it is therefore enough to find its end.
"""

import json
import re
from decimal import Decimal

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]+")
# A string without an end reaches to the end of the text. Otherwise each quote in it would begin another search.
_NESTING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")

#: Members whose values are elements: an array of elements, or one element.
_LISTS, _SINGLES = ("elements", "nodes"), ("element",)

#: The most levels of a message outside its elements: more than any has. Each level is scanned once more.
_LEVELS = 32


def _end(text, at):
    """Returns the index after the value that starts at `at`."""
    if text[at] in b"{[":
        depth = 0
        for found in _NESTING.finditer(text, at):
            first = text[found.start()]
            if first in b"{[":
                depth += 1
            elif first in b"}]":
                depth -= 1
                if depth == 0:
                    return found.end()
    found = (_STRING if text[at] in b'"' else _SCALAR).match(text, at)
    if not found:
        raise ValueError(f"no JSON value at {at}")
    return found.end()


def _skip(text, at):
    return _SPACE.match(text, at).end()


def items(text):
    """Returns the texts of the items of an array."""
    result, at = [], _skip(text, 1)
    while text[at] not in b"]":
        end = _end(text, at)
        result.append(text[at:end])
        at = _skip(text, end)
        if text[at] in b",":
            at = _skip(text, at + 1)
    return result


def members(text):
    """Returns the names of the members of an object and the texts of their values, in order."""
    result, at = [], _skip(text, 1)
    while text[at] not in b"}":
        end = _end(text, at)
        name = json.loads(text[at:end])
        at = _skip(text, _skip(text, end) + 1)
        end = _end(text, at)
        result.append((name, text[at:end]))
        at = _skip(text, end)
        if text[at] in b",":
            at = _skip(text, at + 1)
    return result


def decode(text, levels=_LEVELS):
    """Decodes a message. Elements remain text, and no number is rounded. Raises ValueError if it is not JSON, or too deep."""
    if text[:1] == b"{":
        return {name: _member(name, value, levels) for name, value in members(text)}
    if text[:1] == b"[" and (b'"element' in text or b'"nodes"' in text):
        return [_inner(item, levels) for item in items(text)]
    return json.loads(text, parse_float=Decimal)


def _inner(text, levels):
    if levels == 0:
        raise ValueError("a message with too many levels")
    return decode(text, levels - 1)


def _member(name, text, levels):
    if name in _LISTS and text[:1] == b"[":
        return items(text)
    return text if name in _SINGLES else _inner(text, levels)


def encode(value):
    """Encodes a value as JSON. `bytes` in it are inserted unchanged."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, dict):
        return b"{" + b",".join(encode(str(name)) + b":" + encode(item) for name, item in value.items()) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(encode, value)) + b"]"
    if isinstance(value, Decimal):
        return str(value).encode()
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
