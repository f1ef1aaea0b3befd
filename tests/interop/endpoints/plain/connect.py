"""Connects once with Python's ssl as it is, and prints a result as ../PROTOCOL.md has it.

usage: connect.py HOST:PORT NAME CA.pem
"""

import json
import socket
import ssl
import sys


def main(address, name, ca):
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context(cafile=ca)
    try:
        with socket.create_connection((host, int(port)), timeout=120) as plain:
            with context.wrap_socket(plain, server_hostname=name) as connection:
                connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
                while connection.recv(512):
                    pass
                print(json.dumps({"ok": True, "version": connection.version(), "suite": connection.cipher()[0]}))
    except ssl.SSLError as error:
        # SSLV3_ALERT_HANDSHAKE_FAILURE and TLSV1_ALERT_PROTOCOL_VERSION are OpenSSL's names.
        _, _, alert = (error.reason or "").partition("_ALERT_")
        print(json.dumps({"ok": False, "error": str(error), "alert": alert.lower() or None}))


main(*sys.argv[1:])
