#!/usr/bin/env bash
# ssh-java.sh DEST: Apache MINA SSHD and JSch as SFTP clients, run as
#   java -cp 'DEST/classes:DEST/lib/*' outlast.ssh.Clients ...
# Nothing is written into the checkout, and Maven is not needed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-java.sh"
project=$(cd "$here/../ssh/java" && pwd -P)
java_sources "$project"

need java javac mvn
begin "${1:-}" "$here/lib.sh" "$here/lib-java.sh" "${sources[@]}"
# A closed port: the program and both libraries start, and no case is left.
build_java "$project" java outlast.ssh.Clients mina 1 nobody /dev/null
finish
