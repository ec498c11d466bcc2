"""Asks an evaluator of IAM policies that this project has not written: @cloud-copilot/iam-simulate."""
import json
import os
import subprocess
from pathlib import Path

import roles


def simulation(of, role, wanted, tags=()):
    """A decision as the evaluator takes it, by the roles `of` a template. `tags` are the session's."""
    found = {
        "request": {
            "principal": f"arn:aws:sts::{roles.ACCOUNT}:assumed-role/{role}/session",
            "action": wanted.action,
            "resource": {"resource": wanted.resource, "accountId": roles.ACCOUNT},
            "contextVariables": {f"aws:PrincipalTag/{key}": value for key, value in dict(tags).items()} | wanted.context,
        },
        "identityPolicies": [{"name": name, "policy": policy} for name, policy in of.policies[role].items()],
        "serviceControlPolicies": [],
        "resourceControlPolicies": [],
    }
    name = wanted.resource.rsplit("/", 1)[-1]
    if wanted.resource.split("/")[0] == f"arn:aws:s3:::{roles.BUCKET}":
        found["resourcePolicy"] = of.bucket_policy()
    if wanted.action.startswith("sts:") and name in of.policies and name != roles.JOB_ROLE:
        found["resourcePolicy"] = of.trust(name)
    return found


def decide(simulations):
    """Whether each is allowed. `NODE` names the program, `NODE_PATH` the folder of the evaluator's package."""
    program = [os.environ.get("NODE", "node"), str(Path(__file__).with_name("evaluate.cjs"))]
    answered = subprocess.run(program, input=json.dumps(simulations), stdout=subprocess.PIPE, text=True, check=True).stdout
    decisions = json.loads(answered)
    for one, decision in zip(simulations, decisions, strict=True):
        if decision["errors"]:
            raise ValueError(f"{one['request']} cannot be decided: {decision['errors']}")
    return [decision["result"] == "Allowed" for decision in decisions]
