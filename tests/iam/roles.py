"""The roles of a control plane's template, with their policies as IAM gets them."""
import functools
import re
import sys
from pathlib import Path

import yaml

sys.path.append(str(Path(__file__).resolve().parents[1] / "infra"))
import cfn  # noqa: E402

# The bucket is the local stack's, which recorded calls and tags of sessions name.
ACCOUNT, REGION, BUCKET = "000000000000", "us-east-1", "spotsweep-local"
LOCAL = f"{REGION}:{ACCOUNT}"
# Parameters of the local stack (local-stack/src/deploy.rs).
DATA_BUCKETS = ["spotsweep-local-data"]
ALLOWED_SECRETS = ["/team/*", "team/*"]
CONTROL_PLANE = (cfn.INFRA / "control-plane.yaml").read_text()
# It has policies for roles of the control plane, which its parameters name.
COMPUTE = cfn.template("compute.yaml")
# The role of jobs, which a deployment brings along, is given this policy (docs/deploy.md).
JOB_ROLE, JOB_POLICY = "job", "RunnerPolicy"


# Functions of CloudFormation, by their arguments.
FUNCTIONS = {
    "Fn::Join": lambda between, texts: between.join(texts),
    "Fn::Split": lambda at, text: text.split(at),
    "Fn::Select": lambda number, members: members[number],
    "Fn::Equals": lambda one, other: one == other,
    "Fn::Not": lambda condition: not condition,
}


def default(parameter):
    """A parameter's value in a deployment that does not give it. An empty list has one member, which is empty."""
    text = str(parameter.get("Default", ""))
    return text.split(",") if parameter["Type"] == "CommaDelimitedList" else text


@functools.cache
def of_template(text):
    """A template's roles: the tests deploy some that lack a permission."""
    return Roles(yaml.load(text, cfn.Loader), DataBuckets=DATA_BUCKETS, AllowedSecrets=ALLOWED_SECRETS)


class Roles:
    def __init__(self, template, **given):
        self.resources = COMPUTE["Resources"] | template["Resources"]
        # Wildcards that a deployment may narrow stay what they are.
        parameters = (COMPUTE["Parameters"] | template["Parameters"]).items()
        self.values = {name: default(parameter) for name, parameter in parameters}
        self.conditions = COMPUTE["Conditions"] | template["Conditions"]
        self.values |= {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "NamePrefix": "", "Bucket": BUCKET} | given
        self.policies = self.all_policies(cfn.of_type(template, "AWS::IAM::Role"))

    def all_policies(self, own_roles):
        """Each role's policies by name, without a role's own ones under a condition, which a deployment may add."""
        every = {"Resources": self.resources}
        kinds = cfn.of_type(every, "AWS::IAM::ManagedPolicy") | cfn.of_type(every, "AWS::IAM::Policy")
        kinds = {name: properties for name, properties in kinds.items() if self.is_made(name)}
        documents = {name: self.resolved(properties["PolicyDocument"]) for name, properties in kinds.items()}
        roles = {JOB_ROLE: {JOB_POLICY: documents[JOB_POLICY]}}
        for role, properties in own_roles.items():
            attached = [one["Ref"] for one in properties.get("ManagedPolicyArns", [])]
            attached += [name for name, policy in kinds.items() if {"Ref": role} in policy.get("Roles", [])]
            own = {one["PolicyName"]: self.resolved(one["PolicyDocument"]) for one in properties.get("Policies", []) if "Fn::If" not in one}
            roles[role] = {name: documents[name] for name in attached} | own
        return roles

    def is_made(self, name):
        """Whether a deployment with these parameters has the resource."""
        condition = self.resources[name].get("Condition")
        return condition is None or self.resolved(self.conditions[condition])

    def trust(self, role):
        """Who may take a role."""
        return self.resolved(self.resources[role]["Properties"]["AssumeRolePolicyDocument"])

    def bucket_policy(self):
        """What the bucket itself refuses."""
        return self.resolved(self.resources["BucketPolicy"]["Properties"]["PolicyDocument"])

    def role_of(self, function):
        """A function's role, by the function's name."""
        found = cfn.of_type({"Resources": self.resources}, "AWS::Serverless::Function").values()
        return {self.resolved(one["FunctionName"]): one["Role"]["Fn::GetAtt"][0] for one in found}[function]

    def arn(self, name):
        """The ARN of a resource of the template."""
        kind, properties = self.resources[name]["Type"], self.resources[name]["Properties"]
        return {
            "AWS::S3::Bucket": f"arn:aws:s3:::{BUCKET}",
            "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{LOCAL}:table/{name}",
            "AWS::SQS::Queue": f"arn:aws:sqs:{LOCAL}:{name}",
            "AWS::Serverless::Function": f"arn:aws:lambda:{LOCAL}:function:{self.resolved(properties.get('FunctionName', name))}",
            "AWS::IAM::Role": f"arn:aws:iam::{ACCOUNT}:role/{name}",
            "AWS::Logs::LogGroup": f"arn:aws:logs:{LOCAL}:log-group:{self.resolved(properties.get('LogGroupName', name))}:*",
        }[kind]

    def resolved(self, value):
        """A value of the template without CloudFormation's functions."""
        if isinstance(value, list):
            return [self.resolved(one) for one in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            return self.values.get(value["Ref"], value["Ref"])
        if set(value) == {"Fn::GetAtt"} and value["Fn::GetAtt"][1] == "Arn":
            return self.arn(value["Fn::GetAtt"][0])
        if set(value) == {"Fn::Sub"}:
            text, own = value["Fn::Sub"] if isinstance(value["Fn::Sub"], list) else (value["Fn::Sub"], {})
            own = self.resolved(own)
            return re.sub(r"\$\{(!?)([^}]+)\}", lambda found: self.substituted(*found.groups(), own), text)
        if len(value) == 1 and (function := FUNCTIONS.get(next(iter(value)))):
            return function(*self.resolved(next(iter(value.values()))))
        return {key: self.resolved(one) for key, one in value.items()}

    def substituted(self, is_literal, name, own):
        if is_literal:
            # A variable of IAM's own.
            return f"${{{name}}}"
        return self.arn(name.removesuffix(".Arn")) if name.endswith(".Arn") else (self.values | own).get(name, name)
