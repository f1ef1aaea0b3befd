#!/usr/bin/env bash
# s2n.sh DEST: s2n-tls as a client and as a bare server, DEST/bin/s2n-peer.
# Built in DEST/target, which takes a quarter of a gigabyte and is removed afterwards.
# With OUTLAST_PEERS_QUICK=1 it is not optimised: good for handshakes, not for measurements.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../endpoints/s2n" && pwd -P)
mapfile -t sources < <(find "$project/src" -type f -name '*.rs' | sort)

need cargo cc cmake
quick=${OUTLAST_PEERS_QUICK:-0}
begin "${1:-}" <(printf %s "$quick") "$here/lib.sh" "$project/Cargo.toml" "$project/Cargo.lock" "${sources[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Not the settings of a cargo that may have started this script. The linker of the C compiler optimises s2n-tls
# across its files, as it is meant to be built; the one that Rust brings would not.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
[ "$(uname -m)" != x86_64 ] || export RUSTFLAGS=-Clinker-features=-lld
if [ "$quick" = 1 ]; then
    unset RUSTFLAGS
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=0
fi
run_logged "$log" cargo build --release --locked --manifest-path "$project/Cargo.toml" --target-dir "$dest/target" ||
    die "cargo could not build $project"
mkdir "$dest/bin"
cp "$dest/target/release/s2n-peer" "$dest/bin/"
rm -rf "$dest/target"
finish
