#!/usr/bin/env bash
# book.sh DEST: what builds the book, checks its spelling and runs its commands: MkDocs, codespell and the AWS CLI, as
# DEST/bin/mkdocs, DEST/bin/codespell and DEST/bin/aws.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"

need python3
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$here/book-requirements.txt"
venv "$here/book-requirements.txt" mkdocs codespell_lib awscli
finish
