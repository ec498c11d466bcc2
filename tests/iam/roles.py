"""The roles of a control plane's template, with their policies as IAM gets them."""
import functools
import re
import sys
from pathlib import Path

import yaml

sys.path.append(str(Path(__file__).resolve().parents[1] / "infra"))
import cfn  # noqa: E402

ACCOUNT, REGION, BUCKET = "000000000000", "us-east-1", "bucket"
LOCAL = f"{REGION}:{ACCOUNT}"
CONTROL_PLANE = (cfn.INFRA / "control-plane.yaml").read_text()
# It has policies for roles of the control plane, which its parameters name.
COMPUTE = cfn.template("compute.yaml")
# The role of jobs, which a deployment brings along, is given this policy (docs/deploy.md).
JOB_ROLE, JOB_POLICY = "job", "RunnerPolicy"


@functools.cache
def of_template(text):
    """A template's roles: the tests deploy some that lack a permission."""
    return Roles(yaml.load(text, cfn.Loader))


class Roles:
    def __init__(self, template, **given):
        self.resources = COMPUTE["Resources"] | template["Resources"]
        # Wildcards that a deployment may narrow stay what they are.
        parameters = (COMPUTE["Parameters"] | template["Parameters"]).items()
        self.values = {name: str(parameter.get("Default", "")) for name, parameter in parameters}
        self.values |= {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "NamePrefix": "", "Bucket": BUCKET} | given
        self.policies = self.all_policies(cfn.of_type(template, "AWS::IAM::Role"))

    def all_policies(self, own_roles):
        """Each role's policies by name, without those under a condition, which a deployment may add."""
        every = {"Resources": self.resources}
        kinds = cfn.of_type(every, "AWS::IAM::ManagedPolicy") | cfn.of_type(every, "AWS::IAM::Policy")
        documents = {name: self.resolved(properties["PolicyDocument"]) for name, properties in kinds.items()}
        roles = {JOB_ROLE: {JOB_POLICY: documents[JOB_POLICY]}}
        for role, properties in own_roles.items():
            attached = [one["Ref"] for one in properties.get("ManagedPolicyArns", [])]
            attached += [name for name, policy in kinds.items() if {"Ref": role} in policy.get("Roles", [])]
            own = {one["PolicyName"]: self.resolved(one["PolicyDocument"]) for one in properties.get("Policies", []) if "Fn::If" not in one}
            roles[role] = {name: documents[name] for name in attached} | own
        return roles

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
            return re.sub(r"\$\{(!?)([^}]+)\}", self.substituted, value["Fn::Sub"])
        return {key: self.resolved(one) for key, one in value.items()}

    def substituted(self, found):
        is_literal, name = found.groups()
        if is_literal:
            # A variable of IAM's own.
            return f"${{{name}}}"
        return self.arn(name.removesuffix(".Arn")) if name.endswith(".Arn") else self.values.get(name, name)
