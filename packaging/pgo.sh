#!/usr/bin/env bash
# Builds the `anabranch` command with profile-guided optimisation: a quarter less processor time on R1, same results.
#
#   packaging/pgo.sh            builds target/pgo/dist/anabranch
#   packaging/pgo.sh --bench    also builds bench's `speed` with the same profile, to measure the gain
#
# Three steps: a build that counts, runs that train it, a build that uses the counts. Takes two builds of the profile
# `dist`, ten minutes on two cores. Needs rustup's component llvm-tools, of the version of the compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    "" | --bench) ;;
    *)
        echo "usage: packaging/pgo.sh [--bench]" >&2
        exit 2
        ;;
esac

tools="$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin"
if [ ! -x "$tools/llvm-profdata" ]; then
    echo "llvm-profdata of this compiler is missing; install it: rustup component add llvm-tools" >&2
    exit 1
fi

target="$PWD/target/pgo"
counts="$target/counts"
# A build of flags that cargo does not see is begun anew.
rm -rf "$target"
mkdir -p "$counts"
# Flags go past cargo: RUSTFLAGS are part of the names of symbols, so that the counts of one build would fit no other.
printf '#!/bin/sh\nexec "$@" $PGO_FLAGS\n' >"$target/rustc-wrapper"
chmod +x "$target/rustc-wrapper"
export RUSTC_WRAPPER="$target/rustc-wrapper"

echo "== a build that counts"
CARGO_TARGET_DIR="$target/counting" PGO_FLAGS="-Cprofile-generate=$counts" \
    cargo build --quiet --profile dist --locked -p anabranch-cli

# Usual work: every scheduler over shipped links, long transfers, a page, failing paths, segments as bytes, a capture.
echo "== training"
anabranch="$target/counting/dist/anabranch"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
train() { (cd "$work" && "$anabranch" "$@" >/dev/null); }
train compare wlan-lte --repeat 3
train compare lossy --repeat 2
train compare asymmetric-10-100 --repeat 2 --schedulers min-rtt,blest,ecf,late,anabranch,redundant
for congestion in cubic lia bbr; do
    train run symmetric --set "host.congestion=\"$congestion\""
done
train run shared-bottleneck
train run path-failure --set codec=true --pcap captures
train run web
train inspect captures/client.pcapng

echo "== merging"
"$tools/llvm-profdata" merge -o "$counts/merged.profdata" "$counts"

echo "== the build that uses the counts"
build() {
    CARGO_TARGET_DIR="$target" PGO_FLAGS="-Cprofile-use=$counts/merged.profdata" \
        cargo build --quiet --profile dist --locked "$@"
}
build -p anabranch-cli
echo "target/pgo/dist/anabranch"
if [ "${1:-}" = --bench ]; then
    build -p anabranch-bench --bench speed
    echo "target/pgo/dist/deps/speed-*"
fi
