"""What the templates must say together, beyond what a linter sees in one of them."""
import json
import re
import unittest

from cfn import ROOT, as_list, below, filled, names, of_type, template

PREFIX = "spotsweep-"
CONTROL = template("control-plane.yaml")
COMPUTE = template("compute.yaml")
OPERATIONS = template("operations.yaml")
WHOLE = template("spotsweep.yaml")
MOST_DATA_SETS = int(re.search(r"MOST_DATA_SETS: usize = (\d+)", (ROOT / "shared/sweep-file/src/settings/data.rs").read_text())[1])
MOST_SECRETS = int(re.search(r"MOST_SECRETS: usize = (\d+)", (ROOT / "shared/sweep-file/src/settings/secrets.rs").read_text())[1])
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/Cargo.toml"))


def policy_statements(loaded):
    """Every statement of every role and managed policy, with the resource it stands in."""
    for name, found in loaded["Resources"].items():
        properties = found.get("Properties", {})
        # Of a policy under a condition, what the role has where that holds.
        policies = [policy["Fn::If"][1] if "Fn::If" in policy else policy for policy in properties.get("Policies", [])]
        documents = [policy["PolicyDocument"] for policy in policies]
        if found["Type"] in ("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
            documents.append(properties["PolicyDocument"])
        for document in documents:
            for statement in document["Statement"]:
                yield name, statement


def as_given(key):
    """How a nested template gets a parameter of the root's: as it is, or as the text of a list."""
    return {"Ref": key}, {"Fn::Join": [",", {"Ref": key}]}


def dashboard():
    body = of_type(OPERATIONS, "AWS::CloudWatch::Dashboard")["Dashboard"]["DashboardBody"]
    return json.loads(filled(body, NamePrefix="", Table="t"))["widgets"]


class AFailedFirstDeployment(unittest.TestCase):
    """What stays behind must not block the next try by its name (fact 51)."""

    def test_the_bucket_goes_with_a_creation_that_fails(self):
        bucket = CONTROL["Resources"]["Bucket"]
        self.assertEqual((bucket["DeletionPolicy"], bucket["UpdateReplacePolicy"]), ("RetainExceptOnCreate", "Retain"))

    def test_the_table_stays_under_a_name_that_no_other_try_gets(self):
        # A protected table cannot be deleted: with RetainExceptOnCreate the rollback itself would fail.
        table = CONTROL["Resources"]["Table"]
        self.assertIs(table["Properties"]["DeletionProtectionEnabled"], True)
        self.assertEqual((table["DeletionPolicy"], table["UpdateReplacePolicy"]), ("Retain", "Retain"))
        self.assertNotIn("TableName", table["Properties"])

    def test_nothing_else_stays(self):
        for name in names():
            for resource, found in template(name)["Resources"].items():
                if (name, resource) not in (("control-plane.yaml", "Bucket"), ("control-plane.yaml", "Table")):
                    self.assertEqual(found.get("DeletionPolicy", "Delete"), "Delete", f"{name}: {resource}")


class OneDeployment(unittest.TestCase):
    def nested(self):
        for name, properties in of_type(WHOLE, "AWS::Serverless::Application").items():
            yield name, template(properties["Location"]), properties["Parameters"]

    def test_every_nested_template_gets_the_parameters_that_it_has_and_needs(self):
        for name, inner, given in self.nested():
            declared = inner["Parameters"]
            self.assertLessEqual(set(given), set(declared), name)
            needed = {key for key, parameter in declared.items() if "Default" not in parameter}
            self.assertLessEqual(needed, set(given), name)

    def test_every_output_that_is_read_is_there(self):
        inner = {name: loaded.get("Outputs", {}) for name, loaded, _ in self.nested()}
        read = [value["Fn::GetAtt"] for value in below(WHOLE) if isinstance(value, dict) and "Fn::GetAtt" in value]
        self.assertGreater(len(read), 10)
        for resource, attribute in read:
            self.assertIn(attribute.removeprefix("Outputs."), inner[resource], resource)

    def test_defaults_said_twice_are_the_same(self):
        for name, inner, given in self.nested():
            for key, value in given.items():
                if value in as_given(key) and "Default" in inner["Parameters"][key]:
                    self.assertEqual(WHOLE["Parameters"][key]["Default"], inner["Parameters"][key]["Default"], f"{name}.{key}")

    def test_a_wrong_value_is_refused_before_anything_is_made(self):
        # A nested stack checks its own parameters only when it is made, and its failure rolls the others back.
        limits = ("AllowedPattern", "AllowedValues", "MinValue", "MaxValue", "MinLength", "MaxLength")
        for name, inner, given in self.nested():
            for key, value in given.items():
                if value in as_given(key):
                    # Only the control plane by itself may have no prefix.
                    own, whole = ({limit: str(parameter.get(limit)).removeprefix("^$|") for limit in limits}
                                  for parameter in (inner["Parameters"][key], WHOLE["Parameters"][key]))
                    self.assertEqual(*({limit: text.removeprefix("^$|") for limit, text in one.items()} for one in (own, whole)), f"{name}.{key}")
        self.assertEqual(WHOLE["Rules"]["OldGpusNeedAnAmi"], COMPUTE["Rules"]["OldGpusNeedAnAmi"])

    def test_a_list_is_passed_on_as_a_list(self):
        passed = {key: inner["Parameters"][key]["Type"] for _, inner, given in self.nested() for key, value in given.items() if value == as_given(key)[1]}
        self.assertEqual(passed, dict.fromkeys(("InstanceTypes", "AllowedImages", "DataBuckets", "AllowedSecrets"), "CommaDelimitedList"))
        for key in passed:
            self.assertEqual(WHOLE["Parameters"][key]["Type"], "CommaDelimitedList")

    def test_data_buckets_are_names_of_buckets(self):
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html. The pattern is for each member.
        pattern = WHOLE["Parameters"]["DataBuckets"]["AllowedPattern"]
        for name, is_allowed in (("", True), ("sets", True), ("my.sets-2", True), ("a2b", True), ("ab", False), ("Sets", False), ("sets/", False), ("s3://sets", False), ("arn:aws:s3:::sets", False), ("*", False), ("set?", False), ("-sets", False), ("m" * 64, False)):
            self.assertEqual(bool(re.fullmatch(pattern, name)), is_allowed, name)

    def test_allowed_secrets_are_paths_and_names_that_begin_with_a_name(self):
        # https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-parameter-name-constraints.html and
        # https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html
        pattern = WHOLE["Parameters"]["AllowedSecrets"]["AllowedPattern"]
        for text in ("", "/team/wandb/*", "/team/wandb", "/team-*", "/t?am/*", "team/wandb", "team/*", "a+b=c.d@e-f_g", "t*"):
            self.assertRegex(text, f"^(?:{pattern})$")
        arns = "arn:aws:ssm:eu-west-1:123456789012:parameter/team/wandb", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:team/wandb-a1b2c3"
        for text in ("/*", "/?eam", "/", "*", "?eam", "*/wandb", "team wandb", "/team wandb", "/team+wandb", "team:key", "/aws/reference/secretsmanager/wandb", *arns):
            self.assertNotRegex(text, f"^(?:{pattern})$")

    def test_every_prefix_and_bucket_name_that_is_allowed_makes_names_that_aws_takes(self):
        # RepositoryName in ECR's model; https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
        repository = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
        parameter = WHOLE["Parameters"]["NamePrefix"]
        for prefix, is_allowed in (("spotsweep-", True), ("a--", True), ("a" * 31 + "-", True), ("a" * 32 + "-", False), ("a", False), ("-", False), ("A-", False), ("2-", False)):
            self.assertEqual(bool(re.fullmatch(parameter["AllowedPattern"], prefix)), is_allowed, prefix)
            if is_allowed:
                self.assertRegex(f"{prefix}train", f"^{repository.pattern}$")
        # Names of functions and rules have up to 64 characters.
        self.assertLessEqual(32 + max(map(len, FUNCTIONS)), 64)
        for bucket, is_allowed in (("", True), ("my-models-2", True), ("a2b", True), ("my.models", False), ("ab", False), ("My-models", False), ("my_models", False), ("-models", False), ("m" * 64, False)):
            self.assertEqual(bool(re.fullmatch(WHOLE["Parameters"]["BucketName"]["AllowedPattern"], bucket)), is_allowed, bucket)

    def test_the_control_plane_knows_queue_and_definition_by_the_names_that_compute_gives(self):
        given = of_type(WHOLE, "AWS::Serverless::Application")["ControlPlane"]["Parameters"]
        queues = {filled(found["JobQueueName"], NamePrefix=PREFIX) for found in of_type(COMPUTE, "AWS::Batch::JobQueue").values()}
        definitions = {filled(found["JobDefinitionName"], NamePrefix=PREFIX) for found in of_type(COMPUTE, "AWS::Batch::JobDefinition").values()}
        self.assertIn(filled(given["JobQueue"], NamePrefix=PREFIX), queues)
        self.assertIn(filled(given["JobDefinition"], NamePrefix=PREFIX), definitions)
        for allowed, made in (("AllowedJobQueues", queues), ("AllowedJobDefinitions", definitions)):
            pattern = filled(given[allowed], NamePrefix=PREFIX).replace("*", ".*")
            for name in made:
                self.assertRegex(name, f"^{pattern}$")
        # Batch's events are matched by the prefix of the job's name.
        rules = [pattern["detail"]["jobName"] for pattern in below([CONTROL, OPERATIONS, template("slack.yaml")]) if isinstance(pattern, dict) and isinstance(pattern.get("detail"), dict) and "jobName" in pattern["detail"]]
        self.assertEqual(rules, [[{"prefix": "spotsweep-"}]] * 3)

    def test_one_tag_on_instances_opens_them_to_the_control_plane_and_to_chaos(self):
        given = of_type(WHOLE, "AWS::Serverless::Application")["ControlPlane"]["Parameters"]["ComputeTag"]
        for name, found in of_type(COMPUTE, "AWS::Batch::ComputeEnvironment").items():
            self.assertEqual(found["ComputeResources"]["Tags"]["spotsweep:compute"], given, name)
        chaos = template("chaos.yaml")
        self.assertEqual(chaos["Parameters"]["ComputeTag"]["Default"], filled(given, NamePrefix=PREFIX))
        targets = of_type(chaos, "AWS::FIS::ExperimentTemplate")["Interrupt"]["Targets"]["trials"]
        self.assertEqual(targets["ResourceTags"], {"spotsweep:compute": {"Ref": "ComputeTag"}})


class Functions(unittest.TestCase):
    def test_each_has_its_folder_role_log_group_and_place_in_the_alarms(self):
        found = of_type(CONTROL, "AWS::Serverless::Function")
        self.assertEqual(sorted(filled(one["FunctionName"], NamePrefix="") for one in found.values()), FUNCTIONS)
        roles = [one["Role"]["Fn::GetAtt"][0] for one in found.values()]
        self.assertEqual(len(set(roles)), len(FUNCTIONS), "a role is shared")
        for one in found.values():
            name = filled(one["FunctionName"], NamePrefix="")
            self.assertEqual(one["CodeUri"], f"../functions/{name}")
            group = CONTROL["Resources"][one["LoggingConfig"]["LogGroup"]["Ref"]]["Properties"]
            self.assertEqual(filled(group["LogGroupName"], NamePrefix=""), f"/aws/lambda/{name}")
            self.assertIn("RetentionInDays", group)
            for event in one.get("Events", {}).values():
                self.assertEqual(event["Properties"]["DeadLetterConfig"]["Arn"], {"Fn::GetAtt": ["UndeliveredEvents", "Arn"]}, name)
        watched = of_type(OPERATIONS, "AWS::CloudWatch::Alarm")["FunctionsFailing"]["Metrics"]
        dimensions = [metric["MetricStat"]["Metric"]["Dimensions"][0]["Value"] for metric in watched if "MetricStat" in metric]
        self.assertEqual(sorted(filled(value, NamePrefix="") for value in dimensions), FUNCTIONS)

    def test_the_dashboard_is_json_and_shows_them_all(self):
        widgets = dashboard()
        taken = set()
        for widget in widgets:
            cells = {(widget["x"] + x, widget["y"] + y) for x in range(widget["width"]) for y in range(widget["height"])}
            self.assertFalse(taken & cells, f"{widget['properties']['title']} lies on another widget")
            taken |= cells
        shown = {row[3] for widget in widgets for row in widget["properties"].get("metrics", []) if row[:2] == ["AWS/Lambda", "Errors"]}
        self.assertEqual(sorted(shown), FUNCTIONS)

    def test_each_alarm_notifies_and_has_its_page_in_the_runbook(self):
        runbook = (ROOT / "docs/operations.md").read_text()
        alarms = of_type(OPERATIONS, "AWS::CloudWatch::Alarm")
        self.assertEqual(len(alarms), 6)
        texts = [alarm["AlarmDescription"] for alarm in alarms.values()] + ["docs/operations.md, Queue blocked."]
        for text in texts:
            heading = re.search(r"docs/operations\.md, ([^.]+)\.", text)[1]
            self.assertIn(f"\n### {heading}\n", runbook)
        for name, alarm in alarms.items():
            self.assertEqual(alarm["AlarmActions"], [{"Ref": "AlarmTopic"}], name)


class Permissions(unittest.TestCase):
    # Actions that have no resource type, so that anything but * denies them.
    ONLY_LOOKING = re.compile(r"^(batch:(Describe|List)\w+|ec2:Describe\w+|pricing:GetProducts|ssm:DescribeParameters|xray:Put(TraceSegments|TelemetryRecords))$")

    def test_everything_is_allowed_on_something_named_unless_it_only_looks(self):
        seen, denied = 0, []
        for name in names():
            for policy, statement in policy_statements(template(name)):
                if statement["Effect"] == "Deny":
                    denied.append((policy, statement["Action"]))
                    continue
                for action in as_list(statement["Action"]):
                    seen += 1
                    self.assertNotIn("*", action, f"{name} {policy}")
                    if "*" in as_list(statement["Resource"]):
                        self.assertRegex(action, self.ONLY_LOOKING, f"{name} {policy}")
        self.assertGreater(seen, 40)
        secrets = [("SubmitPolicy", "secretsmanager:DescribeSecret"), ("TrialRole", "ssm:GetParameter")] + 2 * [("ManagedSecretsPolicy", "secretsmanager:GetSecretValue")]
        self.assertCountEqual(denied, secrets)

    def test_every_change_of_a_volume_snapshot_or_instance_asks_for_our_tag(self):
        bound = {
            "aws:RequestTag/spotsweep:sweep", "aws:ResourceTag/spotsweep:sweep",
            "aws:ResourceTag/spotsweep:compute", "ec2:CreateAction",
        }
        free = []
        for name in names():
            for policy, statement in policy_statements(template(name)):
                changes = [action for action in as_list(statement["Action"]) if action.startswith("ec2:") and not action.startswith("ec2:Describe")]
                keys = {key for condition in statement.get("Condition", {}).values() for key in condition}
                if changes and not keys & bound:
                    free.append((name, statement.get("Sid"), changes))
        # What a volume is made from is only read: a snapshot that a sweep file names, perhaps a shared one.
        self.assertEqual(free, [("control-plane.yaml", "MakeFrom", ["ec2:CreateVolume"])])

    def test_a_function_that_is_traced_has_x_rays_permission_when_it_is_created(self):
        # Lambda checks it then (fact 63), and nothing makes a function wait for a policy that is attached to its role later.
        self.assertEqual(CONTROL["Conditions"]["IsTraced"], {"Fn::Equals": [{"Ref": "Tracing"}, "Active"]})
        roles = of_type(CONTROL, "AWS::IAM::Role")
        for name, function in of_type(CONTROL, "AWS::Serverless::Function").items():
            traced = [policy["Fn::If"] for policy in roles[function["Role"]["Fn::GetAtt"][0]]["Policies"] if "Fn::If" in policy]
            self.assertEqual([condition for condition, _, _ in traced], ["IsTraced"], name)
            [statement] = traced[0][1]["PolicyDocument"]["Statement"]
            self.assertEqual((statement["Action"], statement["Resource"]), (["xray:PutTraceSegments", "xray:PutTelemetryRecords"], "*"), name)
            self.assertEqual(traced[0][2], {"Ref": "AWS::NoValue"}, name)

    def test_no_role_has_more_managed_policies_than_an_account_allows_by_default(self):
        # Ten, of which one is left for a policy that an organization attaches.
        for name in names():
            loaded = template(name)
            attaching = [attached["Ref"] for policy in of_type(loaded, "AWS::IAM::ManagedPolicy").values() for attached in policy.get("Roles", [])]
            for role, found in of_type(loaded, "AWS::IAM::Role").items():
                self.assertLess(len(found.get("ManagedPolicyArns", [])) + attaching.count(role), 10, f"{name}: {role}")

    def test_only_alarms_and_rules_of_this_account_publish_to_the_topics(self):
        published = {}
        for topic in ("AlarmTopic", "SweepTopic"):
            [policy] = [one for one in of_type(OPERATIONS, "AWS::SNS::TopicPolicy").values() if one["Topics"] == [{"Ref": topic}]]
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow":
                    published[topic] = statement["Principal"]["Service"]
                    self.assertEqual(statement["Condition"]["StringEquals"], {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}, topic)
        self.assertEqual(published, {"AlarmTopic": "cloudwatch.amazonaws.com", "SweepTopic": "events.amazonaws.com"})
        # Deliveries of rules fail with such a condition on the key (fact 68).
        [publishers] = [one for one in of_type(OPERATIONS, "AWS::KMS::Key")["TopicKey"]["KeyPolicy"]["Statement"] if one["Sid"] == "Publishers"]
        self.assertNotIn("Condition", publishers)

    def test_no_role_deletes_records_and_results(self):
        for name in names():
            for policy, statement in policy_statements(template(name)):
                for action in as_list(statement["Action"]):
                    self.assertNotRegex(action, r"^(s3|dynamodb|logs|iam):(Delete|Remove)", f"{name} {policy}")

    def test_volumes_and_snapshots_carry_only_the_tags_that_the_library_gives(self):
        source = (ROOT / "shared/records/src/workspace.rs").read_text()
        tags = {*re.findall(r'&str = "(spotsweep:\w+)"', source), "Name"}
        tagging = [found for _, found in policy_statements(CONTROL) if found["Action"] == "ec2:CreateTags"]
        self.assertEqual(len(tagging), 2)
        for statement in tagging:
            self.assertEqual(set(statement["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]), tags)

    def test_all_trials_may_claim_and_read_sweep_files_and_no_more(self):
        role = of_type(COMPUTE, "AWS::IAM::Role")["JobRole"]
        self.assertEqual(role["ManagedPolicyArns"], [{"Ref": "RunnerPolicy"}])
        self.assertNotIn("Policies", role)
        statements = [found for name, found in policy_statements(CONTROL) if name == "RunnerPolicy"]
        reach = {action: as_list(found["Resource"]) for found in statements for action in as_list(found["Action"])}
        self.assertEqual(reach, {
            "lambda:InvokeFunction": [{"Fn::GetAtt": ["TrialClaim", "Arn"]}],
            "s3:GetObject": [{"Fn::Sub": "${Bucket.Arn}/sweeps/*.yaml"}, {"Fn::Sub": "${Bucket.Arn}/sweeps/*.yml"}],
        })

    def test_what_is_issued_reaches_one_trial_and_is_issued_by_one_function(self):
        role = of_type(CONTROL, "AWS::IAM::Role")["TrialRole"]
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        self.assertEqual(trust["Principal"], {"AWS": {"Fn::GetAtt": ["TrialClaimRole", "Arn"]}})
        [policy] = role["Policies"]
        reach, conditions, denied = {}, [], []
        for found in policy["PolicyDocument"]["Statement"]:
            if found["Effect"] == "Deny":
                denied.append((found["Action"], found["NotResource"]))
                continue
            if "Condition" in found:
                conditions.append((found["Resource"], found["Condition"]))
            for action in as_list(found["Action"]):
                reach.setdefault(action, []).extend(as_list(found["Resource"]))
        sweep = "${Bucket.Arn}/results/${!aws:PrincipalTag/sweep}"
        restored = "${Bucket.Arn}/results/${!aws:PrincipalTag/restores}"
        code = "${Bucket.Arn}/code/${!aws:PrincipalTag/code}.tar.zst"
        secret = "arn:${AWS::Partition}:ssm:${AWS::Region}:${AWS::AccountId}:parameter/${!aws:PrincipalTag/secret-"
        tags = [f"aws:PrincipalTag/data-{number}" for number in range(MOST_DATA_SETS)]
        data = [{"Fn::Sub": f"arn:${{AWS::Partition}}:s3:::${{!{tag}}}*"} for tag in tags]
        outputs = [{"Fn::Sub": f"{sweep}/trials/${{!aws:PrincipalTag/trial}}/*"}]
        self.assertEqual(reach, {
            "s3:GetObject": [{"Fn::Sub": name} for name in (f"{sweep}/trials.jsonl", f"{sweep}/data/*.jsonl", f"{restored}/collected.json", f"{restored}/checkpoints/*", code)] + data,
            "s3:PutObject": outputs,
            "s3:AbortMultipartUpload": outputs,
            "ssm:GetParameter": [{"Fn::Sub": f"{secret}{number}}}"} for number in range(MOST_SECRETS)],
        })
        # The resource alone would be any bucket that a tag names.
        buckets = {"Fn::Split": [",", {"Fn::Sub": ["${Bucket}/data/*,${Names}/*", {"Names": {"Fn::Join": ["/*,", {"Ref": "DataBuckets"}]}}]}]}
        self.assertEqual(conditions, [(resource, {"StringLike": {tag: buckets}}) for tag, resource in zip(tags, data, strict=True)])
        paths = "arn:*:ssm:*:*:parameter/spotsweep/${Bucket}/*,arn:*:ssm:*:*:parameter${Paths}"
        paths = {"Fn::Split": [",", {"Fn::Sub": [paths, {"Paths": {"Fn::Join": [",arn:*:ssm:*:*:parameter", {"Ref": "AllowedSecrets"}]}}]}]}
        self.assertEqual(denied, [("ssm:GetParameter", paths)])
        self.assertEqual(role["ManagedPolicyArns"], [{"Ref": "ManagedSecretsPolicy"}])
        allowed, others, slashes = (found for name, found in policy_statements(CONTROL) if name == "ManagedSecretsPolicy")
        secret = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:${!aws:PrincipalTag/managed-"
        self.assertEqual((allowed["Effect"], allowed["Action"]), ("Allow", "secretsmanager:GetSecretValue"))
        self.assertEqual(allowed["Resource"], [{"Fn::Sub": f"{secret}{number}}}-??????"} for number in range(MOST_SECRETS)])
        names = "arn:*:secretsmanager:*:*:secret:${Names}-??????"
        names = {"Fn::Split": [",", {"Fn::Sub": [names, {"Names": {"Fn::Join": ["-??????,arn:*:secretsmanager:*:*:secret:", {"Ref": "AllowedSecrets"}]}}]}]}
        for found, key, resource in ((others, "NotResource", names), (slashes, "Resource", "arn:*:secretsmanager:*:*:secret:/*")):
            self.assertEqual(found, {"Effect": "Deny", "Action": "secretsmanager:GetSecretValue", key: resource})
        issuers = [name for name, found in policy_statements(CONTROL) if "sts:AssumeRole" in as_list(found["Action"])]
        self.assertEqual(issuers, ["IssuePolicy"])
        self.assertEqual(of_type(CONTROL, "AWS::IAM::ManagedPolicy")["IssuePolicy"]["Roles"], [{"Ref": "TrialClaimRole"}])


class Documents(unittest.TestCase):
    def test_every_output_and_parameter_that_the_docs_use_is_there(self):
        outputs, parameters = ({key for name in names() for key in template(name).get(part, {})} for part in ("Outputs", "Parameters"))
        used = 0
        for page in sorted((ROOT / "docs").glob("*.md")):
            text = page.read_text()
            for key in re.findall(r"\$\(out (\w+)\)", text):
                used += 1
                self.assertIn(key, WHOLE["Outputs"], page.name)
            for key in re.findall(r"OutputKey=='(\w+)'|\boutput `(\w+)`", text):
                used += 1
                self.assertIn(key[0] or key[1], outputs, page.name)
            for key in re.findall(r"\bparameter `(\w+)`", text):
                used += 1
                self.assertIn(key, parameters, page.name)
        table = re.findall(r"^\| (`[A-Z].*?`) \|", (ROOT / "docs/deploy.md").read_text(), re.M)
        for key in re.findall(r"`(\w+)`", " ".join(table)):
            used += 1
            self.assertIn(key, WHOLE["Parameters"])
        self.assertGreater(used, 20)

    def test_the_runners_patience_is_what_the_pages_say(self):
        seconds = float(re.search(r'"SPOTSWEEP_PATIENCE_SECONDS", ([0-9.]+)\)', (ROOT / "runner/src/config.rs").read_text())[1])
        self.assertRegex((ROOT / "docs/training.md").read_text(), rf"\| `SPOTSWEEP_PATIENCE_SECONDS` \|[^|]+\| {seconds:.0f} \|")
        self.assertEqual(seconds, 5 * 60)
        self.assertIn("repeats its request for five minutes (`SPOTSWEEP_PATIENCE_SECONDS`)", (ROOT / "docs/operations.md").read_text())

    def metrics(self):
        return {row[1] for widget in dashboard() for row in widget["properties"].get("metrics", []) if row[0] == "spotsweep"}

    def test_every_metric_that_is_shown_or_watched_is_explained(self):
        text = (ROOT / "docs/operations.md").read_text()
        watched = {alarm["MetricName"] for alarm in of_type(OPERATIONS, "AWS::CloudWatch::Alarm").values() if alarm.get("Namespace") == "spotsweep"}
        self.assertLessEqual(watched, self.metrics())
        for metric in self.metrics():
            self.assertIn(f"`{metric}`", text)


if __name__ == "__main__":
    unittest.main()
