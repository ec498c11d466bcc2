"""What stands on the wire, as the values that botocore's validator takes.

Each decoder appends to `problems` what the model of the service does not know: botocore, which only writes
requests and reads answers, has no decoder of requests, and ignores unknown members of answers.
"""
import base64
import binascii
import datetime
import re

from botocore.utils import parse_timestamp


def scalar(text, shape, path, problems):
    """A text by the type of its shape."""
    kind = shape.type_name
    try:
        if kind in ("integer", "long"):
            return int(text)
        if kind in ("float", "double"):
            return float(text)
        if kind == "boolean":
            return {"true": True, "false": False}[text]
        if kind == "timestamp":
            return parse_timestamp(text)
        if kind == "blob":
            return base64.b64decode(text, validate=True)
    except (ValueError, KeyError, binascii.Error):
        problems.append(f"{path}: {text!r} is no {kind}")
        return None
    return text


def serialized(name, member):
    """A member's name in XML and JSON."""
    return member.serialization.get("name", name)


def of_json(value, shape, path, problems):
    """A value of JSON. Its type is left to the validator but where JSON has no such type."""
    kind = shape.type_name
    if kind == "structure" and isinstance(value, dict):
        if getattr(shape, "is_document_type", False):
            return value
        members = {serialized(name, member): (name, member) for name, member in shape.members.items()}
        decoded = {}
        for key, inner in value.items():
            if key not in members:
                problems.append(f"{path}.{key}: unknown member of {shape.name}")
            elif inner is not None:
                name, member = members[key]
                decoded[name] = of_json(inner, member, f"{path}.{name}", problems)
        return decoded
    if kind == "list" and isinstance(value, list):
        return [of_json(inner, shape.member, f"{path}[{number}]", problems) for number, inner in enumerate(value)]
    if kind == "map" and isinstance(value, dict):
        return {key: of_json(inner, shape.value, f"{path}.{key}", problems) for key, inner in value.items()}
    if kind == "timestamp" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return datetime.datetime.fromtimestamp(value, datetime.timezone.utc)
    if kind in ("timestamp", "blob") and isinstance(value, str):
        return scalar(value, shape, path, problems)
    if kind in ("float", "double") and isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value.replace("Infinity", "inf"))
    return value


def tree(parameters):
    """`A.1.B=c` as {"A": {"1": {"B": "c"}}}."""
    root = {}
    for name, value in parameters:
        *outer, last = name.split(".")
        inner = root
        for part in outer:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{name}: a value and a list at once")
        inner[last] = value
    return root


def query_name(name, member, protocol):
    """A member's name in a request: EC2's protocol begins each with a capital letter."""
    serialization = member.serialization
    if protocol != "ec2":
        return serialization.get("name", name)
    if "queryName" in serialization:
        return serialization["queryName"]
    given = serialization.get("name", name)
    return given[0].upper() + given[1:]


def of_query(found, shape, path, problems, protocol):
    """A part of the tree of a request in the query protocol, or in EC2's."""
    kind = shape.type_name
    if kind not in ("structure", "list", "map"):
        if isinstance(found, dict):
            problems.append(f"{path}: members, where {shape.name} is a {kind}")
            return None
        return scalar(found, shape, path, problems)
    if not isinstance(found, dict):
        problems.append(f"{path}: {found!r}, where {shape.name} is a {kind}")
        return None
    if kind == "list":
        return list_of_query(found, shape, path, problems, protocol)
    if kind == "map":
        entries = found if shape.serialization.get("flattened") else found.get("entry", {})
        names = [serialized("key", shape.key), serialized("value", shape.value)]
        return {entry[names[0]]: of_query(entry.get(names[1]), shape.value, path, problems, protocol) for entry in entries.values()}
    members = {}
    for name, member in shape.members.items():
        wire = query_name(name, member, protocol)
        if protocol != "ec2" and member.type_name == "list" and member.serialization.get("flattened"):
            wire = member.member.serialization.get("name", wire)
        members[wire] = (name, member)
    decoded = {}
    for wire, inner in found.items():
        if wire not in members:
            problems.append(f"{path}.{wire}: unknown member of {shape.name}")
        else:
            name, member = members[wire]
            decoded[name] = of_query(inner, member, f"{path}.{name}", problems, protocol)
    return decoded


def list_of_query(found, shape, path, problems, protocol):
    """`1`, `2`, … in order, below `member` where the list is not flat."""
    if protocol != "ec2" and not shape.serialization.get("flattened"):
        name = shape.member.serialization.get("name", "member")
        problems.extend(f"{path}.{other}: no member of a list" for other in found if other != name)
        found = found.get(name, {})
    if not isinstance(found, dict) or sorted(found) != sorted(str(number) for number in range(1, len(found) + 1)):
        problems.append(f"{path}: the numbers of its members are not 1 to {len(found)}")
        return None
    return [of_query(found[str(n)], shape.member, f"{path}[{n - 1}]", problems, protocol) for n in range(1, len(found) + 1)]


def local(element):
    """An element's name without its name space."""
    return element.tag.rsplit("}", 1)[-1]


def of_xml(element, shape, path, problems, item="member"):
    """An element. `item` is what the members of a list are called where the model does not say."""
    kind = shape.type_name
    if kind == "structure":
        members = {}
        for name, member in shape.members.items():
            wire = serialized(name, member)
            if member.type_name == "list" and member.serialization.get("flattened"):
                wire = member.member.serialization.get("name", wire)
            members[wire] = (name, member)
        decoded = {}
        for child in element:
            if local(child) not in members:
                problems.append(f"{path}.{local(child)}: unknown member of {shape.name}")
                continue
            name, member = members[local(child)]
            if member.type_name == "list" and member.serialization.get("flattened"):
                at = decoded.setdefault(name, [])
                at.append(of_xml(child, member.member, f"{path}.{name}[{len(at)}]", problems, item))
            else:
                decoded[name] = of_xml(child, member, f"{path}.{name}", problems, item)
        attributes = {member.serialization.get("name"): name for name, member in shape.members.items() if member.serialization.get("xmlAttribute")}
        for attribute, value in element.attrib.items():
            # `xsi:type` comes with the URI of its name space.
            known = [name for wire, name in attributes.items() if wire.split(":")[-1] == attribute.rsplit("}", 1)[-1]]
            decoded.update({name: value for name in known})
        return decoded
    if kind == "list":
        name = shape.member.serialization.get("name", item)
        problems.extend(f"{path}.{local(child)}: no member of a list" for child in element if local(child) != name)
        return [of_xml(child, shape.member, f"{path}[{number}]", problems, item) for number, child in enumerate(element)]
    if len(element):
        problems.append(f"{path}: elements, where {shape.name} is a {kind}")
        return None
    return scalar(element.text or "", shape, path, problems)


def template(uri):
    """A pattern of paths, the names of its labels, and the query that a request must have."""
    path, _, query = uri.partition("?")
    names = re.findall(r"\{([^}+]+)\+?\}", path)
    pattern = re.sub(r"\\\{[^}]+?\\\+\\\}", "(.+)", re.escape(path))
    pattern = re.sub(r"\\\{[^}]+?\\\}", "([^/]+)", pattern)
    return re.compile(pattern + "/?"), names, dict(part.partition("=")[::2] for part in query.split("&") if part)
