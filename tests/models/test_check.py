"""The check finds what is wrong: each of these exchanges is what the tests record, with one thing changed."""
import json
import unittest

import check
import record

JOB = {"jobName": "spotsweep-a", "jobQueue": "spot", "jobDefinition": "train:1", "arrayProperties": {"size": 3}}
VOLUME = "Action=CreateVolume&Version=2016-11-15&AvailabilityZone=us-east-1a&Size=20&VolumeType=gp3"
VOLUMES = (
    '<DescribeVolumesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>1</requestId><volumeSet>'
    "<item><volumeId>vol-1</volumeId><size>20</size><status>available</status>"
    "<createTime>2026-11-23T00:00:00.000Z</createTime></item></volumeSet></DescribeVolumesResponse>"
)
EC2_ERROR = "<Response><Errors><Error><Code>{}</Code><Message>no</Message></Error></Errors><RequestID>1</RequestID></Response>"
ROLE = record.Session("ReconcileRole", "reconcile")


def exchange(service, body="", path="/", method="POST", query="", headers=None, status=200, answer="{}", session=None, **more):
    request = {"method": method, "path": path, "query": query, "headers": headers or {}, "body": body}
    response = {"status": status, "headers": more, "body": answer}
    return record.Exchange(service, request, response, session, is_emulator=service in ("batch", "ec2", "ecs", "logs"))


def batch(action, request, **more):
    return exchange("batch", json.dumps(request), f"/v1/{action}", **more)


def submit(**changes):
    return batch("submitjob", JOB | changes, answer='{"jobName": "spotsweep-a", "jobId": "1"}')


def ec2(body, answer, **more):
    return exchange("ec2", body, answer=answer, **more)


def created(body):
    return ec2(body, '<CreateVolumeResponse xmlns="x"><requestId>1</requestId><volumeId>vol-1</volumeId></CreateVolumeResponse>')


def described(old="", new=""):
    return ec2("Action=DescribeVolumes&Version=2016-11-15&VolumeId.1=vol-1", VOLUMES.replace(old, new) if old else VOLUMES)


def dynamodb(action, request, **headers):
    head = {"x-amz-target": f"DynamoDB_20120810.{action}", "content-type": "application/x-amz-json-1.0"} | headers
    return exchange("dynamodb", json.dumps(request), headers=head)


def s3(path, method="GET", **more):
    return exchange("s3", path=path, method=method, **more)


VERSIONING = '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>{}</Status></VersioningConfiguration>'
GOOD = {
    "a job": submit(),
    "a compute environment": batch("createcomputeenvironment", {
        "computeEnvironmentName": "spot", "type": "MANAGED",
        "computeResources": {"type": "SPOT", "maxvCpus": 2, "subnets": ["s"], "instanceTypes": ["c7g.medium", "g5", "optimal"]},
    }),
    "a volume": created(VOLUME),
    "a tagged volume": created(f"{VOLUME}&TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value="),
    "volumes": described(),
    "an item": dynamodb("GetItem", {"TableName": "records", "Key": {"pk": {"S": "a"}}}),
    "an object": s3("/bucket/results/a%20b", query="x-id=GetObject", headers={"range": "bytes=0-1"}),
    "a list": s3("/bucket", query="list-type=2&prefix=a%2F"),
    "versioning": s3("/bucket/", "PUT", query="versioning", body=VERSIONING.format("Enabled")),
    "a role": exchange("sts", "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A000000000000%3Arole%2Ftrial"
                              "&RoleSessionName=ab&Tags.member.1.Key=sweep&Tags.member.1.Value=b"),
    "an invocation": exchange("lambda", path="/2015-03-31/functions/trial-claim/invocations", headers={"x-amz-invocation-type": "Event"}),
    "a throttle": batch("listjobs", {"jobQueue": "spot"}, status=429, answer='{"message": "no"}', **{"x-amzn-errortype": "TooManyRequestsException"}),
    "a refusal": batch("listjobs", {"jobQueue": "spot"}, status=400, answer='{"message": "no"}', **{"x-amzn-errortype": "ClientException"}),
    "a missing volume": ec2("Action=DeleteVolume&Version=2016-11-15&VolumeId=vol-1", EC2_ERROR.format("InvalidVolume.NotFound"), status=400),
    "no answer": ec2("Action=DeleteVolume&Version=2016-11-15&VolumeId=vol-1", "", status=None),
}
BAD = {
    "a required member is missing": batch("submitjob", {"jobName": "a", "jobQueue": "b"}, answer='{"jobName": "a", "jobId": "1"}'),
    "an unknown member": submit(arraySize=3),
    "a text for a number": submit(arrayProperties={"size": "3"}),
    "a value that is none of the enum": batch("createjobqueue", {"jobQueueName": "a", "priority": 1, "state": "ON"}, answer='{"jobQueueName": "a", "jobQueueArn": "b"}'),
    "an instance type that does not exist": batch("createcomputeenvironment", {
        "computeEnvironmentName": "spot", "type": "MANAGED",
        "computeResources": {"type": "SPOT", "maxvCpus": 2, "subnets": ["s"], "instanceTypes": ["c7i.medium"]},
    }),
    "an unknown action": ec2("Action=MakeVolume&Version=2016-11-15", "<a/>"),
    "another version": created(VOLUME.replace("2016-11-15", "2014-01-01")),
    "an unknown parameter": created(f"{VOLUME}&Colour=red"),
    "no number": created(VOLUME.replace("20&", "much&")),
    "a number out of range": exchange("logs", '{"logStreamName": "a", "limit": 10001}', answer='{"events": []}', headers={
        "x-amz-target": "Logs_20140328.GetLogEvents", "content-type": "application/x-amz-json-1.1"}),
    "a list with a gap": created(f"{VOLUME}&TagSpecification.2.ResourceType=volume"),
    "no volume type": created(VOLUME.replace("gp3", "gp9")),
    "an item without key": dynamodb("GetItem", {"TableName": "records"}),
    "a name of a table that is too long": dynamodb("GetItem", {"TableName": "r" * 1025, "Key": {}}),
    "another protocol": dynamodb("GetItem", {"TableName": "records", "Key": {"pk": {"S": "a"}}}, **{"content-type": "application/json"}),
    "an unknown parameter of a query": s3("/bucket", query="list-type=2&sort=name"),
    "an unknown header": s3("/bucket/a", query="x-id=GetObject", headers={"x-amz-colour": "red"}),
    "no state of versioning": s3("/bucket/", "PUT", query="versioning", body=VERSIONING.format("On")),
    "a session's name that is no name": exchange("sts", "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A000000000000%3Arole%2Ftrial&RoleSessionName=a%20b"),
    "an invocation of no type": exchange("lambda", path="/2015-03-31/functions/trial-claim/invocations", headers={"x-amz-invocation-type": "Later"}),
    "an answer's unknown member": described("<size>20</size>", "<gib>20</gib>"),
    "an answer's text for a number": described("<size>20</size>", "<size>much</size>"),
    "an answer's value that is none of the enum": described("available", "there"),
    "an answer without request id": described("<requestId>1</requestId>", ""),
    "an answer without a required member": batch("submitjob", JOB, answer='{"jobId": "1"}'),
    "an error code that is none": ec2("Action=DeleteVolume&Version=2016-11-15&VolumeId=vol-1", EC2_ERROR.format("NoSuchVolume"), status=400),
    "an error with another's status": ec2("Action=DeleteVolume&Version=2016-11-15&VolumeId=vol-1", EC2_ERROR.format("InternalError"), status=400),
    "an error code of another service": batch("listjobs", {}, status=400, answer='{"message": "no"}', **{"x-amzn-errortype": "ResourceNotFoundException"}),
}


def refused(one):
    return check.check([one], say=lambda line: None)


class Check(unittest.TestCase):
    def test_what_is_right_is_not_refused(self):
        for what, one in GOOD.items():
            with self.subTest(what):
                self.assertEqual(check.judge(one), ([], [], False))

    def test_what_is_wrong_is_refused(self):
        for what, one in BAD.items():
            with self.subTest(what):
                self.assertEqual(refused(one), 1)

    def test_a_request_may_be_refused_on_purpose(self):
        wrong = {"jobName": "a", "jobQueue": "b"}
        error = {"status": 400, "answer": '{"message": "no"}', "x-amzn-errortype": "ClientException"}
        self.assertEqual(refused(batch("submitjob", wrong, **error)), 0, "a test has sent it, and it was refused")
        self.assertEqual(refused(batch("submitjob", wrong, session=ROLE, **error)), 1, "a function has sent it")
        throttled = {"status": 429, "answer": '{"message": "no"}', "x-amzn-errortype": "TooManyRequestsException"}
        self.assertEqual(refused(batch("submitjob", wrong, **throttled)), 1, "it was not looked at")
        self.assertEqual(refused(batch("submitjob", wrong, status=None)), 1, "it was not answered")


if __name__ == "__main__":
    unittest.main()
