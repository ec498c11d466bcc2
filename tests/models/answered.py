"""Whether the emulator's answer is one that the service could give."""
import json
from pathlib import Path
from xml.etree import ElementTree

from botocore.parsers import ResponseParserError, create_parser

import decode
import rules

# Codes that every service gives and no model lists
# (https://docs.aws.amazon.com/IAM/latest/UserGuide/CommonErrors.html, and for the JSON protocols
# https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html).
COMMON = {
    "AccessDeniedException": {400, 403}, "SerializationException": {400}, "UnknownOperationException": {400, 404},
    "ThrottlingException": {400, 429}, "ValidationException": {400}, "ServiceUnavailable": {503}, "InternalFailure": {500},
}
# Batch's, which its model does not list either: https://github.com/nextflow-io/nextflow/issues/709 quotes it.
UNLISTED = {"batch": {"TooManyRequestsException": {429}}}
# Before these a job has not been started, and DescribeJobs leaves out when, though the model requires it
# (https://docs.aws.amazon.com/batch/latest/APIReference/API_JobDetail.html: "when the job transitioned from the
# STARTING state to the RUNNING state").
STARTED = {"RUNNING", "SUCCEEDED"}
EC2_CODES = {
    line.split()[0]: line.split()[1]
    for line in (Path(__file__).parent / "ec2-codes.txt").read_text().splitlines()
    if line and not line.startswith("#")
}


def problems(exchange, operation):
    """What is wrong with an answer."""
    status, body = exchange.answer["status"], exchange.answer.get("body", "")
    if status is None:
        return []
    protocol = operation.service_model.protocol
    try:
        parsed = create_parser(protocol).parse(
            {"status_code": status, "headers": exchange.answer["headers"], "body": body.encode()}, operation.output_shape)
    except (ResponseParserError, ValueError) as error:
        return [f"botocore cannot read the answer: {error}"]
    if status >= 300:
        return of_error(operation, status, parsed["Error"])
    found = []
    value = of_xml(operation, body, found) if protocol == "ec2" else of_json(operation, body, found)
    if operation.name == "DescribeJobs" and isinstance(value, dict):
        for job in value.get("jobs", []):
            if job.get("status") not in STARTED:
                job.setdefault("startedAt", 0)
    if operation.output_shape is not None:
        found += rules.problems(value, operation.output_shape, "answer")
    return found


def of_json(operation, body, found):
    try:
        value = json.loads(body or "{}")
    except ValueError as error:
        found.append(f"the answer is no JSON: {error}")
        return None
    if operation.output_shape is None:
        found.extend(["the answer has members, and the model has none"] if value else [])
        return None
    return decode.of_json(value, operation.output_shape, "answer", found)


def of_xml(operation, body, found):
    root = ElementTree.fromstring(body)
    if decode.local(root) != f"{operation.name}Response":
        found.append(f"the answer is a {decode.local(root)}")
    ids = [child for child in root if decode.local(child) == "requestId"]
    if len(ids) != 1 or not ids[0].text:
        found.append("the answer has no request id")
    for child in ids:
        root.remove(child)
    if operation.output_shape is None:
        # Where there is no output, EC2 answers whether it was done.
        rest = [decode.local(child) for child in root]
        found.extend([] if rest in ([], ["return"]) else [f"the answer has {rest}, and the model has none"])
        return None
    return decode.of_xml(root, operation.output_shape, "answer", found, item="item")


def of_error(operation, status, error):
    """Whether the service has the code, and gives it with this status."""
    code, service = error.get("Code", ""), operation.service_model.service_name
    if service == "ec2":
        kind = EC2_CODES.get(code)
        if kind is None:
            return [f"EC2 has no error code {code!r}"]
        return [] if (status >= 500) == (kind == "server") else [f"{code}: a {kind} error with the status {status}"]
    shapes = {shape.metadata.get("error", {}).get("code", shape.name): shape for shape in operation.error_shapes}
    if code in shapes:
        wanted = shapes[code].metadata.get("error", {}).get("httpStatusCode")
        if wanted is None:
            wanted = 500 if shapes[code].metadata.get("fault") else 400
        return [] if status == wanted else [f"{code}: status {status}, and the model's is {wanted}"]
    wanted = (COMMON | UNLISTED.get(service, {})).get(code)
    if wanted is None:
        return [f"{operation.name} has no error code {code!r}"]
    return [] if status in wanted else [f"{code}: status {status} instead of one of {sorted(wanted)}"]
