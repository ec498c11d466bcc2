#!/bin/sh
# Goes before mkfs.ext4 on the path: makes the file system, whole or by half, and does not come back.
/usr/sbin/mkfs.ext4 "$@"
for device; do :; done
# The superblock is what mkfs.ext4 writes last.
[ ! -e /probe/half ] || dd if=/dev/zero of="$device" bs=4096 count=1 conv=notrunc,fsync
touch /probe/formatted
exec sleep 600
