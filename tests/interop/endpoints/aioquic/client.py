"""client.py HOST PORT CA.pem PATH [COUNT]: gets a path over HTTP/3 by aioquic, COUNT times on one connection, and prints as
JSON what was answered, or with which error the connection ended. aioquic has classical groups only.
"""

import asyncio
import json
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.h3 = H3Connection(self._quic)
        self.answers = {}
        self.ended = None

    def quic_event_received(self, event):
        if isinstance(event, ConnectionTerminated):
            self.ended = event
            for _, _, done in self.answers.values():
                if not done.done():
                    done.set_exception(ConnectionError("terminated"))
        for h3_event in self.h3.handle_event(event):
            headers, body, done = self.answers.get(h3_event.stream_id, ([], bytearray(), None))
            if isinstance(h3_event, HeadersReceived):
                headers.extend(h3_event.headers)
            elif isinstance(h3_event, DataReceived):
                body.extend(h3_event.data)
            if done and h3_event.stream_ended and not done.done():
                done.set_result(None)

    async def get(self, authority, path):
        stream = self._quic.get_next_available_stream_id()
        answer = ([], bytearray(), asyncio.get_running_loop().create_future())
        self.answers[stream] = answer
        head = {":method": "GET", ":scheme": "https", ":authority": authority, ":path": path}
        pairs = [(name.encode(), value.encode()) for name, value in head.items()]
        self.h3.send_headers(stream, pairs, end_stream=True)
        self.transmit()
        await asyncio.wait_for(answer[2], 15)
        status = dict(answer[0])[b":status"]
        return {"status": int(status), "body": answer[1].decode()}


async def run(host, port, roots, path, count=1):
    clients = []

    def make(*arguments, **named):
        clients.append(Client(*arguments, **named))
        return clients[-1]

    configuration = QuicConfiguration(
        is_client=True, alpn_protocols=H3_ALPN, cafile=roots, server_name="localhost", idle_timeout=120
    )
    found = {}
    try:
        async with connect(host, int(port), configuration=configuration, create_protocol=make) as client:
            gets = [client.get(f"localhost:{port}", path) for _ in range(int(count))]
            found["answers"] = await asyncio.gather(*gets)
            found["protocol"] = client._quic.tls.alpn_negotiated
            found["suite"] = client._quic.tls.key_schedule.cipher_suite.name
    except (ConnectionError, asyncio.TimeoutError) as error:
        found["error"] = type(error).__name__
    ended = clients[0].ended if clients else None
    if ended and "error" in found:
        found["error_code"], found["reason"] = ended.error_code, ended.reason_phrase
    print(json.dumps(found))


asyncio.run(run(*sys.argv[1:]))
