"""Reads policy files with ssh-audit's own parser, and evaluates servers against them.

Usage: ssh_audit_policies.py FILE...
"""

import sys

from ssh_audit.outputbuffer import OutputBuffer
from ssh_audit.policy import Policy
from ssh_audit.ssh2_kex import SSH2_Kex
from ssh_audit.ssh2_kexparty import SSH2_KexParty

STRICT = "kex-strict-s-v00@openssh.com"


def lists(path):
    found = {}
    for line in open(path, encoding="utf-8"):
        key, separator, value = line.partition(" = ")
        if separator and not line.startswith("#"):
            found[key] = value.strip().split(", ")
    return found


def passes(path, methods, host_keys, ciphers, macs, compression="none"):
    # A policy collects what it finds wrong, so each server needs a new one.
    policy = Policy(policy_file=path)
    party = SSH2_KexParty(ciphers, macs, [compression], [""])
    kex = SSH2_Kex(OutputBuffer(), b"\0" * 16, methods, host_keys, party, party, False, 0)
    return policy.evaluate(None, kex)[0]


for path in sys.argv[1:]:
    found = lists(path)
    methods, host_keys = found["key exchanges"], found["host keys"]
    ciphers, macs = found["ciphers"], found["macs"]
    whole = (methods, host_keys, ciphers, macs)
    assert passes(path, *whole), path
    # A server with one host key, and to a client with a hybrid.
    assert passes(path, [methods[0], STRICT], host_keys[:1], ciphers, macs), path
    assert not passes(path, [name for name in methods if name != STRICT], *whole[1:]), path
    assert not passes(path, ["diffie-hellman-group14-sha1", *methods], *whole[1:]), path
    assert not passes(path, methods, ["ssh-dss", *host_keys], ciphers, macs), path
    assert not passes(path, methods, host_keys, ["aes128-cbc", *ciphers], macs), path
    assert not passes(path, methods, host_keys, ciphers, ["hmac-sha1", *macs]), path
    assert not passes(path, *whole, compression="zlib@openssh.com"), path
    print("ok", path)
