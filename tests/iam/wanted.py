"""What IAM has to allow for a request: actions, each on a resource, with what conditions may ask about.

After the Service Authorization Reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/reference.html): a call is authorised for every
resource that it names. Tags given at creation are a permission of their own
(https://docs.aws.amazon.com/ebs/latest/userguide/supported-iam-actions-tagging.html).
"""
import re
from dataclasses import dataclass, field
from urllib.parse import unquote

import roles

LOCAL = roles.LOCAL
# What a new volume or snapshot may be called: its id is not known when the call is authorised.
NEW = {"volume": "vol-00000000000000000", "snapshot": "snap-00000000000000000"}
PASSED = {"iam:PassedToService": "batch.amazonaws.com"}
# CloudFormation's names: STACK-RESOURCE-SUFFIX.
GIVEN = re.compile(r".+-([A-Za-z]+)-[0-9A-F]{13}")


@dataclass
class Wanted:
    """One decision of IAM's."""
    action: str
    resource: str = "*"
    context: dict = field(default_factory=dict)


def logical(name):
    """A resource's name in the template, of the name that it was given."""
    found = GIVEN.fullmatch(name)
    return found[1] if found else name


def request_tags(tags):
    return {f"aws:RequestTag/{key}": value for key, value in tags.items()} | {"aws:TagKeys": list(tags)}


def resource_tags(tags):
    return {f"aws:ResourceTag/{key}": value for key, value in (tags or {}).items()}


def of(operation, parameters, request):
    """What a request wants. `request["tags"]` holds the tags of the EC2 resources that it names, and `request["secrets"]`
    the names of the secrets that exist in Secrets Manager."""
    service = operation.service_model.service_name
    return {
        "dynamodb": dynamodb, "s3": s3, "ec2": ec2, "batch": batch, "ecs": ecs, "events": events, "sts": sts,
        "sns": lambda name, given, _: [Wanted(f"sns:{name}", given["TopicArn"])],
        "lambda": lambda name, given, _: [Wanted("lambda:InvokeFunction", f"arn:aws:lambda:{LOCAL}:function:{given['FunctionName']}")],
        "pricing": lambda name, given, _: [Wanted(f"pricing:{name}")],
        "ssm": ssm, "secretsmanager": secrets_manager,
    }[service](operation.name, parameters, request)


def dynamodb(name, given, _request):
    table = f"arn:aws:dynamodb:{LOCAL}:table/{logical(given['TableName'])}"
    return [Wanted(f"dynamodb:{name}", f"{table}/index/{given['IndexName']}" if "IndexName" in given else table)]


S3 = {
    "HeadObject": "GetObject", "CreateMultipartUpload": "PutObject", "UploadPart": "PutObject",
    "CompleteMultipartUpload": "PutObject", "ListObjectsV2": "ListBucket",
}


def s3(name, given, _request):
    action = S3.get(name, name)
    action += "Version" if action == "GetObject" and "VersionId" in given else ""
    key = f"/{unquote(given['Key'])}" if "Key" in given else ""
    return [Wanted(f"s3:{action}", f"arn:aws:s3:::{given['Bucket']}{key}", {"aws:SecureTransport": "true"})]


def ec2(name, given, request):
    tags = request.get("tags", {})

    def on(kind, resource, context=()):
        account = "" if kind == "snapshot" else roles.ACCOUNT
        return Wanted(f"ec2:{name}", f"arn:aws:ec2:{roles.REGION}:{account}:{kind}/{resource}", dict(context))

    def tagged(kind, resource):
        return on(kind, resource, resource_tags(tags.get(resource)))

    def created(kind, context):
        new = {tag["Key"]: tag["Value"] for one in given.get("TagSpecifications", []) for tag in one["Tags"]}
        wanted = [on(kind, NEW[kind], context | request_tags(new))]
        if new:
            making = Wanted("ec2:CreateTags", wanted[0].resource, {"ec2:CreateAction": name} | request_tags(new))
            wanted.append(making)
        return wanted

    if name.startswith("Describe"):
        return [Wanted(f"ec2:{name}")]
    if name == "CreateVolume":
        source = [tagged("snapshot", given["SnapshotId"])] if "SnapshotId" in given else []
        return created("volume", {"ec2:VolumeType": given.get("VolumeType", "gp2")}) + source
    if name == "CreateSnapshot":
        return created("snapshot", {}) + [tagged("volume", given["VolumeId"])]
    if name in ("AttachVolume", "DetachVolume"):
        instance = [tagged("instance", given["InstanceId"])] if "InstanceId" in given else []
        return [tagged("volume", given["VolumeId"])] + instance
    if name == "TerminateInstances":
        return [tagged("instance", instance) for instance in given["InstanceIds"]]
    if name == "DeleteVolume":
        return [tagged("volume", given["VolumeId"])]
    if name == "DeleteSnapshot":
        return [tagged("snapshot", given["SnapshotId"])]
    raise KeyError(f"ec2:{name}: say here which resources it is authorised for")


def batch(name, given, _request):
    def on(kind, named):
        return named if named.startswith("arn:") else f"arn:aws:batch:{LOCAL}:{kind}/{named}"

    if name == "SubmitJob":
        tags = request_tags(given["tags"]) if given.get("tags") else {}
        wanted = [Wanted("batch:SubmitJob", on("job-definition", given["jobDefinition"]), tags),
                  Wanted("batch:SubmitJob", on("job-queue", given["jobQueue"]), tags)]
        return wanted + ([Wanted("batch:TagResource", on("job", "new"), tags)] if tags else [])
    if name == "RegisterJobDefinition":
        container, definition = given["containerProperties"], on("job-definition", given["jobDefinitionName"])
        role = [Wanted("iam:PassRole", container["jobRoleArn"], PASSED)] if "jobRoleArn" in container else []
        tags = request_tags(given["tags"]) if given.get("tags") else {}
        keys = {"batch:Image": container["image"], "batch:Privileged": str(container.get("privileged", False)).lower()}
        keys |= {"batch:User": container["user"]} if "user" in container else {}
        return [Wanted("batch:RegisterJobDefinition", definition, keys | tags), Wanted("batch:TagResource", f"{definition}:1", tags), *role]
    if name in ("TerminateJob", "CancelJob"):
        return [Wanted(f"batch:{name}", on("job", given["jobId"]))]
    if name in ("TerminateJobs", "CancelJobs"):
        # They have no actions of their own (their pages in the API reference).
        return [Wanted(f"batch:{name.removesuffix('s')}", on("job", job)) for job in given["jobs"]]
    if name.startswith(("Describe", "List")):
        return [Wanted(f"batch:{name}")]
    raise KeyError(f"batch:{name}: say here which resources it is authorised for")


def ecs(name, given, request):
    if name == "DescribeTasks":
        return [Wanted("ecs:DescribeTasks", task) for task in given["tasks"]]
    # The ECS agent gives a container instance the tags of its EC2 instance.
    tags = request.get("tags", {})
    return [Wanted(f"ecs:{name}", instance, resource_tags(tags.get(instance))) for instance in given["containerInstances"]]


def ssm(name, given, _request):
    if name == "DescribeParameters":
        return [Wanted("ssm:DescribeParameters")]
    return [Wanted(f"ssm:{name}", f"arn:aws:ssm:{LOCAL}:parameter{given['Name']}")]


def secrets_manager(name, given, request):
    # The service authorises the ARN of the secret with this name. A name of no secret has no random characters (fact 73).
    secret = given["SecretId"]
    suffix = "-a1B2c3" if secret in request.get("secrets", ()) else ""
    return [Wanted(f"secretsmanager:{name}", f"arn:aws:secretsmanager:{LOCAL}:secret:{secret}{suffix}")]


def events(name, given, _request):
    sources = {}
    for entry in given["Entries"]:
        sources.setdefault(entry.get("EventBusName", "default"), []).append(entry["Source"])
    return [Wanted(f"events:{name}", f"arn:aws:events:{LOCAL}:event-bus/{bus}", {"events:source": those}) for bus, those in sources.items()]


def sts(name, given, _request):
    role = f"arn:aws:iam::{roles.ACCOUNT}:role/{logical(given['RoleArn'].rsplit('/', 1)[1])}"
    tags = request_tags({tag["Key"]: tag["Value"] for tag in given.get("Tags", [])})
    wanted = [Wanted(f"sts:{name}", role, tags)]
    return wanted + ([Wanted("sts:TagSession", role, tags)] if given.get("Tags") else [])
