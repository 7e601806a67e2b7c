"""Endpoints that read: what is in a repository, and the files themselves."""

import re
from typing import Any
from urllib.parse import parse_qs, quote

import yaml
from aiohttp import web

from tests.hub.repository import Commit
from tests.hub.routes import NAME, REPOSITORY, Call, HubError, commit_at, json_response, route

_HEAD = re.compile(r"\A---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)


def read_metadata(readme: str) -> dict[str, Any]:
    """The metadata in the yaml at the head of README.md; empty if there is none.

    Raises yaml.YAMLError where it cannot be read.
    """
    head = _HEAD.match(readme)
    return (yaml.safe_load(head[1]) or {}) if head else {}


@route("get", f"/api/{REPOSITORY}", f"/api/{REPOSITORY}/revision/{{revision}}")
def info(call: Call, revision: str = "main") -> web.Response:
    """`repo_info`: which commit a revision is, its files and its card; data sets are found by it.

    `expand` asks for some properties alone.
    """
    repository, commit = call.visible(), call.commit(revision)
    readme = commit.files.get("README.md")
    found = {
        "_id": commit.oid[:24], "id": repository.name, "author": repository.name.split("/")[0], "sha": commit.oid,
        "lastModified": commit.timestamp, "createdAt": commit.timestamp, "private": repository.private,
        "gated": "auto" if repository.gated else False, "disabled": False, "downloads": 0, "likes": 0, "tags": [],
        "cardData": read_metadata(readme.content.decode()) if readme else {},
        "siblings": [{"rfilename": path} for path in sorted(commit.files)],
    }  # fmt: skip
    wanted = call.request.query.getall("expand", [])
    return json_response({key: value for key, value in found.items() if not wanted or key in ("_id", "id", *wanted)})


@route("get", f"/api/{REPOSITORY}/tree/{{revision}}", f"/api/{REPOSITORY}/tree/{{revision}}/{{path:.+}}")
def tree(call: Call, revision: str, path: str = "") -> web.Response:
    """The files and folders in a folder, at any depth if `recursive`.

    `snapshot_download` knows by it what to fetch, and `datasets` finds data files.
    """
    commit = call.commit(revision)
    if path and path not in commit.folders:
        raise HubError(404, f"{path} does not exist on {revision!r}", "EntryNotFound", X_Repo_Commit=commit.oid)
    start = f"{path}/" if path else ""
    inside = [entry for entry in sorted({*commit.files, *commit.folders}) if entry.startswith(start)]
    if call.request.query.get("recursive", "").lower() not in ("1", "true"):
        inside = [entry for entry in inside if "/" not in entry.removeprefix(start)]
    return json_response([_entry(commit, entry) for entry in inside])


@route("post", f"/api/{REPOSITORY}/paths-info/{{revision}}")
def paths_info(call: Call, revision: str) -> web.Response:
    """`get_paths_info`, `file_exists` of the file system `hf://`: what there is of the paths in the form."""
    commit, asked = call.commit(revision), parse_qs(call.body.decode()).get("paths", [])
    return json_response([_entry(commit, path) for path in asked if path in commit.files or path in commit.folders])


@route("get", f"/storage/{REPOSITORY}/{{oid}}/{{path:.+}}")
def stored_file(call: Call, oid: str, path: str) -> web.Response:
    """The content of a large file, from the storage that `file` points to.

    The real address is signed and needs no token, and huggingface_hub must not send one, as it is another host.
    """
    if call.token is not None:
        raise HubError(400, "a token was sent to the storage")
    return _content(call, call.repositories[call.named].objects[oid], {"ETag": f'"{oid}"'})


@route(
    "get", f"/{NAME}/resolve/{{revision}}/{{path:.+}}", f"/{{kind:datasets}}/{NAME}/resolve/{{revision}}/{{path:.+}}"
)
def file(call: Call, revision: str, path: str) -> web.Response:
    """`hf_hub_download`: HEAD for commit, entity tag and size, by which the cache is laid out, then GET.

    A large file is answered by the way to the storage: 302, with tag and size in headers of their own.
    """
    repository = call.visible()
    call.require_past_gate(repository)
    commit = commit_at(repository, revision)
    if path not in commit.files:
        # The commit goes with it: the client remembers in its cache that this one has no such file.
        raise HubError(404, "Entry not found", "EntryNotFound", X_Repo_Commit=commit.oid)
    file, tag = commit.files[path], f'"{commit.files[path].tag}"'
    if not file.large:
        return _content(call, file.content, {"X-Repo-Commit": commit.oid, "ETag": tag})
    place = f"{call.storage}/storage/{repository.kind}s/{repository.name}/{file.sha256}/{quote(path)}"
    linked = {"X-Linked-Etag": tag, "X-Linked-Size": str(len(file.content))}
    return web.Response(status=302, headers={"Location": place, "X-Repo-Commit": commit.oid, **linked})


def _content(call: Call, content: bytes, headers: dict[str, str]) -> web.Response:
    """Bytes with their entity tag, or the part of them that is requested: a cut transfer continues where it stopped."""
    headers = {"Accept-Ranges": "bytes", **headers}
    if "Range" not in call.request.headers or call.request.method == "HEAD":
        return web.Response(body=content, headers=headers)
    start, end, _ = call.request.http_range.indices(len(content))
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
    return web.Response(status=206, body=content[start:end], headers=headers)


def _entry(commit: Commit, path: str) -> dict[str, Any]:
    """A file or folder as listings have it."""
    if path not in commit.files:
        return {"type": "directory", "path": path, "oid": commit.oid, "size": 0}
    file, size = commit.files[path], len(commit.files[path].content)
    large = {"lfs": {"oid": file.sha256, "size": size, "pointerSize": len(file.pointer)}} if file.large else {}
    return {"type": "file", "path": path, "oid": file.blob, "size": size, **large}
