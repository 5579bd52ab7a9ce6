"""The repository under test: its commits by name, the merge base, and checkouts that last as long as a block."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.words import counted

#: hexadecimal digits of a commit that are shown
SHORT = 12


@dataclass(frozen=True)
class Commits:
    """The merge base and the head, as whole hashes."""

    base: str
    head: str


class Repository:
    """A git repository, by any folder in it. Raises UserError if it is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise UserError(f"--repository {folder}: no such folder; name one with a git repository")
        if shutil.which("git") is None:
            raise UserError("--repository: found no git on PATH; install git")
        done = self._run("rev-parse", "--show-toplevel")
        if done.returncode:  # none, a bare one, or another user's, of which git tells more in further lines
            why = done.stderr.partition("\n")[0].removeprefix("fatal: ")
            todo = "clone it, or name another folder"
            raise UserError(f"--repository {folder}: git finds no checkout there: {why}; {todo}")
        self.top = Path(done.stdout.rstrip("\n"))

    def commits(self, base: str, head: str) -> Commits:
        """The merge base of both, and the head. Raises UserError."""
        of_base, of_head = self._commit("--base", base), self._commit("--head", head)
        merge_base = self._git("merge-base", of_base, of_head)
        if merge_base is None:
            raise UserError(f"--base {base}: has no commit in common with {head}{self._shallow()}")
        return Commits(merge_base, of_head)

    def refuse_changes(self, commits: Commits) -> None:
        """Raises UserError for changes that are not committed, if the head is what is checked out."""
        changed = [name for name in (self._git("diff", "--name-only", "-z", "HEAD") or "").split("\0") if name]
        if changed and self._git("rev-parse", "HEAD") == commits.head:
            raise UserError(
                f"--head: found {counted(len(changed), 'changed file')} not committed, such as {changed[0]}; "
                "the gate measures commits: commit or stash them"
            )

    def text(self, commit: str, file: Path) -> str | None:
        """The text of a file of a commit, by its path within the repository; None without such a file."""
        return self._git("show", f"{commit}:{file.as_posix()}")

    def inside(self, file: Path) -> Path | None:
        """The path of a file within the repository; None if it lies elsewhere."""
        whole = Path(os.path.realpath(file))
        top = Path(os.path.realpath(self.top))
        return whole.relative_to(top) if whole.is_relative_to(top) else None

    @contextmanager
    def checkouts(self, commits: Commits, place: Path) -> Iterator[tuple[Path, Path]]:
        """Yields a checkout of the base and one of the head below `place`; both are removed at the end.

        What a gate that was killed has left there is removed at the begin.
        """
        place = place.resolve()  # as git keeps it
        folders = place / "base", place / "head"
        self._remove(folders)
        try:
            for folder, commit in zip(folders, (commits.base, commits.head), strict=True):
                done = self._run("worktree", "add", "--detach", "--force", str(folder), commit)
                if done.returncode:
                    raise UserError(f"{folder}: git cannot check {commit[:SHORT]} out: {_last_line(done.stderr)}")
            yield folders
        finally:
            self._remove(folders)
            if place.is_dir() and not any(place.iterdir()):
                place.rmdir()

    def _remove(self, folders: tuple[Path, ...]) -> None:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
            # not prune, which also forgets the user's own that lie on a disk that is away
            self._run("worktree", "remove", "--force", "--force", str(folder))

    def _commit(self, option: str, name: str) -> str:
        commit = self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if commit is None:
            hint = self._shallow() or "; fetch it first"
            raise UserError(f"{option}: found {name!r}, allowed: a branch, tag or commit of {self.top}{hint}")
        return commit

    def _shallow(self) -> str:
        if self._git("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return ", as this clone is shallow; fetch the whole history (fetch-depth: 0, or git fetch --unshallow)"

    def _git(self, *arguments: str) -> str | None:
        done = self._run(*arguments)
        return done.stdout.rstrip() if done.returncode == 0 else None

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # a hook of git names a repository by variables
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=environment, stdin=subprocess.DEVNULL
        )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"
