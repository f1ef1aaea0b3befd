#!/usr/bin/env bash
# python.sh DEST: a Python environment in DEST with boto3, cbor2, cryptography, securesystemslib, asyncssh, paramiko,
# ssh-audit and AWS's client of Roles Anywhere, run as DEST/bin/python.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/python-requirements.txt"
venv "$here/python-requirements.txt" boto3 cbor2 cryptography.x509 securesystemslib.dsse asyncssh paramiko iam_rolesanywhere_session ssh_audit.policy
finish
