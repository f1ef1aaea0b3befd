#!/usr/bin/env bash
# aioquic.sh DEST: a Python environment in DEST with aioquic, run as DEST/bin/python; its client is
# tests/interop/endpoints/aioquic/client.py.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/aioquic-requirements.txt"
venv "$here/aioquic-requirements.txt" aioquic.asyncio.client aioquic.h3.connection
finish
