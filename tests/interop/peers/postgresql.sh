#!/usr/bin/env bash
# postgresql.sh DEST: PostgreSQL's postgres and initdb, which the tests of the store start.
#
# They are looked for on the PATH and where Debian puts them; if they are not there, Debian's package is
# installed system-wide, which needs root. DEST holds nothing but the stamp.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# found: whether both programs are somewhere where crates/store/src/testing.rs looks.
found() {
    local folder
    while IFS= read -r folder; do
        [ -x "$folder/postgres" ] && [ -x "$folder/initdb" ] && return
    done < <(tr ':' '\n' <<<"$PATH"; ls -d /usr/lib/postgresql/*/bin 2>/dev/null)
    return 1
}

# The stamp says nothing of the system: look each time.
if found; then
    exit 0
fi
here=$(dirname "$(readlink -f "$0")")
rm -f "${1:+$1/.stamp}"
begin "${1:-}" "$here/lib.sh"
need apt-get
[ "$(id -u)" = 0 ] || die "PostgreSQL is not installed, and installing it needs root: apt-get install postgresql"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The tests start servers of their own: the package shall not start one.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
export DEBIAN_FRONTEND=noninteractive
run_logged "$log" apt-get -qq update || die "apt-get could not fetch the lists of packages"
run_logged "$log" apt-get -qq install --no-install-recommends postgresql ||
    die "apt-get could not install postgresql"
found || die "the package postgresql has no postgres and initdb"
finish
