#!/usr/bin/env bash
# Prints the packages that others can depend on, in the order of dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
for crate in units wire policy engine net paths sim capture anabranch; do
    sed -n 's/^name = "\(.*\)"/\1/p' "crates/$crate/Cargo.toml" | head -1
done
