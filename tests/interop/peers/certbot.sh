#!/usr/bin/env bash
# certbot.sh DEST: the ACME client certbot as DEST/bin/certbot.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/certbot-requirements.txt"
venv "$here/certbot-requirements.txt" certbot.main acme.client
finish
