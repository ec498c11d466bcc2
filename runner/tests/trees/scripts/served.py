"""The same as served.sh: a launcher that waits for the training."""
import os, subprocess, sys, tempfile, time

path = tempfile.mktemp()
helper = subprocess.Popen([sys.executable, "helper.py", path])
while not os.path.exists(path):
    time.sleep(0.05)
code = subprocess.call([sys.executable, *sys.argv[1:], f"--path={path}"])
helper.kill()
sys.exit(code)
