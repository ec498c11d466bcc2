"""The runner that an instance fetches at its boot, and its own mkfs.ext4, for images without them."""
import hashlib
import http.server
import json
import os
import re
import shutil
import ssl
import subprocess
import threading
import unittest

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from needs import need
from test_instance import Boot, script

KEYS = {"AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "a/secret+key", "Token": "a/session+token=="}
RUNNER = b"\x7fELF, the runner"


class Services(http.server.BaseHTTPRequestHandler):
    """The metadata service, and the bucket, which verifies the signature with botocore."""

    def do_PUT(self):
        self.answer(b"imds-token" if self.path == "/latest/api/token" else None)

    def do_GET(self):
        role = "/latest/meta-data/iam/security-credentials/"
        if self.headers["Host"] == "169.254.169.254":
            keys = json.dumps(KEYS, indent=2, separators=(",", " : ")).encode()
            found = {role: b"a-role", f"{role}a-role": keys}.get(self.path)
            self.answer(found if self.headers["X-aws-ec2-metadata-token"] == "imds-token" else None)
        else:
            self.server.asked.append(self.path)
            self.answer(self.server.objects.get(self.path) if self.is_signed() else None)

    def is_signed(self):
        authorization = dict(re.findall(r"(\w+)=([^,]+)", self.headers["Authorization"]))
        signed = {name: self.headers[name] for name in authorization["SignedHeaders"].split(";")}
        request = AWSRequest("GET", f"https://{self.headers['Host']}{self.path}", headers=signed)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        signer = S3SigV4Auth(Credentials(KEYS["AccessKeyId"], KEYS["SecretAccessKey"], KEYS["Token"]), "s3", "eu-west-1")
        right = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
        return signed["x-amz-security-token"] == KEYS["Token"] and authorization["Signature"] == right

    def answer(self, body):
        self.send_response(200 if body is not None else 403)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


class Runner(Boot):
    """The runner and mkfs.ext4, which jobs mount. `curl` is the real one, and both services are on this machine."""

    def setUp(self):
        super().setUp()
        need(next((f"{name} (apt-get install {package})" for name, package in
                   (("curl", "curl"), ("openssl", "openssl"), ("mkfs.ext4", "e2fsprogs")) if shutil.which(name) is None), None))
        self.hash = hashlib.sha256(RUNNER).hexdigest()
        self.script.write_text(script(RunnerX86=self.hash, RunnerArm="0" * 64))
        self.machine("x86_64")
        metadata, self.bucket = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), Services) for _ in range(2))
        key = self.root / "key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", key, "-subj", "/CN=s3"],
                       check=True, capture_output=True, timeout=60)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(key)
        self.bucket.socket = context.wrap_socket(self.bucket.socket, server_side=True)
        self.bucket.objects, self.bucket.asked = {f"/runner/{self.hash}": RUNNER}, []
        for server in (metadata, self.bucket):
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        to = " ".join(f"--connect-to {host}:127.0.0.1:{server.server_port}" for host, server in
                      (("169.254.169.254:80", metadata), ("a-bucket.s3.eu-west-1.amazonaws.com:443", self.bucket)))
        # Without the pauses between tries.
        self.program("curl", f'exec {shutil.which("curl")} --insecure {to} "$@" --retry 0')

    def machine(self, name):
        self.program("uname", f"echo {name}")

    def program(self, name, body):
        (self.programs / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.programs / name).chmod(0o755)

    def folder(self, *parts):
        return self.root.joinpath("opt/spotsweep", *parts)

    def test_it_is_fetched_once(self):
        for _ in range(2):
            done = self.boot()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.folder("spotsweep-runner").read_bytes(), RUNNER)
        self.assertEqual(self.folder("spotsweep-runner").stat().st_mode & 0o777, 0o755)
        self.assertEqual(self.bucket.asked, [f"/runner/{self.hash}"])

    def test_mkfs_runs_with_its_own_libraries(self):
        self.boot()
        volume = self.root / "volume"
        with volume.open("wb") as file:
            file.truncate(16 << 20)
        # An empty root: nothing but the folder can be found.
        made = subprocess.run(["/ld.so", "--library-path", "/", "/mkfs.ext4", "-q", "/volume"], capture_output=True, text=True, timeout=60,
                              preexec_fn=lambda: self.enter(volume)) if os.geteuid() == 0 else None
        need(made is None and "root")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.folder("e2fsprogs", "volume").read_bytes()[1080:1082], b"\x53\xef")

    def enter(self, volume):
        shutil.copy(volume, self.folder("e2fsprogs", "volume"))
        os.chroot(self.folder("e2fsprogs"))
        os.chdir("/")

    def test_without_it_the_instance_shuts_down(self):
        for what, objects in (("missing", {}), ("cut", {f"/runner/{self.hash}": RUNNER[:-1]})):
            with self.subTest(what):
                self.bucket.objects = objects
                self.calls.write_text("")
                self.gives_up(self.boot(), "runner cannot be fetched from a-bucket")
                self.assertFalse(self.folder("spotsweep-runner").exists())

    def test_another_processor_shuts_down(self):
        self.script.write_text(script(RunnerX86=self.hash))
        self.machine("aarch64")
        self.gives_up(self.boot(), "no runner for aarch64")

    def test_an_instance_without_mkfs_joins(self):
        self.program("ldd", "exit 1")
        done = self.boot()
        self.assertEqual(done.returncode, 0)
        self.assertIn("mkfs.ext4", done.stderr)


if __name__ == "__main__":
    unittest.main()
