"""asyncssh as a server, for this project's client: prints its port, takes every key and the password `correct horse`,
and echoes what a session sends.

    server.py HOST-KEY...
"""

import asyncio
import sys

import asyncssh


class Server(asyncssh.SSHServer):
    def begin_auth(self, username):
        return True

    def password_auth_supported(self):
        return True

    def validate_password(self, username, password):
        return password == "correct horse"

    def public_key_auth_supported(self):
        return True

    def validate_public_key(self, username, key):
        return True

    def kbdint_auth_supported(self):
        return False


async def echo(process):
    while data := await process.stdin.read(65536):
        process.stdout.write(data)
        await process.stdout.drain()
    process.exit(7)


async def main():
    server = await asyncssh.create_server(
        Server, "127.0.0.1", 0, server_host_keys=sys.argv[1:], process_factory=echo, encoding=None, rekey_bytes=200_000,
        compression_algs=None,
    )
    print(server.get_port(), flush=True)
    # Ends with its parent.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


asyncio.run(main())
