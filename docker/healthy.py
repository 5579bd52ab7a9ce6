"""Exit code 0 when something answers at the URL, for images without curl: healthy.py http://host:port/path."""

import socket
import sys
import urllib.request
from urllib.parse import urlsplit

url = urlsplit(sys.argv[1])
if url.scheme == "tcp":
    socket.create_connection((url.hostname, url.port), timeout=5).close()
else:
    urllib.request.urlopen(sys.argv[1], timeout=5).close()
