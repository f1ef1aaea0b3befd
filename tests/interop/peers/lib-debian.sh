# Packages of the machine's own Debian release, for the install scripts in this folder; source it after lib.sh.

# unpack PACKAGE...: unpacks them into DEST/tree. Nothing is installed system-wide.
unpack() {
    local work deb status=0 apt=(apt-get -qq -o Acquire::Retries=3)
    need apt-get dpkg-deb
    [ "$(id -u)" != 0 ] || apt+=(-o APT::Sandbox::User=root)
    work=$(mktemp -d)
    fetch() {
        (cd "$work" && run_logged "$work/log" "${apt[@]}" download "$@")
    }
    fetch "$@" || { run_logged "$work/log" "${apt[@]}" update && fetch "$@"; } || status=1
    mkdir -p "$dest/tree"
    for deb in "$work"/*.deb; do
        [ "$status" != 0 ] || dpkg-deb -x "$deb" "$dest/tree" || status=1
    done
    rm -rf "$work"
    [ "$status" = 0 ] || die "could not download and unpack $* with apt (see above)"
}
