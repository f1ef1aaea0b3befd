# Python environments, for the install scripts in this folder; source it after lib.sh.

# venv REQUIREMENTS import...: a Python environment in DEST with the pinned packages, which must import.
venv() {
    local requirements=$1 log status=0
    shift
    log=$(mktemp)
    run_logged "$log" python3 -m venv "$dest" &&
        run_logged "$log" "$dest/bin/python" -m pip --disable-pip-version-check --no-input \
            install --quiet --no-deps --only-binary :all: -r "$requirements" &&
        run_logged "$log" "$dest/bin/python" -c "import $(IFS=,; echo "$*")" || status=1
    rm -f "$log"
    [ "$status" = 0 ] || die "cannot make a virtual environment of $requirements (is python3-venv installed?)"
}
