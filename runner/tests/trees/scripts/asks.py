"""Trains by steps, each of which needs the helper at --path; saves on SIGTERM after the step, and asks it for that too."""
import argparse, os, pickle, signal, socket, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--path")
parser.add_argument("--steps", type=int, default=8)
parser.add_argument("--save", type=int, default=0, help="seconds that a save takes, with the helper")
options = parser.parse_args()
model = os.path.join(os.environ["SPOTSWEEP_CHECKPOINTS"], "model.pkl")
step = pickle.load(open(model, "rb")) if os.path.exists(model) else -1
print(f"START after_step={step}", flush=True)
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(1))


def ask():
    client = socket.socket(socket.AF_UNIX)
    client.connect(options.path)
    assert client.recv(2) == b"ok"
    client.close()


for step in range(step + 1, options.steps):
    for _ in range(10):
        ask()
        time.sleep(0.05)
    if stopped:
        for _ in range(1 + 2 * options.save):
            ask()
            time.sleep(0.5 if options.save else 0)
        with open(model + ".tmp", "wb") as file:
            pickle.dump(step, file)
        os.rename(model + ".tmp", model)
        print("saved step", step, flush=True)
        sys.exit(143)
    print(f"step={step} score={step}", flush=True)
