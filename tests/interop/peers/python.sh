#!/usr/bin/env bash
# python.sh DEST: a Python environment in DEST with boto3, cbor2 and cryptography,
# run as DEST/bin/python.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
requirements=$here/python-requirements.txt

need python3
begin "${1:-}" "$here/lib.sh" "$requirements"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_logged "$log" python3 -m venv "$dest" || die "cannot make a virtual environment (is python3-venv installed?)"
run_logged "$log" "$dest/bin/python" -m pip --disable-pip-version-check --no-input \
    install --quiet --no-deps --only-binary :all: -r "$requirements" ||
    die "pip could not install the requirements"
run_logged "$log" "$dest/bin/python" -c 'import boto3, cbor2, cryptography.x509' ||
    die "the installed packages cannot be imported"
finish
