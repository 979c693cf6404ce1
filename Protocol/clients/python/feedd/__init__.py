"""A client of feedd that needs only the standard library of Python 3.9 or later.

    import feedd
    with feedd.Connection() as connection:
        connection.push("inbox", [{"id": 1, "priority": 9}])
        for update in feedd.follow("inbox"):        # connects again and resumes when the daemon was restarted
            print(update.mirror.revision, update.mirror.values())

`feedd.aio` has the same names for asyncio.

Elements are JSON text. Elements from the daemon are `bytes`, exactly as another program pushed them; `loads` decodes them without
rounding a number. `bytes` given to a method are sent unchanged. Any other value is encoded as JSON.
"""

from ._connection import Connection, Watch, follow
from ._errors import Closed, Gap, Malformed, Refused
from ._follow import Update
from ._mirror import Counts, Mirror, Section
from ._stream import MAX_MESSAGE, MAX_QUEUED, Notification, socket_path
from ._text import loads

__all__ = [
    "MAX_MESSAGE",
    "MAX_QUEUED",
    "Closed",
    "Connection",
    "Counts",
    "Gap",
    "Malformed",
    "Mirror",
    "Notification",
    "Refused",
    "Section",
    "Update",
    "Watch",
    "follow",
    "loads",
    "socket_path",
]
