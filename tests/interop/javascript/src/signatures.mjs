import crypto from "node:crypto";

import { KMSInvalidSignatureException } from "@aws-sdk/client-kms";

import { check, equal, flip, kms, newKey, publicKey, refused } from "./common.mjs";

const { RSA_PKCS1_PSS_PADDING } = crypto.constants;

const SPKI_HEADER = 22;
const ML_DSA = "ML_DSA_SHAKE_256";

export const signatureSteps = {
  "get-public-key": async () => {
    const key = await newKey({ KeySpec: "ECC_NIST_P256", KeyUsage: "SIGN_VERIFY" });
    for (const KeyId of [key.KeyId, key.Arn]) {
      const answer = await kms.getPublicKey({ KeyId });
      equal([answer.KeyId, answer.KeySpec, answer.KeyUsage], [key.Arn, "ECC_NIST_P256", "SIGN_VERIFY"], "answer");
      equal(answer.SigningAlgorithms, ["ECDSA_SHA_256"], "SigningAlgorithms");
      equal(parsed(answer.PublicKey).asymmetricKeyDetails.namedCurve, "prime256v1", "curve");
    }
  },

  "sign-verify-rsa-2048-pss": () =>
    signVerify("RSA_2048", "RSASSA_PSS_SHA_256", {
      digest: true,
      length: 256,
      local: { hash: "sha256", padding: RSA_PKCS1_PSS_PADDING, saltLength: 32 },
    }),
  "sign-verify-rsa-2048-pkcs1": () =>
    signVerify("RSA_2048", "RSASSA_PKCS1_V1_5_SHA_256", { digest: true, length: 256, local: { hash: "sha256" } }),
  "sign-verify-ecc-nist-p256": () =>
    signVerify("ECC_NIST_P256", "ECDSA_SHA_256", { digest: true, local: { hash: "sha256" } }),
  "sign-verify-ecc-secg-p256k1": () =>
    signVerify("ECC_SECG_P256K1", "ECDSA_SHA_256", { digest: true, local: { hash: "sha256" } }),
  "sign-verify-ecc-nist-edwards25519": () => signVerify("ECC_NIST_EDWARDS25519", "ED25519_SHA_512", { length: 64 }),
  "sign-verify-ml-dsa-44": () => signVerify("ML_DSA_44", ML_DSA, { length: 2420 }),
  "sign-verify-ml-dsa-65": () => signVerify("ML_DSA_65", ML_DSA, { length: 3309 }),
  "sign-verify-ml-dsa-87": () => signVerify("ML_DSA_87", ML_DSA, { length: 4627 }),

  "sign-verify-ml-dsa-65-external-mu": async () => {
    const key = await newKey({ KeySpec: "ML_DSA_65", KeyUsage: "SIGN_VERIFY" });
    const spki = await publicKey(key);
    equal(spki.length, SPKI_HEADER + 1952, "length of the public key");
    // FIPS 204, algorithm 7, line 6, with the empty context.
    const shake = (data) => crypto.createHash("shake256", { outputLength: 64 }).update(data).digest();
    const tr = shake(spki.subarray(SPKI_HEADER));
    const mu = (message) => shake(Buffer.concat([tr, Buffer.alloc(2), message]));

    const message = crypto.randomBytes(500);
    const request = { KeyId: key.KeyId, SigningAlgorithm: ML_DSA };
    const { Signature } = await kms.sign({ Message: mu(message), MessageType: "EXTERNAL_MU", ...request });
    for (const [MessageType, Message] of [
      ["RAW", message],
      ["EXTERNAL_MU", mu(message)],
    ]) {
      const answer = await kms.verify({ Message, MessageType, Signature, ...request });
      equal(answer.SignatureValid, true, `SignatureValid for ${MessageType}`);
    }
    const changed = { Message: mu(flip(message)), MessageType: "EXTERNAL_MU", Signature, ...request };
    await refused(KMSInvalidSignatureException, kms.verify(changed));
    check(crypto.verify(null, message, parsed(spki), Signature), "not valid by Node's own crypto");
  },
};

function parsed(spki) {
  return crypto.createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
}

async function signVerify(KeySpec, SigningAlgorithm, { digest = false, length, local = {} }) {
  const key = await newKey({ KeySpec, KeyUsage: "SIGN_VERIFY" });
  check(key.SigningAlgorithms.includes(SigningAlgorithm), `SigningAlgorithms ${key.SigningAlgorithms}`);
  const message = crypto.randomBytes(500);
  const answer = await kms.sign({ KeyId: key.KeyId, Message: message, MessageType: "RAW", SigningAlgorithm });
  equal([answer.KeyId, answer.SigningAlgorithm], [key.Arn, SigningAlgorithm], "answer");
  const { Signature } = answer;
  equal(Signature.length, length ?? Signature.length, "length of the signature");

  const sha256 = (data) => crypto.createHash("sha256").update(data).digest();
  const forms = [["RAW", message, flip(message)]];
  if (digest) {
    forms.push(["DIGEST", sha256(message), sha256(flip(message))]);
  }
  for (const [MessageType, good, bad] of forms) {
    const request = { KeyId: key.Arn, MessageType, Signature, SigningAlgorithm };
    equal((await kms.verify({ Message: good, ...request })).SignatureValid, true, `SignatureValid for ${MessageType}`);
    await refused(KMSInvalidSignatureException, kms.verify({ Message: bad, ...request }));
  }
  const { hash = null, ...options } = local;
  const own = { key: parsed(await publicKey(key)), ...options };
  check(crypto.verify(hash, message, own, Signature), "not valid by Node's own crypto");
}
