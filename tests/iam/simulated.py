"""What IAM has to allow for a call of the simulation, which knows no ids and no tags: those are what they should be."""
import roles
from wanted import LOCAL, PASSED, Wanted

TAGS = {"aws:RequestTag/spotsweep:sweep": "s-1", "aws:TagKeys": ["spotsweep:sweep", "Name"]}
OWN = {"aws:ResourceTag/spotsweep:sweep": "s-1"}
OURS = {"aws:ResourceTag/spotsweep:compute": "spot"}
EC2 = f"arn:aws:ec2:{LOCAL}:"
VOLUME, INSTANCE = f"{EC2}volume/vol-1", f"{EC2}instance/i-1"
SNAPSHOT = f"arn:aws:ec2:{roles.REGION}::snapshot/snap-1"
BATCH = f"arn:aws:batch:{LOCAL}:"
TRIAL_ROLE = f"arn:aws:iam::{roles.ACCOUNT}:role/TrialRole"
TABLE = f"arn:aws:dynamodb:{LOCAL}:table/Table"
OF_IMAGE = f"{BATCH}job-definition/train-image-1"
CALLS = {
    "RegisterJobDefinition": [
        Wanted("batch:RegisterJobDefinition", OF_IMAGE, {"batch:Image": "me/train:2", "batch:User": "root", "batch:Privileged": "true"}),
        Wanted("batch:TagResource", f"{OF_IMAGE}:1"), Wanted("iam:PassRole", f"arn:aws:iam::{roles.ACCOUNT}:role/JobRole", PASSED),
    ],
    "SubmitJob": [
        Wanted("batch:SubmitJob", f"{BATCH}job-definition/train:1"), Wanted("batch:SubmitJob", f"{BATCH}job-queue/spot"),
        Wanted("batch:TagResource", f"{BATCH}job/1"),
    ],
    "ListObjectsV2": [Wanted("s3:ListBucket", f"arn:aws:s3:::{roles.BUCKET}", {"aws:SecureTransport": "true"})],
    "TerminateJobs": [Wanted("batch:TerminateJob", f"{BATCH}job/1")],
    "CancelJobs": [Wanted("batch:CancelJob", f"{BATCH}job/1")],
    "DescribeSecret": [Wanted("secretsmanager:DescribeSecret", f"arn:aws:secretsmanager:{LOCAL}:secret:team/key-a1B2c3")],
    "AssumeRole": [Wanted("sts:AssumeRole", TRIAL_ROLE), Wanted("sts:TagSession", TRIAL_ROLE)],
    "Publish": [Wanted("sns:Publish", f"arn:aws:sns:{LOCAL}:people")],
    "PutEvents": [Wanted("events:PutEvents", f"arn:aws:events:{LOCAL}:event-bus/default", {"events:source": ["spotsweep"]})],
    "DescribeContainerInstances": [Wanted("ecs:DescribeContainerInstances", f"arn:aws:ecs:{LOCAL}:container-instance/AWSBatch-1/1")],
    "UpdateContainerInstancesState": [
        Wanted("ecs:UpdateContainerInstancesState", f"arn:aws:ecs:{LOCAL}:container-instance/AWSBatch-1/1", OURS),
    ],
    "DescribeTasks": [Wanted("ecs:DescribeTasks", f"arn:aws:ecs:{LOCAL}:task/AWSBatch-1/1")],
    "CreateVolume": [
        Wanted("ec2:CreateVolume", VOLUME, {"ec2:VolumeType": "gp3"} | TAGS), Wanted("ec2:CreateVolume", SNAPSHOT),
        Wanted("ec2:CreateTags", VOLUME, {"ec2:CreateAction": "CreateVolume"} | TAGS),
    ],
    "CreateSnapshot": [
        Wanted("ec2:CreateSnapshot", SNAPSHOT, TAGS), Wanted("ec2:CreateSnapshot", VOLUME, OWN),
        Wanted("ec2:CreateTags", SNAPSHOT, {"ec2:CreateAction": "CreateSnapshot"} | TAGS),
    ],
    "TerminateInstances": [Wanted("ec2:TerminateInstances", INSTANCE, OURS)],
    "AttachVolume": [Wanted("ec2:AttachVolume", VOLUME, OWN), Wanted("ec2:AttachVolume", INSTANCE, OURS)],
    "DetachVolume": [Wanted("ec2:DetachVolume", VOLUME, OWN), Wanted("ec2:DetachVolume", INSTANCE, OURS)],
    "DeleteVolume": [Wanted("ec2:DeleteVolume", VOLUME, OWN)],
    "DeleteSnapshot": [Wanted("ec2:DeleteSnapshot", SNAPSHOT, OWN)],
}


def wants(verdict):
    """Of a verdict's call."""
    action, on = verdict["action"], verdict["on"]
    if action in ("GetObject", "PutObject"):
        return [Wanted(f"s3:{action}", f"arn:aws:s3:::{roles.BUCKET}/{on}", {"aws:SecureTransport": "true"})]
    if action in ("GetItem", "PutItem", "Query"):
        return [Wanted(f"dynamodb:{action}", f"{TABLE}/{on}" if on else TABLE)]
    return CALLS.get(action) or [Wanted(f"{verdict['service']}:{action}")]
