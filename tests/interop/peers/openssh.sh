#!/usr/bin/env bash
# openssh.sh DEST: two newer OpenSSH than the machine's own, each with ssh, sftp, scp, ssh-keygen and ssh-agent:
# DEST/10.0/bin from the backports of the machine's Debian release (it has mlkem768x25519-sha256), and DEST/10.6/bin
# from the release after the next one (it has ssh-mldsa44-ed25519), which runs by its own loader.
#
# OUTLAST_PEER_SSH_SUITE names another release for the newest one.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-suite.sh"

suite=${OUTLAST_PEER_SSH_SUITE:-forky}
backports=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports
programs=(ssh sftp scp ssh-keygen ssh-agent ssh-add)

begin "${1:-}" "$here/lib.sh" "$here/lib-suite.sh" <(echo "$suite $backports")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# unpack_into FOLDER: the downloaded packages.
unpack_into() {
    mkdir -p "$dest/$1/tree" "$dest/$1/bin"
    for deb in "$work"/debs/*.deb; do
        dpkg-deb -x "$deb" "$dest/$1/tree"
    done
}

packages_of "$backports" "$work" openssh-client openssh-sftp-server
unpack_into 10.0
for program in "${programs[@]}"; do
    ln -s "../tree/usr/bin/$program" "$dest/10.0/bin/$program"
done

closure_of "$suite" "$work" openssh-client
unpack_into 10.6
loader=$(cd "$dest/10.6" && find tree -path '*ld-linux*.so.*' -print | sort | head -n 1)
[ -n "$loader" ] || die "the packages have no loader"
folders=$(cd "$dest/10.6" && find tree -name '*.so.*' -printf '%h\n' | sort -u | sed "s|^|\$here/|" | paste -sd:)
for program in "${programs[@]}"; do
    cat >"$dest/10.6/bin/$program" <<WRAPPER
#!/bin/sh
# Starts the unpacked program by its own loader with its own libraries.
here=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
unset LD_LIBRARY_PATH LD_PRELOAD
exec "\$here/$loader" --inhibit-cache --library-path "$folders" "\$here/tree/usr/bin/$program" "\$@"
WRAPPER
    chmod 755 "$dest/10.6/bin/$program"
done

# ssh prints its version and algorithms without reading a configuration.
has() {
    "$dest/$1/bin/ssh" -F none -Q "$2" 2>"$work/log" | grep -qx "$3" ||
        die "the unpacked OpenSSH $1 has no $3: $(tail -n 1 "$work/log")"
}
has 10.0 kex mlkem768x25519-sha256
has 10.6 kex mlkem768x25519-sha256
has 10.6 key ssh-mldsa44-ed25519
finish
