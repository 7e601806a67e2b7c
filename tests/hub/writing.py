"""Endpoints that change something: repositories, uploads, commits, tags and branches."""

import base64
import json
from typing import Any

import yaml

from tests.hub.access import commit_at, not_authenticated, require_writer
from tests.hub.card import read_metadata
from tests.hub.messages import HubError, Response, json_response
from tests.hub.repository import Commit, File, Kind, Repository, is_large
from tests.hub.routes import Call, route


@route("POST", "/api/repos/create")
def create(call: Call) -> Response:
    """`create_repo`. One that exists is a conflict, which `exist_ok` makes light of: the answer has the address."""
    if call.account is None:
        raise not_authenticated()
    kind, name = _asked(call)
    require_writer(call.account, name)
    exists = (kind, name) in call.store.repositories
    if not exists:
        private = call.request.json().get("visibility") == "private"
        call.store.repositories[kind, name] = Repository(kind, name, private)
    repository = call.store.repositories[kind, name]
    made = {"name": name, "id": name, "url": f"{call.endpoint}/{repository.prefix}"}
    if exists:
        return json_response({"error": f"You already created this {kind} repo: {name}", **made}, 409)
    return json_response(made)


@route("DELETE", "/api/repos/delete")
def delete(call: Call) -> Response:
    """`delete_repo`."""
    kind, name = _asked(call)
    call.store.writable(call.account, kind, name)
    del call.store.repositories[kind, name]
    return json_response({})


@route("PUT", "/api/{kind}/{name}/settings")
def settings(call: Call, kind: Kind, name: str) -> Response:
    """`update_repo_settings`: private or not, gated or not."""
    repository = call.store.writable(call.account, kind, name)
    asked = call.request.json()
    repository.private = asked.get("visibility", "private" if repository.private else "public") == "private"
    repository.gated = bool(asked.get("gated", repository.gated))
    return json_response({"private": repository.private, "gated": repository.gated})


@route("POST", "/api/validate-yaml")
def validate_card(call: Call) -> Response:
    """Asked before README.md is committed: whether the yaml at its head can be read."""
    try:
        metadata = read_metadata(call.request.json()["content"])
    except yaml.YAMLError as error:
        return json_response({"error": "Invalid yaml", "errors": [{"message": str(error)}], "warnings": []}, 400)
    missing = [] if metadata else [{"message": "empty or missing yaml metadata in repo card"}]
    return json_response({"errors": [], "warnings": missing})


@route("POST", "/api/{kind}/{name}/preupload/{revision}")
def preupload(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """How each file is to be sent, and the hash of the one that is there: the client leaves out what is the same."""
    repository = call.store.writable(call.account, kind, name)
    there = commit_at(repository, revision).files
    answers = []
    for asked in call.request.json()["files"]:
        path, found = asked["path"], there.get(asked["path"])
        mode = "lfs" if is_large(path, asked["size"]) else "regular"
        oid = {"oid": found.uploaded_as} if found else {}
        answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **oid})
    return json_response({"files": answers, "commitOid": commit_at(repository, revision).oid})


@route("POST", "/{name}.git/info/lfs/objects/batch")
def model_batch(call: Call, name: str) -> Response:
    """Where to send large files of a model; see `_batch`."""
    return _batch(call, "model", name)


@route("POST", "/datasets/{name}.git/info/lfs/objects/batch")
def dataset_batch(call: Call, name: str) -> Response:
    """Where to send large files of a data set; see `_batch`."""
    return _batch(call, "dataset", name)


@route("PUT", "/storage/{kind}/{name}/{oid}")
def upload(call: Call, kind: Kind, name: str, oid: str) -> Response:
    """The bytes of a large file, sent to the storage at a signed address."""
    call.store.repositories[kind, name].objects[oid] = call.request.body
    return Response()


@route("POST", "/lfs/{kind}/{name}/verify")
def verify(call: Call, kind: Kind, name: str) -> Response:
    """The last step of an upload: whether what came is what was announced."""
    objects = call.store.writable(call.account, kind, name).objects
    asked = call.request.json()
    content = objects.get(asked["oid"], b"")
    if len(content) != asked["size"] or File(content, large=True).sha256 != asked["oid"]:
        objects.pop(asked["oid"], None)
        raise HubError(422, "the object that was uploaded is not the one announced")
    return json_response({})


@route("POST", "/api/{kind}/{name}/commit/{revision}")
def commit(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`create_commit`: a header and then one operation a line, in json.

    The server makes a commit even where nothing changes. That nothing is sent then is the client's doing.
    """
    repository = call.store.writable(call.account, kind, name)
    if call.request.asks("create_pr"):
        raise HubError(501, "the local hub has no pull requests")
    if revision not in repository.branches:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
    head = repository.at(revision)
    lines = [json.loads(line) for line in call.request.body.splitlines() if line.strip()]
    header = lines[0]["value"]
    if header.get("parentCommit", head.oid) != head.oid:
        raise HubError(412, "A commit has happened since. Please refresh and try again.")
    files = dict(head.files)
    for line in lines[1:]:
        _apply(repository, files, line["key"], line["value"])
    made = repository.commit(revision, header["summary"], header.get("description", ""), files)
    address = f"{call.endpoint}/{repository.prefix}/commit/{made.oid}"
    return json_response({"success": True, "commitOid": made.oid, "commitUrl": address, "hookOutput": ""})


@route("POST", "/api/{kind}/{name}/tag/{revision}")
def tag(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`create_tag`."""
    repository = call.store.writable(call.account, kind, name)
    return _refer(repository.tags, call.request.json()["tag"], commit_at(repository, revision))


@route("DELETE", "/api/{kind}/{name}/tag/{revision}")
def delete_tag(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`delete_tag`."""
    return _forget(call.store.writable(call.account, kind, name).tags, revision)


@route("POST", "/api/{kind}/{name}/branch/{revision}")
def branch(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`create_branch`, from main or from a starting point."""
    repository = call.store.writable(call.account, kind, name)
    start = commit_at(repository, call.request.json().get("startingPoint", "main"))
    return _refer(repository.branches, revision, start)


@route("DELETE", "/api/{kind}/{name}/branch/{revision}")
def delete_branch(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`delete_branch`."""
    return _forget(call.store.writable(call.account, kind, name).branches, revision)


def _asked(call: Call) -> tuple[Kind, str]:
    """The repository that the body names: of an organisation, or of the user."""
    asked = call.request.json()
    owner = asked.get("organization") or (call.account.user if call.account else "")
    return asked.get("type") or "model", f"{owner}/{asked['name']}"


def _batch(call: Call, kind: Kind, name: str) -> Response:
    """The batch request of Git LFS: an object that is there already needs no action."""
    objects = call.store.writable(call.account, kind, name).objects
    answers = []
    for asked in call.request.json()["objects"]:
        answer: dict[str, Any] = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] not in objects:
            answer["actions"] = {
                "upload": {"href": f"{call.storage}/storage/{kind}s/{name}/{asked['oid']}"},
                "verify": {"href": f"{call.endpoint}/lfs/{kind}s/{name}/verify"},
            }
        answers.append(answer)
    return json_response({"transfer": "basic", "objects": answers})


def _apply(repository: Repository, files: dict[str, File], operation: str, value: dict[str, Any]) -> None:
    """Do one operation of a commit on the files of its parent."""
    path = value["path"]
    if operation == "file":
        files[path] = File(base64.b64decode(value["content"]), large=False)
    elif operation == "lfsFile":
        if value["oid"] not in repository.objects:
            raise HubError(422, f"{path}: the large file was not uploaded")
        files[path] = File(repository.objects[value["oid"]], large=True)
    elif operation == "deletedFile":
        if files.pop(path, None) is None:
            raise HubError(404, f"A file with this name doesn't exist: {path}", "EntryNotFound")
    elif operation == "deletedFolder":
        for inside in [name for name in files if name.startswith(f"{path.rstrip('/')}/")]:
            del files[inside]
    else:
        raise HubError(501, f"operation {operation}")


def _refer(references: dict[str, str], name: str, commit: Commit) -> Response:
    if name in references:
        raise HubError(409, "Reference already exists")
    references[name] = commit.oid
    return json_response({})


def _forget(references: dict[str, str], name: str) -> Response:
    if references.pop(name, None) is None:
        raise HubError(404, f"Invalid rev id: {name}", "RevisionNotFound")
    return json_response({})
