"""Runs ministack with six fixes, and ends it with the command that started it.

Its EventBridge calls a function once and ignores failures; AWS hands the event to Lambda's
asynchronous queue, with its retries and its on-failure destination.

It enforces IAM (AUTH=true), and knows two things less than AWS about a request. There is no TLS
here, and the bucket's policy refuses whatever comes without; and it does not tell a policy the
source of the events that are put. Nor does it fill the variables in a statement's resources
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html).

Its S3 takes a key of any length; AWS's takes 1 024 bytes of UTF-8
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html).

Its CloudFormation does not have AWS::FIS::ExperimentTemplate. The emulator serves FIS, so templates
are made there.
"""

import dataclasses
import json
import os
import re
import signal
import sys
import threading
import urllib.request
import uuid

import ministack.app
import ministack.core.iam_actions as iam_actions
import ministack.core.iam_evaluator as iam_evaluator
import ministack.services.cloudformation.provisioners as provisioners
import ministack.services.eventbridge as eventbridge
import ministack.services.lambda_svc as lambda_svc
import ministack.services.s3 as s3
import ministack.services.sts as sts

# The account that ministack uses by default.
ACCOUNT = "000000000000"

# Bytes of an object's key at most.
MOST_KEY_BYTES = 1024


def follow_parent():
    """Ends this process group when the other end of standard input closes, for whatever reason."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


def to_lambda(arn, payload):
    """Calls an EventBridge target as Lambda's asynchronous invocation does."""
    function, config, name = lambda_svc._get_func_record_for_ref(arn)
    if not config:
        raise LookupError(f"EventBridge target {name} does not exist")
    lambda_svc.invoke_async_with_retry(lambda_svc._execution_record_for_config(function, config), json.loads(payload))


pin_request_origin = ministack.app.pin_request_origin
request_tag_context = iam_actions.request_tag_context
first_match = iam_evaluator._first_match
dispatch_s3 = s3._dispatch


def as_over_tls(address, _is_secure):
    """Stores the source address of a request."""
    pin_request_origin(address, True)


def request_context(service, action, body, parameters):
    """Returns the condition keys of a request."""
    context = request_tag_context(service, action, body, parameters)
    if action == "events:PutEvents":
        sources = {entry.get("Source") for entry in json.loads(body)["Entries"]}
        # AWS authorizes each entry. Here a request with events of two sources has no source that a policy allows.
        context["events:source"] = sources.pop() if len(sources) == 1 else ""
    return context


def filled(resource, context):
    """Replaces the policy variables in a resource. If a value is missing, the resource matches nothing."""
    values = {name: iam_evaluator._resolve_condition_key(name, context) for name in re.findall(r"\$\{([^}]+)\}", resource)}
    if any(not isinstance(value, str) for value in values.values()):
        return ""
    return re.sub(r"\$\{([^}]+)\}", lambda variable: values[variable[1]], resource)


def first_match_of_filled(context, statements, effect):
    """Does what ministack's function does, with policy variables."""
    def fill(resources):
        return [filled(resource, context) for resource in resources]

    filling = (dataclasses.replace(one, resources=fill(one.resources), not_resources=fill(one.not_resources)) for one in statements)
    return first_match(context, list(filling), effect)


def with_short_keys(method, bucket, key, *request):
    """Refuses a request whose key is too long, as S3 does."""
    if len(key.encode(errors="surrogateescape")) > MOST_KEY_BYTES:
        return s3._error("KeyTooLongError", "Your key is too long", 400)
    return dispatch_s3(method, bucket, key, *request)


def give_jobs_their_role():
    """Registers the jobs' credentials as a session of their role. On AWS, Batch starts that session."""
    role, key = os.environ["JOB_ROLE"], os.environ["JOB_CREDENTIAL"]
    arn = f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/local"
    sts.register_session(key, {"Arn": arn, "UserId": f"{role}:local", "SecretAccessKey": key, "SessionToken": key})


def to_fis(method, path, body=None):
    """Calls the emulator's FIS."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["AWS_ENDPOINT_URL_FIS"] + path, data, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def members(given):
    """Changes CloudFormation's names, which begin in upper case, to the API's, which begin in lower case."""
    return {name[0].lower() + name[1:]: value for name, value in given.items()}


def create_experiment_template(_logical_id, properties, _stack):
    """Makes an AWS::FIS::ExperimentTemplate."""
    # CloudFormation generates a client token for each resource.
    body = members(properties) | {"clientToken": str(uuid.uuid4())}
    body["targets"] = {name: members(target) for name, target in body["targets"].items()}
    for target in body["targets"].values():
        target["filters"] = [members(one) for one in target.get("filters", [])]
    body["actions"] = {name: members(action) for name, action in body["actions"].items()}
    body["stopConditions"] = [members(condition) for condition in body["stopConditions"]]
    made = to_fis("POST", "/experimentTemplates", body)["experimentTemplate"]["id"]
    return made, {"Id": made}


def delete_experiment_template(template, _properties):
    """Deletes an AWS::FIS::ExperimentTemplate."""
    to_fis("DELETE", f"/experimentTemplates/{template}")


threading.Thread(target=follow_parent, daemon=True).start()
eventbridge._dispatch_to_lambda = to_lambda
ministack.app.pin_request_origin = as_over_tls
iam_actions.request_tag_context = request_context
iam_evaluator._first_match = first_match_of_filled
s3._dispatch = with_short_keys
provisioners._RESOURCE_HANDLERS["AWS::FIS::ExperimentTemplate"] = {"create": create_experiment_template, "delete": delete_experiment_template}
give_jobs_their_role()
ministack.app.main()
