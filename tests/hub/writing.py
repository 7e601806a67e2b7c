"""Endpoints that change something: repositories, branches, uploads and commits."""

import base64
import json
from typing import Any

import yaml

from tests.hub.messages import HubError, Response, json_response
from tests.hub.reading import read_metadata
from tests.hub.repository import File, Kind, Repository, is_large
from tests.hub.routes import Call, commit_at, route


@route("POST", "/api/repos/create")
def create(call: Call) -> Response:
    """`create_repo`. One that exists is a conflict, which `exist_ok` makes light of: the answer has the address."""
    body, owner = call.request.json(), call.account.user if call.account else ""
    kind, name = body.get("type") or "model", f"{body.get('organization') or owner}/{body['name']}"
    call.require_writer(name)
    made = {"name": name, "id": name, "url": f"{call.endpoint}/{'datasets/' if kind == 'dataset' else ''}{name}"}
    if (kind, name) in call.repositories:
        return json_response({"error": f"You already created this {kind} repo: {name}", **made}, 409)
    call.repositories[kind, name] = Repository(kind, name, body.get("visibility") == "private")
    return json_response(made)


@route("POST", "/api/{kind}/{name}/branch/{revision}")
def branch(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`create_branch`, from main or from a starting point."""
    repository = call.writable(kind, name)
    start = commit_at(repository, call.request.json().get("startingPoint", "main"))
    if revision in repository.branches:
        raise HubError(409, "Reference already exists")
    repository.branches[revision] = start.oid
    return json_response({})


@route("POST", "/api/validate-yaml")
def validate_card(call: Call) -> Response:
    """Requested before README.md is committed: whether the yaml at its head can be read."""
    try:
        read_metadata(call.request.json()["content"])
    except yaml.YAMLError as error:
        return json_response({"error": "Invalid yaml", "errors": [{"message": str(error)}], "warnings": []}, 400)
    return json_response({"errors": [], "warnings": []})


@route("POST", "/api/{kind}/{name}/preupload/{revision}")
def preupload(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """How each file is to be sent, and the hash of the one that is there: the client leaves out what is the same."""
    head = commit_at(call.writable(kind, name), revision)
    answers = []
    for file in call.request.json()["files"]:
        path, found = file["path"], head.files.get(file["path"])
        mode = "lfs" if is_large(path, file["size"]) else "regular"
        oid = {"oid": found.uploaded_as} if found else {}
        answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, **oid})
    return json_response({"files": answers, "commitOid": head.oid})


@route("POST", "/{name}.git/info/lfs/objects/batch")
def batch(call: Call, name: str) -> Response:
    """The batch request of Git LFS, where to send large files of a model: one that is there already needs no action."""
    objects = call.writable("model", name).objects
    answers = []
    for file in call.request.json()["objects"]:
        answer: dict[str, Any] = {"oid": file["oid"], "size": file["size"]}
        if file["oid"] not in objects:
            answer["actions"] = {
                "upload": {"href": f"{call.storage}/storage/models/{name}/{file['oid']}"},
                "verify": {"href": f"{call.endpoint}/lfs/models/{name}/verify"},
            }
        answers.append(answer)
    return json_response({"transfer": "basic", "objects": answers})


@route("PUT", "/storage/{kind}/{name}/{oid}")
def upload(call: Call, kind: Kind, name: str, oid: str) -> Response:
    """The bytes of a large file, sent to the storage at a signed address."""
    call.repositories[kind, name].objects[oid] = call.request.body
    return Response()


@route("POST", "/lfs/{kind}/{name}/verify")
def verify(call: Call, kind: Kind, name: str) -> Response:
    """The last step of an upload: whether what came is what was announced."""
    objects = call.writable(kind, name).objects
    announced = call.request.json()
    content = objects.get(announced["oid"], b"")
    if len(content) != announced["size"] or File(content, large=True).sha256 != announced["oid"]:
        objects.pop(announced["oid"], None)
        raise HubError(422, "the object that was uploaded is not the one announced")
    return json_response({})


@route("POST", "/api/{kind}/{name}/commit/{revision}")
def commit(call: Call, kind: Kind, name: str, revision: str) -> Response:
    """`create_commit`: a header and then one operation a line, in json.

    The server makes a commit even where nothing changes. That nothing is sent then is the client's doing.
    """
    repository = call.writable(kind, name)
    if revision not in repository.branches:
        raise HubError(404, f"Invalid rev id: {revision}", "RevisionNotFound")
    header, *operations = [json.loads(line) for line in call.request.body.splitlines() if line.strip()]
    head, summary = repository.at(revision), header["value"]
    if summary.get("parentCommit", head.oid) != head.oid:
        raise HubError(412, "A commit has happened since. Please refresh and try again.")
    files = dict(head.files)
    for operation in operations:
        _apply(repository, files, operation["key"], operation["value"])
    made = repository.commit(revision, summary["summary"], summary.get("description", ""), files)
    address = f"{call.endpoint}/{name}/commit/{made.oid}"
    return json_response({"success": True, "commitOid": made.oid, "commitUrl": address, "hookOutput": ""})


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
    else:
        raise HubError(501, f"operation {operation}")
