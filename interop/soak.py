#!/usr/bin/env python3
"""Soak of `anabranch kernel`: connections while paths fail, then nothing may be left, and no byte lost.

    sudo interop/soak.py target/release/anabranch [--minutes 30] [--round 60] [--seed 1] [--keep DIRECTORY]

Each round runs two hosts on the testbed over two paths that are taken down and up, turn into black holes and lose
packets. Connections of 1 byte to 4 MB carry data both ways with one of the congestion controls that are loaded: one in
each round, all in every seventh. In the first of three rounds `kernel acks` is at work on both hosts, in the second
`kernel steer`. Controls are held by a command or pinned, and are taken away and loaded again while connections use
them, unless `--no-reload` is given. `kernel watch --report` runs beside all rounds. Every tenth connection or so is
reset by its client, and not counted among those whose bytes are compared; one in six is plain TCP.

`--controls reno` tries the kernel's own control, to tell faults of the kernel from those of ours; `--first` begins with
a later round of the same seed.

It fails if a byte is missing or wrong, if a program, map, link, pin, name, endpoint or process is left, or if the
kernel has logged a warning since it began. Names in the kernel are one for the whole machine: each round takes the turn
of the tests, and waits for it.
"""
import argparse
import collections
import ctypes
import fcntl
import hashlib
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CONTROLS = ["lia", "olia", "balia", "wvegas", "veno", "mveno-r"]
PATHS = {"near": ("16mbit", "10ms"), "far": ("8mbit", "30ms")}
CLIENT = ["--path", "10.77.1.2,10.77.0.1", "--path", "10.77.2.2,10.77.0.1"]
SERVER = ["--path", "10.77.0.1,10.77.1.2", "--path", "10.77.0.1,10.77.2.2"]
POLICY = """
[path.far]
address = "10.77.2.2"
[[rule]]
when = "loss > 3%"
then = "close"
hold = "2s"
retry = "3s"
[[rule]]
when = "rtt > 150ms"
then = "backup"
hold = "2s"
retry = "3s"
"""
PORT = 5233
LARGEST = 4_000_000
AT_ONCE = 6
HEADER = struct.Struct("!QQQ?16s")
IPPROTO_MPTCP = 262
# In the environment of every process of a soak, by which those that are left are found.
MARK = "ANABRANCH_SOAK"
PINS = Path("/sys/fs/bpf/anabranch")
REGISTERED = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
# Anything the kernel logs as a warning or worse, and what it says of its own faults at any level.
FAULT = re.compile(r"WARNING:|BUG:|Oops|Call Trace|refcount_t|general protection|stall|blocked for more than|UBSAN")


def kernel_name(control):
    return "ab_" + control.replace("-", "_") if control in CONTROLS else control


def content(seed, direction, size):
    return hashlib.shake_128(f"{seed} {direction}".encode()).digest(size)


# The two hosts. Both send at once: the client `up` bytes, the server `down` bytes and its verdict.


class Reader(threading.Thread):
    """Takes what arrives, to the end or an error."""

    def __init__(self, connection):
        super().__init__()
        self.connection, self.data, self.error = connection, bytearray(), None
        self.start()

    def run(self):
        try:
            while part := self.connection.recv(1 << 18):
                self.data += part
        except OSError as error:
            self.error = error


def exact(connection, size):
    data = b""
    while len(data) < size and (part := connection.recv(size - len(data))):
        data += part
    return data


def serve(connection):
    connection.settimeout(120)
    aborts = True
    try:
        header = exact(connection, HEADER.size)
        if len(header) < HEADER.size:
            return
        seed, up, down, aborts, control = HEADER.unpack(header)
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.rstrip(b"\0"))
        except FileNotFoundError:
            pass  # It is being loaded again.
        reader = Reader(connection)
        connection.sendall(content(seed, "down", down))
        reader.join()
        is_right = reader.data == content(seed, "up", up)
        if not (is_right or aborts):
            tell(connection, f"{len(reader.data)} of {up} bytes, {reader.error}")
        connection.sendall(b"+" if is_right else b"-")
        connection.shutdown(socket.SHUT_WR)
    except OSError as error:
        if not aborts:
            tell(connection, error)
    finally:
        connection.close()


def tell(connection, what):
    print(f"server: port {port_of(connection)}: {what}", file=sys.stderr, flush=True)


def port_of(connection):
    try:
        return connection.getpeername()[1]
    except OSError:
        return None


def open_sockets():
    """TCP sockets of this network namespace that are not closed yet."""
    shown = subprocess.run(["ss", "-tanH"], capture_output=True, text=True).stdout
    return [line for line in shown.splitlines() if line.split()[0] not in ("LISTEN", "TIME-WAIT")]


def tell_sockets():
    while True:
        Path("server.sockets.new").write_text("\n".join(open_sockets()))
        os.replace("server.sockets.new", "server.sockets")
        time.sleep(0.3)


def server(plan):
    threading.Thread(target=tell_sockets, daemon=True).start()
    acks = start_acks(plan, SERVER, "server-acks.log")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.bind(("10.77.0.1", PORT))
    listener.listen(64)
    try:
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    finally:
        end(acks)


def transfer(dice, controls):
    """One connection: what it was, and what went wrong."""
    up, down = (int(LARGEST ** dice.random()) for _ in range(2))
    seed, control = dice.getrandbits(63), kernel_name(dice.choice(controls))
    plain, aborts = dice.random() < 1 / 6, dice.random() < 1 / 10
    result = {"up": up, "down": down, "control": control, "plain": plain, "aborted": aborts, "error": None}
    result["began"] = time.monotonic()
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP if plain else IPPROTO_MPTCP)
    client.settimeout(120)
    try:
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        except FileNotFoundError:
            result["control"] = None  # It is being loaded again.
        client.connect(("10.77.0.1", PORT))
        client.sendall(HEADER.pack(seed, up, down, aborts, control.encode()))
        if aborts:
            client.sendall(content(seed, "up", up)[: up // 2])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return result
        result["port"] = client.getsockname()[1]
        reader = Reader(client)
        client.sendall(content(seed, "up", up))
        client.shutdown(socket.SHUT_WR)
        reader.join()
        expected = content(seed, "down", down)
        if reader.data != expected + b"+":
            right = len(os.path.commonprefix([bytes(reader.data), expected]))
            verdict = f"{reader.error}, verdict {bytes(reader.data[down:])}"
            result["error"] = f"{len(reader.data)} of {down + 1} bytes, {right} right, {verdict}"
    except OSError as error:
        result["error"] = f"{error}"
    finally:
        client.close()
    result["ended"] = time.monotonic()
    return result


def attached():
    """Programs at the devices of this network namespace (BPF_PROG_QUERY for TCX)."""
    count = 0
    for index, _ in socket.if_nameindex():
        for attach_type in (46, 47):
            query = ctypes.create_string_buffer(struct.pack("=IIIIQIIQQQ", index, attach_type, 0, 0, 0, 0, 0, 0, 0, 0))
            number = 321 if os.uname().machine == "x86_64" else 280
            if ctypes.CDLL(None, use_errno=True).syscall(number, 16, query, 56):
                raise OSError(ctypes.get_errno(), "cannot ask for the programs at a device")
            count += struct.unpack_from("=I", query, 24)[0]
    return count


def endpoints():
    shown = subprocess.run(["ip", "mptcp", "endpoint", "show"], check=True, capture_output=True, text=True).stdout
    # Those that are made again stand in another order, under the same numbers.
    return sorted(line.strip() for line in shown.splitlines())


def start_acks(plan, paths, log):
    if plan["beside"] != "acks":
        return None
    with open(log, "w") as file:
        return subprocess.Popen([plan["anabranch"], "kernel", "acks", *paths, "--json"], stdout=file, stderr=file)


def end(process):
    """The exit status, after a request to end."""
    if process is None:
        return 0
    process.terminate()
    return process.wait(timeout=30)


def client(plan):
    left, before = [], endpoints()
    beside = start_acks(plan, CLIENT, "client-acks.log")
    if plan["beside"] == "acks":
        deadline = time.monotonic() + 60
        while not re.search(r'agrees.*acks-on":1.*acks-on":1', Path("client-acks.log").read_text()):
            if time.monotonic() > deadline or beside.poll() is not None:
                sys.exit(f"kernel acks do not agree: {Path('client-acks.log').read_text()[-2000:]}")
            time.sleep(0.1)
        if attached() == 0:
            left.append("no program at a device, although kernel acks runs")
    elif plan["beside"] == "steer":
        Path("policy.toml").write_text(POLICY)
        with open("steer.log", "w") as file:
            words = [plan["anabranch"], "kernel", "steer", "--policy", "policy.toml", "--json"]
            beside = subprocess.Popen(words, stdout=file, stderr=file)
    begin, results = time.monotonic(), []
    Path("began").touch()

    def work(number):
        dice = random.Random(f"{plan['seed']} connections {number}")
        while time.monotonic() - begin < plan["length"]:
            results.append(transfer(dice, plan["controls"]))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(AT_ONCE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    # Sockets that are not closed when their network goes keep it, and the control, for minutes.
    time.sleep(0.5)
    if open_still := eventually(lambda: open_sockets() + Path("server.sockets").read_text().splitlines(), 130):
        left.append(f"sockets: {open_still}")
    if beside is not None and beside.poll() is not None:
        left.append(f"kernel {plan['beside']} ended by itself with {beside.returncode}")
    elif status := end(beside):
        left.append(f"kernel {plan['beside']} ended with {status}")
    if count := attached():
        left.append(f"{count} programs at the client's devices")
    if (after := endpoints()) != before:
        left.append(f"endpoints are {after} instead of {before}")
    Path("client.json").write_text(json.dumps({"connections": results, "left": left, "began": begin}))


# The soak around them.


def changes(dice, length):
    """Changes of the paths, and how many of them are failures. In the end all is as in the beginning."""
    text, failures, at = "", 0, 2.0

    def change(moment, path, what):
        return f'[[change]]\nat = "{moment:.3f}s"\npath = "{path}"\n{what}\n'

    while at < length - 1:
        path, kind = dice.choice(list(PATHS)), dice.choice(["down", "blackhole", "down", "blackhole", "loss"])
        until = min(at + dice.uniform(0.3, 6), length - 0.5)
        if kind == "loss":
            text += change(at, path, 'loss = "10%"') + change(until, path, 'loss = "0.1%"')
        else:
            failures += 1
            text += change(at, path, f'state = "{kind}"')
            # Now and then the other one fails as well.
            if until - at > 1 and dice.random() < 0.2:
                other = next(name for name in PATHS if name != path)
                text += change(at + 0.3, other, 'state = "blackhole"') + change(until - 0.3, other, 'state = "restore"')
                failures += 1
            text += change(until, path, 'state = "restore"')
        at = until + dice.uniform(0.5, 4)
    return text, failures


class Control:
    """A congestion control that is loaded: held by a command, or pinned."""

    def __init__(self, anabranch, name, pinned):
        self.anabranch, self.name, self.pinned, self.holder = anabranch, name, pinned, None
        self.load()

    def load(self):
        # Another command may have the name for a while.
        deadline = time.monotonic() + 120
        while True:
            words = [self.anabranch, "kernel", "load", self.name] + (["--pin"] if self.pinned else [])
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if process.stdout.readline().startswith("loaded"):
                break
            _, said = process.communicate()
            if time.monotonic() > deadline:
                sys.exit(f"cannot load {self.name}: {said}")
            time.sleep(0.5)
        self.holder = None if self.pinned else process
        if self.pinned:
            process.communicate()

    def unload(self, sign=signal.SIGTERM):
        if self.holder is None:
            subprocess.run([self.anabranch, "kernel", "unload", self.name], check=True, stdout=subprocess.DEVNULL)
        else:
            self.holder.send_signal(sign)
            self.holder.communicate()


def objects():
    """BPF programs, maps and links of the kernel: (kind, id) -> name and number of the types."""
    found = {}
    for kind in ("prog", "map", "link"):
        shown = subprocess.run(["bpftool", "-j", kind, "show"], check=True, capture_output=True, text=True).stdout
        for it in json.loads(shown or "[]"):
            found[kind, it["id"]] = (it.get("name", it.get("type")), it.get("btf_id"))
    return found


def held():
    """Those that processes of this soak hold, or that their congestion controls consist of."""
    ids = set()
    for pid in marked():
        for place in Path(f"/proc/{pid}/fdinfo").glob("*"):
            try:
                ids |= set(re.findall(r"^(prog|map|link)_id:\s*(\d+)", place.read_text(), re.MULTILINE))
            except OSError:
                continue  # The process has ended, or closed it.
    return {(kind, int(number)) for kind, number in ids if number != "0"}


def marked():
    """Processes of this soak, but for its own."""
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0") and int(place.name) != os.getpid():
                found[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue  # It has ended.
    return found


def eventually(found, patience=60):
    """What is found still after this time [s]."""
    deadline = time.monotonic() + patience
    while (left := found()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def log_of_kernel(file):
    """Faults among the records since the last call."""
    faults = []
    while True:
        try:
            record = os.read(file, 8192).decode(errors="replace")
        except BlockingIOError:
            return faults
        except BrokenPipeError:
            faults.append("records of the kernel's log were lost")
            continue
        head, _, text = record.partition(";")
        level = int(head.split(",")[0])
        # Facility 0 is the kernel itself.
        if level >> 3 == 0 and (level & 7 <= 4 or FAULT.search(text)):
            # A trace of calls belongs to what was said before.
            if not faults or not re.match(r" |\w\w\w?: |[FCG]S: |CPU: |Code: |---", text):
                faults.append(text.splitlines()[0])


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder, self.failures = options, folder, []
        # BPF programs, maps and links of ours, with the time at which they were noted.
        self.totals, self.ours = collections.Counter(), {}
        self.log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.log, 0, os.SEEK_END)

    def fail(self, number, said):
        self.failures.append(f"round {number}: {said}")
        print(f"  FAILED: {said}", flush=True)

    def round(self, number, length):
        dice = random.Random(f"{self.options.seed} round {number}")
        every = self.options.controls
        turn = number % (len(every) + 1)
        controls = every if turn == len(every) else [every[turn]]
        beside = ["acks", "steer", "nothing"][number % 3]
        held = dice.choice(["held", "pinned"])
        text, failures = changes(dice, length)
        folder = self.folder / f"{number:03}"
        folder.mkdir()
        paths = "".join(f'[path.{it}]\nrate = "{r}"\ndelay = "{d}"\nloss = "0.1%"\n' for it, (r, d) in PATHS.items())
        (folder / "paths.toml").write_text(f'{paths}[[workload]]\nkind = "files"\nsize = "1MiB"\n{text}')
        seed = f"{self.options.seed} {number}"
        plan = {"anabranch": str(self.options.anabranch), "controls": controls, "beside": beside, "length": length}
        (folder / "plan.json").write_text(json.dumps(plan | {"seed": seed}))
        before = objects()
        ours = [control for control in controls if control in CONTROLS]
        loaded = [Control(self.options.anabranch, control, held == "pinned") for control in ours]
        own = [sys.executable, str(Path(__file__).resolve()), "--host"]
        words = [self.options.anabranch, "testbed", "paths.toml", "--seed", str(number), "--json", "testbed.json"]
        words += ["--duration", f"{length + 200}s", "--server", " ".join([*own, "server"]), "--", *own, "client"]
        with open(folder / "testbed.log", "w") as log:
            testbed = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
        # While connections use them: the command is killed, or the pin taken back.
        while testbed.poll() is None and not (folder / "began").exists():
            time.sleep(0.05)
        time.sleep(length * dice.uniform(0.3, 0.6))
        names = {kernel_name(control) for control in ours}
        self.note(names, before)
        for control in loaded if self.options.reload else []:
            control.unload(signal.SIGKILL)
            control.load()
        self.note(names, before)
        status = testbed.wait()
        for control in loaded:
            control.unload()
        if status != 0:
            return self.fail(number, f"the testbed ended with {status}: {(folder / 'testbed.log').read_text()[-2000:]}")
        said = json.loads((folder / "client.json").read_text())
        self.judge(number, said, names)
        loads = (1 + self.options.reload) * len(loaded)
        self.totals.update({"rounds": 1, "failures of paths": failures, "loaded": loads})
        counted = [it for it in said["connections"] if not it["aborted"] and it["error"] is None]
        moved = sum(it["up"] + it["down"] for it in counted)
        late = "" if json.loads((folder / "testbed.json").read_text())["valid"] else ", the testbed was late"
        print(
            f"{time.strftime('%H:%M:%S')} round {number}: {', '.join(controls)}, {held}, {beside} beside, {failures} "
            f"failures of paths: {len(said['connections'])} connections, {moved / 1e6:.1f} MB{late}",
            flush=True,
        )
        return None

    def note(self, names, before):
        """Notes what is ours in the kernel; a name that is registered can be no one else's."""
        ours = held()
        now = {key: it for key, it in objects().items() if key not in before}
        ours |= {key for key, (name, _) in now.items() if name in names}
        types = {now[key][1] for key in ours if key in now} - {None}
        ours |= {key for key, (_, number) in now.items() if number in types}
        self.ours |= {key: time.monotonic() for key in ours - self.ours.keys()}

    def left(self, age=0, except_for=frozenset()):
        """Objects of ours that were noted so long ago [s] and are in the kernel still."""
        there, latest = objects(), time.monotonic() - age
        noted = [key for key, at in self.ours.items() if at <= latest and key not in except_for]
        return {key: there[key][0] for key in noted if key in there}

    def judge(self, number, said, names):
        """What the clients saw, and what is left in the kernel once the round is over."""
        for it in said["connections"]:
            it |= {key: round(it[key] - said["began"], 1) for key in ("began", "ended") if key in it}
            self.totals["connections"] += 1
            self.totals["with a control of ours"] += it["control"] is not None
            self.totals["plain TCP"] += it["plain"]
            if it["error"] is not None:
                self.fail(number, f"a connection of {it}")
            elif it["aborted"]:
                self.totals["reset on purpose"] += 1
            else:
                self.totals["bytes up"] += it["up"]
                self.totals["bytes down"] += it["down"]
        for what in said["left"]:
            self.fail(number, what)
        if left := eventually(lambda: names & set(REGISTERED.read_text().split())):
            self.fail(number, f"still registered: {left}")
        # The kernel frees programs after the last connection that used them.
        if left := self.left(self.options.round + 300, held()):
            self.fail(number, f"still in the kernel: {left}")
        if PINS.exists():
            self.fail(number, f"pins: {[it.name for it in PINS.iterdir()]}")
        if left := eventually(lambda: {pid: it for pid, it in marked().items() if pid != self.watch.pid}):
            self.fail(number, f"processes: {left}")
        for fault in log_of_kernel(self.log):
            self.fail(number, f"the kernel says: {fault}")

    def watched(self):
        """`kernel watch` beside all rounds, once it has its programs in the kernel."""
        words = [self.options.anabranch, "kernel", "watch", "--interval", "2s"]
        words += ["--report", self.folder / "watch.html"]
        with open(self.folder / "watch.log", "w") as log:
            watch = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        while watch.poll() is None and (self.folder / "watch.log").stat().st_size == 0:
            time.sleep(0.1)
        return watch

    def run(self):
        begin = time.monotonic()
        seconds = self.options.minutes * 60
        self.watch = watch = self.watched()
        memory, number = [], self.options.first
        while (elapsed := time.monotonic() - begin) < seconds:
            with open(Path(tempfile.gettempdir()) / "anabranch-kernel-tests.lock", "w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                self.round(number, min(self.options.round, max(8.0, seconds - elapsed)))
            number += 1
            if watch.poll() is not None:
                self.fail(number, f"kernel watch ended by itself with {watch.returncode}")
                break
            status = Path(f"/proc/{watch.pid}/status").read_text()
            memory.append(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024)
        if watch.poll() is None and end(watch) != 0:
            self.fail(number, f"kernel watch ended with {watch.returncode}")
        page = self.folder / "watch.html"
        if not page.exists() or not page.read_text().rstrip().endswith("</html>"):
            self.fail(number, "kernel watch has written no whole page")
        print(f"\n{(time.monotonic() - begin) / 60:.1f} minutes, seed {self.options.seed}")
        for name, count in self.totals.items():
            print(f"{name:<24} {count:,}")
        if memory:
            print(f"memory of kernel watch   {memory[0]:.1f} MiB after a round, {memory[-1]:.1f} after the last")
        lost = re.findall(r"(\d+) events were lost", (self.folder / "watch.log").read_text())
        print(f"events lost by it        {sum(map(int, lost)):,}")
        begin = time.monotonic()
        left = eventually(self.left, 300)
        print(f"{'objects of BPF':<24} {len(self.ours):,}, {len(left)} left after {time.monotonic() - begin:.1f} s")
        if left:
            self.fail(number, f"still in the kernel at the end: {left}")
        print("FAILED\n" + "\n".join(self.failures) if self.failures else "nothing is left, and no byte was lost")
        return 1 if self.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anabranch", nargs="?", type=lambda name: Path(name).resolve())
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--round", type=float, default=60, help="length of a round [s]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    parser.add_argument("--controls", type=lambda names: names.split(","), default=CONTROLS)
    parser.add_argument("--no-reload", dest="reload", action="store_false", help="controls stay while they are used")
    parser.add_argument("--keep", type=Path, help="where logs of all rounds stay")
    parser.add_argument("--host", choices=["server", "client"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.host:
        plan = json.loads(Path("plan.json").read_text())
        return server(plan) if options.host == "server" else client(plan)
    if options.anabranch is None:
        parser.error("the program `anabranch` is missing")
    if MARK not in os.environ:
        # Pins are in a bpffs of its own.
        os.environ[MARK] = str(os.getpid())
        # Warnings that the kernel gives once until the next boot are given anew, where it lets them.
        script = """mount -t bpf bpf /sys/fs/bpf || exit
            mount -t debugfs none /sys/kernel/debug
            echo 1 2> /dev/null > /sys/kernel/debug/clear_warn_once ||
                echo "a warning that the kernel gives once, and has given since the boot, would not be seen" >&2
            exec "$@" """
        words = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, *sys.argv]
        os.execvp(words[0], words)
    with tempfile.TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            return Soak(options, place.resolve()).run()
        finally:
            # There is none unless it ends early. Pins go with the bpffs.
            for process in marked():
                os.kill(process, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
