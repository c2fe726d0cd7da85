#!/usr/bin/env python3
"""The same packets through ns-3's queue discs and through ours, compared packet by packet.

    python3 -m venv ns3 && ns3/bin/pip install ns3==3.44.post0
    cargo build --release -p anabranch-net --example queue
    ns3/bin/python interop/queues.py target/release/examples/queue [--seeds 30] [--write DIR] [CASE ...]

Each case draws arrivals from a seed, and has both sides serve them at a constant rate. Where a discipline draws nothing, each
packet must be dropped or marked here as there, and leave at the same nanosecond; PIE, RED and COBALT's BLUE draw, and so the
shares of packets dropped and the times in the queue are compared over --seeds. `docs/queues.md` says why the two differ where
they do. --write keeps arrivals and what ns-3 made of them, as in `crates/net/tests/ns3`, which the test `witnesses` reads.
Exits with 1 if a case differs that should not.

Arrivals are at multiples of 1024 ns, the unit of CoDel's clock in Linux and ns-3, so that no rounding of theirs is in the way.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
from pathlib import Path

UNIT = 1024
SECOND = 1_000_000_000

HARNESS = """
#include <limits>
#include <string>
#include <vector>
namespace anabranch {
using namespace ns3;

struct Fate { int64_t at = -1; int kind = 0; int64_t began = -1; };  // kind: 1 left, 2 left with a mark, 3 dropped

class Item : public QueueDiscItem {
 public:
  Item(Ptr<Packet> packet, uint32_t number, uint32_t flow, int ecn)
      : QueueDiscItem(packet, Address(), 0x0800), number(number), flow(flow), ecn(ecn) {}
  void AddHeader() override {}
  bool Mark() override { if (ecn) ecn = 3; return ecn == 3; }
  uint32_t Hash(uint32_t) const override { return flow; }
  bool GetUint8Value(Uint8Values, uint8_t& value) const override { value = ecn; return true; }
  uint32_t number, flow;
  int ecn;
};

static std::vector<Fate> fates;
static void dropped(Ptr<const QueueDiscItem> item) {
  fates[static_cast<const Item*>(PeekPointer(item))->number] = {Simulator::Now().GetNanoSeconds(), 3, -1};
}

static void advance(int64_t to) {
  Simulator::Stop(NanoSeconds(to) - Simulator::Now());
  Simulator::Run();
}

std::vector<int64_t> serve(Ptr<QueueDisc> queue, int64_t per_byte, const std::vector<int64_t>& packets) {
  const size_t count = packets.size() / 4;
  fates.assign(count, Fate());
  queue->TraceConnectWithoutContext("Drop", MakeCallback(&dropped));
  queue->Initialize();
  const int64_t never = std::numeric_limits<int64_t>::max();
  int64_t free_at = never;  // Time at which the packet in service has left.
  for (size_t next = 0; next < count || free_at != never;) {
    int64_t comes = next < count ? packets[4 * next] : never;
    bool leaves = free_at <= comes;
    advance(leaves ? free_at : comes);
    if (!leaves) {
      queue->Enqueue(Create<Item>(Create<Packet>(packets[4 * next + 1]), next, packets[4 * next + 2],
                                  packets[4 * next + 3]));
      ++next;
    }
    if (!leaves && free_at != never) continue;
    free_at = never;
    if (Ptr<QueueDiscItem> item = queue->Dequeue()) {
      auto* one = static_cast<Item*>(PeekPointer(item));
      int64_t now = Simulator::Now().GetNanoSeconds();
      free_at = now + per_byte * one->GetSize();
      bool marked = one->ecn == 3 && packets[4 * one->number + 3] != 3;
      fates[one->number] = {free_at, marked ? 2 : 1, now};
    }
  }
  std::vector<int64_t> answer;
  for (auto& fate : fates) { answer.push_back(fate.kind); answer.push_back(fate.at); }
  Simulator::Destroy();
  return answer;
}

Ptr<QueueDisc> make(const std::string& type, const std::vector<std::string>& settings, int64_t seed) {
  ObjectFactory factory(type);
  for (size_t at = 0; at + 1 < settings.size(); at += 2) factory.Set(settings[at], StringValue(settings[at + 1]));
  auto queue = factory.Create<QueueDisc>();
  RngSeedManager::SetRun(seed);
  if (auto it = DynamicCast<PieQueueDisc>(queue)) it->AssignStreams(seed);
  if (auto it = DynamicCast<RedQueueDisc>(queue)) it->AssignStreams(seed);
  if (auto it = DynamicCast<CobaltQueueDisc>(queue)) it->AssignStreams(seed);
  if (auto it = DynamicCast<FqCoDelQueueDisc>(queue)) it->SetQuantum(1514);
  return queue;
}
}
"""


# Load shapes: gaps between packets of a link that takes `per_byte` ns for a byte.
def overload(factor):
    def gap(random, per_byte, size, at):
        return random.expovariate(factor / (per_byte * size))

    return gap


def bursts(random, per_byte, size, at):
    """Thirty packets at once every 40 mean ones."""
    return 40 * per_byte * 1000 if random.random() < 1 / 30 else 1


def on_off(random, per_byte, size, at):
    """Half a second at 1.6 times the rate, half at 0.4 times."""
    return random.expovariate((1.6 if at // (SECOND // 2) % 2 == 0 else 0.4) / (per_byte * size))


# Cases that --write keeps, and how much of each.
KEPT = "cobalt-overload codel-overload codel-on-off codel-slow fq-codel-overload fq-codel-on-off fq-codel-full".split()
KEPT_PACKETS = 800
SIZES = [1500, 1500, 1500, 576, 64]


def arrivals(case, seed):
    """Lines of a number for time [ns], size [bytes], flow, ECN field."""
    draws = random.Random(f"{case.name} {seed}")
    at, packets = 0.0, []
    while len(packets) < case.packets:
        size = draws.choice(case.sizes)
        # Flow 0 sends as much as all others.
        flow = draws.choice([0] * (case.flows - 1) + list(range(1, case.flows))) if case.flows > 1 else 0
        packets.append((int(at) // UNIT * UNIT, size, flow, flow % 2 if case.ecn == "mixed" else case.ecn))
        at += max(case.shape(draws, case.per_byte, size, at), UNIT)
    return packets


class Case:
    def __init__(self, name, ours, theirs, shape, mbit=10, limit=1000, flows=1, ecn=0, exact=True, packets=2500, sizes=SIZES):
        self.name, self.ours, self.theirs, self.shape = name, ours, theirs, shape
        self.per_byte, self.limit, self.flows, self.ecn = 8000 // mbit, limit, flows, ecn
        self.exact, self.packets, self.rate, self.sizes = exact, packets, f"{mbit}", sizes


# ns-3 compares with `<` where RFC 8289 has `<=`.
CODEL = ("CoDelQueueDisc", {"MinBytes": 1515, "MaxSize": "{limit}p"})
FQ = ("FqCoDelQueueDisc", {"MaxSize": "{limit}p", "UseEcn": "false"})
PIE = ("PieQueueDisc", {"MaxSize": "{limit}p", "UseDerandomization": "true"})
# `Wait` is not of the paper; idle time is counted in packets of LinkBandwidth and MeanPktSize.
RED = ("RedQueueDisc", {"MaxSize": "{limit}p", "LinkBandwidth": "10Mbps", "MeanPktSize": 1000, "Wait": "false"})
COBALT = ("CobaltQueueDisc", {"MaxSize": "{limit}p", "BlueThreshold": "1000s"})


def but(theirs, **settings):
    return theirs[0], theirs[1] | settings


CASES = [
    Case("codel-overload", "codel,integers=true", CODEL, overload(1.2)),
    Case("codel-bursts", "codel,integers=true", CODEL, bursts),
    Case("codel-on-off", "codel,integers=true", CODEL, on_off, packets=5000),
    Case("codel-slow", "codel,integers=true", CODEL, overload(1.1), mbit=1),
    Case(
        "codel-fast",
        "codel,integers=true,target=1,interval=20",
        but(CODEL, Target="1ms", Interval="20ms"),
        overload(1.3),
        mbit=100,
        packets=50_000,
    ),
    Case("codel-full", "codel,integers=true", CODEL, overload(2.0), limit=40),
    Case("codel-root", "codel", CODEL, overload(1.2), exact=False),
    Case(
        "codel-marks",
        "codel,integers=true",
        but(CODEL, UseEcn="true"),
        overload(1.2),
        ecn="mixed",
        flows=5,
        exact=False,
    ),
    Case("fq-codel-overload", "fq-codel,integers=true,ecn=false", FQ, overload(1.2), flows=5),
    Case("fq-codel-bursts", "fq-codel,integers=true,ecn=false", FQ, bursts, flows=8),
    Case("fq-codel-on-off", "fq-codel,integers=true,ecn=false", FQ, on_off, flows=20, packets=5000),
    Case("fq-codel-full", "fq-codel,integers=true,ecn=false", FQ, overload(2.0), flows=5, limit=100, sizes=[1500]),
    Case("fq-codel-full-mixed", "fq-codel,integers=true,ecn=false", FQ, overload(2.0), flows=5, limit=100, exact=False),
    Case("pie-overload", "pie,burst=0", but(PIE, MaxBurstAllowance="0s"), overload(1.2), packets=20_000, exact=False),
    Case("pie-on-off", "pie,burst=0", but(PIE, MaxBurstAllowance="0s"), on_off, packets=20_000, exact=False),
    Case("pie-burst", "pie", PIE, overload(1.2), packets=20_000, exact=False),
    Case(
        "pie-marks",
        "pie,burst=0",
        but(PIE, MaxBurstAllowance="0s", UseEcn="true"),
        overload(1.05),
        ecn="mixed",
        flows=5,
        packets=20_000,
        exact=False,
    ),
    Case("cobalt-overload", "cobalt,ecn=false,integers=true", COBALT, overload(1.2)),
    Case("cobalt-bursts", "cobalt,ecn=false,integers=true", COBALT, bursts),
    Case("cobalt-on-off", "cobalt,ecn=false,integers=true", COBALT, on_off, packets=5000),
    Case("cobalt-marks", "cobalt,integers=true", but(COBALT, UseEcn="true"), overload(1.2), ecn="mixed", flows=5),
    Case("cobalt-full", "cobalt,ecn=false", COBALT, overload(2.0), limit=40, packets=10_000, exact=False),
    Case("red-overload", "red", RED, overload(1.05), packets=20_000, exact=False),
    Case("red-on-off", "red", RED, on_off, packets=20_000, exact=False),
    Case("red-bursts", "red", RED, bursts, packets=20_000, exact=False),
]


def ours(program, case, packets, seed, slots=()):
    """Kind and time [ns] of each packet's fate; packets leave at the `slots`, if there are any."""
    table = "at,size,flow,ecn\n" + "".join(f"{','.join(map(str, packet))}\n" for packet in packets)
    table += "".join(f"{slot}\n" for slot in sorted(slots))
    words = [program, case.ours, case.rate, str(case.limit), str(seed)]
    done = subprocess.run(words, input=table, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return [(kind, int(at)) for kind, at in (line.split(",") for line in done.stdout.split()[1:])]


def theirs(ns, case, packets, seed):
    """The same of ns-3."""
    kind, settings = case.theirs
    words = [word for item in settings.items() for word in (item[0], str(item[1]).format(limit=case.limit))]
    queue = ns.cppyy.gbl.anabranch.make(f"ns3::{kind}", words, seed)
    answer = ns.cppyy.gbl.anabranch.serve(queue, case.per_byte, [number for packet in packets for number in packet])
    numbers = list(answer)
    return [(KINDS[kind], at) for kind, at in zip(numbers[::2], numbers[1::2])]


KINDS = {1: "left", 2: "marked", 3: "dropped"}


def measures(case, packets, fates):
    """Shares of packets dropped and marked, and the median and 99th percentile of the time before service [ms]."""
    waits = sorted(
        (fate[1] - packet[0] - packet[1] * case.per_byte) / 1e6
        for packet, fate in zip(packets, fates)
        if fate[0] != "dropped"
    )
    count = [sum(kind == which for kind, _ in fates) / len(fates) for which in ("dropped", "marked")]
    return count + [waits[len(waits) // 2], waits[len(waits) * 99 // 100]]


def beside(rows):
    """Words for the means of both sides, and by how many standard errors of their difference they differ."""
    words = []
    for index, (form, unit) in enumerate([("{:6.2%}", ""), ("{:6.2%}", ""), ("{:7.2f}", " ms"), ("{:7.2f}", " ms")]):
        here, there = ([row[side][index] for row in rows] for side in (0, 1))
        means = form.format(statistics.mean(here)), form.format(statistics.mean(there))
        words.append(f"{means[0]} {means[1]}{unit}")
        if len(rows) > 1:
            gaps = [one - other for one, other in zip(here, there)]
            error = statistics.stdev(gaps) / math.sqrt(len(gaps))
            sigmas = abs(statistics.mean(gaps)) / error if error > 1e-12 else 0.0
            words.append(f"({sigmas:4.1f})")
    return "  ".join(words)


def compare(ns, options, case):
    """Prints a line for the case; whether it is as it should be."""
    rows, differ, total = [], 0, 0
    for seed in range(1, (1 if case.exact else options.seeds) + 1):
        packets = arrivals(case, seed)
        pair = ours(options.program, case, packets, seed), theirs(ns, case, packets, seed)
        differ += sum(one != other for one, other in zip(*pair))
        total += len(packets)
        rows.append([measures(case, packets, fates) for fates in pair])
        if options.write and case.name in KEPT:
            first = packets[:KEPT_PACKETS]
            write(Path(options.write) / f"{case.name}.csv", case, first, theirs(ns, case, first, seed))
    same = f"{total - differ}/{total}" if case.exact else ""
    good = differ == 0 or not case.exact
    print(f"{case.name:19} {same:13} {beside(rows)}{'' if good else '  DIFFERS'}", flush=True)
    return good


def write(path, case, packets, fates, slotted=""):
    """Keeps a case for the test."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write(f"at,size,flow,ecn,kind,fate at: {case.ours} {case.rate} {case.limit}{slotted}\n")
        for packet, fate in zip(packets, fates):
            file.write(",".join(map(str, (*packet, *fate))) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the example `queue` of anabranch-net")
    parser.add_argument("--seeds", type=int, default=30, help="of the cases that draw (30)")
    parser.add_argument("--write", metavar="DIR", help="where arrivals and fates of exact cases go")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="all unless given")
    options = parser.parse_args()
    try:
        from ns import ns
    except ImportError:
        parser.error("ns3 is missing: pip install ns3")
    ns.cppyy.cppdef(HARNESS)
    ns.Config.SetDefault("ns3::CoDelQueueDisc::MinBytes", ns.UintegerValue(1515))
    print("case                same          dropped, marked, median and 99th percentile of waits: here, ns-3 (sigmas)")
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    sys.exit(0 if all([compare(ns, options, case) for case in cases]) else 1)


if __name__ == "__main__":
    main()
