"""train.py as many trainings end: stopped before its end, it saves its progress and exits with 0."""
import train

if __name__ == "__main__":
    train.INTERRUPTED = 0
    train.main()
