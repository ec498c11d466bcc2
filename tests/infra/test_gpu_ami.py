"""The shell of infra/gpu-ami.yaml, on a scratch root with stand-ins for Docker and systemd."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml

from cfn import INFRA, of_type, template

SCRIPTS = INFRA / "gpu-ami"
NVIDIA = {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}}

# Each writes its call down. Docker's containers and images are lines of files.
STAND_INS = {
    "systemctl": 'echo "systemctl $*" >>"$CALLS"',
    "rpm": 'shift; for name; do echo "$name-1.0"; done',
    "uname": 'echo 6.1.0',
    "nvidia-smi": "echo 580.1",
    # Writes the file as a whole, like the real one.
    "nvidia-ctk": r"""
[ "$1 $2 $4 $5" = "config --config-file --in-place --set" ] || exit 64
mkdir -p "${3%/*}"
printf '[nvidia-container-runtime]\nmode = "%s"\n' "${6#nvidia-container-runtime.mode=}" >"$3"
""",
    "docker": r"""
echo "docker $*" >>"$CALLS"
state="$DOCKER"
case "$*" in
    --version) echo "Docker version 25.0.8" ;;
    # More than a pipe holds follows, so that a reader that ends early ends this by SIGPIPE.
    info) printf ' Runtimes: io.containerd.runc.v2 nvidia runc\n Default Runtime: %s\n' "$(cat "$state/default")"; seq 20000 ;;
    "run --rm -e NVIDIA_VISIBLE_DEVICES=all"*"nvidia-smi -L") cat "$state/gpus" ;;
    "run --rm -e NVIDIA_VISIBLE_DEVICES=GPU-1"*"printenv NVIDIA_VISIBLE_DEVICES") cat "$state/named" ;;
    "ps --all --quiet") cat "$state/containers" ;;
    "images --all --quiet") cat "$state/images" ;;
    "rm --force --volumes "*) : >"$state/containers" ;;
    "image prune --all --force") [ -s "$state/containers" ] || [ -e "$state/stuck" ] || : >"$state/images" ;;
    "volume prune --all --force") ;;
    *) echo "unexpected: docker $*" >&2; exit 64 ;;
esac""",
}


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root, programs, self.docker = (Path(folder.name, name) for name in ("root", "programs", "docker"))
        for made in (self.root, programs, self.docker):
            made.mkdir()
        for name, body in STAND_INS.items():
            (programs / name).write_text(f"#!/bin/bash\n{body}\n")
            (programs / name).chmod(0o755)
        for name, content in {"default": "nvidia\n", "gpus": "GPU 0: Tesla T4 (UUID: GPU-1)\n", "named": "GPU-1\n", "containers": "c1\nc2\n", "images": "i1\n"}.items():
            (self.docker / name).write_text(content)
        self.calls = Path(folder.name, "calls")
        self.environment = os.environ | {
            "PATH": f"{programs}:{os.environ['PATH']}", "ROOT": str(self.root), "DOCKER": str(self.docker), "CALLS": str(self.calls),
        }

    def write(self, path, content, mode=0o644):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(mode)

    def run_script(self, name):
        return subprocess.run(["bash", SCRIPTS / name], env=self.environment, capture_output=True, text=True, timeout=60)

    def tree(self):
        return {str(path.relative_to(self.root)): path.read_text() for path in self.root.rglob("*") if path.is_file()}


class Configure(Scratch):
    # daemon.json, /etc/sysconfig/docker, whether /etc/docker-runtimes.d/nvidia is there; daemon.json afterwards.
    MERGED = {
        "the ECS GPU image": (None, 'OPTIONS="--default-ulimit nofile=32768:65536"\n', True, {"default-runtime": "nvidia"}),
        "an image of one's own": (None, None, False, {"default-runtime": "nvidia", "runtimes": NVIDIA}),
        "an empty file": ("", None, True, {"default-runtime": "nvidia"}),
        "others' settings stay": (
            '{"log-driver": "local", "runtimes": {"crun": {"path": "/usr/bin/crun"}}, "default-runtime": "crun"}', None, False,
            {"log-driver": "local", "runtimes": {"crun": {"path": "/usr/bin/crun"}} | NVIDIA, "default-runtime": "nvidia"},
        ),
        "a runtime with arguments stays": (
            '{"runtimes": {"nvidia": {"path": "/opt/nvidia", "runtimeArgs": ["--debug"]}}}', None, False,
            {"runtimes": {"nvidia": {"path": "/opt/nvidia", "runtimeArgs": ["--debug"]}}, "default-runtime": "nvidia"},
        ),
        # dockerd does not start where a flag and the file say the same.
        "the runtime by flag": (None, 'OPTIONS="--add-runtime nvidia=/usr/bin/nvidia-container-runtime"\n', False, {"default-runtime": "nvidia"}),
        "the default by flag": (None, 'OPTIONS="--default-runtime nvidia"\n', True, {}),
        "a flag in a comment": (None, '# OPTIONS="--default-runtime runc"\n', True, {"default-runtime": "nvidia"}),
    }

    def prepare(self, daemon, flags, by_folder):
        if daemon is not None:
            self.write("etc/docker/daemon.json", daemon)
        if flags is not None:
            self.write("etc/sysconfig/docker", flags)
        if by_folder:
            self.write("etc/docker-runtimes.d/nvidia", "#!/bin/sh\n", 0o755)

    def test_daemon_json_is_merged_and_a_second_run_changes_nothing(self):
        for name, (daemon, flags, by_folder, expected) in self.MERGED.items():
            with self.subTest(name):
                self.doCleanups()
                self.setUp()
                self.prepare(daemon, flags, by_folder)
                done = self.run_script("configure.sh")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(json.loads((self.root / "etc/docker/daemon.json").read_text()), expected)
                first = self.tree()
                self.assertEqual(self.run_script("configure.sh").returncode, 0)
                self.assertEqual(self.tree(), first)
                self.assertEqual(self.calls.read_text().count("systemctl restart docker"), 2)

    def test_what_cannot_be_merged_is_left_alone_and_named(self):
        refused = {
            "{broken": (None, "daemon.json is not JSON"),
            "[1]": (None, "daemon.json holds no object"),
            "{}": ('OPTIONS="--default-runtime=runc"\n', "sets --default-runtime runc; remove it"),
        }
        for daemon, (flags, message) in refused.items():
            with self.subTest(daemon):
                self.prepare(daemon, flags, True)
                before = self.tree()
                done = self.run_script("configure.sh")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(message, done.stderr)
                self.assertEqual(self.tree(), before)
                self.assertFalse(self.calls.exists(), "Docker was restarted")

    def test_containers_get_the_names_of_their_gpus(self):
        self.assertEqual(self.run_script("configure.sh").returncode, 0)
        self.assertIn('mode = "legacy"', self.tree()["etc/nvidia-container-runtime/config.toml"])

    def test_the_agent_is_configured_once_and_the_versions_are_recorded(self):
        self.write("var/lib/ecs/ecs.config", "ECS_LOGLEVEL=debug\nECS_ENABLE_GPU_SUPPORT=false\n")
        self.assertEqual(self.run_script("configure.sh").returncode, 0)
        self.assertEqual(self.tree()["var/lib/ecs/ecs.config"], "ECS_LOGLEVEL=debug\nECS_ENABLE_GPU_SUPPORT=true\n")
        versions = self.tree()["etc/spotsweep/ami-versions"].splitlines()
        self.assertEqual(versions, [
            "kernel: 6.1.0", "docker: Docker version 25.0.8", "driver: 580.1",
            "package: ecs-init-1.0", "package: containerd-1.0", "package: nvidia-container-toolkit-1.0",
        ])


class Verify(Scratch):
    def test_a_container_must_see_a_gpu_without_asking_for_a_runtime(self):
        done = self.run_script("verify.sh")
        self.assertEqual((done.returncode, done.stdout), (0, "GPU 0: Tesla T4 (UUID: GPU-1)\n"), done.stderr)
        self.assertNotIn("--runtime", self.calls.read_text())
        self.assertNotIn("--gpus", self.calls.read_text())

    def test_it_fails_and_says_why(self):
        for name, content, message in [("default", "runc\n", "default runtime is not nvidia"), ("named", "void\n", "NVIDIA_VISIBLE_DEVICES=void"), ("gpus", "No devices found.\n", "No devices found."), ("gpus", "", "nothing")]:
            with self.subTest(message):
                kept = (self.docker / name).read_text()
                (self.docker / name).write_text(content)
                done = self.run_script("verify.sh")
                (self.docker / name).write_text(kept)
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)


class Clean(Scratch):
    def test_nothing_of_the_build_is_left_and_the_rest_stays(self):
        self.write("var/lib/ecs/data/ecs_agent_data.json", "{}")
        self.write("var/lib/ecs/data/agent.db", "x")
        self.write("var/log/ecs/ecs-agent.log", "x")
        kept = {"var/lib/ecs/ecs.config": "ECS_ENABLE_GPU_SUPPORT=true\n", "var/cache/ecs/ecs-agent.tar": "x", "etc/docker/daemon.json": "{}"}
        for path, content in kept.items():
            self.write(path, content)
        for _ in range(2):
            done = self.run_script("clean.sh")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.tree(), kept)
        self.assertEqual((self.docker / "images").read_text(), "")
        calls = self.calls.read_text().splitlines()
        self.assertEqual(calls[0], "systemctl stop ecs", "the agent would write its state again")

    def test_an_image_that_stays_fails_the_build(self):
        (self.docker / "stuck").touch()
        done = self.run_script("clean.sh")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Docker still has containers or images: i1", done.stderr)


class Component(unittest.TestCase):
    def setUp(self):
        self.found = template("gpu-ami.yaml")
        self.text = of_type(self.found, "AWS::ImageBuilder::Component")["Component"]["Data"]

    def test_it_holds_the_very_scripts(self):
        subprocess.run(["python3", SCRIPTS / "inline.py", "--check"], check=True)
        steps = [(phase["name"], step["name"], step["inputs"]) for phase in yaml.safe_load(self.text)["phases"] for step in phase["steps"]]
        self.assertEqual([step[:2] for step in steps], [
            ("build", "Configure"), ("build", "InstallVerify"), ("validate", "Verify"), ("validate", "Clean"), ("test", "Verify"),
        ])
        script = {name: (SCRIPTS / f"{name}.sh").read_text() for name in ("configure", "verify", "clean")}
        self.assertEqual(steps[0][2]["commands"], [script["configure"]])
        self.assertEqual(steps[1][2][0]["content"], script["verify"])
        self.assertEqual(steps[3][2]["commands"], [script["clean"]])
        installed = steps[1][2][0]["path"]
        for at in (2, 4):
            self.assertIn(installed, steps[at][2]["commands"])

    def test_it_is_no_longer_than_image_builder_takes(self):
        # https://docs.aws.amazon.com/imagebuilder/latest/APIReference/API_CreateComponent.html
        self.assertLessEqual(len(self.text), 16_000)
        self.assertNotIn("{{", self.text, "Image Builder reads that as a variable of its own")


if __name__ == "__main__":
    unittest.main()
