"""Endpoints that change something: repositories, branches, uploads and commits.

A client's mistake, such as uploading bytes other than it announced, is a defect: the hub notes it as unserved.
"""

import base64
import json
from typing import Any

from aiohttp import web

from tests.hub.reading import read_metadata
from tests.hub.repository import File, Repository, is_large
from tests.hub.routes import NAME, REPOSITORY, Call, HubError, commit_at, json_response, route


@route("post", "/api/repos/create")
def create(call: Call) -> web.Response:
    """`create_repo`. An existing one is a conflict, which `exist_ok` ignores: the answer has the address."""
    body = call.json()
    kind, name = body.get("type") or "model", f"{body.get('organization') or call.user}/{body['name']}"
    call.require_writer(name)
    made = {"name": name, "id": name, "url": f"{call.endpoint}/{'datasets/' if kind == 'dataset' else ''}{name}"}
    if (kind, name) in call.repositories:
        return json_response({"error": f"You already created this {kind} repo: {name}", **made}, status=409)
    call.repositories[kind, name] = Repository(kind, name, body.get("visibility") == "private")
    return json_response(made)


@route("post", f"/api/{REPOSITORY}/branch/{{revision}}")
def branch(call: Call, revision: str) -> web.Response:
    """`create_branch`, from main or from a starting point. An existing one is a conflict, which `exist_ok` ignores."""
    repository = call.writable()
    start = commit_at(repository, call.json().get("startingPoint", "main"))
    if revision in repository.branches:
        raise HubError(409, f"The branch {revision} exists already")
    repository.branches[revision] = start.oid
    return json_response({})


@route("post", "/api/validate-yaml")
def validate_card(call: Call) -> web.Response:
    """Requested before README.md is committed: whether the yaml at its head can be read."""
    read_metadata(call.json()["content"])
    return json_response({"errors": [], "warnings": []})


@route("post", f"/api/{REPOSITORY}/preupload/{{revision}}")
def preupload(call: Call, revision: str) -> web.Response:
    """How each file is to be sent, and the hash of the one that is there: the client leaves out what is the same."""
    head = commit_at(call.writable(), revision)
    answers = []
    for file in call.json()["files"]:
        mode = "lfs" if is_large(file["path"], file["size"]) else "regular"
        answer = {"path": file["path"], "uploadMode": mode, "shouldIgnore": False}
        answers.append(answer | ({"oid": head.files[file["path"]].tag} if file["path"] in head.files else {}))
    return json_response({"files": answers, "commitOid": head.oid})


@route("post", f"/{NAME}.git/info/lfs/objects/batch")
def batch(call: Call) -> web.Response:
    """The batch request of Git LFS, where to send large files of a model: one that is there already needs no action."""
    repository = call.writable()
    upload, verify = f"{call.storage}/storage/models/{repository.name}", f"{call.endpoint}/lfs/models/{repository.name}"
    answers: list[dict[str, Any]] = [{"oid": file["oid"], "size": file["size"]} for file in call.json()["objects"]]
    for answer in answers:
        if answer["oid"] not in repository.objects:
            actions = {"upload": f"{upload}/{answer['oid']}", "verify": f"{verify}/verify"}
            answer["actions"] = {name: {"href": address} for name, address in actions.items()}
    return json_response({"transfer": "basic", "objects": answers})


@route("put", f"/storage/{REPOSITORY}/{{oid}}")
def upload(call: Call, oid: str) -> web.Response:
    """The bytes of a large file, sent to the storage at a signed address."""
    call.repositories[call.named].objects[oid] = call.body
    return web.Response()


@route("post", f"/lfs/{REPOSITORY}/verify")
def verify(call: Call) -> web.Response:
    """The last step of an upload: whether the bytes received are those announced."""
    objects, announced = call.writable().objects, call.json()
    file = File(objects[announced["oid"]], large=True)
    assert (len(file.content), file.sha256) == (announced["size"], announced["oid"])
    return json_response({})


@route("post", f"/api/{REPOSITORY}/commit/{{revision}}")
def commit(call: Call, revision: str) -> web.Response:
    """`create_commit`: a header and then one operation a line, in json.

    The server makes a commit even if nothing changes; it is the client that sends nothing then.
    """
    repository = call.writable()
    header, *operations = [json.loads(line) for line in call.body.splitlines() if line.strip()]
    head = commit_at(repository, revision)
    assert header["value"].get("parentCommit", head.oid) == head.oid
    files = dict(head.files)
    for operation, value in ((of["key"], of["value"]) for of in operations):
        path = value["path"]
        if operation == "file":
            files[path] = File(base64.b64decode(value["content"]), large=False)
        elif operation == "lfsFile":
            files[path] = File(repository.objects[value["oid"]], large=True)
        else:
            assert operation == "deletedFile"
            del files[path]
    made = repository.commit(revision, files)
    address = f"{call.endpoint}/{repository.name}/commit/{made.oid}"
    return json_response({"success": True, "commitOid": made.oid, "commitUrl": address, "hookOutput": ""})
