"""asyncssh and paramiko as clients of a server that echoes, each with one algorithm at a time.

    clients.py PORT KEY KIND=NAME...

KIND is kex, key, cipher or mac. KEY is a private key file without a passphrase; whatever key the host has is accepted,
because the server's test compares it. One line for each library and algorithm: library, kind, name, and `ok`, `unsupported`
(the library does not know the name) or what failed.
"""

import asyncio
import socket
import sys

import asyncssh
import paramiko

MESSAGE = b"a line that comes back\n" * 5000


async def with_asyncssh(port, key, kind, name):
    options = {
        "kex": {"kex_algs": [name]},
        "key": {"server_host_key_algs": [name]},
        "cipher": {"encryption_algs": [name]},
        "mac": {"encryption_algs": ["aes128-ctr"], "mac_algs": [name]},
    }[kind]
    try:
        asyncssh.SSHClientConnectionOptions(**options)
    except ValueError:
        return "unsupported"
    async with asyncssh.connect(
        "127.0.0.1", port, username="alice", client_keys=[key], known_hosts=None, config=None, agent_path=None, **options
    ) as connection:
        result = await connection.run("echo", input=MESSAGE, encoding=None)
        return "ok" if result.stdout == MESSAGE and result.exit_status == 0 else f"got {len(result.stdout)} bytes"


def with_paramiko(port, key, kind, name):
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
            else:
                options.ciphers = ("aes128-ctr",)
                options.digests = (name,)
        except ValueError:
            return "unsupported"
        transport.start_client(timeout=60)
        transport.auth_publickey("alice", paramiko.Ed25519Key.from_private_key_file(key))
        channel = transport.open_session()
        channel.exec_command("echo")
        channel.sendall(MESSAGE)
        channel.shutdown_write()
        got = b""
        while piece := channel.recv(65536):
            got += piece
        return "ok" if got == MESSAGE and channel.recv_exit_status() == 0 else f"got {len(got)} bytes"
    finally:
        transport.close()


def main():
    port, key = int(sys.argv[1]), sys.argv[2]
    for case in sys.argv[3:]:
        kind, name = case.split("=", 1)
        for library, connect in [
            ("asyncssh", lambda *case: asyncio.run(with_asyncssh(*case))),
            ("paramiko", with_paramiko),
        ]:
            try:
                outcome = connect(port, key, kind, name)
            except Exception as error:
                outcome = f"{type(error).__name__}: {error}".replace("\n", " ")
            print(library, kind, name, outcome, flush=True)


main()
