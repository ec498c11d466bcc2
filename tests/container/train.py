"""A training as people write it: a cache below ~, the user's name, workers, checkpoints, its state saved on SIGTERM."""
import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

parameters = dict(argument.removeprefix("--").split("=", 1) for argument in sys.argv[1:])
steps, attempt = int(parameters["steps"]), int(os.environ["AWS_BATCH_JOB_ATTEMPT"])
# The step at which an attempt waits for its end, for one attempt after the other; all others come to their end.
waits = [*map(int, parameters["waits"].split(",")), *[None] * attempt][attempt - 1]
checkpoints, output = (Path(os.environ[name]) for name in ("SPOTSWEEP_CHECKPOINTS", "SPOTSWEEP_OUTPUT"))
stopping = False


def stop(_signal, _frame):
    global stopping
    stopping = True


def save(state):
    part = checkpoints / "part"
    part.write_text(json.dumps(state))
    part.rename(checkpoints / f"step-{state['step']:03}")


def reach(address):
    try:
        socket.create_connection((address, 80), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "reached"


def surroundings():
    """What a program finds around itself: it shall be as on any machine."""
    cache = Path("~/.cache/torch/hub").expanduser()
    cache.mkdir(parents=True)
    (cache / "weights").write_text("downloaded")
    with open("/proc/self/mounts") as mounts:
        [volume] = [line.split()[:3:2] for line in mounts if line.split()[1] == "/dltraining"]
    with open("/proc/self/status") as status:
        [capabilities] = [line.split()[1] for line in status if line.startswith("CapBnd:")]
    return {
        "user": getpass.getuser(),
        "ids": [os.getuid(), os.getgid(), os.getgroups()],
        "capabilities": int(capabilities, 16),
        "regions": [os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")],
        "volume": volume,
        "reaches": {address: reach(address) for address in ("169.254.169.254", "169.254.170.2")},
        "gpus": {
            "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
            **{folder: sorted(path.name for path in Path(folder).glob("nvidia[0-9]*")) for folder in ("/dev", "/host/dev")},
        },
        "in_own_dev": os.path.exists(volume[0].replace("/host/dev", "/dev")),
    }


handles = parameters.get("handles") != "no"
if handles:
    signal.signal(signal.SIGTERM, stop)
print("surroundings " + json.dumps(surroundings()))
# A worker that leaves the session, keeps the volume busy, not the output, and does not end by itself.
subprocess.Popen(["sleep", "600"], cwd=checkpoints, start_new_session=True, stdout=subprocess.DEVNULL)
found = sorted(checkpoints.glob("step-*"))
state = json.loads(found[-1].read_text()) if found else {"step": 0, "sum": 0}
print(f"starting after step {state['step']}")
while state["step"] < steps:
    if stopping:
        save(state)
        print("saved=1")
        time.sleep(int(parameters["linger"]))
        # As Megatron-LM's loop does: it proves nothing about the training's end.
        sys.exit(0)
    if state["step"] == waits and handles:
        time.sleep(0.02)
        continue
    if waits and state["step"] >= waits:
        # Without a handler it goes on by itself: on a busy machine the seal of the checkpoint before takes seconds.
        time.sleep(6 if state["step"] == waits else 0.5)
    state = {"step": state["step"] + 1, "sum": state["sum"] + state["step"] + 1}
    print(f"step={state['step']} sum={state['sum']}")
    if state["step"] % 10 == 0:
        save(state)
(output / "model.json").write_text(json.dumps(state))
