#!/bin/busybox sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest's first process: mounts, runs /job and powers off.  Lines for the host begin with
# "> "; the rest of what comes over the serial line is the kernel's.
/bin/busybox mkdir -p /sbin /usr/sbin /proc /sys /dev /tmp /root /run
/bin/busybox --install -s
export PATH=/guest/build:/usr/bin:/usr/sbin:/bin:/sbin HOME=/root PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=/usr/lib/python3/dist-packages MEMPROF_GUEST=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tracefs tracing /sys/kernel/tracing
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
ip link set lo up
cd /guest
echo "> guest $(uname -m) $(uname -r) $(nproc)"
sh /job 2>&1 </dev/null | while IFS= read -r line; do
	echo "> $line"
done
echo "> guest ends"
poweroff -f
