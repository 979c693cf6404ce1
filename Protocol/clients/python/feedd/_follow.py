"""What both kinds of `follow` share: the pauses between attempts, and the copies that outlive a connection."""

from __future__ import annotations

import dataclasses
import errno
import random
import time
from typing import Any, Dict, List, Optional, Union

from ._errors import Gap, Malformed, Refused
from ._mirror import Mirror
from ._stream import Notification, malformed

#: The code of a `watch` that a member of a group refuses until it has reached `since`.
BEHIND = -32008


@dataclasses.dataclass(frozen=True)
class Update:
    """One step of a followed feed.

    `mirror` is the copy after it; the next step changes the same object. `kind` is `snapshot` when the copy was made anew, `delta`
    when a change was applied, and `ended` when the feed was removed. `delta` has the members of the change, and is None otherwise.
    """

    mirror: Mirror
    kind: str
    delta: Optional[Dict[str, Any]] = None


class Copies:
    """The copies of several feeds across connections. Feeds that were removed are dropped."""

    def __init__(self, feeds: "tuple[str, ...]", options: Dict[str, Any]):
        """Raises TypeError for an option of `watch` with which there is no copy."""
        for name in ("since", "initial", "elements"):
            if options.get(name, True) is not True:
                raise TypeError(f"follow keeps a copy and does not take {name}={options[name]!r}: use watch")
        self._mirrors: Dict[str, Optional[Mirror]] = dict.fromkeys(feeds)

    @property
    def feeds(self) -> List[str]:
        """The feeds that exist, as far as is known."""
        return list(self._mirrors)

    def since(self, feed: str) -> Dict[str, Any]:
        """Returns the option with which to watch a feed again: none for the first time."""
        mirror = self._mirrors.get(feed)
        return {"since": mirror.since} if mirror and mirror.since else {}

    def watched(self, feed: str, result: Dict[str, Any]) -> None:
        """Records the result of a `watch`. Raises Malformed if it continues from nothing."""
        mirror = self._mirrors.get(feed)
        try:
            if mirror:
                mirror.restart(result)
            else:
                self._mirrors[feed] = Mirror(result)
        except Gap as gap:
            raise malformed(f"the result of a watch: {gap}") from gap

    def forget(self, feed: str, gap: Gap) -> None:
        """Gives up a copy that missed something, so that the next watch begins with a snapshot.

        - Raises: Malformed if this was the snapshot, because another one would be no better.
        """
        mirror = self._mirrors[feed]
        if mirror and not mirror.whole:
            raise malformed(str(gap)) from gap
        self._mirrors[feed] = None

    def apply(self, message: Notification) -> Optional[Update]:
        """Applies a notification. Returns the step that it completed, if any. Raises Gap."""
        feed = message.params.get("feed")
        mirror = self._mirrors.get(feed) if isinstance(feed, str) else None
        if mirror is None:
            return None
        changed = mirror.apply(message)
        if not changed:
            return None
        delta = message.params if message.method == "delta" else None
        if message.params.get("ended"):
            del self._mirrors[mirror.feed]
            return Update(mirror, "ended", delta)
        return Update(mirror, message.method, delta)


class Pauses:
    """The pauses between attempts to connect: from 0.05 s, doubled up to 5 s, each made shorter by up to a half at random."""

    def __init__(self, limit: Optional[float]):
        self._limit = limit
        self.connected()

    def connected(self) -> None:
        """Begins anew with short pauses."""
        self._pause = 0.05
        self._since: Optional[float] = None

    def next(self, error: Union[OSError, Refused]) -> float:
        """Returns the seconds until the next attempt. Raises the error if no attempt is left, or none would help."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if isinstance(error, Refused):
            is_final = error.code != BEHIND
        else:
            # A user who may not open the socket, or whose path names none, would wait in vain, and not know why.
            is_final = isinstance(error, (Malformed, PermissionError)) or error.errno == errno.ENAMETOOLONG
        if is_final or (self._limit is not None and now - self._since >= self._limit):
            raise error
        pause, self._pause = self._pause, min(2 * self._pause, 5.0)
        return pause * random.uniform(0.5, 1.0)


__all__ = ["Copies", "Gap", "Pauses", "Update"]
