#!/usr/bin/env bash
# java.sh DEST: builds the Java peers (AWS SDK for Java v2, BouncyCastle), run as
#   java -cp 'DEST/classes:DEST/lib/*' outlast.interop.Main ...
# Nothing is written into the checkout, and Maven is not needed afterwards.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
project=$(cd "$here/../java" && pwd -P)
mapfile -t sources < <(find "$project/src" -type f -name '*.java' | sort)

need java javac mvn
begin "${1:-}" "$here/lib.sh" "$project/pom.xml" "${sources[@]}"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_logged "$log" mvn --quiet --batch-mode --file "$project/pom.xml" "-Ddest=$dest" \
    compile dependency:copy-dependencies || die "Maven could not build $project"
rm -rf "$dest/build"
run_logged "$log" java -cp "$dest/classes:$dest/lib/*" outlast.interop.Main help ||
    die "the built program does not start"
finish
