"""The time at which an element expires, worked out from the value at `retain.until`."""

import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal

_DATE_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def seconds(node):
    """Seconds since the beginning of 1970 as a Decimal; None for a value that is no time."""
    if node.kind == "number":
        return node.number
    found = _DATE_TIME.fullmatch(node.value) if node.kind == "string" and len(node.value) <= 128 else None
    if not found:
        return None
    *numbers, fraction, zone = found.groups()
    year, month, day, hour, minute, second = map(int, numbers)
    offset = 0
    if zone not in "Zz":
        if int(zone[1:3]) > 23 or int(zone[4:]) > 59:
            return None
        offset = (int(zone[1:3]) * 3600 + int(zone[4:]) * 60) * (-1 if zone[0] == "-" else 1)
    if second > 60:
        return None
    try:
        # A leap second counts as the next second.
        whole = datetime(year, month, day, hour, minute, tzinfo=timezone.utc) - _EPOCH
    except ValueError:
        return None
    return Decimal(whole // timedelta(seconds=1) + second - offset) + Decimal(fraction or 0)


def text(node):
    """Seconds in plain notation, of which nothing is 0 or more digits; None for a value that is no time."""
    value = seconds(node)
    if value is None:
        return None
    whole = f"{value:f}"
    return whole.rstrip("0").rstrip(".") if "." in whole else whole
