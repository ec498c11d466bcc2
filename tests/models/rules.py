"""Whether a value is what a service's model says.

botocore's own validator holds it against names, types, required members, and least lengths and values.
The models say more, which botocore leaves to the service: enums, patterns, greatest lengths and values.
"""
import functools
import re

from botocore.session import Session
from botocore.validate import ParamValidator

SESSION = Session()
# Names of members that hold instance types in models which do not list these.
INSTANCE_TYPES = {"instanceType", "instanceTypes"}
# What compute environments take beside instance types and families (API_ComputeResource of AWS Batch).
BATCH_TYPES = {"optimal", "default_x86_64", "default_arm64"}


@functools.cache
def model(service):
    """A service's model."""
    return SESSION.get_service_model(service)


@functools.cache
def instance_types():
    """All that EC2 has."""
    return frozenset(model("ec2").shape_for("InstanceType").enum)


@functools.cache
def pattern_of(text):
    """A pattern of a model; None where it has what Python's cannot say. Services match the whole text."""
    if r"[\p{L}" in text:
        # Letters, spaces and digits, and the signs that follow: letters are what \w has beside digits and the underscore.
        text = text.replace(r"\p{L}\p{Z}\p{N}", r"\w\s")
    try:
        return re.compile(text)
    except re.error:
        return None


def problems(value, shape, path=""):
    """What is wrong with a value, by the model."""
    if value is None:
        return []
    report = ParamValidator().validate(value, shape)
    found = [f"{path}: {line}" if path else line for line in report.generate_report().split("\n") if line]
    return found + beyond(value, shape, path)


def beyond(value, shape, path):
    """What botocore leaves to the service."""
    kind = shape.type_name
    if value is None:
        return []
    if kind == "structure" and isinstance(value, dict):
        if getattr(shape, "is_document_type", False):
            return []
        inner = ((name, value[name], member) for name, member in shape.members.items() if name in value)
        found = [problem for name, one, member in inner for problem in beyond(one, member, f"{path}.{name}")]
        types = ((name, shape.members.get(name)) for name in INSTANCE_TYPES & value.keys())
        return found + [problem for name, member in types for problem in of_types(value[name], member, f"{path}.{name}")]
    if kind == "list" and isinstance(value, list):
        found = [problem for number, one in enumerate(value) for problem in beyond(one, shape.member, f"{path}[{number}]")]
        return found + most(len(value), shape, path, "members")
    if kind == "map" and isinstance(value, dict):
        keys = [problem for key in value for problem in beyond(key, shape.key, f"{path}.{key}")]
        values = [problem for key, one in value.items() for problem in beyond(one, shape.value, f"{path}.{key}")]
        return keys + values + most(len(value), shape, path, "entries")
    if kind in ("integer", "long", "float", "double") and isinstance(value, (int, float)):
        return most(value, shape, path, "as its value")
    if kind == "blob" and isinstance(value, bytes):
        return most(len(value), shape, path, "bytes")
    if kind == "string" and isinstance(value, str):
        return most(len(value), shape, path, "characters") + of_text(value, shape, path)
    return []


def most(count, shape, path, what):
    limit = shape.metadata.get("max")
    return [f"{path}: {count} {what}, {shape.name} has {limit} at most"] if limit is not None and count > limit else []


def of_text(value, shape, path):
    if shape.enum and value not in shape.enum:
        return [f"{path}: {value!r} is none of {shape.name}"]
    pattern = shape.metadata.get("pattern") and pattern_of(shape.metadata["pattern"])
    if pattern and not pattern.fullmatch(value):
        return [f"{path}: {value!r} is not of the pattern {shape.metadata['pattern']} of {shape.name}"]
    return []


def of_types(value, shape, path):
    """Instance types, or families of them, that EC2 has."""
    if shape is None or (shape.type_name == "string" and shape.enum):
        return []
    families = {name.split(".")[0] for name in instance_types()}
    known = instance_types() | families | BATCH_TYPES
    given = value if isinstance(value, list) else [value]
    return [f"{path}: EC2 has no instance type {one!r}" for one in given if isinstance(one, str) and one not in known]
