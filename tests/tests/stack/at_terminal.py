"""Runs a command at a terminal. Once a text is drawn, an answer is typed; without one the terminal is closed.

Prints the command's exit code."""
import os
import pty
import sys
import termios

text, answer, *command = sys.argv[1:]
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    termios.tcsetwinsize(0, (24, 100))
    os.execvp(command[0], command)
drawn = b""
while text.encode() not in drawn:
    drawn += os.read(terminal, 4096)
if answer:
    os.write(terminal, answer.encode() + b"\n")
    # What is written is read, so that the command never waits for it.
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:
        pass
os.close(terminal)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
