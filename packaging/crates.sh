#!/usr/bin/env bash
# Packs the crates that others can depend on, and builds each from its .crate file alone, in the order of dependencies.
# Usage: packaging/crates.sh [options of cargo package, such as --allow-dirty]
set -euo pipefail
cd "$(dirname "$0")/.."
packages=()
for crate in $(packaging/published.sh); do
    packages+=(-p "$crate")
done
if grep -q '^homepage = "https://.*\.invalid"' Cargo.toml; then
    echo "homepage and repository in Cargo.toml are placeholders: name the public address before you publish" >&2
fi
exec cargo package --locked "${packages[@]}" "$@"
