#!/usr/bin/env bash
# Makes NVIDIA's runtime Docker's default, so that every container sees the GPUs, has it name a
# container's GPUs, and records what the image consists of. May be run any number of times. ROOT is for tests: it stands before every path.
set -euo pipefail
root="${ROOT:-}"

# The keys of daemon.json that others have set stay. The ECS GPU AMI declares the runtime by a flag
# (each program in /etc/docker-runtimes.d becomes --add-runtime), and dockerd does not start where a
# flag and daemon.json name the same setting: so the runtime is declared here only if it is nowhere else.
python3 - "$root" <<'PYTHON'
import json, os, pathlib, re, sys
root = sys.argv[1]
path = pathlib.Path(root + "/etc/docker/daemon.json")
text = path.read_text() if path.exists() else ""
try:
    settings = json.loads(text) if text.strip() else {}
except ValueError as error:
    sys.exit(f"{path} is not JSON ({error}); correct or remove it, nothing was changed")
if not isinstance(settings, dict):
    sys.exit(f"{path} holds no object; correct or remove it, nothing was changed")
flags_file = pathlib.Path(root + "/etc/sysconfig/docker")
flags = flags_file.read_text() if flags_file.exists() else ""
flags = "\n".join(line for line in flags.splitlines() if not line.lstrip().startswith("#"))
by_flag = re.search(r"--default-runtime[= ]+\"?([\w.-]+)", flags)
if by_flag and by_flag[1] != "nvidia":
    sys.exit(f"{flags_file} sets --default-runtime {by_flag[1]}; remove it, nothing was changed")
if not by_flag:
    settings["default-runtime"] = "nvidia"
declared = os.access(root + "/etc/docker-runtimes.d/nvidia", os.X_OK) or "--add-runtime nvidia=" in flags
if not declared:
    runtimes = settings.setdefault("runtimes", {})
    runtimes.setdefault("nvidia", {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []})
path.parent.mkdir(parents=True, exist_ok=True)
beside = path.with_name("daemon.json.new")
beside.write_text(json.dumps(settings, indent=4) + "\n")
beside.rename(path)
PYTHON

# In this mode a container has the UUIDs of its GPUs in NVIDIA_VISIBLE_DEVICES. In the one that the
# runtime chooses by itself the variable is "void", and only ECS names them (fact 57).
nvidia-ctk config --config-file "$root/etc/nvidia-container-runtime/config.toml" --in-place --set nvidia-container-runtime.mode=legacy

# The ECS agent offers GPUs only where this is said. The GPU AMI says it; an AMI of one's own may not.
agent="$root/var/lib/ecs/ecs.config"
mkdir -p "${agent%/*}"
touch "$agent"
if ! grep -qx 'ECS_ENABLE_GPU_SUPPORT=true' "$agent"; then
    sed -i '/^ECS_ENABLE_GPU_SUPPORT=/d' "$agent"
    echo 'ECS_ENABLE_GPU_SUPPORT=true' >>"$agent"
fi

systemctl restart docker

# Driver, Docker and agent belong together (fact 36): what was tried together is written down.
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader)
mkdir -p "$root/etc/spotsweep"
{
    echo "kernel: $(uname -r)"
    echo "docker: $(docker --version)"
    # One line for each GPU; the first is enough.
    echo "driver: ${driver%%$'\n'*}"
    rpm -q ecs-init containerd nvidia-container-toolkit | sed 's/^/package: /'
} >"$root/etc/spotsweep/ami-versions"
cat "$root/etc/spotsweep/ami-versions"
