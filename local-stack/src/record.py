"""Writes the requests that reach ministack, and the sessions of roles, into the folder SPOTSWEEP_RECORD.

One line of JSON for each form of a request, as emulator/server/src/http/record.rs writes them. ministack's
answers are not recorded but for status and error code: they are no work of this project's, and hold
credentials. Nor are the contents of objects and the payloads of functions, which no service model
describes.
"""

import json
import os
import re
import time
from pathlib import Path

import ministack.app
import ministack.services.cloudformation.changesets
import ministack.services.cloudformation.handlers
import ministack.services.sts

# An id, a hash or a time.
ID = re.compile(r"(?=(?:[-A-Fa-f:.%+TZ]*[0-9]){6})[-0-9A-Fa-f:.%+TZ]+")
SECRET = {"authorization", "x-amz-security-token"}
# Larger bodies are contents of objects, and are not recorded.
MOST = 1 << 20

app = ministack.app.app
register_session = ministack.services.sts.register_session
deploy = ministack.services.cloudformation.handlers._deploy_stack_async
record = open(Path(os.environ["SPOTSWEEP_RECORD"]) / f"ministack-{os.getpid()}-{time.time_ns()}.jsonl", "w", buffering=1)
forms = set()


def write(line, form):
    """Writes a line once for each form of it."""
    form = hash(form)
    if form not in forms:
        forms.add(form)
        record.write(json.dumps(line) + "\n")


def has_contents(service, method, path, query):
    """Whether the body is an object's content or a function's payload."""
    is_object = service == "s3" and method == "PUT" and (not query or "x-id=" in query or "partNumber=" in query)
    return is_object or (service == "lambda" and path.endswith("/invocations"))


async def recording(scope, receive, send):
    """Passes each request on to ministack, and records the signed ones."""
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope.get("headers", ())}
    credential = re.search(r"Credential=(\S+)/aws4_request", headers.get("authorization", ""))
    if scope["type"] != "http" or not credential:
        await app(scope, receive, send)
        return
    sent, received, status = bytearray(), bytearray(), []

    async def listen():
        message = await receive()
        if len(sent) <= MOST:
            sent.extend(message.get("body", b""))
        return message

    async def tell(message):
        if message["type"] == "http.response.start":
            status.append(message)
        elif status and status[0]["status"] >= 400:
            received.extend(message.get("body", b"")[:MOST])
        await send(message)

    await app(scope, listen, tell)
    signed = credential[1]
    query = scope["query_string"].decode()
    path = scope.get("raw_path", b"").decode() or scope["path"]
    contents = has_contents(signed.rsplit("/", 1)[1], scope["method"], path, query) or len(sent) > MOST
    request = {
        "method": scope["method"],
        "path": path.split("?")[0],
        "query": query,
        "headers": {name: value for name, value in headers.items() if name not in SECRET},
        "signed": signed,
        "body": None if contents else sent.decode("utf-8", "replace"),
    }
    answered = {name.decode().lower(): value.decode("latin-1") for name, value in (status[0]["headers"] if status else ())}
    answer = {"status": status[0]["status"] if status else None, "headers": answered, "body": received.decode("utf-8", "replace")}
    form = ID.sub(lambda found: "0" * len(found[0]), json.dumps([request, answer["status"]]))
    write({"request": request, "answer": answer}, form)


def remembered(key, session):
    """Registers a session, and records its role. The key id is no secret."""
    register_session(key, session)
    session = {"key": key, "arn": session.get("Arn"), "tags": session.get("SessionTags") or {}}
    write({"session": session}, json.dumps(session))


async def deployed(stack, *arguments, **named):
    """Deploys a template, and records when roles begin to change and when all have changed."""
    template = ministack.services.cloudformation._stacks[stack]["_template_body"]
    record.write(json.dumps({"deploying": stack, "template": template}) + "\n")
    await deploy(stack, *arguments, **named)
    record.write(json.dumps({"deployed": stack}) + "\n")


ministack.app.app = recording
ministack.services.cloudformation.changesets._deploy_stack_async = deployed
ministack.services.cloudformation.handlers._deploy_stack_async = deployed
ministack.services.sts.register_session = remembered
