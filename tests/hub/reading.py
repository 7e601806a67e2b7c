"""Endpoints that read: what is in a repository, and the files themselves."""

import re
from typing import Any
from urllib.parse import quote

import yaml

from tests.hub.messages import HubError, Response, json_response
from tests.hub.repository import Commit, Kind
from tests.hub.routes import Call, commit_at, route

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_HEAD = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)


def read_metadata(readme: str) -> dict[str, Any]:
    """What the yaml at the head of README.md says; nothing where there is none.

    Raises yaml.YAMLError where it cannot be read.
    """
    head = _HEAD.match(readme)
    return (yaml.safe_load(head[1]) or {}) if head else {}


@route("GET", "/api/{kind}/{name}", "/api/{kind}/{name}/revision/{revision}")
def info(call: Call, kind: Kind, name: str, revision: str = "main") -> Response:
    """`repo_info`: which commit a revision is, its files and its card; data sets are found by it.

    `expand` asks for some properties alone.
    """
    repository = call.visible(kind, name)
    commit = commit_at(repository, revision)
    readme = commit.files.get("README.md")
    found = {
        "_id": commit.oid[:24], "id": repository.name, "author": repository.name.split("/")[0], "sha": commit.oid,
        "lastModified": commit.timestamp, "createdAt": commit.timestamp, "private": repository.private,
        "gated": "auto" if repository.gated else False, "disabled": False, "downloads": 0, "likes": 0, "tags": [],
        "cardData": read_metadata(readme.content.decode()) if readme else {},
        "siblings": [{"rfilename": path} for path in sorted(commit.files)],
    }  # fmt: skip
    wanted = call.request.parameters.get("expand")
    return json_response({key: value for key, value in found.items() if not wanted or key in ("_id", "id", *wanted)})


@route("GET", "/api/{kind}/{name}/tree/{revision}", "/api/{kind}/{name}/tree/{revision}/{path}")
def tree(call: Call, kind: Kind, name: str, revision: str, path: str = "") -> Response:
    """The files and folders in a folder, at any depth if `recursive`.

    `snapshot_download` knows by it what to fetch, and `datasets` finds data files.
    """
    commit = commit_at(call.visible(kind, name), revision)
    if path and path not in commit.folders:
        raise HubError(404, f"{path} does not exist on {revision!r}", "EntryNotFound", X_Repo_Commit=commit.oid)
    start = f"{path}/" if path else ""
    inside = [entry for entry in sorted({*commit.files, *commit.folders}) if entry.startswith(start)]
    if not call.request.asks("recursive"):
        inside = [entry for entry in inside if "/" not in entry.removeprefix(start)]
    return json_response([_entry(commit, entry, call.request.asks("expand")) for entry in inside])


@route("POST", "/api/{kind}/{name}/paths-info/{revision}")
def paths_info(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`get_paths_info`, `file_exists` of the file system `hf://`: what there is of the paths in the form."""
    commit, form = commit_at(call.visible(kind, name), revision), call.request.form()
    expand = form.get("expand", [""])[-1].lower() == "true"
    there = [path for path in form.get("paths", []) if path in commit.files or path in commit.folders]
    return json_response([_entry(commit, path, expand) for path in there])


@route("GET", "/{name}/resolve/{revision}/{path}")
def model_file(call: Call, name: str, revision: str, path: str) -> Response:
    """A file of a model; see `_resolve`."""
    return _resolve(call, "model", name, revision, path)


@route("GET", "/datasets/{name}/resolve/{revision}/{path}")
def dataset_file(call: Call, name: str, revision: str, path: str) -> Response:
    """A file of a data set; see `_resolve`."""
    return _resolve(call, "dataset", name, revision, path)


@route("GET", "/storage/{kind}/{name}/{oid}/{path}")
def stored_file(call: Call, kind: Kind, name: str, oid: str, path: str) -> Response:
    """The content of a large file, from the storage that `_resolve` points to.

    The real address is signed and needs no token. huggingface_hub must not send it one: it is another host.
    """
    if call.request.token is not None:
        raise HubError(400, "a token was sent to the storage")
    content = call.repositories[kind, name].objects.get(oid)
    if content is None:
        raise HubError(404, f"{path}: no such object")
    return _content(call, content, oid)


def _resolve(call: Call, kind: Kind, name: str, revision: str, path: str) -> Response:
    """`hf_hub_download`: HEAD for commit, entity tag and size, by which the cache is laid out, then GET.

    A large file is answered by the way to the storage: 302, with tag and size in headers of their own.
    """
    repository = call.visible(kind, name)
    call.require_past_gate(repository)
    commit = commit_at(repository, revision)
    if path not in commit.files:
        # The commit goes with it: the client remembers in its cache that this one has no such file.
        raise HubError(404, "Entry not found", "EntryNotFound", X_Repo_Commit=commit.oid)
    file = commit.files[path]
    if not file.large:
        return _content(call, file.content, file.blob, {"X-Repo-Commit": commit.oid})
    place = f"{call.storage}/storage/{kind}s/{name}/{file.sha256}/{quote(path)}"
    linked = {"X-Linked-Etag": f'"{file.sha256}"', "X-Linked-Size": str(len(file.content))}
    return Response(302, headers={"Location": place, "X-Repo-Commit": commit.oid, **linked})


def _content(call: Call, content: bytes, tag: str, headers: dict[str, str] | None = None) -> Response:
    """Bytes with their entity tag, or the part of them that is requested: a cut transfer goes on where it ended."""
    headers = {"ETag": f'"{tag}"', "Accept-Ranges": "bytes", **(headers or {})}
    wanted = _RANGE.fullmatch(call.request.headers.get("Range", ""))
    if wanted is None or call.request.method == "HEAD":
        return Response(200, content, headers)
    first, last = wanted.groups()
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last) + 1 if first and last else len(content), len(content))
    if start >= end:
        raise HubError(416, "Requested Range Not Satisfiable", Content_Range=f"bytes */{len(content)}")
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
    return Response(206, content[start:end], headers)


def _entry(commit: Commit, path: str, expand: bool) -> dict[str, Any]:
    """A file or folder as listings have it; `expand` adds the last commit."""
    file = commit.files.get(path)
    if file is None:
        found: dict[str, Any] = {"type": "directory", "path": path, "oid": commit.tree(path), "size": 0}
    else:
        found = {"type": "file", "path": path, "oid": file.blob, "size": len(file.content)}
        if file.large:
            found["lfs"] = {"oid": file.sha256, "size": len(file.content), "pointerSize": len(file.pointer)}
    if expand:
        found["lastCommit"] = {"id": commit.oid, "title": commit.title, "date": commit.timestamp}
    return found
