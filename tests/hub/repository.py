"""Repositories as git has them: files by hash, commits that name their parent, branches.

Every commit keeps its files, so an old revision always resolves to the same content.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

Kind = Literal["model", "dataset"]

LARGE = 10 * 2**20  # bytes from which a file of any name goes to the large-file storage
LARGE_SUFFIXES = (".arrow", ".bin", ".gz", ".npy", ".npz", ".onnx", ".parquet", ".pt", ".pth", ".safetensors", ".zip")
FIRST_DATE = datetime(2026, 1, 1, tzinfo=UTC)  # commits are a second apart, so that the same calls give the same hub
ATTRIBUTES = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LARGE_SUFFIXES).encode()


def is_large(path: str, size: int) -> bool:
    """Whether the hub keeps a file outside git, by Git LFS: decided by its name, or by its size."""
    return size > 0 and (path.endswith(LARGE_SUFFIXES) or size >= LARGE)


@dataclass(frozen=True)
class File:
    """The content of one file of one commit."""

    content: bytes
    large: bool  # kept by Git LFS

    @cached_property
    def sha256(self) -> str:
        """The name of a large file's content: its id in LFS and the entity tag of its download."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def pointer(self) -> bytes:
        """What git itself keeps of a large file (the Git LFS specification)."""
        text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.content)}\n"
        return text.encode()

    @cached_property
    def blob(self) -> str:
        """Git's hash of the content, or of the pointer that stands for it."""
        return _git_hash("blob", self.pointer if self.large else self.content)

    @property
    def tag(self) -> str:
        """The hash by which a client finds that a file has not changed, and so does not fetch or send it."""
        return self.sha256 if self.large else self.blob


@dataclass(frozen=True)
class Commit:
    """A state of the repository; `oid` is the hash of everything else, unless it was given."""

    oid: str
    parent: str | None
    date: datetime
    files: Mapping[str, File]

    @property
    def folders(self) -> set[str]:
        """Every folder that a file lies in, at any depth."""
        return {path[:at] for path in self.files for at, character in enumerate(path) if character == "/"}

    @property
    def timestamp(self) -> str:
        """The date in the one form that clients read."""
        return self.date.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@dataclass
class Repository:
    """A model or data set repository with its history."""

    kind: Kind
    name: str  # organisation/name
    private: bool = False
    gated: bool = False
    objects: dict[str, bytes] = field(default_factory=dict)  # large files that were uploaded, by SHA-256
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)  # name → commit

    def __post_init__(self) -> None:
        """The hub begins every repository with a commit that says which files are large."""
        self.commit("main", {".gitattributes": File(ATTRIBUTES, large=False)})

    def at(self, revision: str) -> Commit:
        """The commit that a branch or a full hash names.

        Raises KeyError if there is no such revision.
        """
        return self.commits[self.branches.get(revision.removeprefix("refs/heads/"), revision)]

    def history(self, revision: str) -> list[str]:
        """The commits that led to a revision, the last first."""
        oids = [self.at(revision).oid]
        while parent := self.commits[oids[-1]].parent:
            oids.append(parent)
        return oids

    def commit(self, branch: str, files: Mapping[str, File], oid: str | None = None) -> Commit:
        """Add a commit with exactly these files to a branch; the same files again make a commit too.

        `oid` is given where it is to be called as one of the real hub.
        """
        parent, date = self.branches.get(branch), FIRST_DATE + timedelta(seconds=len(self.commits))
        content = repr((parent, date, sorted((path, file.blob) for path, file in files.items())))
        oid = oid or _git_hash("commit", content.encode())
        self.commits[oid] = Commit(oid, parent, date, dict(files))
        self.branches[branch] = oid
        return self.commits[oid]


def _git_hash(kind: str, content: bytes) -> str:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
