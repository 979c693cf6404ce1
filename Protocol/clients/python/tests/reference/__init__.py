"""A small model of feedd's contract, written from the specification alone.

It is slow and plain on purpose: every vector under Protocol/vectors is recomputed with it, so that the vectors, the
daemon and the clients are held against something that shares no code with them.
"""
