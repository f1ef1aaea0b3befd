#!/usr/bin/env bash
# java.sh DEST: builds the Java peers (AWS SDK for Java v2, BouncyCastle), run as
#   java -cp 'DEST/classes:DEST/lib/*' outlast.interop.Main ...
# Nothing is written into the checkout, and Maven is not needed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-java.sh"
project=$(cd "$here/../java" && pwd -P)
java_sources "$project"

need java javac mvn
begin "${1:-}" "$here/lib.sh" "$here/lib-java.sh" "${sources[@]}"
build_java "$project" java outlast.interop.Main help
finish
