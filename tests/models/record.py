"""The exchanges with AWS that the tests have recorded (emulator/server/src/http/record.rs, local-stack/src/record.py)."""
import json
from dataclasses import dataclass, field
from pathlib import Path

# Services whose name in a signature is not their name in botocore.
SIGNED_AS = {"monitoring": "cloudwatch", "api.pricing": "pricing", "servicequotas": "service-quotas"}


@dataclass(frozen=True)
class Session:
    """Temporary credentials of a role."""
    role: str
    name: str
    tags: dict = field(default_factory=dict)


@dataclass
class Exchange:
    """A request and its answer. `answer["status"]` is None where the connection was closed."""
    service: str
    request: dict
    answer: dict
    session: Session | None
    is_emulator: bool
    # The templates that may have been in force, where the stack's own services got the request. While a stack is updated
    # these are its template of before and the new one: CloudFormation changes one resource after the other.
    templates: tuple = ()

    @property
    def headers(self):
        return self.request["headers"]

    @property
    def body(self):
        return self.request["body"] or ""

    def __str__(self):
        target = self.headers.get("x-amz-target", "")
        query = f"?{self.request['query']}" if self.request["query"] else ""
        line = f"{self.service}: {self.request['method']} {self.request['path']}{query} {target} {self.body}"
        return line if len(line) < 600 else f"{line[:600]} …"


def read(folder):
    """All exchanges of a record, each form once. What is not signed is no AWS request."""
    files = sorted(Path(folder).glob("*.jsonl"))
    if not files:
        raise SystemExit(f"{folder} holds no record: run the tests with SPOTSWEEP_RECORD={folder}")
    lines = [(path.name, json.loads(line)) for path in files for line in path.read_text().splitlines()]
    sessions = {}
    for _, line in lines:
        if found := line.get("session"):
            # arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION
            role, name = found["arn"].split("/", 2)[1:] if found["arn"] and "assumed-role" in found["arn"] else ("", "")
            sessions[found["key"]] = Session(role, name, tags(found["tags"]))
    found, seen, templates, secrets = [], set(), {}, set()
    for name, line in lines:
        if stack := line.get("deploying"):
            templates.setdefault((name, stack), []).append(line["template"])
        if stack := line.get("deployed"):
            del templates[name, stack][:-1]
        text = json.dumps(line, sort_keys=True)
        signed = line.get("request", {}).get("signed")
        if signed and text not in seen:
            seen.add(text)
            if created := secret_created(line):
                secrets.add((name, created))
            line["request"]["secrets"] = {secret for file, secret in secrets if file == name}
            key, _, _, service = signed.rsplit("/", 3)
            service = SIGNED_AS.get(service, service)
            session = sessions.get(key)
            # CloudFormation's names of roles begin with their stack's.
            of_stack = (given for (file, stack), given in templates.items() if file == name and session and session.role.startswith(f"{stack}-"))
            found.append(Exchange(service, line["request"], line["answer"], session, name.startswith("emulator"), tuple(next(of_stack, ()))))
    return found


def secret_created(line):
    """The name of the secret of Secrets Manager that a request has created."""
    request, is_created = line["request"], line["answer"]["status"] == 200
    if is_created and request["headers"].get("x-amz-target") == "secretsmanager.CreateSecret":
        return json.loads(request["body"])["Name"]


def tags(given):
    """A session's tags by key."""
    return {tag["Key"]: tag["Value"] for tag in given} if isinstance(given, list) else dict(given)
