"""train.py with epochs of three seconds, of which most is waiting: trials last minutes, and take little of the CPU."""
import time

import train

EPOCH_SECONDS = 3
train_epoch = train.train_epoch


def slow_epoch(state, images, labels):
    until = time.monotonic() + EPOCH_SECONDS
    has_ended = train_epoch(state, images, labels)
    while has_ended and not train.stop_requested and time.monotonic() < until:
        time.sleep(0.05)
    return has_ended


if __name__ == "__main__":
    train.train_epoch = slow_epoch
    train.main()
