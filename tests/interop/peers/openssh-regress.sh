#!/usr/bin/env bash
# openssh-regress.sh DEST: OpenSSH's own tests of sftp as DEST/sftp*.sh, from the sources of the Debian release after the machine's.
# Nothing is built: tests/interop/ssh/regress.sh runs them with installed programs.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"

suite=${OUTLAST_PEER_REGRESS_SUITE:-trixie}

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" <(echo "$suite")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

source_of "$suite" "$work" openssh
tar -xzf "$work"/debs/openssh_*.orig.tar.gz -C "$work"
cp "$work"/openssh-*/regress/sftp*.sh "$dest"
for test in sftp sftp-cmds sftp-badcmds sftp-batch sftp-glob sftp-perm sftp-resume; do
    [ -s "$dest/$test.sh" ] || die "the sources have no $test.sh"
done
finish
