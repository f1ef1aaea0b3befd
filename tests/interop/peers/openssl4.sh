#!/usr/bin/env bash
# openssl4.sh DEST: OpenSSL 4.0 as DEST/bin/openssl, built from the source that a crate carries for Rust programs.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
version=400.0.2

need cargo cc make perl
begin "${1:-}" "$here/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A package without code, whose only dependency is the source.
mkdir "$work/src"
: >"$work/src/lib.rs"
cat >"$work/Cargo.toml" <<TOML
[package]
name = "openssl-source"
version = "0.0.0"
edition = "2021"

[dependencies]
openssl-src = "=$version"
TOML
(cd "$work" && run_logged "$work/log" cargo vendor --quiet --versioned-dirs vendor) ||
    die "cargo cannot fetch openssl-src $version"
source=$(echo "$work"/vendor/openssl-src-*/openssl)
[ -f "$source/Configure" ] || die "openssl-src $version has no source of OpenSSL"

# For verifying alone: static, without what takes long to compile.
mkdir "$work/build" "$dest/bin"
(cd "$work/build" && run_logged "$work/log" perl "$source/Configure" no-shared no-dso no-module no-tests no-docs no-comp no-quic \
    no-legacy --openssldir=/nonexistent -O1) || die "OpenSSL cannot be configured"
run_logged "$work/log" make -C "$work/build" -j"$(nproc)" build_generated || die "OpenSSL's generated files cannot be made"
run_logged "$work/log" make -C "$work/build" -j"$(nproc)" apps/openssl || die "OpenSSL cannot be built"
cp "$work/build/apps/openssl" "$dest/bin/openssl"

said=$("$dest/bin/openssl" version) || die "the built openssl does not start"
case $said in
"OpenSSL 4."*) ;;
*) die "got $said, want OpenSSL 4" ;;
esac
finish
