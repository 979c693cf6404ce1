"""The messages of a stream as each server keeps them, read from the files of the servers, and where they differ.

A file `N.blk` is a sequence of records: the bytes of the record in 4 bytes, of which the highest bit tells that there are headers; the
place in 8, of which the highest bit marks a removed message; the time in 8; the length of the subject in 2; the subject; the length of
the headers in 4 and the headers, if there are some; the message; and a checksum in 8. Numbers are little-endian.
"""

import os
import struct
import zlib

HEAD = struct.Struct("<IQqH")
HAS_HEADERS, IS_REMOVED = 1 << 31, 1 << 63


def copy(store, stream):
    """The messages in the store of a server: a dictionary from places to checksums of subject, headers and message."""
    directory = os.path.join(store, "jetstream/$G/streams", stream, "msgs")
    found = {}
    try:
        names = [name for name in os.listdir(directory) if name.endswith(".blk")]
    except FileNotFoundError:
        return found
    for name in sorted(names, key=lambda name: int(name[:-4])):
        try:
            with open(os.path.join(directory, name), "rb") as file:
                read(file.read(), found)
        except FileNotFoundError:
            pass
    return found


def read(data, found):
    offset = 0
    while offset + HEAD.size <= len(data):
        length, place, _, _ = HEAD.unpack_from(data, offset)
        length &= ~HAS_HEADERS
        if length < HEAD.size + 8 or offset + length > len(data):
            return
        if place and not place & IS_REMOVED:
            found[place] = zlib.crc32(data[offset + HEAD.size:offset + length - 8])
        offset += length


def difference(copies):
    """The first place at which copies have different messages; None if they have the same ones where they have one."""
    places = sorted(set().union(*copies))
    return next((place for place in places if len({c[place] for c in copies if place in c}) > 1), None)


def summary(copies):
    return ", ".join(f"{min(c)} to {max(c)} ({len(c)})" if c else "none" for c in copies)
