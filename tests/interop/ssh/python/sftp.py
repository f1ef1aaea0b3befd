"""asyncssh and paramiko as clients of an SFTP server, each with one algorithm at a time.

    sftp.py LIBRARY PORT USER KEY KIND=NAME...

LIBRARY is asyncssh or paramiko. KIND is kex, key, cipher, mac, or default, for which the name is not used. KEY is a private key
file without a passphrase; whatever key the host has is accepted, because the server's test compares it. One line for each
algorithm: library, kind, name, and `ok`, `unsupported` (the library does not know the name) or what failed.
"""

import asyncio
import io
import socket
import sys

import asyncssh
import paramiko

CONTENT = bytes(range(256)) * 1200


async def with_asyncssh(port, user, key, kind, name):
    options = {
        "kex": {"kex_algs": [name]},
        "key": {"server_host_key_algs": [name]},
        "cipher": {"encryption_algs": [name]},
        "mac": {"encryption_algs": ["aes256-ctr"], "mac_algs": [name]},
        "default": {},
    }[kind]
    try:
        asyncssh.SSHClientConnectionOptions(**options)
    except ValueError:
        return "unsupported"
    async with asyncssh.connect(
        "127.0.0.1", port, username=user, client_keys=[key], known_hosts=None, config=None, agent_path=None, **options
    ) as connection:
        async with connection.start_sftp_client() as sftp:
            async with sftp.open("asyncssh", "wb") as file:
                await file.write(CONTENT)
            async with sftp.open("asyncssh", "rb") as file:
                back = await file.read()
            await sftp.remove("asyncssh")
    return "ok" if back == CONTENT else f"failed got {len(back)} bytes"


def with_paramiko(port, user, key, kind, name):
    transport = paramiko.Transport(socket.create_connection(("127.0.0.1", port)))
    try:
        options = transport.get_security_options()
        try:
            if kind == "kex":
                options.kex = (name,)
            elif kind == "key":
                options.key_types = (name,)
            elif kind == "cipher":
                options.ciphers = (name,)
            elif kind == "mac":
                options.ciphers = ("aes256-ctr",)
                options.digests = (name,)
        except ValueError:
            return "unsupported"
        transport.start_client(timeout=60)
        transport.auth_publickey(user, paramiko.PKey.from_path(key))
        sftp = paramiko.SFTPClient.from_transport(transport)
        sftp.putfo(io.BytesIO(CONTENT), "paramiko")
        back = io.BytesIO()
        sftp.getfo("paramiko", back)
        sftp.remove("paramiko")
        return "ok" if back.getvalue() == CONTENT else f"failed got {len(back.getvalue())} bytes"
    finally:
        transport.close()


def main():
    library, port, user, key = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    connect = {"asyncssh": lambda *case: asyncio.run(with_asyncssh(*case)), "paramiko": with_paramiko}[library]
    for case in sys.argv[5:]:
        kind, name = case.split("=", 1)
        try:
            outcome = connect(port, user, key, kind, name)
        except Exception as error:
            outcome = f"failed {type(error).__name__}: {error}".replace("\n", " ")
        print(library, kind, name, outcome, flush=True)


main()
