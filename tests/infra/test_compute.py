"""What instances, queues and the job definition of infra/compute.yaml must be like."""
import json
import re
import unittest

from cfn import ROOT, below, names, of_type, template

COMPUTE = template("compute.yaml")
WHOLE = template("spotsweep.yaml")


class Instances(unittest.TestCase):
    def test_metadata_needs_a_token_and_reaches_one_container_deep(self):
        data = of_type(COMPUTE, "AWS::EC2::LaunchTemplate")["LaunchTemplate"]["LaunchTemplateData"]
        self.assertEqual(data["MetadataOptions"], {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 2})
        for mapping in data["BlockDeviceMappings"]:
            self.assertEqual((mapping["Ebs"]["Encrypted"], mapping["Ebs"]["VolumeType"]), (True, "gp3"))

    def test_old_gpus_are_refused_with_the_ami_of_batch(self):
        rule = COMPUTE["Rules"]["OldGpusNeedAnAmi"]
        self.assertEqual(rule["RuleCondition"], {"Fn::Equals": [{"Ref": "GpuAmi"}, ""]})
        refused = [one["Fn::Contains"] for found in rule["Assertions"] for one in found["Assert"]["Fn::Not"][0]["Fn::Or"]]
        self.assertEqual({json.dumps(given) for given, _ in refused}, {json.dumps({"Ref": "InstanceTypes"})})
        named = {name for _, name in refused}
        self.assertEqual({name.split(".")[0] for name in named}, {"g3", "g3s", "p3", "p3dn"})
        self.assertEqual({name for name in named if "." not in name}, {"g3", "g3s", "p3", "p3dn"})
        self.assertFalse(named & set(COMPUTE["Parameters"]["InstanceTypes"]["Default"].split(",")))

    def test_a_new_text_renews_the_ami_of_both_environments(self):
        template = of_type(COMPUTE, "AWS::EC2::LaunchTemplate")["LaunchTemplate"]
        self.assertIn("${ImagesAsOf}", template["VersionDescription"]["Fn::Sub"])
        for name, found in of_type(COMPUTE, "AWS::Batch::ComputeEnvironment").items():
            resources = found["ComputeResources"]
            self.assertTrue(resources["UpdateToLatestImageVersion"], name)
            self.assertEqual(resources["LaunchTemplate"]["Version"], {"Fn::GetAtt": ["LaunchTemplate", "LatestVersionNumber"]}, name)
            # Trials end by themselves: an update that ends one would fail it.
            self.assertEqual(found["UpdatePolicy"], {"TerminateJobsOnUpdate": False, "JobExecutionTimeoutMinutes": 7200}, name)

    def test_nothing_runs_between_trials_and_spot_comes_first(self):
        environments = of_type(COMPUTE, "AWS::Batch::ComputeEnvironment")
        for name, found in environments.items():
            self.assertEqual(found["ComputeResources"]["MinvCpus"], 0, name)
        # Values that CreateComputeEnvironment and UpdateComputeEnvironment take for Spot, and on-demand, environments (fact 22).
        parameter = COMPUTE["Parameters"]["AllocationStrategy"]
        self.assertEqual(parameter["Default"], "SPOT_PRICE_CAPACITY_OPTIMIZED")
        self.assertEqual(parameter["AllowedValues"], ["SPOT_PRICE_CAPACITY_OPTIMIZED", "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED"])
        self.assertEqual(WHOLE["Parameters"]["AllocationStrategy"], parameter)
        self.assertEqual(environments["Spot"]["ComputeResources"]["AllocationStrategy"], {"Ref": "AllocationStrategy"})
        self.assertEqual(COMPUTE["Conditions"]["InOrder"], {"Fn::Equals": [{"Ref": "AllocationStrategy"}, "SPOT_CAPACITY_OPTIMIZED_PRIORITIZED"]})
        ordered = {"Fn::If": ["InOrder", "BEST_FIT_PROGRESSIVE_ORDERED", "BEST_FIT_PROGRESSIVE"]}
        self.assertEqual(environments["OnDemand"]["ComputeResources"]["AllocationStrategy"], ordered)
        queues = of_type(COMPUTE, "AWS::Batch::JobQueue")
        order = {name: [one["ComputeEnvironment"]["Ref"] for one in sorted(found["ComputeEnvironmentOrder"], key=lambda one: one["Order"])] for name, found in queues.items()}
        self.assertEqual(order, {"SpotQueue": ["Spot"], "UrgentQueue": ["Spot", "OnDemand"]})
        self.assertGreater(queues["UrgentQueue"]["Priority"], queues["SpotQueue"]["Priority"])

    def test_the_job_definition_retries_what_the_library_calls_an_interruption(self):
        source = (ROOT / "shared/records/src/trial.rs").read_text()
        reason = re.search(r'HOST_GONE: &str = "([^"]+)"', source)[1]
        code = re.search(r"INTERRUPTED_EXIT_CODE: i32 = (\d+)", source)[1]
        not_started = re.search(r'NOT_STARTED: &str = "([^"]+)"', source)[1]
        agent = re.search(r'AGENT_FAILED: &str = "([^"]+)"', source)[1]
        strategy = of_type(COMPUTE, "AWS::Batch::JobDefinition")["Train"]["RetryStrategy"]
        self.assertEqual(strategy["EvaluateOnExit"], [
            {"Action": "RETRY", "OnStatusReason": f"{reason}*"},
            {"Action": "RETRY", "OnExitCode": code},
            {"Action": "RETRY", "OnStatusReason": f"{not_started}*"},
            {"Action": "RETRY", "OnReason": f"{agent}*"},
            {"Action": "EXIT", "OnReason": "*"},
        ])

    def test_the_runner_reads_every_variable_that_the_job_definition_sets(self):
        # The control plane looks for this variable too, so its name is shared.
        data_cache = re.search(r'DATA_CACHE: &str = ("[^"]+")', (ROOT / "shared/protocol/src/claim/data_set.rs").read_text())[1]
        source = (ROOT / "runner/src/config.rs").read_text().replace("get(DATA_CACHE)", f"get({data_cache})")
        environment = of_type(COMPUTE, "AWS::Batch::JobDefinition")["Train"]["ContainerProperties"]["Environment"]
        variables = [value["Name"] for value in below(environment) if isinstance(value, dict) and "Name" in value]
        self.assertEqual(len(variables), 5)
        for name in variables:
            self.assertIn(f'"{name}"', source)
        [seconds] = [value["Value"] for value in environment if value.get("Name") == "SPOTSWEEP_STOP_SECONDS"]
        self.assertEqual(seconds, "120")
        self.assertIn("ECS_CONTAINER_STOP_TIMEOUT=2m", (ROOT / "infra/compute.yaml").read_text())

    def test_each_folder_that_a_variable_names_is_mounted_from_the_host(self):
        container = of_type(COMPUTE, "AWS::Batch::JobDefinition")["Train"]["ContainerProperties"]
        hosts = {one["Name"]: one["Host"]["SourcePath"] for one in container["Volumes"] if "Name" in one}
        mounted = {one["ContainerPath"]: hosts[one["SourceVolume"]] for one in container["MountPoints"] if "ContainerPath" in one}
        variables = {one["Name"]: one["Value"] for one in container["Environment"] if "Name" in one}
        self.assertEqual({name: mounted[value] for name, value in variables.items() if str(value).startswith("/")}, {
            "SPOTSWEEP_DEV": "/dev", "SPOTSWEEP_CACHE": "/var/cache/spotsweep", "SPOTSWEEP_DATA": "/var/lib/spotsweep-data",
        })
        # The script of the launch template mounts the instance's own disks there.
        self.assertIn(f'data="${{ROOT:-}}{hosts["data"]}"', (ROOT / "infra/compute.yaml").read_text())

    def test_sweep_upload_knows_the_disks_of_instances_whose_script_it_knows(self):
        target = (ROOT / "shared/control-plane/src/decide/target.rs").read_text()
        self.assertIn('DATA_FOLDER: &str = "/var/lib/spotsweep-data"', target)
        disks = (ROOT / "shared/control-plane/src/execute/disks.rs").read_text()
        tag = re.search(r'ROOT_GIB: &str = "([^"]+)"', disks)[1]
        environments = of_type(COMPUTE, "AWS::Batch::ComputeEnvironment")
        self.assertEqual(len(environments), 2)
        for name, environment in environments.items():
            unless_own_ami = {"Fn::If": ["OwnAmi", {"Ref": "AWS::NoValue"}, {"Fn::Sub": "${RootGib}"}]}
            self.assertEqual(environment["ComputeResources"]["Tags"][tag], unless_own_ami, name)

    def test_a_trial_does_not_wait_for_its_log(self):
        options = of_type(COMPUTE, "AWS::Batch::JobDefinition")["Train"]["ContainerProperties"]["LogConfiguration"]["Options"]
        self.assertEqual((options["mode"], options["max-buffer-size"]), ("non-blocking", "25m"))

    def test_no_connection_is_accepted(self):
        for name in names():
            for group, found in of_type(template(name), "AWS::EC2::SecurityGroup").items():
                self.assertNotIn("SecurityGroupIngress", found, f"{name} {group}")
                self.assertTrue(found["SecurityGroupEgress"], f"{name} {group}: no list means everything")


if __name__ == "__main__":
    unittest.main()
