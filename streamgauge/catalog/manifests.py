"""Finished artifacts: what a manifest says, and that manifest and files are still what was written.

A manifest carries a checksum of itself and the SHA-256 of each file beside it. A file's size and time miss a flipped
bit, and a Parquet footer has no checksum, so whoever takes a file from an artifact hashes it once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from streamgauge.base.errors import BUILT_AGAIN, Damaged
from streamgauge.base.jsonl import read_record
from streamgauge.base.places import Remote, reading

if TYPE_CHECKING:  # the driver reads manifests and starts often, and pydantic takes long to import
    from streamgauge.records.manifests import Manifest

M = TypeVar("M", bound="Manifest")

MANIFEST = "manifest.json"
#: in a manifest: the SHA-256 of each file in the artifact's folder, by name
DIGESTS = "digests"


@dataclass(frozen=True)
class Artifact:
    """A finished artifact."""

    kind: str
    key: str
    path: Path
    manifest: dict[str, Any]
    reused: bool = True
    #: names of files that were hashed
    _intact: set[str] = field(default_factory=set, repr=False, compare=False)

    def read(self, kind: type[M]) -> M:
        """Reads its manifest as a record. Raises Damaged."""
        return kind.of(self.manifest, self.path / MANIFEST, BUILT_AGAIN)

    def files(self) -> list[Path]:
        """Paths of its data files, in the manifest's order. Raises Damaged."""
        return [self.file(name) for name in self.manifest.get("files", [])]

    def file(self, name: str) -> Path:
        """Path of one of its files, which is hashed if this object has not done so. Raises Damaged.

        A remote store keeps checksums of its own.
        """
        path, wanted = self.path / name, self.manifest.get(DIGESTS, {}).get(name)
        if wanted is not None and name not in self._intact and not isinstance(path, Remote):
            try:
                actual = sha256_of(path)
            except OSError as problem:
                raise Damaged(path, f"damaged artifact, {problem.strerror}", BUILT_AGAIN) from None
            if actual != wanted:
                raise Damaged(path, "damaged artifact, its sha256 is not that of its manifest", BUILT_AGAIN)
            self._intact.add(name)
        return path

    def require_intact(self) -> None:
        """Raises Damaged if one of its files is not what was written."""
        for name in self.manifest.get(DIGESTS, {}):
            self.file(name)


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file in a folder, by name."""
    return {file.name: sha256_of(file) for file in sorted(folder.iterdir()) if file.is_file()}


def read_manifest(file: Path) -> dict[str, Any]:
    """Reads a manifest, of ours or of a stream that others have made. Raises Damaged if something has changed ours."""
    manifest = read_record(file, BUILT_AGAIN)
    if "files" not in manifest and not {"kind", "key"} <= manifest.keys():
        raise Damaged(file, "damaged, not an artifact's manifest", BUILT_AGAIN)
    return manifest


def sha256_of(file: str | Path) -> str:
    with reading(file) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
