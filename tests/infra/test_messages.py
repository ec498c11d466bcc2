"""Messages for people: the rules that send events to a mail and to a chat, on events as they come."""
import json
import re
import unittest

from cfn import ROOT, as_list, of_type, template

NOTIFICATION = (ROOT / "shared/records/src/sweep/notification.rs").read_text()
# Quotes, line ends and a backslash, as parameters and problems may have them.
MESSAGE = 'sweeps/digits.yaml: 3 of 4 trials succeeded, 1 failed\nbest: trial 2 with val_accuracy 0.97, {"lr":0.03,"path":"a\\b"}'
# https://docs.aws.amazon.com/batch/latest/userguide/batch-job-queue-blocked-events.html, of a trial of ours.
BLOCKED = {
    "version": "0", "id": "c8f9c4b5-76e5-d76a-f980-7011e206042b", "detail-type": "Batch Job Queue Blocked", "source": "aws.batch",
    "account": "123456789012", "time": "2026-11-21T23:36:40Z", "region": "us-east-1", "resources": [],
    "detail": {
        "jobName": "spotsweep-digits-1a2b3c4d5e6f-p0", "jobId": "4c7599ae-0a82-49aa-ba5a-4727fcce14a8:7",
        "jobQueue": "arn:aws:batch:us-east-1:123456789012:job-queue/spotsweep-spot", "status": "RUNNABLE",
        "statusReason": "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY - Service cannot fulfill the capacity requested for instance type [g5.xlarge]",
    },
}
TEMPLATES = ("operations.yaml", "slack.yaml")


def kinds():
    """The detail types that are for people."""
    texts = dict(re.findall(r'Self::(\w+)(?:\(_\))? => "((?:Sweep|Trial) [\w ]+)"', NOTIFICATION))
    return sorted(text for kind, text in texts.items() if kind not in ("Keeping", "Settling", "Running"))


def announced(kind):
    fields = re.search(r"json!\(\{([^}]*)\}\)", NOTIFICATION)[1]
    detail = {name: MESSAGE if name == "message" else f"the {name}" for name in re.findall(r'"(\w+)":', fields)}
    return {"source": re.search(r'SOURCE: &str = "(\w+)"', NOTIFICATION)[1], "detail-type": kind, "detail": detail}


def matches(pattern, event):
    """Of EventBridge's patterns what these rules have."""
    def one(wanted, value):
        return isinstance(value, str) and (value.startswith(wanted["prefix"]) if isinstance(wanted, dict) else value == wanted)

    return all(
        matches(wanted, event.get(key, {})) if isinstance(wanted, dict) else any(one(each, event.get(key)) for each in wanted)
        for key, wanted in pattern.items()
    )


def path(event, of):
    """What EventBridge finds on a path; where nothing is there, an empty text (recorded)."""
    for key in of.removeprefix("$.").split("."):
        event = event.get(key, "") if isinstance(event, dict) else ""
    return event


# How a text that has quotes and line ends comes within quotes: no document says, and no record shows it.
QUOTED = {
    "as it is": lambda text: text,
    "escaped": lambda text: json.dumps(text)[1:-1],
    "without quotes": lambda text: text.replace('"', ""),
}


def rendered(transformer, event, quoted=QUOTED["as it is"]):
    """The body that a target gets, or None where EventBridge delivers nothing, after what AWS answered
    (tests/data/eventbridge) and
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html."""
    template = transformer["InputTemplate"]
    is_json = template.lstrip().startswith("{")
    values = {name: path(event, of) for name, of in transformer["InputPathsMap"].items()}

    def within_quotes(value):
        if isinstance(value, str):
            return quoted(value)
        text = json.dumps(value, separators=(",", ":"))
        return text if is_json else text.replace('"', "")

    def literal(found):
        text = found[0]
        if text.startswith('"'):
            return re.sub("<([^<>]*)>", lambda inner: within_quotes(values[inner[1]]), text)
        return json.dumps(values[text[1:-1]])

    body = re.sub(r'"(?:\\.|[^"\\])*"|<[^<>]*>', literal, template)
    try:
        return json.loads(body) if is_json else body
    except json.JSONDecodeError:
        return None


def readable(text):
    """A text without all that EventBridge may do to its quotes and line ends."""
    return re.sub(r'[\\"\n]', "", text.replace("\\n", "\n"))


class Messages(unittest.TestCase):
    def sent(self, name, event, quoted=QUOTED["as it is"]):
        """What a template's rules send on an event."""
        loaded = template(name)
        rules = [rule for rule in of_type(loaded, "AWS::Events::Rule").values() if matches(rule["EventPattern"], event)]
        self.assertEqual(len(rules), 1, f"{name}: {event['detail-type']} is sent once")
        return [(target["Arn"], rendered(target["InputTransformer"], event, quoted)) for target in rules[0]["Targets"]]

    def test_templates_are_filled_as_aws_fills_them(self):
        recorded = json.loads((ROOT / "tests/data/eventbridge/input-transformer.json").read_text())
        kind = "core.update-account-command"
        for answer in recorded["answers"]:
            event = {"source": kind, "detail-type": kind, "time": "date", "detail": recorded["details"][answer["detail"]]}
            transformer = {"InputPathsMap": recorded["paths"][answer["paths"]], "InputTemplate": answer["template"]}
            with self.subTest(**transformer):
                self.assertEqual(rendered(transformer, event), answer["body"])

    def test_every_placeholder_has_a_path(self):
        """Else PutTargets refuses the template (recorded: "contains invalid placeholder")."""
        for name in TEMPLATES:
            for rule in of_type(template(name), "AWS::Events::Rule").values():
                for target in rule["Targets"]:
                    used = set(re.findall("<([^<>]*)>", target["InputTransformer"]["InputTemplate"]))
                    self.assertEqual(used, set(target["InputTransformer"]["InputPathsMap"]), name)

    def test_each_kind_of_announcement_is_sent_whole(self):
        self.assertEqual(len(kinds()), 7)
        for kind in kinds():
            for how, quoted in QUOTED.items():
                with self.subTest(kind, how=how):
                    [(arn, mail)] = self.sent("operations.yaml", announced(kind), quoted)
                    self.assertEqual(arn, {"Ref": "SweepTopic"})
                    self.assertEqual(readable(mail), readable(MESSAGE))
                    [(arn, chat)] = self.sent("slack.yaml", announced(kind), quoted)
                    self.assertEqual(arn, {"Fn::GetAtt": ["Webhook", "Arn"]})
                    self.assertEqual(chat, {"text": MESSAGE})

    def test_a_blocked_queue_is_sent_with_batchs_reason(self):
        for reason in (BLOCKED["detail"]["statusReason"], MESSAGE, None):
            event = BLOCKED | {"detail": {**BLOCKED["detail"], "statusReason": reason}}
            if reason is None:
                del event["detail"]["statusReason"]
            for how, quoted in QUOTED.items():
                with self.subTest(reason, how=how):
                    [(_, mail)] = self.sent("operations.yaml", event, quoted)
                    self.assertIn(readable(f"AWS Batch says: {reason or ''}"), readable(mail))
                    self.assertIn(event["detail"]["jobName"], mail)
                    [(_, chat)] = self.sent("slack.yaml", event, quoted)
                    self.assertIn(event["detail"]["jobName"], chat["text"])
                    self.assertEqual(chat["attachments"], [{"text": reason or ""}])

    def test_other_events_are_not_sent(self):
        others = [announced("Sweep Keeping"), announced("Sweep Settling"), announced("Sweep Running")]
        for change in ({"source": "aws.ec2"}, {"detail": BLOCKED["detail"] | {"jobName": "payroll"}}):
            others.append(BLOCKED | change)
        for event in others:
            for name in TEMPLATES:
                for rule in of_type(template(name), "AWS::Events::Rule").values():
                    self.assertFalse(matches(rule["EventPattern"], event), f"{name}: {event['detail-type']}")

    def test_rules_may_publish_to_the_topic_that_they_name(self):
        loaded = template("operations.yaml")
        published = {target["Arn"]["Ref"] for rule in of_type(loaded, "AWS::Events::Rule").values() for target in rule["Targets"]}
        open_to_rules = set()
        for policy in of_type(loaded, "AWS::SNS::TopicPolicy").values():
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Allow" and "events.amazonaws.com" in as_list(statement["Principal"]["Service"]):
                    open_to_rules.add(statement["Resource"]["Ref"])
        self.assertEqual(published, open_to_rules)

    def test_the_webhook_is_shown_nowhere(self):
        loaded = template("slack.yaml")
        self.assertTrue(loaded["Parameters"]["WebhookUrl"]["NoEcho"])
        self.assertNotIn("WebhookUrl", json.dumps(loaded["Outputs"]))


if __name__ == "__main__":
    unittest.main()
