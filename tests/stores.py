"""An S3-compatible store of a test's own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pyarrow.fs import S3FileSystem

from streamgauge.base import places


@contextmanager
def object_store(secret: str = "secret") -> Iterator[tuple[str, dict[str, str]]]:
    """s3://bucket/prefix, and the environment, set here too, that says where that is.

    All servers of a process keep one and the same set of buckets: each has a new one.
    """
    from moto.server import ThreadedMotoServer  # slow to import: not while tests are collected

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
        places._store.cache_clear()
        bucket = f"bench-{uuid.uuid4().hex[:8]}"
        S3FileSystem(endpoint_override=variables["AWS_ENDPOINT_URL"], allow_bucket_creation=True).create_dir(bucket)
        try:
            yield f"s3://{bucket}/nightly", variables
        finally:
            places._store.cache_clear()
            server.stop()
