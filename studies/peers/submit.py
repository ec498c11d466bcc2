"""Does what people's own scripts do with a dropped sweep file: reads it, expands the grid, writes a row for each trial
and a file of all of them, submits one array job, and writes an answer beside the file.

usage: submit.py BUCKET KEY TABLE QUEUE DEFINITION

Writes `ready` when everything is imported and the clients are made, `done` when the sweep is submitted, and then
waits until its input ends, so that what it has used can be read.
"""

import itertools
import json
import sys
from decimal import Decimal

import boto3
import yaml
from botocore.config import Config

PATH_STYLE = Config(s3={"addressing_style": "path"})


def expand(sweep):
    """Returns every combination of the parameters' values. The last parameter changes fastest."""
    parameters = sweep["parameters"]
    names = list(parameters)
    values = [parameters[name].get("values", [parameters[name].get("value")]) for name in names]
    return [dict(zip(names, chosen)) for chosen in itertools.product(*values)]


def submit(clients, bucket, key, table, queue, definition):
    s3, batch, tables = clients
    sweep = yaml.safe_load(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
    trials = expand(sweep)
    name = key.rsplit("/", 1)[-1].removesuffix(".yaml")

    with tables.Table(table).batch_writer() as rows:
        for index, parameters in enumerate(trials):
            numbers = json.loads(json.dumps(parameters), parse_float=Decimal)
            rows.put_item(Item={"sweep": name, "trial": index, "status": "SUBMITTED", "parameters": numbers})

    lines = "".join(json.dumps({"index": index, "parameters": trial}) + "\n" for index, trial in enumerate(trials))
    results = f"results/peer-{name}/"
    s3.put_object(Bucket=bucket, Key=f"{results}trials.jsonl", Body=lines.encode())

    job = batch.submit_job(
        jobName=f"peer-{name}",
        jobQueue=queue,
        jobDefinition=definition,
        arrayProperties={"size": len(trials)},
        containerOverrides={"environment": [{"name": "SWEEP", "value": name}]},
        retryStrategy={
            "attempts": 10,
            "evaluateOnExit": [
                {"onStatusReason": "Host EC2*", "action": "RETRY"},
                {"onExitCode": "75", "action": "RETRY"},
                {"onStatusReason": "Task failed to start*", "action": "RETRY"},
                {"onReason": "AGENT*", "action": "RETRY"},
                {"onReason": "*", "action": "EXIT"},
            ],
        },
    )
    answer = {"sweep": name, "trials": len(trials), "job": job["jobId"], "results": f"s3://{bucket}/{results}"}
    s3.put_object(Bucket=bucket, Key=f"{key}.peer.json", Body=json.dumps(answer).encode())


def main():
    clients = boto3.client("s3", config=PATH_STYLE), boto3.client("batch"), boto3.resource("dynamodb")
    print("ready", flush=True)
    submit(clients, *sys.argv[1:])
    print("done", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
