"""The program `suggestions` (`studies/src/bin/suggestions.rs`)."""

import json
import subprocess


class Program:
    """One process of the program. Questions and answers are lines of JSON."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, kind, **question):
        self.process.stdin.write(json.dumps({kind: question}) + "\n")
        self.process.stdin.flush()

    def ask(self, kind, **question):
        self.say(kind, **question)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
