#!/usr/bin/env python3
"""Runs a command on another Linux kernel, in an emulated machine that has this one's files.

The kernel comes from Debian's packages (or any that have /boot/vmlinuz-* or a vmlinuz among the modules), or is a
bzImage that has all it needs built in: virtio over PCI, 9p, overlayfs and a serial console. The machine sees the
files of this one; what it writes stays in its memory and is gone with it, but for /mnt, which is --keep. It has no
network but loopback, and one processor of 1,000 million instructions a second.

Its clock counts instructions (qemu's icount): a busy or slow machine makes the run longer, not the figures worse, so
that paths, timers and rates within it are right. It skips what it sleeps.

  apt-get download linux-image-6.12.117+deb13-amd64
  interop/other_kernel.py linux-image-6.12*.deb -- target/debug/anabranch kernel list
  interop/other_kernel.py bzImage -- interop/fairness.py target/debug/anabranch --seeds 3

Needs root (its files are all of this machine's) and qemu-system-x86, busybox-static, cpio, kmod, xz-utils and dpkg.
Ends with the status of the command; 2 for a usage it does not know, 3 if the machine did not come to run it.
"""

import argparse
import glob
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

# What a kernel of a distribution has as modules and the command may need.
MODULES = """crc32c_generic virtio_pci 9p 9pnet_virtio overlay veth tun dummy tcp_diag inet_diag mptcp_diag
nf_tables tcp_bbr sch_fq cls_bpf sch_ingress""".split()

INIT = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
$b mount -t devtmpfs dev /dev
for module in {modules}; do $b insmod /modules/$module || echo "$module: refused"; done
$b mkdir -p /lower /memory /new
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose host /lower || exec $b poweroff -f
$b mount -t tmpfs -o size=75% tmpfs /memory
$b mkdir /memory/upper /memory/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/memory/upper,workdir=/memory/work overlay /new || exec $b poweroff -f
$b mount -t proc proc /new/proc
$b mount -t sysfs sys /new/sys
$b mount -t devtmpfs dev /new/dev
$b mkdir -p /new/dev/pts /new/dev/shm /new/mnt
$b mount -t devpts devpts /new/dev/pts
$b mount -t tmpfs tmpfs /new/dev/shm
$b mount -t tmpfs tmpfs /new/run
$b mount -t bpf bpf /new/sys/fs/bpf
$b mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
$b mount -t tracefs tracefs /new/sys/kernel/tracing
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 keep /new/mnt || exec $b poweroff -f
exec $b switch_root /new /bin/bash /mnt/.command
"""

COMMAND = """export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
ip link set lo up
{links}
sysctl -qw net.ipv4.tcp_congestion_control={control}
cd {directory}
setsid -w {command} </dev/null >/dev/ttyS1 2>&1
echo $? >/mnt/.status
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def unpack(kernels, into):
    """The kernel's image and, of packages, the directory of its modules."""
    if len(kernels) == 1 and not kernels[0].endswith(".deb"):
        return kernels[0], None
    for package in kernels:
        subprocess.run(["dpkg", "-x", package, into], check=True)
    found = glob.glob(into + "/lib/modules/*") + glob.glob(into + "/usr/lib/modules/*")
    images = glob.glob(into + "/boot/vmlinuz*") + [image for m in found for image in glob.glob(m + "/vmlinuz")]
    if len(found) != 1 or len(images) != 1:
        found_ones = f"{len(images)} kernels and the modules of {len(found)}"
        sys.exit(f"{' '.join(kernels)}: {found_ones}; name the packages of one")
    root = found[0][: found[0].index("/lib/modules")]
    subprocess.run(["depmod", "-b", root, os.path.basename(found[0])], check=True)
    return images[0], found[0]


def in_order(modules):
    """Files of MODULES, each after those that it needs."""
    needs = {}
    for line in open(modules + "/modules.dep"):
        file, _, others = line.partition(":")
        needs[file] = others.split()
    by_name = {os.path.basename(file).split(".")[0].replace("-", "_"): file for file in needs}
    order = []
    for file in filter(None, map(by_name.get, MODULES)):
        order += [one for one in [*reversed(needs[file]), file] if one not in order]
    return order


def first_files(modules, into, work):
    """The archive that the kernel begins with."""
    for directory in "bin proc sys dev modules".split():
        os.makedirs(f"{work}/{directory}")
    shutil.copy("/bin/busybox", work + "/bin/busybox")
    names = []
    for file in in_order(modules) if modules else []:
        content = open(f"{modules}/{file}", "rb").read()
        content = lzma.decompress(content) if file.endswith(".xz") else content
        names.append(os.path.basename(file).removesuffix(".xz"))
        open(f"{work}/modules/{names[-1]}", "wb").write(content)
    with open(work + "/init", "w") as init:
        init.write(INIT.format(modules=" ".join(names)))
    os.chmod(work + "/init", 0o755)
    subprocess.run(f"find . | cpio -o -H newc --quiet | gzip -1 > {shlex.quote(into)}", shell=True, cwd=work, check=True)


def run(options, work):
    """Runs the command; its status, or none if the machine did not come to it."""
    kernel, modules = unpack(options.kernel, work + "/packages")
    os.mkdir(work + "/first")
    first_files(modules, work + "/initrd", work + "/first")
    keep = options.keep or work + "/keep"
    os.makedirs(keep, exist_ok=True)
    links = f"mkdir -p /lib/modules; ln -sfn {modules} /lib/modules/" if modules else ""
    with open(keep + "/.command", "w") as command:
        command.write(
            COMMAND.format(
                links=links,
                control=options.control,
                directory=shlex.quote(os.getcwd()),
                command=shlex.join(options.command),
            )
        )
    machine = subprocess.Popen(
        ["qemu-system-x86_64", "-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "max"]
        + ["-m", options.memory, "-display", "none", "-no-reboot", "-nodefaults"]
        + ["-serial", f"file:{work}/console", "-serial", "stdio"]
        + ["-kernel", kernel, "-initrd", work + "/initrd", "-append", "console=ttyS0 panic=-1 quiet"]
        + ["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
        + ["-virtfs", f"local,path={keep},mount_tag=keep,security_model=none"],
        stdin=subprocess.DEVNULL,
    )
    try:
        machine.wait(options.minutes * 60)
    except subprocess.TimeoutExpired:
        sys.stderr.write(f"not done after {options.minutes} minutes; --minutes gives it more\n")
    finally:
        machine.kill()
        machine.wait()
        os.remove(keep + "/.command")
    if options.log:
        shutil.copy(work + "/console", options.log)
    status = keep + "/.status"
    if not os.path.exists(status):
        sys.stderr.write(open(work + "/console", errors="replace").read()[-3000:])
        return None
    code = int(open(status).read())
    os.remove(status)
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", nargs="+", help="packages of one kernel, or a bzImage")
    parser.add_argument("--keep", metavar="DIR", help="directory that the command sees, and may write, as /mnt")
    parser.add_argument("--log", metavar="FILE", help="where the console of the kernel goes")
    parser.add_argument("--memory", default="3G", help="of the machine (3G)")
    parser.add_argument("--minutes", type=float, default=30, help="how long it may take (30)")
    parser.add_argument("--control", default="reno", help="its default congestion control (reno)")
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:at])
    options.command = sys.argv[at + 1 :]
    if not options.command:
        parser.error("what shall it run? Say so after --")
    for tool in "qemu-system-x86_64 busybox cpio depmod dpkg".split():
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            parser.error(f"{tool} is missing")
    for file in options.kernel:
        if not os.path.isfile(file):
            parser.error(f"{file}: no such file")
    work = tempfile.mkdtemp(prefix="other-kernel-")
    try:
        code = run(options, work)
    finally:
        shutil.rmtree(work)
    sys.exit(3 if code is None else code)


if __name__ == "__main__":
    main()
