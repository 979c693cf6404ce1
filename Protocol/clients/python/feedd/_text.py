"""JSON for the client of feedd: elements remain the text that was pushed, digit for digit.

The daemon sends valid, compact JSON. To extract a value it is therefore enough to find its end.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, Callable, List, Tuple, Union

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^,\]}\s]+")
# A string without an end reaches to the end of the text. Otherwise each quote in it would begin another search.
_NESTING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_SPACE = re.compile(rb"[ \t\r\n]*")

#: Members whose values are elements: an array of elements, or one element.
_LISTS, _SINGLES = ("elements", "nodes"), ("element",)

#: The most levels of a message outside its elements: more than any has. Each level is scanned once more.
_LEVELS = 32

# --- Decoding ---


def _end(text: bytes, at: int) -> int:
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
    match = (_STRING if text[at] in b'"' else _SCALAR).match(text, at)
    if not match:
        raise ValueError(f"no JSON value at {at}")
    return match.end()


def _skip(text: bytes, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def items(text: bytes) -> List[bytes]:
    """Returns the texts of the items of an array."""
    result, at = [], _skip(text, 1)
    while text[at] not in b"]":
        end = _end(text, at)
        result.append(text[at:end])
        at = _skip(text, end)
        if text[at] in b",":
            at = _skip(text, at + 1)
    return result


def members(text: bytes) -> List[Tuple[str, bytes]]:
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


def _no_json(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _integer(text: str) -> Union[int, Decimal]:
    # Python limits the digits of an int that it parses.
    return int(text) if len(text) < 640 else Decimal(text)


def _decimal(text: str) -> Union[Decimal, bytes]:
    try:
        return Decimal(text)
    except ArithmeticError:
        return text.encode()


_plain = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_json)
_exact = json.JSONDecoder(parse_float=_decimal, parse_int=_integer, parse_constant=_no_json)


def loads(text: Union[bytes, str]) -> Any:
    """Decodes a JSON text, such as an element, without rounding a number.

    Numbers with a fraction or an exponent become Decimal, and so do integers of more digits than Python parses. A number whose
    exponent is beyond Decimal remains `bytes`, which `encode` sends unchanged.
    """
    if not isinstance(text, str):
        text = text.decode("utf-8")
    try:
        return _plain.decode(text)
    except (ArithmeticError, ValueError):
        return _exact.decode(text)


def decode(text: bytes, levels: int = _LEVELS) -> Any:
    """Decodes a message. Elements remain text, and no number is rounded. Raises ValueError if it is not JSON, or too deep."""
    try:
        message = _decode_plainly(text.decode("utf-8"))
    except (ArithmeticError, RecursionError, ValueError):
        message = None
    return message if message is not None else _decode_by_member(text, levels)


_scan = json.JSONDecoder(parse_constant=_no_json).raw_decode


def _decode_plainly(text: str) -> Any:
    """Decodes a message with at most one list of elements, that of its `params` or its `result`. Returns None for any other one.

    Outside of strings, `"elements":[` is the name of a member, so the first one is that of the message, or the check at the end
    fails. The elements are only scanned for their ends.
    """
    if '"element' not in text and '"nodes"' not in text:
        return loads(text)
    start = text.find('"elements":[') + 12
    if start < 12 or text[:1] != "{":
        return None
    at = end = start
    elements: List[bytes] = []
    while text[end : end + 1] != "]":
        _, end = _scan(text, at)
        elements.append(text[at:end].encode("utf-8"))
        at = end + 1
        if text[end : end + 1] not in (",", "]"):
            return None
    rest = text[:start] + text[end:]
    if rest.count('"element') != 1 or '"nodes"' in rest:
        return None
    message = loads(rest)
    holder = message.get("params", message.get("result"))
    if not isinstance(holder, dict) or holder.get("elements") != []:
        return None
    holder["elements"] = elements
    return message


def _decode_by_member(text: bytes, levels: int) -> Any:
    if text[:1] == b"{":
        return {name: _member(name, value, levels) for name, value in members(text)}
    if text[:1] == b"[" and (b'"element' in text or b'"nodes"' in text):
        return [_inner(item, levels) for item in items(text)]
    return loads(text)


def _inner(text: bytes, levels: int) -> Any:
    if levels == 0:
        raise ValueError("a message with too many levels")
    return _decode_by_member(text, levels - 1)


def _member(name: str, text: bytes, levels: int) -> Any:
    if name == "contents":
        # Of a slots feed: its members are types, which may be named like those of `_SINGLES`.
        return loads(text)
    if name in _LISTS and text[:1] == b"[":
        return items(text)
    return text if name in _SINGLES else _inner(text, levels)


# --- Encoding ---


class _Unsendable(Exception):
    """A value that JSON does not have, and its place in what was to be encoded, innermost step first."""

    def __init__(self, kind: type, reason: str):
        super().__init__(reason)
        self.kind, self.reason, self.steps = kind, reason, []  # type: ignore[var-annotated]

    def error(self, place: str) -> Exception:
        """Returns the ValueError or TypeError to raise: `element.when: a datetime is not a JSON value`.

        `place` is that of the whole value.
        """
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self.steps)]
        if len(steps) > 8:
            steps[6:] = [f"… ({len(steps)} levels)"]
        place = "".join([place, *steps]).lstrip(".")
        text = f"{place}: {self.reason}" if place else self.reason
        error: Exception = self.kind(text)
        return error


def encode(value: object, place: str = "") -> bytes:
    """Encodes a value as JSON. `bytes` in it are JSON texts, which are checked and inserted unchanged.

    `place` is the place of the value for errors.

    - Raises: ValueError for a number that JSON does not have (NaN, infinity), `bytes` that are not JSON in UTF-8, and more levels
      than Python's recursion limit allows; TypeError for any other value without a form in JSON, and for names of members that
      are not strings. The error names the place of the value.
    """
    parts: List[str] = []
    try:
        _write(value, parts.append, _unicode)
        try:
            return "".join(parts).encode("utf-8")
        except UnicodeEncodeError:
            parts.clear()
            _write(value, parts.append, _quote)
            return "".join(parts).encode("utf-8")
    except _Unsendable as unsendable:
        raise unsendable.error(place) from None


_unicode = json.JSONEncoder(ensure_ascii=False).encode
_ascii = json.JSONEncoder().encode


def _quote(text: str) -> str:
    """Returns a string as JSON. Lone surrogates, which UTF-8 does not have, are escaped."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return _ascii(text)
    return _unicode(text)


def _write(value: object, out: Callable[[str], object], quote: Callable[[str], str]) -> None:
    if isinstance(value, str):
        out(quote(str.__str__(value)))
    elif isinstance(value, dict):
        _write_object(value, out, quote)
    elif isinstance(value, (list, tuple)):
        _write_array(value, out, quote)
    elif value is None or value is True or value is False:
        out("null" if value is None else "true" if value else "false")
    elif isinstance(value, int):
        try:
            out(int.__repr__(value))
        except ValueError:  # more digits than Python writes
            out(str(Decimal(value)))
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise _Unsendable(ValueError, f"{float.__repr__(value)} is not a JSON value")
        out(float.__repr__(value))
    elif isinstance(value, Decimal):
        if not value.is_finite():
            raise _Unsendable(ValueError, f"Decimal('{Decimal.__str__(value)}') is not a JSON value")
        out(Decimal.__str__(value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out(_checked(bytes(value)))
    else:
        raise _Unsendable(TypeError, f"a {type(value).__name__} is not a JSON value")


_TOO_DEEP = "more levels than Python's recursion limit allows"


def _write_object(value: "dict[object, object]", out: Callable[[str], object], quote: Callable[[str], str]) -> None:
    if not value:
        out("{}")
        return
    before, name = "{", None
    try:
        for name, item in value.items():
            if not isinstance(name, str):
                raise _Unsendable(TypeError, f"the name of a member is a {type(name).__qualname__}, not a str")
            out(f"{before}{quote(str.__str__(name))}:")
            before = ","
            _write(item, out, quote)
    except RecursionError:
        raise _Unsendable(ValueError, _TOO_DEEP) from None
    except _Unsendable as unsendable:
        unsendable.steps.append(str(name))
        raise
    out("}")


def _write_array(value: "list[object] | tuple[object, ...]", out: Callable[[str], object], quote: Callable[[str], str]) -> None:
    if not value:
        out("[]")
        return
    before, place = "[", 0
    try:
        for place, item in enumerate(value):
            out(before)
            before = ","
            _write(item, out, quote)
    except RecursionError:
        raise _Unsendable(ValueError, _TOO_DEEP) from None
    except _Unsendable as unsendable:
        unsendable.steps.append(place)
        raise
    out("]")


_checker = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_no_json)


def _checked(text: bytes) -> str:
    """Returns bytes as text if they are one JSON value in UTF-8. Otherwise the whole frame would be broken."""
    try:
        result = text.decode("utf-8")
        _checker.decode(result)
        return result
    except RecursionError:
        reason = _TOO_DEEP
    except ValueError as error:
        reason = f"bytes that are not JSON: {error}"
    raise _Unsendable(ValueError, reason)
