"""page.py CHROMIUM OPENSSL ORIGIN SCREENSHOT: opens ORIGIN/healthz in Chromium over HTTP/3, and prints as JSON what the
browser's security panel shows of it. CHROMIUM and OPENSSL are the programs; ORIGIN is https://127.0.0.1:PORT. The browser
takes the certificate that the server shows over TCP, by its public key.

Chromium is spoken to over two pipes (--remote-debugging-pipe): messages are JSON, and a zero byte ends each.
"""

import base64
import hashlib
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading


class Browser:
    def __init__(self, program, arguments):
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # Its end of the pipes are the descriptors 3 and 4.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", program, "--remote-debugging-pipe", *arguments],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.output, self.input = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
        self.number, self.events, self.buffer = 0, [], b""

    def message(self):
        while b"\0" not in self.buffer:
            more = self.input.read1(65536)
            if not more:
                raise SystemExit("the browser has gone")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if session:
            request["sessionId"] = session
        self.output.write(json.dumps(request).encode() + b"\0")
        self.output.flush()
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def event(self, methods):
        while True:
            for event in self.events:
                if event.get("method") in methods:
                    self.events.remove(event)
                    return event
            self.events.append(self.message())


def fingerprint(openssl, place):
    """Of the public key that the server shows, as --ignore-certificate-errors-spki-list wants it."""

    def run(*arguments, given):
        return subprocess.run([openssl, *arguments], input=given, check=True, capture_output=True).stdout

    host, port = place.split(":")
    pem = ssl.get_server_certificate((host, int(port)))
    key = run("x509", "-noout", "-pubkey", given=pem.encode())
    der = run("pkey", "-pubin", "-outform", "DER", given=key)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def main(program, openssl, origin, screenshot):
    place = origin.removeprefix("https://")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, [
            f"--user-data-dir={folder}",
            f"--origin-to-force-quic-on={place}",
            f"--ignore-certificate-errors-spki-list={fingerprint(openssl, place)}",
            "--enable-quic",
            "--no-proxy-server",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--window-size=800,600",
        ])
        watch = threading.Timer(60, browser.process.kill)
        watch.start()
        try:
            target = browser.call("Target.createTarget", url="about:blank")["targetId"]
            session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ["Network", "Page", "Security"]:
                browser.call(f"{domain}.enable", session)
            browser.call("Page.navigate", session, url=f"{origin}/healthz")
            event = browser.event(["Network.responseReceived", "Network.loadingFailed"])
            if event["method"] == "Network.loadingFailed":
                print(json.dumps({"error": event["params"]["errorText"]}))
                return
            browser.event(["Page.loadEventFired"])
            response = event["params"]["response"]
            body = browser.call("Network.getResponseBody", session, requestId=event["params"]["requestId"])
            picture = browser.call("Page.captureScreenshot", session, format="png")
            with open(screenshot, "wb") as file:
                file.write(base64.b64decode(picture["data"]))
            security = response.get("securityDetails", {})
            print(json.dumps({
                "browser": browser.call("Browser.getVersion")["product"],
                "status": response["status"],
                "protocol": response["protocol"],
                "security_state": response.get("securityState"),
                "tls": security.get("protocol"),
                "key_exchange": security.get("keyExchange"),
                "group": security.get("keyExchangeGroup"),
                "cipher": security.get("cipher"),
                "signature_algorithm": security.get("serverSignatureAlgorithm"),
                "body": body["body"],
            }))
        finally:
            watch.cancel()
            browser.process.kill()
            browser.process.wait()


main(*sys.argv[1:])
