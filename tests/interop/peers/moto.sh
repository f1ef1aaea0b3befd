#!/usr/bin/env bash
# moto.sh DEST: a server that speaks S3, as DEST/bin/moto_server -H 127.0.0.1 -p PORT.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/moto-requirements.txt"
venv "$here/moto-requirements.txt" moto.server moto.s3.models
finish
