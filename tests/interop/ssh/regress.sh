#!/bin/sh
# regress.sh SCRIPT SFTP SERVER: runs a test of OpenSSH's regress/sftp*.sh with the client SFTP and the SFTP server SERVER, a program
# that speaks on its standard input and output. It defines what the test takes from OpenSSH's test-exec.sh, which wants a built source
# tree. One line for each step and each failure; the exit code is 1 after a failure.
script=$1 SFTP=$2 SFTPSERVER=$3
export SFTP SFTPSERVER
OBJ=$(mktemp -d)
trap 'rm -rf "$OBJ"' EXIT
export OBJ
DATANAME=data DATA=$OBJ/data COPY=$OBJ/copy NONEXIST=/NONEXIST TEST_SHELL=sh TMP=$OBJ/tmp
LOGNAME=$(id -un) SUDO='' USER=$LOGNAME
export DATANAME DATA COPY NONEXIST TEST_SHELL TMP
head -c 150000 /dev/urandom >"$DATA"
RESULT=0
verbose() { echo "step: $*"; }
trace() { :; }
save_debug_log() { :; }
fail() {
    RESULT=1
    echo "FAIL: $*"
}
fatal() {
    fail "$@"
    exit 1
}
skip() {
    echo "SKIP: $*"
    exit 0
}
increase_datafile_size() {
    head -c "$(($1 * 1024))" /dev/urandom >"$DATA"
}
# Of all shells that OpenSSH supports, this one runs here.
config_defined() { return 0; }
cd "$OBJ" || exit 1
# shellcheck source=/dev/null
. "$script"
exit $RESULT
