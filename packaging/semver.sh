#!/usr/bin/env bash
# Says which changes to the public items of the published crates since REV break programs that use them.
# Usage: packaging/semver.sh [REV [options of cargo semver-checks]]
# REV: the last tag v*, or without one the commit that gave the workspace its version.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo semver-checks --version >/dev/null 2>&1; then
    echo "cargo-semver-checks is missing; to install it: cargo install cargo-semver-checks --locked" >&2
    exit 1
fi
revision=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
shift || true
if [ -z "$revision" ]; then
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
    revision=$(git log --format=%H -S "version = \"$version\"" -- Cargo.toml | tail -1)
fi
echo "Public items since $(git log -1 --format='%h (%s)' "$revision")"
packages=()
for crate in $(packaging/published.sh); do
    packages+=(-p "$crate")
done
exec cargo semver-checks --baseline-rev "$revision" "${packages[@]}" "$@"
