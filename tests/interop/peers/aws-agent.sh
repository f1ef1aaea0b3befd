#!/usr/bin/env bash
# aws-agent.sh DEST: AWS's Secrets Manager Agent as DEST/bin/aws_secretsmanager_agent.
# Built in DEST/target, which takes a gigabyte and is removed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
version=2.1.0

need cargo cc
begin "${1:-}" "$here/lib.sh"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Not the settings of a cargo that may have started this script.
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET
# --locked: the versions that were published with it.
run_logged "$log" cargo install --locked --debug --no-track --version "$version" --root "$dest" \
    --target-dir "$dest/target" aws_secretsmanager_agent ||
    die "cargo could not install aws_secretsmanager_agent $version"
rm -rf "$dest/target"
finish
