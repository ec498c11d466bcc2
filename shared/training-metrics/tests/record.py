"""Records what the scripts of examples/scripts write with the real libraries: python record.py

Needs the packages of examples/scripts/requirements.txt, and fastai 2.8.12 with fastprogress 1.0.5 for its script, which
lies here. recorded.rs reads what this leaves in recorded/.
"""
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from wandb.proto.wandb_internal_pb2 import Record

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[2] / "examples" / "scripts"
# The size of a block in W&B's file, which is LevelDB's log.
BLOCK = 32768
# The script, its arguments, and the files that are kept, by name.
RUNS = {
    "torch_tqdm": (["torch_tqdm.py", "--epochs", "3"], []),
    "wandb_sweep": (["wandb_sweep.py"], ["wandb/offline-run-*/run-*.wandb"]),
    "lightning_rich": (["lightning_fit.py", "--max_epochs", "3"], ["logs/version_0/metrics.csv"]),
    "lightning_tqdm": (["lightning_fit.py", "--max_epochs", "3"], []),
    "hf_trainer": (
        ["hf_trainer.py", "--output_dir", "out", "--num_train_epochs", "3", "--eval_strategy", "epoch"]
        + ["--save_strategy", "epoch", "--logging_steps", "10", "--use_cpu"],
        ["out/checkpoint-*/trainer_state.json"],
    ),
    "keras_fit": (["keras_fit.py", "--epochs", "3"], []),
    "tensorboard_writer": (["tensorboard_writer.py", "--epochs", "3"], ["runs/events*"]),
    "sklearn_partial_fit": (["sklearn_partial_fit.py", "--epochs", "3"], []),
    "ignite_trainer": (["ignite_trainer.py", "--epochs", "3"], []),
    "hydra_app": (["hydra_app.py", "epochs=3"], []),
    "pytorch_mnist": (["pytorch_mnist.py", "--epochs", "3"], []),
    "fastai_tabular": ([str(HERE / "fastai_tabular.py")], []),
}


def without_machine(content):
    """Returns a run's file with only its metrics, because the other records name the machine."""
    header, offset, whole, records = content[:7], 7, b"", []
    while offset < len(content):
        left = BLOCK - offset % BLOCK
        if left < 7:
            offset += left
            continue
        _, length, kind = struct.unpack("<IHB", content[offset : offset + 7])
        whole += content[offset + 7 : offset + 7 + length]
        offset += 7 + length
        if kind in (1, 4):
            records.append(whole)
            whole = b""
    kept = [record for record in records if Record.FromString(record).WhichOneof("record_type") in ("history", "summary")]
    written = bytearray(header)
    for record in kept:
        # A part of a record must not cross the end of a block.
        kind = 1
        while True:
            left = BLOCK - len(written) % BLOCK
            if left < 7:
                written += bytes(left)
                left = BLOCK
            part, record = record[: left - 7], record[left - 7 :]
            kind = {1: 1 if not record else 2, 2: 3 if record else 4, 3: 3 if record else 4}[kind]
            written += struct.pack("<IHB", zlib.crc32(bytes([kind]) + part), len(part), kind) + part
            if not record:
                break
    return bytes(written)


def record(name):
    (script, *arguments), kept = RUNS[name]
    target = HERE / "recorded" / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WANDB_MODE": "offline", "PYTHONWARNINGS": "ignore"}
        command = [sys.executable, str(SCRIPTS / script), *arguments]
        if name == "lightning_tqdm":
            # Lightning prints this bar if rich is not installed.
            start = "import runpy; from lightning.pytorch.trainer.connectors import callback_connector as bars; "
            start += f"bars._RICH_AVAILABLE = False; runpy.run_path({command[1]!r}, run_name='__main__')"
            command = [sys.executable, "-c", start, *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        for stream, text in (("out", done.stdout), ("err", done.stderr)):
            # Paths of the machine are replaced, so that recordings do not depend on it.
            text = text.replace(folder.encode(), b".").replace(sys.prefix.encode(), b"/usr")
            (target / f"{stream}.txt").write_bytes(text)
        for pattern in kept:
            for path in sorted(Path(folder).glob(pattern)):
                place = target / path.relative_to(folder)
                place.parent.mkdir(parents=True, exist_ok=True)
                content = path.read_bytes()
                place.write_bytes(without_machine(content) if path.suffix == ".wandb" else content)


for name in sys.argv[1:] or RUNS:
    record(name)
