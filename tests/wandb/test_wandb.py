"""Compares what `cases.json` says of W&B with W&B's own release: its agent's commands, its macros, its readings.

The crate `sweep-file` is compared with the same file (`shared/sweep-file/tests/wandb.rs`). So a change in W&B fails
here, and a change in the crate fails there. `UPDATE_EXPECTED=1` writes what W&B does now; read the difference.

It needs wandb and PyYAML, and no network, account or service.
"""

import ast
import inspect
import json
import os
import pathlib
import tempfile
import textwrap
import unittest
from unittest import mock

import yaml
from wandb import wandb_agent
from wandb.apis.public import sweeps
from wandb.sdk.launch.sweeps import utils
from wandb.sdk.lib import config_util

CASES = pathlib.Path(__file__).with_name("cases.json")
JSON_FILE = "<parameters.json>"


def as_sent(config):
    """The config as W&B's client sends it to the server, which gives it to the agent."""
    api = mock.MagicMock()
    api._service_api.execute_graphql.return_value = {"upsertSweep": {"sweep": {}}}
    sweeps._upsert_sweep(api, config)
    return yaml.safe_load(api._service_api.execute_graphql.call_args.kwargs["variables"]["config"])


def of_agent(config, environment):
    """The command that W&B's agent starts for a sweep of one run, and the file with parameters it writes before."""
    agent = wandb_agent.Agent.__new__(wandb_agent.Agent)
    agent._sweep_command = config.get("command") or []
    agent._function, agent._in_jupyter, agent._forward_signals = None, False, False
    agent._run_processes = {}
    config = {**config, "parameters": as_sent(config)["parameters"]}
    values = {name: {"value": entry["value"]} for name, entry in sorted(config["parameters"].items())}
    run = {"run_id": "run", "program": config.get("program"), "args": values}
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, {"WANDB_DIR": folder, "WANDB_SWEEP_ID": "sweep", **environment}),
        mock.patch.object(wandb_agent, "AgentProcess") as process,
        mock.patch.object(wandb_agent.wandb, "termlog"),
    ):
        pathlib.Path(folder, "wandb", "sweep-sweep").mkdir(parents=True)
        agent._command_run(run)
        command = process.call_args.kwargs["command"]
        return [JSON_FILE if str(part).startswith(folder) else part for part in command]


def macros():
    """Every macro that W&B's agent fills in: what makes arguments of parameters, and what the agent adds."""
    names = set(utils.create_sweep_command_args({"args": {}}))
    source = ast.parse(textwrap.dedent(inspect.getsource(wandb_agent.Agent._command_run)))
    for node in ast.walk(source):
        is_entry = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        if is_entry and isinstance(node.value, ast.Name) and node.value.id == "sweep_vars":
            names.add(ast.literal_eval(node.slice))
    return {f"${{{name}}}" for name in names}


def reading(written):
    """What PyYAML reads in the place of a value, as JSON has it."""
    value = yaml.safe_load(f"value: {written}")["value"]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


class Wandb(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cases = json.loads(CASES.read_text())
        if os.environ.get("UPDATE_EXPECTED"):
            for case in cls.cases["commands"]:
                case["arguments"] = of_agent(yaml.safe_load(case["file"]), case["environment"])
            for case in cls.cases["scalars"]:
                case["wandb"] = reading(case["written"])
            CASES.write_text(json.dumps(cls.cases, indent=1, ensure_ascii=False) + "\n")

    def test_commands_are_those_of_wandbs_agent(self):
        for case in self.cases["commands"]:
            with self.subTest(case["file"]):
                found = of_agent(yaml.safe_load(case["file"]), case["environment"])
                self.assertEqual(found, case["arguments"])

    def test_there_is_no_other_macro(self):
        self.assertEqual(macros(), {*self.cases["macros"], *self.cases["refused_macros"]})

    def test_values_are_what_pyyaml_reads(self):
        for case in self.cases["scalars"]:
            with self.subTest(case["written"]):
                found = reading(case["written"])
                self.assertEqual((type(found), found), (type(case["wandb"]), case["wandb"]))

    def test_wandbs_config_reads_the_parameters_of_the_runner(self):
        """`runner/src/wandb.rs` writes the file."""
        found = config_util.dict_from_config_file(str(CASES.with_name("parameters.yaml")))
        self.assertEqual(repr(found), repr(json.loads(CASES.with_name("parameters.json").read_text())))


if __name__ == "__main__":
    unittest.main()
