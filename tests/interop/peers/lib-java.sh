# Java programs that Maven builds, for the install scripts in this folder; source it after lib.sh.

# java_sources PROJECT: sets sources to the files that determine the program.
java_sources() {
    mapfile -t sources < <(find "$1/src" -type f -name '*.java' | sort)
    sources+=("$1/pom.xml")
}

# build_java PROJECT JAVA CLASS argument...: builds the program into DEST/classes, with its libraries in DEST/lib; this
# Java must run its class with these arguments.
build_java() {
    local project=$1 java=$2 log failure=''
    shift 2
    log=$(mktemp)
    run_logged "$log" mvn --quiet --batch-mode --file "$project/pom.xml" "-Ddest=$dest" \
        compile dependency:copy-dependencies || failure="Maven could not build $project"
    rm -rf "$dest/build"
    [ -n "$failure" ] || run_logged "$log" "$java" -cp "$dest/classes:$dest/lib/*" "$@" ||
        failure="the built program does not start"
    rm -f "$log"
    [ -z "$failure" ] || die "$failure"
}
