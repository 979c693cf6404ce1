"""How `push` groups elements into requests, without input or output: what both kinds of connections share."""

from __future__ import annotations

import collections
from typing import Any, Callable, Deque, Dict, Generator, List, Mapping, Optional, Union

from ._errors import Refused
from ._text import encode

#: Asks for the next element; the reply is the element, END, or a Failed.
NEXT = "next"
#: Asks for the answer to the oldest request; the reply is its result, or a Refused.
ANSWER = "answer"
END = object()


class Failed:
    """The reply to NEXT when the source of the elements raised an error."""

    def __init__(self, error: Exception):
        self.error = error


def source(elements: Any) -> Any:
    """Returns the elements, unless they are one value that was meant to be in a list."""
    if isinstance(elements, (str, bytes, bytearray, memoryview, Mapping)):
        raise TypeError(f"elements must be several values, such as a list, not a {type(elements).__name__}")
    return elements


#: What `each` of a push is called with: the place of an element, the result of the request that it was in, or the error.
Each = Callable[[int, Optional[Dict[str, Any]], Optional[Refused]], None]

#: A request to send, as its parameters, or NEXT, or ANSWER.
Command = Union[Dict[str, Any], str]

BATCH_BYTES = 128 << 10


class _Batch:
    """Elements that one request holds, kept until it is answered, because it may have to be sent again."""

    def __init__(self, place: int):
        self.place, self.size = place, 0
        self.texts: List[bytes] = []

    def add(self, text: bytes) -> None:
        self.texts.append(text)
        self.size += len(text) + 1

    def singles(self) -> List["_Batch"]:
        result = []
        for at, text in enumerate(self.texts):
            result.append(_Batch(self.place + at))
            result[-1].add(text)
        return result


def steps(
    feed: str, options: Dict[str, Any], each: Optional[Each], batch: int, window: Optional[int], max_frame: int
) -> Generator[Command, Any, int]:
    """Yields commands, takes replies, and returns the number of accepted elements.

    A refused batch changed nothing. Its elements are sent again one by one to find the offending one, after the answers to
    later batches; afterwards these are sent again, so that of two elements with one identity the later one is kept.
    """
    if batch < 1 or (window is not None and window < 1):
        raise ValueError(f"{'batch' if batch < 1 else 'window'} must be at least 1")
    # A request with a condition means one thing the first time and another the second: it is not sent twice.
    most = batch if set(options) <= {"animation", "result"} else 1
    # The last element may have half of a frame.
    most_bytes = min(BATCH_BYTES, max_frame // 4)
    window = window or (8 if most > 1 else 256)
    ready: Deque[_Batch] = collections.deque()
    flying: Deque[_Batch] = collections.deque()
    again: Optional[List[_Batch]] = None
    accepted, place, first = 0, 0, None
    failure: Optional[Exception] = None
    more, full = True, False

    def report(one: _Batch, result: Optional[Dict[str, Any]], refused: Optional[Refused]) -> None:
        if each:
            for at in range(len(one.texts)):
                each(one.place + at, result, refused)

    while True:
        while more and not ready and again is None and not full and (each or not first):
            filling = _Batch(place)
            while len(filling.texts) < most and filling.size < most_bytes:
                element = yield NEXT
                if element is END:
                    more = False
                    break
                if isinstance(element, Failed):
                    failure, more = element.error, False
                    break
                try:
                    filling.add(encode(element, f"elements[{place}]"))
                except (TypeError, ValueError) as error:
                    failure, more = error, False
                    break
                place += 1
            if filling.texts:
                ready.append(filling)
        if ready and again is None and not full:
            one = ready.popleft()
            flying.append(one)
            full = len(flying) >= window
            many = len(one.texts) > 1
            content = b"[" + b",".join(one.texts) + b"]" if many else one.texts[0]
            yield {"feed": feed, "elements" if many else "element": content, **options}
        elif flying:
            reply, one = (yield ANSWER), flying.popleft()
            # A full window is emptied by half, so that neither side wakes up for each request.
            full = full and len(flying) > window // 2
            if again is not None:
                again.append(one)
            elif not isinstance(reply, Refused):
                accepted += len(one.texts)
                report(one, reply, None)
            elif len(one.texts) > 1:
                again = one.singles()
            else:
                first = first or reply
                report(one, None, reply)
            if again is not None and not flying:
                ready.extendleft(reversed(again))
                again = None
        elif not more or (first and not each):
            break
    if failure:
        raise failure
    if first and not each:
        raise first
    return accepted
