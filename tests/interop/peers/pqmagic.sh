#!/usr/bin/env bash
# pqmagic.sh DEST: the library of the Python package pqmagic, DEST/lib/libpqmagic_std.so, which the lab takes Aigis from.
# The package has no binary form: it is compiled, by the machine's CMake. (A CMake of pip's own would be a Python script,
# whose module the isolated build of a package does not see.)
. "$(dirname "$(readlink -f "$0")")/lib.sh"

here=$(dirname "$(readlink -f "$0")")
version=1.0.7

need python3 cc cmake make
begin "${1:-}" "$here/lib.sh"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Its CMakeLists.txt asks for an older policy than CMake 4 has.
run_logged "$log" python3 -m venv "$dest/venv" &&
    CMAKE_POLICY_VERSION_MINIMUM=3.5 run_logged "$log" \
        "$dest/venv/bin/python" -m pip --disable-pip-version-check --no-input \
        install --quiet --no-deps --no-binary pqmagic "pqmagic==$version" ||
    die "cannot install pqmagic $version (is python3-venv installed?)"
mkdir "$dest/lib"
find "$dest/venv" -name libpqmagic_std.so -exec cp {} "$dest/lib/" \;
[ -f "$dest/lib/libpqmagic_std.so" ] || die "pqmagic $version has no libpqmagic_std.so"
rm -rf "$dest/venv"
finish
