// Connects once with Node's tls as it is, and prints a result as ../PROTOCOL.md has it.
//
// usage: node connect.mjs HOST:PORT NAME CA.pem

import { readFileSync } from 'node:fs';
import tls from 'node:tls';

const [address, servername, ca] = process.argv.slice(2);
const [host, port] = address.split(':');
const print = (result) => console.log(JSON.stringify(result));

const connection = tls.connect({ host, port: Number(port), servername, ca: readFileSync(ca), timeout: 120_000 });
connection.on('secureConnect', () => {
  connection.write(`GET /healthz HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
  print({
    ok: true,
    version: connection.getProtocol(),
    suite: connection.getCipher().standardName,
    resumed: connection.isSessionReused(),
  });
});
connection.on('data', () => {});
connection.on('end', () => connection.end());
connection.on('error', (error) => {
  // ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE
  const [, alert] = /_ALERT_([A-Z_]+)$/.exec(error.code ?? '') ?? [];
  print({ ok: false, error: error.message, alert: alert?.toLowerCase() });
});
