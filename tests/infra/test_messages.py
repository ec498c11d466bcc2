"""What people are told: the rules that send events to a mail and to a chat, on events as they come."""
import json
import re
import unittest

from cfn import ROOT, as_list, of_type, template

ANNOUNCEMENT = (ROOT / "shared/src/announcement.rs").read_text()
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
    said = dict(re.findall(r'Self::(\w+) => "(Sweep [\w ]+)"', ANNOUNCEMENT))
    return sorted(text for kind, text in said.items() if kind not in ("Settling", "Running"))


def announced(kind):
    fields = re.search(r"json!\(\{([^}]*)\}\)", ANNOUNCEMENT)[1]
    detail = {name: MESSAGE if name == "message" else f"the {name}" for name in re.findall(r'"(\w+)":', fields)}
    return {"source": re.search(r'SOURCE: &str = "(\w+)"', ANNOUNCEMENT)[1], "detail-type": kind, "detail": detail}


def matches(pattern, event):
    """Of EventBridge's patterns what these rules have."""
    def one(wanted, value):
        return isinstance(value, str) and (value.startswith(wanted["prefix"]) if isinstance(wanted, dict) else value == wanted)

    return all(
        matches(wanted, event.get(key, {})) if isinstance(wanted, dict) else any(one(each, event.get(key)) for each in wanted)
        for key, wanted in pattern.items()
    )


def rendered(transformer, event):
    """Within quotes a value is put as it is, elsewhere as JSON
    (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-transform-target-input.html)."""
    values = {}
    for name, path in transformer["InputPathsMap"].items():
        values[name] = event
        for key in path.removeprefix("$.").split("."):
            values[name] = values[name][key]

    def literal(found):
        text = found[0]
        if text.startswith('"'):
            return re.sub("<([^<>]*)>", lambda inner: values[inner[1]], text)
        return json.dumps(values[text[1:-1]])

    return re.sub(r'"(?:\\.|[^"\\])*"|<[^<>]*>', literal, transformer["InputTemplate"])


class Messages(unittest.TestCase):
    def told(self, name, event):
        """What a template's rules send on an event."""
        loaded = template(name)
        rules = [rule for rule in of_type(loaded, "AWS::Events::Rule").values() if matches(rule["EventPattern"], event)]
        self.assertEqual(len(rules), 1, f"{name}: {event['detail-type']} is told once")
        return [(target["Arn"], rendered(target["InputTransformer"], event)) for target in rules[0]["Targets"]]

    def test_each_kind_of_news_comes_as_it_was_said(self):
        self.assertEqual(len(kinds()), 3)
        for kind in kinds():
            with self.subTest(kind):
                event = announced(kind)
                self.assertEqual(self.told("operations.yaml", event), [({"Ref": "SweepTopic"}, f'"{MESSAGE}"')])
                [(arn, text)] = self.told("slack.yaml", event)
                self.assertEqual(arn, {"Fn::GetAtt": ["Webhook", "Arn"]})
                self.assertEqual(json.loads(text), {"text": MESSAGE})

    def test_a_blocked_queue_comes_with_batchs_reason(self):
        reason, job = BLOCKED["detail"]["statusReason"], BLOCKED["detail"]["jobName"]
        [(_, mail)] = self.told("operations.yaml", BLOCKED)
        self.assertIn(f'"AWS Batch says: {reason}"', mail.splitlines())
        self.assertIn(job, mail)
        [(_, text)] = self.told("slack.yaml", BLOCKED)
        said = json.loads(text)
        self.assertIn(job, said["text"])
        self.assertEqual(said["attachments"], [{"text": reason}])

    def test_other_events_are_not_told(self):
        others = [announced("Sweep Settling"), announced("Sweep Running")]
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
