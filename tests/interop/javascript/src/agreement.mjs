import crypto from "node:crypto";

import { InvalidCiphertextException, KMSInvalidMacException } from "@aws-sdk/client-kms";

import { check, equal, flip, kms, newKey, publicKey, refused, sameBytes } from "./common.mjs";

const CIPHERTEXT_LENGTH = 1088;

export const agreementSteps = {
  "mac-hmac-256": async () => {
    const key = await newKey({ KeySpec: "HMAC_256", KeyUsage: "GENERATE_VERIFY_MAC" });
    equal(key.MacAlgorithms, ["HMAC_SHA_256"], "MacAlgorithms");
    const Message = Buffer.from("message");
    const request = { KeyId: key.KeyId, MacAlgorithm: "HMAC_SHA_256" };
    const answer = await kms.generateMac({ Message, ...request });
    equal([answer.KeyId, answer.MacAlgorithm], [key.Arn, "HMAC_SHA_256"], "answer");
    const { Mac } = answer;
    equal(Mac.length, 32, "length");
    equal((await kms.verifyMac({ Message, Mac, ...request })).MacValid, true, "MacValid");
    await refused(KMSInvalidMacException, kms.verifyMac({ Message: flip(Message), Mac, ...request }));
    await refused(KMSInvalidMacException, kms.verifyMac({ Message, Mac: flip(Mac), ...request }));
  },

  "derive-shared-secret": async () => {
    const [one, two] = [await agreementKey(), await agreementKey()];
    sameBytes(await derive(one, await publicKey(two)), await derive(two, await publicKey(one)), "shared secret");
  },

  "derive-shared-secret-local": async () => {
    const key = await agreementKey();
    const local = crypto.generateKeyPairSync("ec", { namedCurve: "P-256" });
    const theirs = crypto.createPublicKey({ key: await publicKey(key), format: "der", type: "spki" });
    const ours = crypto.diffieHellman({ privateKey: local.privateKey, publicKey: theirs });
    sameBytes(await derive(key, local.publicKey.export({ format: "der", type: "spki" })), ours, "shared secret");
  },

  "ml-kem-768": async () => {
    const key = await kemKey();
    const answer = await kms.encapsulate({ KeyId: key.KeyId, EncapsulationAlgorithm: "ML_KEM" });
    equal([answer.KeyId, answer.EncapsulationAlgorithm], [key.Arn, "ML_KEM"], "answer");
    const blob = answer.SharedSecretCiphertextBlob;
    equal(blob.length, CIPHERTEXT_LENGTH, "length of the ciphertext");
    sameBytes(await decapsulate(key, blob), answer.SharedSecret, "shared secret");
    const changed = await decapsulate(key, flip(blob));
    check(Buffer.compare(changed, answer.SharedSecret) !== 0, "a changed ciphertext gives the same secret");
  },

  "ml-kem-768-local": async () => {
    const key = await kemKey();
    const parsed = crypto.createPublicKey({ key: await publicKey(key), format: "der", type: "spki" });
    equal(parsed.asymmetricKeyType, "ml-kem-768", "type");
    const { sharedKey, ciphertext } = crypto.encapsulate(parsed);
    sameBytes(await decapsulate(key, ciphertext), sharedKey, "shared secret");
  },

  "ml-kem-768-wrong-length": async () => {
    await refused(InvalidCiphertextException, decapsulate(await kemKey(), Buffer.alloc(CIPHERTEXT_LENGTH - 1)));
  },
};

async function agreementKey() {
  const key = await newKey({ KeySpec: "ECC_NIST_P256", KeyUsage: "KEY_AGREEMENT" });
  equal(key.KeyAgreementAlgorithms, ["ECDH"], "KeyAgreementAlgorithms");
  return key;
}

async function derive({ KeyId, Arn }, PublicKey) {
  const answer = await kms.deriveSharedSecret({ KeyId, KeyAgreementAlgorithm: "ECDH", PublicKey });
  equal([answer.KeyId, answer.KeyAgreementAlgorithm], [Arn, "ECDH"], "answer");
  equal(answer.SharedSecret.length, 32, "length");
  return answer.SharedSecret;
}

async function kemKey() {
  const key = await newKey({ KeySpec: "ML_KEM_768", KeyUsage: "ENCAPSULATE_DECAPSULATE" });
  equal(key.EncapsulationAlgorithms, ["ML_KEM"], "EncapsulationAlgorithms");
  return key;
}

async function decapsulate({ KeyId, Arn }, SharedSecretCiphertextBlob) {
  const answer = await kms.decapsulate({ KeyId, EncapsulationAlgorithm: "ML_KEM", SharedSecretCiphertextBlob });
  equal([answer.KeyId, answer.EncapsulationAlgorithm], [Arn, "ML_KEM"], "answer");
  equal(answer.SharedSecret.length, 32, "length of the secret");
  return answer.SharedSecret;
}
