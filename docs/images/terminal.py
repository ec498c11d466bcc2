"""A terminal's screen: what a program has written, as rows of text."""
import re

ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


class Screen:
    """The rows that a terminal of this size shows. Colours are left out: the demo prints none."""

    def __init__(self, columns, rows):
        self.columns = columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0

    def text(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, text):
        at = 0
        while at < len(text):
            escape = ESCAPE.match(text, at)
            if escape:
                self.move(int(escape[1]) if escape[1].isdigit() else 0, escape[2])
                at = escape.end()
            else:
                self.put(text[at])
                at += 1

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.line_feed()
        elif character.isprintable():
            if self.x == self.columns:  # a full row wraps with the next character, as xterm does
                self.x = 0
                self.line_feed()
            self.cells[self.y][self.x] = character
            self.x += 1

    def line_feed(self):
        if self.y + 1 < len(self.cells):
            self.y += 1
        else:
            self.cells = self.cells[1:] + [[" "] * self.columns]

    def move(self, number, command):
        count = number or 1
        if command == "A":
            self.y = max(0, self.y - count)
        elif command == "B":
            self.y = min(len(self.cells) - 1, self.y + count)
        elif command == "K":  # 0: from the cursor on, 2: the whole row
            first = 0 if number == 2 else min(self.x, self.columns)
            self.cells[self.y][first:] = [" "] * (self.columns - first)
        elif command not in "mhl":  # colours and modes change no text
            raise ValueError(f"the recording has an escape sequence that this script does not know: {command}")
