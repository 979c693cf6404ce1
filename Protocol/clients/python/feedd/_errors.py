"""The errors of the client."""

from __future__ import annotations

from typing import Any, Dict, Optional


class Refused(Exception):
    """The error of one request, which changed nothing. `code`, `message` and `data` are those of the daemon."""

    code: int
    message: str
    data: Dict[str, Any]

    def __init__(self, error: Dict[str, Any]):
        super().__init__(f"{error['message']} ({error['code']})")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data", {})

    def __reduce__(self) -> Any:
        # Of other arguments than those of `__init__`, pickle would make no error, and the pool of a worker that raised it would hang.
        return type(self), ({"code": self.code, "message": self.message, "data": self.data},)


class Closed(ConnectionError):
    """The connection is closed. `reason` is that of the daemon's `bye`, or None."""

    reason: Optional[str]

    def __init__(self, message: str, reason: Optional[str] = None):
        super().__init__(message)
        self.reason = reason


class Malformed(Closed):
    """The daemon sent what violates the protocol, or more than this client keeps. The connection is closed."""


class Gap(Exception):
    """A message does not follow from the messages before it, or is malformed. The copy is wrong; watch again without `since`."""
