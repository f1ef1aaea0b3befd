#!/usr/bin/env bash
# rust.sh DEST: the KMS and Secrets Manager program of the AWS SDK for Rust as DEST/bin/kms-whole, and the example as
# DEST/bin/sign.
# Built in DEST/target, which takes half a gigabyte and is removed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../rust" && pwd -P)
mapfile -t sources < <(find "$project/src" -type f -name '*.rs' | sort)

need cargo cc
example=$here/../../../examples/sdk/rust/src/main.rs
begin "${1:-}" "$here/lib.sh" "$project/Cargo.toml" "$project/Cargo.lock" "${sources[@]}" "$example"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Not the settings of a cargo that may have started this script.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
run_logged "$log" cargo build --locked --manifest-path "$project/Cargo.toml" --target-dir "$dest/target" ||
    die "cargo could not build $project"
mkdir "$dest/bin"
cp "$dest/target/debug/kms-whole" "$dest/target/debug/sign" "$dest/bin/"
rm -rf "$dest/target"
finish
