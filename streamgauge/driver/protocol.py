"""Numbers of the wire that both sides know (docs/protocol.md)."""

VERSION = 1
MAX_LINE = 16 * 2**20  # bytes of one request
