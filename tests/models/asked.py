"""Which operation a request asks for, and with which parameters."""
import json
from urllib.parse import parse_qsl, unquote
from xml.etree import ElementTree

import decode
import rules

# Parameters and headers of every request, which no model lists.
OWN_PARAMETERS = {"x-id"}
OWN_HEADERS = {
    "x-amz-date", "x-amz-content-sha256", "x-amz-user-agent", "x-amz-target", "x-amz-trailer",
    "x-amz-decoded-content-length", "x-amzn-trace-id", "x-amz-te", "x-amzn-query-mode",
}


class Unknown(Exception):
    """The service has no such operation."""


def parse(exchange):
    """(operation, parameters, problems) of a request."""
    service = rules.model(exchange.service)
    protocol = service.protocol
    problems = []
    if protocol in ("ec2", "query"):
        name, parameters = of_query(service, exchange.body, problems)
    elif protocol == "json":
        name, parameters = of_json(service, exchange, problems)
    else:
        name, parameters = of_rest(service, exchange, problems)
    return service.operation_model(name), parameters, problems


def of_query(service, body, problems):
    parameters = parse_qsl(body, keep_blank_values=True)
    named = dict(parameters)
    if len(named) != len(parameters):
        problems.append("a parameter is given twice")
    name = named.pop("Action", None)
    if name not in service.operation_names:
        raise Unknown(f"{service.service_name} has no action {name}")
    version = named.pop("Version", None)
    if version != service.api_version:
        problems.append(f"Version: {version}, and the model is of {service.api_version}")
    shape = service.operation_model(name).input_shape
    if shape is None:
        problems.extend(f"{given}: {name} has no parameters" for given in named)
        return name, {}
    return name, decode.of_query(decode.tree(named.items()), shape, "", problems, service.protocol)


def of_json(service, exchange, problems):
    prefix, _, name = exchange.headers.get("x-amz-target", "").partition(".")
    if prefix != service.metadata["targetPrefix"] or name not in service.operation_names:
        raise Unknown(f"{service.service_name} has no operation {prefix}.{name}")
    content = f"application/x-amz-json-{service.metadata['jsonVersion']}"
    if exchange.headers.get("content-type") != content:
        problems.append(f"content-type: {exchange.headers.get('content-type')}, and the protocol's is {content}")
    shape = service.operation_model(name).input_shape
    body = json_of(exchange.body, problems)
    if shape is None:
        problems.extend(f"{given}: {name} has no parameters" for given in body)
        return name, {}
    return name, decode.of_json(body, shape, "", problems)


def json_of(body, problems):
    try:
        value = json.loads(body or "{}")
    except ValueError as error:
        problems.append(f"the body is no JSON: {error}")
        return {}
    if isinstance(value, dict):
        return value
    problems.append("the body is no JSON object")
    return {}


def of_rest(service, exchange, problems):
    query = parse_qsl(exchange.request["query"], keep_blank_values=True)
    name, labels, literals = rest_operation(service, exchange.request, dict(query))
    shape = service.operation_model(name).input_shape
    parameters = {}
    if shape is None:
        return name, parameters
    body = {}
    lists = {}
    for given, value in query:
        lists.setdefault(given, []).append(value)
    known = set(literals) | OWN_PARAMETERS
    headers = set(OWN_HEADERS)
    if service.operation_model(name).http_checksum:
        headers.update(header for header in exchange.headers if header.startswith("x-amz-checksum-"))
    for member_name, member in shape.members.items():
        location, wire = member.serialization.get("location"), decode.serialized(member_name, member)
        path = f".{member_name}"
        if location == "uri":
            parameters[member_name] = decode.scalar(unquote(labels[wire]), member, path, problems)
        elif location == "querystring":
            known.add(wire)
            if wire in lists and member.type_name == "list":
                parameters[member_name] = [decode.scalar(one, member.member, path, problems) for one in lists[wire]]
            elif wire in lists:
                parameters[member_name] = decode.scalar(lists[wire][0], member, path, problems)
        elif location == "header":
            headers.add(wire.lower())
            if wire.lower() in exchange.headers:
                parameters[member_name] = of_header(exchange.headers[wire.lower()], member, path, problems)
        elif location == "headers":
            own = {header: value for header, value in exchange.headers.items() if header.startswith(wire.lower())}
            headers.update(own)
            parameters.update({member_name: {header[len(wire):]: value for header, value in own.items()}} if own else {})
        else:
            body[member_name] = member
    problems.extend(f"{given}: unknown parameter of {name}" for given in lists if given not in known)
    unknown = (header for header in exchange.headers if header.startswith(("x-amz-", "x-amzn-")) and header not in headers)
    problems.extend(f"{header}: unknown header of {name}" for header in unknown)
    parameters.update(of_body(service, exchange, shape, body, problems))
    return name, parameters


def rest_operation(service, request, query):
    """The operation with the longest path and the most parameters in its URI that are there."""
    found = []
    for name in service.operation_names:
        http = service.operation_model(name).http
        pattern, names, literals = decode.template(http["requestUri"])
        match = pattern.fullmatch(request["path"])
        has_all = all(given in query and value in ("", query[given]) for given, value in literals.items())
        if http["method"] == request["method"] and match and has_all:
            is_meant = query.get("x-id") == name
            shape = service.operation_model(name).input_shape
            required = required_in_query(shape) if shape else []
            if all(one in query for one in required):
                found.append((is_meant, len(literals) + len(required), len(names), name, dict(zip(names, match.groups())), literals))
    if not found:
        raise Unknown(f"{service.service_name} has no operation {request['method']} {request['path']}")
    return max(found, key=lambda one: one[:3])[3:]


def required_in_query(shape):
    members = ((name, shape.members[name]) for name in shape.required_members)
    return [decode.serialized(name, member) for name, member in members if member.serialization.get("location") == "querystring"]


def of_header(text, member, path, problems):
    if member.type_name == "list":
        return [decode.scalar(one.strip(), member.member, path, problems) for one in text.split(",")]
    return decode.scalar(text, member, path, problems)


def of_body(service, exchange, shape, members, problems):
    payload = shape.serialization.get("payload")
    if payload is None:
        if service.protocol == "rest-xml" or not members:
            return {}
        wire = {decode.serialized(name, member): (name, member) for name, member in members.items()}
        body, parameters = json_of(exchange.body, problems), {}
        for given, value in body.items():
            if given not in wire:
                problems.append(f".{given}: unknown member of {shape.name}")
            elif value is not None:
                name, member = wire[given]
                parameters[name] = decode.of_json(value, member, f".{name}", problems)
        return parameters
    member = shape.members[payload]
    if member.type_name in ("blob", "string"):
        return {payload: b"" if member.type_name == "blob" else exchange.body}
    if not exchange.body:
        return {}
    if service.protocol == "rest-json":
        return {payload: decode.of_json(json_of(exchange.body, problems), member, f".{payload}", problems)}
    try:
        root = ElementTree.fromstring(exchange.body)
    except ElementTree.ParseError as error:
        problems.append(f"the body is no XML: {error}")
        return {}
    if decode.local(root) != decode.serialized(payload, member):
        problems.append(f"the body is a {decode.local(root)}, and the model's is a {decode.serialized(payload, member)}")
    return {payload: decode.of_xml(root, member, f".{payload}", problems)}
