#!/usr/bin/env bash
# pkilint.sh DEST: the linter pkilint as DEST/bin/lint_pkix_cert, lint_crl and lint_ocsp_response.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/pkilint-requirements.txt"
venv "$here/pkilint-requirements.txt" pkilint
finish
