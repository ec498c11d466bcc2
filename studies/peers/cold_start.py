"""The seven functions in the usual style of boto3, as far as a cold start goes. They make clients at import, parse the
event, read its record, and answer. Lambda's runtime client calls `handler`."""

import hashlib
import json
import logging
import os
from datetime import datetime, timezone

import boto3

# The services that each function's role allows. Clients are made for these only.
CLIENTS = {
    "sweep-upload": ["dynamodb", "s3", "batch", "ec2", "events"],
    "batch-job-state": ["dynamodb", "batch", "ec2", "ecs", "events"],
    "spot-interruption": ["dynamodb", "ec2"],
    "ebs-state": ["dynamodb", "ec2", "events"],
    "trial-claim": ["dynamodb", "s3", "sts", "ec2"],
    "sweep-settled": ["dynamodb", "s3", "batch", "ec2", "ecs", "events", "sns", "pricing"],
    "reconcile": ["dynamodb", "s3", "batch", "ec2", "ecs", "events"],
}
SHARDS = 8

FUNCTION = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
TABLE = os.environ["SPOTSWEEP_TABLE"]
# The bench sets PEER_CLIENTS to measure a function that makes the other clients only when it needs them.
WANTED = os.environ.get("PEER_CLIENTS", "").split() or CLIENTS[FUNCTION]
clients = {name: boto3.client(name) for name in WANTED}
dynamodb = clients["dynamodb"]
log = logging.getLogger()


def get(pk, sk):
    found = dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": pk}, "sk": {"S": sk}}, ConsistentRead=True)
    return found.get("Item")


def query(pk, prefix):
    found = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
        ExpressionAttributeValues={":pk": {"S": pk}, ":prefix": {"S": prefix}},
        ConsistentRead=True,
    )
    return found["Items"]


def sweep_upload(event):
    bucket, found = event["detail"]["bucket"]["name"], event["detail"]["object"]
    key = found["key"]
    version = found.get("version-id") or f"{found['etag']}/{found['sequencer']}"
    digest = hashlib.sha256()
    for part in (bucket, key, version):
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    stem = os.path.basename(key).rsplit(".", 1)[0]
    held = get(f"SWEEP#{stem}-{digest.hexdigest()[:12]}", "META")
    if held is None:
        raise NotImplementedError("only what is stored already is compared here")
    return ["sweep-uploaded: already " + held["record"]["M"]["stage"]["M"]["name"]["S"]]


def batch_job_state(event):
    detail = event["detail"]
    sweep = detail["jobName"].removeprefix("spotsweep-").rsplit("-", 1)[0]
    index = detail.get("arrayProperties", {}).get("index", 0)
    held, _trial = get(f"SWEEP#{sweep}", "META"), get(f"SWEEP#{sweep}", f"TRIAL#{index:06}")
    assert held is None
    return [f"trial-job-changed: ignored, no sweep {sweep} here"]


def referring(resource):
    assert query(f"RES#{resource}", "TRIAL#") == []
    return [f"{resource} is no trial's"]


def spot_interruption(event):
    return referring(event["detail"]["instance-id"])


def ebs_state(event):
    return referring(event["resources"][0].rsplit("/", 1)[-1])


def trial_claim(event):
    pk = f"SWEEP#{event['sweep']}"
    held, _trial = get(pk, "META"), get(pk, f"TRIAL#{event['index']:06}")
    assert held is None
    return [f"there is no sweep {event['sweep']}"]


def sweep_settled(event):
    sweep = event["detail"]["sweep"]
    assert get(f"SWEEP#{sweep}", "META") is None
    return [f"sweep-settling: no sweep {sweep} here"]


def reconcile(_event):
    now = datetime.now(timezone.utc).isoformat()
    overdue = []
    for shard in range(SHARDS):
        found = dynamodb.query(
            TableName=TABLE,
            IndexName="open",
            KeyConditionExpression="#open = :open AND due <= :now",
            ExpressionAttributeNames={"#open": "open"},
            ExpressionAttributeValues={":open": {"S": f"due#{shard}"}, ":now": {"S": now}},
            Limit=500,
        )
        overdue += found["Items"]
    return [f"reconcile-due: {len(overdue)} overdue"]


HANDLERS = {
    "sweep-upload": sweep_upload,
    "batch-job-state": batch_job_state,
    "spot-interruption": spot_interruption,
    "ebs-state": ebs_state,
    "trial-claim": trial_claim,
    "sweep-settled": sweep_settled,
    "reconcile": reconcile,
}


def handler(event, _context):
    steps = HANDLERS[FUNCTION](event)
    log.warning(json.dumps({"steps": steps}))
    return {"steps": steps}
