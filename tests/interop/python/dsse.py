"""DSSE envelopes with securesystemslib.

dsse.py verify ENVELOPE KEY        verifies the first signature by a public key in PEM
dsse.py sign PAYLOAD_TYPE PAYLOAD KEY ENVELOPE    signs a file with a private key in PEM
"""

import json
import sys

from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey


def verify(envelope, key):
    with open(envelope, encoding="utf-8") as file:
        value = json.load(file)
    with open(key, "rb") as file:
        public = load_pem_public_key(file.read())
    # Names of keys are only hints; this is the one that the envelope has.
    known = SSlibKey.from_crypto(public, keyid=value["signatures"][0]["keyid"])
    Envelope.from_dict(value).verify([known], 1)


def sign(payload_type, payload, key, envelope):
    with open(key, "rb") as file:
        signer = CryptoSigner(load_pem_private_key(file.read(), None))
    with open(payload, "rb") as file:
        value = Envelope(file.read(), payload_type, {})
    value.sign(signer)
    with open(envelope, "w", encoding="utf-8") as file:
        json.dump(value.to_dict(), file)


COMMANDS = {"verify": verify, "sign": sign}
COMMANDS[sys.argv[1]](*sys.argv[2:])
print("done")
