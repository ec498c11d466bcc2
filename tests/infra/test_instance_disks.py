"""What the user data of infra/compute.yaml does with an instance's own disks, on a scratch root with stand-ins."""
import os
import unittest
from pathlib import Path

from test_instance import AGENT, Boot

# Programs that work on the root's files: a device's content is the label of what is on it, and $ROOT/mounted is what is mounted.
DISK_PROGRAMS = {
    "blkid": '[ -s "$ROOT$last" ] || exit 2; cat "$ROOT$last"',
    # As the real one without -f.
    "mkfs.xfs": '[ ! -s "$ROOT$last" ] || exit 1; case "$*" in *-K*"-L spotsweep"*) echo spotsweep >"$ROOT$last" ;; esac',
    "mdadm": """mkdir -p "$ROOT/dev/md"
case "$1" in
--create) for disk in /dev/nvme*; do :; done; for disk; do case "$disk" in /dev/nvme*) echo any:spotsweep >"$ROOT$disk" ;; esac; done; : >"$ROOT/dev/md/spotsweep" ;;
--assemble) echo spotsweep >"$ROOT/dev/md/spotsweep" ;;
esac""",
    "mountpoint": '[ -e "$ROOT/mounted" ]',
    "mount": '[ "$(cat "$ROOT$3")" = spotsweep ] && [ "$4" = "$ROOT/var/lib/spotsweep-data" ] && echo "$2 $3" >"$ROOT/mounted"',
}
EBS, OWN = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"


class Data(Boot):
    """The cache of data sets is on the instance's own disks, if these have nothing on them but an earlier boot's cache."""

    def setUp(self):
        super().setUp()
        for name, body in DISK_PROGRAMS.items():
            self.program(name, body)
        self.disk("nvme0n1", EBS, "root")

    def program(self, name, body):
        # Each is broken if BROKEN names it, and writes its calls down.
        start = 'echo "${0##*/} $*" >>"$CALLS"; case " $BROKEN " in *" ${0##*/} "*) exit 1 ;; esac; for last; do :; done'
        (self.programs / name).write_text(f"#!/bin/bash\n{start}\n{body}\n")
        (self.programs / name).chmod(0o755)

    def disk(self, name, model=OWN, label="", sectors=1_000):
        folder = self.root / "sys/block" / name
        (folder / "device").mkdir(parents=True)
        # The kernel fills the model up to its 40 bytes.
        (folder / "device/model").write_text(f"{model:40}\n")
        (folder / "size").write_text(f"{sectors}\n")
        (folder / "holders").mkdir()
        (self.root / "dev" / name).write_text(label and f"{label}\n")

    def mounted(self, said="", broken=""):
        """What is mounted after a boot, which is a good one whatever becomes of the disks."""
        done = self.boot(broken)
        self.assertEqual(done.returncode, 0, done.stderr)
        console = self.root / "dev/console"
        shown = console.read_text() if console.exists() else ""
        self.assertEqual(shown.splitlines(), [line for line in done.stderr.splitlines() if line.startswith("spotsweep: ")])
        self.assertRegex(shown, said or r"\A\Z")
        console.unlink(missing_ok=True)
        self.assertEqual(self.config().splitlines(), list(AGENT))
        self.assertEqual((self.root / "var/lib/spotsweep-data").stat().st_mode & 0o7777, 0o700)
        path = self.root / "mounted"
        return path.read_text().strip() if path.exists() else None

    def reboot(self):
        (self.root / "mounted").unlink()
        self.calls.write_text("")

    def changed(self):
        return [line for line in self.calls.read_text().splitlines() if line.startswith(("mkfs.xfs", "mdadm"))]

    def test_without_own_disks_the_folder_is_on_the_root_disk(self):
        self.disk("nvme1n1", EBS)
        self.assertIsNone(self.mounted())
        self.assertEqual(self.changed(), [])

    def test_one_disk_is_formatted_once_and_mounted_at_each_boot(self):
        self.disk("nvme1n1", EBS)
        self.disk("nvme2n1")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")
        self.assertEqual(self.changed(), ["mkfs.xfs -q -K -L spotsweep /dev/nvme2n1"])
        self.reboot()
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")
        self.assertEqual(self.changed(), [])
        self.calls.write_text("")
        self.assertIsNotNone(self.mounted(), "the script runs again and finds it mounted")
        self.assertNotIn("mount ", self.calls.read_text())
        # A stop leaves nothing of it.
        self.reboot()
        (self.root / "dev/nvme2n1").write_text("")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")
        self.assertEqual(len(self.changed()), 1)

    def test_an_ebs_volume_with_the_caches_label_is_not_mounted(self):
        self.disk("nvme1n1", EBS, "spotsweep")
        self.assertIsNone(self.mounted())
        self.disk("nvme2n1")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")

    def test_several_disks_are_one_array(self):
        # A path of a disk, without a device of its own.
        self.disk("nvme1c1n1")
        (self.root / "dev/nvme1c1n1").unlink()
        self.disk("nvme1n1")
        self.disk("nvme2n1")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/md/spotsweep")
        create = "mdadm --create --run --homehost=any --level=0 --raid-devices=2 /dev/md/spotsweep /dev/nvme1n1 /dev/nvme2n1"
        self.assertEqual(self.changed(), [create, "mkfs.xfs -q -K -L spotsweep /dev/md/spotsweep"])
        self.reboot()
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/md/spotsweep")
        self.assertEqual(self.changed(), ["mdadm --assemble --run /dev/md/spotsweep /dev/nvme1n1 /dev/nvme2n1"])
        # udev may have assembled it, under the kernel's name.
        self.reboot()
        (self.root / "sys/block/nvme1n1/holders/md127").touch()
        (self.root / "dev/md127").write_text("spotsweep\n")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/md127")
        self.assertEqual(self.changed(), [])

    def test_mdadm_is_installed_if_it_is_missing(self):
        (self.programs / "mdadm").rename(self.root / "package")
        self.program("dnf", f'case "$*" in *"install mdadm") cp "$ROOT/package" {self.programs}/mdadm ;; esac')
        self.environment["PATH"] = f"{self.programs}:{self.without('mdadm', 'dnf')}"
        self.disk("nvme1n1")
        self.disk("nvme2n1")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/md/spotsweep")

    def without(self, *names):
        """A folder with the programs of the path, but these."""
        folder = Path(self.root, "path")
        folder.mkdir()
        for found in (program for part in os.environ["PATH"].split(":") if Path(part).is_dir() for program in Path(part).iterdir()):
            if found.name not in names and not (folder / found.name).is_symlink():
                (folder / found.name).symlink_to(found)
        return folder

    def test_disks_that_cannot_be_joined_give_the_largest(self):
        self.disk("nvme1n1", sectors=1_000)
        self.disk("nvme2n1", sectors=3_000)
        self.disk("nvme3n1", sectors=2_000)
        self.assertEqual(self.mounted(said="cannot be joined, so data sets get /dev/nvme2n1 alone", broken="mdadm"), "noatime,nodev,nosuid /dev/nvme2n1")
        self.reboot()
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")

    def test_a_disk_with_anything_on_it_is_left_alone(self):
        self.disk("nvme1n1", label="theirs")
        self.assertIsNone(self.mounted(said="own disks cannot be used"))
        self.assertEqual(self.changed(), [])
        self.disk("nvme2n1")
        self.assertEqual(self.mounted(), "noatime,nodev,nosuid /dev/nvme2n1")
        self.assertEqual((self.root / "dev/nvme1n1").read_text(), "theirs\n")

    def test_an_instance_whose_disk_fails_works_without_it(self):
        for broken in ("mkfs.xfs", "mount", "blkid"):
            with self.subTest(broken=broken):
                self.setUp()
                self.disk("nvme1n1")
                self.assertIsNone(self.mounted(said="own disks cannot be used", broken=broken))


if __name__ == "__main__":
    unittest.main()
