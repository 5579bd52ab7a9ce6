"""Numbers of the wire that both sides know (docs/protocol.md)."""

VERSION = 1
MAX_LINE = 4 * 2**20  # bytes of one request
MAX_ANSWER = 128 * 2**20  # bytes of the line that answers it
MAX_HELLO = 2**14  # bytes of the first request, which anybody may send
