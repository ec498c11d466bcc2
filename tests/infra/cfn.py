"""Templates as Python values: `!Ref x` becomes {"Ref": "x"}, and so on."""
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"


class Loader(yaml.SafeLoader):
    """Knows CloudFormation's short forms."""


def short_form(loader, suffix, node):
    name = suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
        return {name: value.split(".", 1) if suffix == "GetAtt" else value}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", short_form)


def template(name):
    return yaml.load((INFRA / name).read_text(), Loader)


def names():
    return sorted(path.name for path in INFRA.glob("[!.]*.yaml"))


def of_type(loaded, kind):
    return {name: found["Properties"] for name, found in loaded["Resources"].items() if found["Type"] == kind}


def below(value):
    """The value and everything in it."""
    yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from below(one)


def filled(text, **parameters):
    """A `!Sub` text with the parameters in their places; other placeholders stay."""
    text = text["Fn::Sub"] if isinstance(text, dict) else text
    for name, value in parameters.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def as_list(value):
    return value if isinstance(value, list) else [value]
