"""Near misses are denied, and the check finds what a role lacks and what it has too much."""
import json
import unittest
from pathlib import Path

import yaml

import calls
import check
import evaluator
import roles
from roles import cfn
from wanted import Wanted

NEAR_MISSES = json.loads(Path(__file__).with_name("near-misses.json").read_text())
SESSION = calls.record.Session("spotsweep-local-ReconcileRole-0123456789ABC", "reconcile")
UPLOAD = calls.record.Session("spotsweep-local-SweepUploadRole-0123456789ABC", "sweep-upload")
ANNOUNCED = {"Entries": [{"Source": "spotsweep", "DetailType": "Sweep Settling", "Detail": "{}"}]}


def deployed(**parameters):
    return roles.Roles(yaml.load(roles.CONTROL_PLANE, cfn.Loader), **parameters)


def decision(call, of):
    asked = Wanted(call["action"], call["resource"], call.get("context", {}))
    return evaluator.simulation(of, call["role"], asked, call.get("session", {}))


def exchange(service, body, session=SESSION, templates=(), status=200, answer="{}", target="", tags=()):
    request = {"method": "POST", "path": "/", "query": "", "headers": {"x-amz-target": target}, "body": body, "tags": dict(tags)}
    response = {"status": status, "headers": {}, "body": answer}
    return calls.record.Exchange(service, request, response, session, service == "ec2", templates)


def deleting(tags, **more):
    return exchange("ec2", "Action=DeleteVolume&Version=2016-11-15&VolumeId=vol-1", tags={"vol-1": tags}, **more)


def announcing(**more):
    return exchange("events", json.dumps(ANNOUNCED), target="AWSEvents.PutEvents", **more)


def describing(secret, secrets, **more):
    asked = exchange("secretsmanager", json.dumps({"SecretId": secret}), UPLOAD, target="secretsmanager.DescribeSecret", **more)
    asked.request["secrets"] = secrets
    return asked


def disagreements(*exchanges):
    return check.of_record(list(calls.of(exchanges)), say=lambda line: None)


class NearMisses(unittest.TestCase):
    def test_each_is_denied_and_what_it_nearly_is_is_allowed(self):
        expected, simulations = [], []
        of = deployed(DataBuckets=["sets", "more.sets"], AllowedSecrets=["/team/wandb/*", "/other/key", "team/*", "other"])
        for call in NEAR_MISSES:
            expected.append((f"{call['role']}: {call['action']} on {call['resource']}", True))
            simulations.append(decision(call, of))
            for why, change in call["denied"].items():
                expected.append((f"{call['role']}: {call['action']} on {call['resource']}, but {why}", False))
                simulations.append(decision(call | change, of))
        decisions = evaluator.decide(simulations)
        wrong = [what for (what, wanted), got in zip(expected, decisions, strict=True) if wanted != got]
        self.assertEqual(wrong, [])
        print(f"{decisions.count(True)} calls allowed, {decisions.count(False)} near misses denied")


class Images(unittest.TestCase):
    def test_only_the_images_that_the_deployment_allows_are_registered(self):
        [call] = [call for call in NEAR_MISSES if call["action"] == "batch:RegisterJobDefinition"]
        of = deployed(AllowedImages=["me/*", "python:3.13-slim"])
        images = {"me/train:2": True, "me/deep/train": True, "python:3.13-slim": True, "python:3.13": False, "you/me/train": False}
        decisions = evaluator.decide([decision(call | {"context": call["context"] | {"batch:Image": image}}, of) for image in images])
        self.assertEqual(dict(zip(images, decisions, strict=True)), images)


class Data(unittest.TestCase):
    def test_a_deployment_opens_no_bucket_but_those_that_it_names(self):
        calls = [call for call in NEAR_MISSES if call["action"] in ("s3:ListBucket", "s3:GetObject") and "sets" in call["resource"]]
        self.assertEqual(len(calls), 4)
        own = {"role": "SweepUploadRole", "action": "s3:ListBucket", "resource": f"arn:aws:s3:::{roles.BUCKET}", "context": {"aws:SecureTransport": "true"}}
        [data] = [call for call in NEAR_MISSES if "/data/mnist/" in call["resource"]]
        names = [call["resource"].removeprefix("arn:aws:s3:::").split("/")[0] for call in calls]
        for buckets in ([""], ["sets"], ["sets", "more.sets"]):
            of = deployed(DataBuckets=buckets)
            decisions = evaluator.decide([decision(call, of) for call in (own, data, *calls)])
            self.assertEqual(decisions, [True, True, *(name in buckets for name in names)], buckets)
        self.assertNotIn("ListDataPolicy", deployed().policies["SweepUploadRole"], "it would name no bucket")


class Secrets(unittest.TestCase):
    def test_a_deployment_opens_no_path_but_those_that_it_names(self):
        session = {"sweep": "a-1", "trial": "0"}
        paths = [f"/spotsweep/{roles.BUCKET}/KEY", "/team/wandb/key", "/team/wandb/a/b", "/team/wandb", "/other/key", "/other/key2", "/spotsweep/other/KEY"]
        calls = [{"role": "TrialRole", "action": "ssm:GetParameter", "session": session | {"secret-9": path.removeprefix("/")}, "resource": f"arn:aws:ssm:{roles.LOCAL}:parameter{path}"} for path in paths]
        for allowed, open_paths in (([""], paths[:1]), (["/team/wandb/*"], paths[:3]), (["/team/wandb/*", "/other/ke?"], paths[:3] + paths[4:5])):
            of = deployed(AllowedSecrets=allowed)
            decisions = evaluator.decide([decision(call, of) for call in calls])
            self.assertEqual([path for path, is_open in zip(paths, decisions, strict=True) if is_open], open_paths, allowed)

    def test_a_deployment_opens_no_secret_of_secrets_manager_but_those_that_it_names(self):
        session = {"sweep": "a-1", "trial": "0"}
        names = ["team/db", "team/a/b", "team", "team-2", "other", "other2", "/team/db"]
        arn = f"arn:aws:secretsmanager:{roles.LOCAL}:secret:"
        reading = [{"role": "TrialRole", "action": "secretsmanager:GetSecretValue", "session": session | {"managed-9": name}, "resource": f"{arn}{name}-a1B2c3"} for name in names]
        asking = [{"role": "SweepUploadRole", "action": "secretsmanager:DescribeSecret", "resource": f"{arn}{name}-a1B2c3"} for name in names[:-1]]
        for allowed, open_names in (([""], []), (["/team/*"], []), (["team/*"], names[:2]), (["team/*", "/team/*", "oth?r"], names[:2] + names[4:5])):
            of = deployed(AllowedSecrets=allowed)
            for calls in (reading, asking):
                decisions = evaluator.decide([decision(call, of) for call in calls])
                self.assertEqual([name for name, is_open in zip(names, decisions) if is_open], open_names, allowed)

    def test_the_policies_have_room_for_many_secrets_and_buckets(self):
        # Of a role's own policies together, and of a managed one, without white space
        # (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html).
        secrets = 15 * ["/" + 29 * "p"] + 15 * [30 * "n"]
        for buckets in ([""], 15 * ["b" * 63], 40 * ["b" * 20]):
            of = deployed(DataBuckets=buckets, AllowedSecrets=secrets, Bucket="b" * 63, **{"AWS::Region": "ap-southeast-4"})
            for role, policy, most in (("TrialRole", "trial", 10240), ("TrialRole", "ManagedSecretsPolicy", 6144), ("SweepUploadRole", "SubmitPolicy", 6144)):
                self.assertLess(len(json.dumps(of.policies[role][policy], separators=(",", ":"))), most, policy)


class Check(unittest.TestCase):
    def test_a_call_beyond_the_role_is_a_disagreement(self):
        self.assertEqual(disagreements(deleting({"spotsweep:sweep": "a-1"}), announcing()), 0)
        self.assertEqual(disagreements(deleting({"Name": "database"})), 1, "the emulator deletes what the role does not reach")
        gone = "<Response><Errors><Error><Code>InvalidVolume.NotFound</Code></Error></Errors></Response>"
        self.assertEqual(disagreements(deleting({}, status=400, answer=gone)), 0, "what is gone has no tags")
        narrower = roles.CONTROL_PLANE.replace("Action: events:PutEvents", "Action: events:PutRule")
        self.assertEqual(disagreements(announcing(templates=(narrower,))), 1)
        denied = {"status": 400, "answer": '{"__type": "AccessDeniedException"}'}
        self.assertEqual(disagreements(announcing(templates=(narrower,), **denied)), 0, "denied by the template of that moment")
        changing = (roles.CONTROL_PLANE, narrower)
        self.assertEqual(disagreements(announcing(templates=changing), announcing(templates=changing, **denied)), 0, "either may decide")
        self.assertEqual(disagreements(announcing(**denied)), 1, "the role allows what was denied")

    def test_a_secret_that_does_not_exist_is_denied(self):
        denied = {"status": 403, "answer": '{"__type": "AccessDeniedException"}'}
        self.assertEqual(disagreements(describing("team/db", {"team/db"})), 0)
        self.assertEqual(disagreements(describing("team/db", {"team/db"}, **denied)), 1)
        self.assertEqual(disagreements(describing("team/db", {"team/keys"}, **denied)), 0)
        self.assertEqual(disagreements(describing("team/db", {"team/keys"})), 1)

    def test_another_verdict_of_the_simulation_is_a_disagreement(self):
        verdict = {"function": "reconcile", "service": "ec2", "action": "DeleteVolume", "on": None, "allowed": True}
        silent = {"say": lambda line: None}
        self.assertEqual(check.of_simulation([verdict], **silent), 0)
        self.assertEqual(check.of_simulation([verdict | {"allowed": False}], **silent), 1)
        self.assertEqual(check.of_simulation([verdict | {"function": "sweep-upload"}], **silent), 1)


if __name__ == "__main__":
    unittest.main()
