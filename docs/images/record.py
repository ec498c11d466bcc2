"""Makes docs/images/demo.svg and docs/images/report.png, each from a real run of `spotsweep demo --reclaims 12 --seed 1`.

    cargo build --workspace --bins
    python3 docs/images/record.py

It needs chromium for report.png, whose trials last three minutes each: a quarter of an hour in all. The recording is the
program's own output, played faster. Two things differ: the folder of this checkout is shown as `~/spotsweep`, and a
screen that changes at once stays long enough to be read. The picture of the report leaves out some of its sections and
rows, so that the rest fits.
"""
import argparse
import fcntl
import html
import os
import pathlib
import pty
import struct
import subprocess
import tempfile
import termios
import time

from terminal import Screen

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TYPED = "spotsweep demo --reclaims 12 --seed 1"
PICTURED = ["--max-vcpus", "8", "--sweep", "examples/digits/minutes.yaml"]
COLUMNS, ROWS = 110, 22
SPEED = 8
FRAME_SECONDS, READ_SECONDS, LAST_SECONDS = 0.25, 3, 6
WIDTH, LINE, LEFT, TOP = 8.0, 18, 18, 48
LEFT_OUT = "nav, #parallel, #curves, #importance, #cost, #failures, #file, details, #leaderboard tr:nth-child(n+8)"


def record(command, columns, rows):
    """What the command writes to a terminal of this size: (seconds since its start, text)."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.chdir(ROOT)
        os.execvp(command[0], command)
    start, pieces = time.monotonic(), []
    while True:
        try:
            read = os.read(terminal, 65536)
        except OSError:  # the child has closed its end
            break
        if not read:
            break
        pieces.append((time.monotonic() - start, read.decode(errors="replace")))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status != 0:
        raise SystemExit(f"{' '.join(command)} ended with {status}:\n{''.join(text for _, text in pieces)}")
    return pieces


def frames(pieces, shorter):
    """Screens of the recording, each with the seconds for which it is shown."""
    screen = Screen(COLUMNS, ROWS)
    screen.feed(f"$ {TYPED}\r\n")
    kept = [(0, screen.text(), 0)]
    for seconds, text in pieces:
        for long, short in shorter:
            text = text.replace(long, short)
        lines = text.splitlines(keepends=True)
        for first in range(0, len(lines), ROWS - 1):
            page = lines[first:first + ROWS - 1]
            screen.feed("".join(page))
            shot = (seconds / SPEED, screen.text(), READ_SECONDS if len(page) > ROWS // 2 else 0)
            since, rows, read = kept[-1]
            if not read and shot[0] - since < FRAME_SECONDS:  # too short to be seen: the newer screen replaces it
                kept[-1] = (since, *shot[1:])
            elif shot[1] != rows:
                kept.append(shot)
    ends = [since for since, _, _ in kept[1:]] + [kept[-1][0] + LAST_SECONDS]
    return [(rows, end - since + read) for (since, rows, read), end in zip(kept, ends)]


def svg(screens):
    """The screens as one animated picture: a film of frames side by side, of which one is seen at a time."""
    width, height = COLUMNS * WIDTH + 2 * LEFT, ROWS * LINE + TOP + 14
    numbers = {}
    for rows, _ in screens:
        for row in filter(None, rows):
            numbers.setdefault(row, len(numbers))
    total, at, steps, film = sum(seconds for _, seconds in screens), 0.0, [], []
    for index, (rows, seconds) in enumerate(screens):
        steps.append(f"{100 * at / total:.2f}%{{transform:translateX({-index * width:.0f}px)}}")
        at += seconds
        uses = (f'<use href="#r{numbers[row]}" y="{TOP + LINE * (y + 1)}"/>' for y, row in enumerate(rows) if row)
        film.append(f'<g transform="translate({index * width:.0f})">{"".join(uses)}</g>')
    last = f"transform:translateX({-(len(screens) - 1) * width:.0f}px)"
    rows = (f'<text id="r{number}" x="{LEFT}" textLength="{len(row) * WIDTH:g}">{html.escape(row)}</text>'
            for row, number in numbers.items())
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}" role="img" aria-label="A terminal: {TYPED}">
<style>
text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6dee8;white-space:pre}}
.title{{fill:#8b98a8}}
.film{{{last};animation:play {total:.1f}s step-end infinite}}
@keyframes play{{{"".join(steps)}}}
@media (prefers-reduced-motion:reduce){{.film{{animation:none}}}}
</style>
<defs>{"".join(rows)}</defs>
<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="9" fill="#11161d" stroke="#3a4654"/>
<circle cx="20" cy="20" r="5.5" fill="#f0655a"/><circle cx="38" cy="20" r="5.5" fill="#f2bd42"/><circle cx="56" cy="20" r="5.5" fill="#53c24d"/>
<text class="title" x="{width / 2:.0f}" y="25" text-anchor="middle">a real run, {SPEED} times as fast</text>
<g class="film">
{chr(10).join(film)}
</g>
</svg>
"""


def picture(report, target):
    """The report page as chromium shows it, without what is left out."""
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        page.write_text(report.read_text().replace("</style>", f"{LEFT_OUT} {{ display: none }}</style>", 1))
        subprocess.run(
            ["chromium", "--headless=new", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
             "--virtual-time-budget=4000", "--window-size=1180,1330", f"--screenshot={target}", page.as_uri()],
            check=True, timeout=120, capture_output=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binaries", type=pathlib.Path, default=ROOT / "target/debug",
                           help="the folder of the built programs [default: target/debug]")
    binaries = arguments.parse_args().binaries.resolve()
    demo = [str(binaries / "spotsweep"), *TYPED.split()[1:], "--binaries", str(binaries), "--results"]
    with tempfile.TemporaryDirectory() as results:
        shorter = [(results, "spotsweep-results"), (str(ROOT), "~/spotsweep")]
        (HERE / "demo.svg").write_text(svg(frames(record([*demo, results], COLUMNS, ROWS), shorter)))
    with tempfile.TemporaryDirectory() as results:
        record([*demo, results, *PICTURED], COLUMNS, ROWS)
        [report] = pathlib.Path(results).glob("*/report.html")
        picture(report, HERE / "report.png")


if __name__ == "__main__":
    main()
