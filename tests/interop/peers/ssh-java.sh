#!/usr/bin/env bash
# ssh-java.sh DEST: Apache MINA SSHD and JSch as SFTP clients, run as
#   java -cp 'DEST/classes:DEST/lib/*' outlast.ssh.Clients ...
# Nothing is written into the checkout, and Maven is not needed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../ssh/java" && pwd -P)
mapfile -t sources < <(find "$project/src" -type f -name '*.java' | sort)

need java javac mvn
begin "${1:-}" "$here/lib.sh" "$project/pom.xml" "${sources[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_logged "$log" mvn --quiet --batch-mode --file "$project/pom.xml" "-Ddest=$dest" \
    compile dependency:copy-dependencies || die "Maven could not build $project"
rm -rf "$dest/build"
# A closed port: the program and both libraries start, and no case is left.
run_logged "$log" java -cp "$dest/classes:$dest/lib/*" outlast.ssh.Clients mina 1 nobody /dev/null ||
    die "the built program does not start"
finish
