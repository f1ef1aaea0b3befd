import crypto from "node:crypto";

import { IncorrectKeyException, InvalidCiphertextException } from "@aws-sdk/client-kms";

import { check, decrypt, decryptText, encrypt, equal, flip, kms, newKey, refused, sameBytes } from "./common.mjs";

const EncryptionContext = { tenant: "42", purpose: "interop ü" };
const OTHER = { tenant: "43", purpose: "interop ü" };

export const dataSteps = {
  "encrypt-decrypt": async () => {
    const { KeyId, Arn } = await newKey();
    const Plaintext = crypto.randomBytes(256);
    const encrypted = await kms.encrypt({ KeyId, Plaintext, EncryptionContext });
    equal([encrypted.KeyId, encrypted.EncryptionAlgorithm], [Arn, "SYMMETRIC_DEFAULT"], "answer");
    const CiphertextBlob = encrypted.CiphertextBlob;
    const decrypted = await kms.decrypt({ CiphertextBlob, EncryptionContext });
    sameBytes(decrypted.Plaintext, Plaintext, "Plaintext");
    equal([decrypted.KeyId, decrypted.EncryptionAlgorithm], [Arn, "SYMMETRIC_DEFAULT"], "answer");
    await refused(InvalidCiphertextException, decrypt(CiphertextBlob, { EncryptionContext: OTHER }));
    await refused(InvalidCiphertextException, decrypt(CiphertextBlob));
    await refused(InvalidCiphertextException, decrypt(flip(CiphertextBlob), { EncryptionContext }));
    const other = (await newKey()).KeyId;
    await refused(IncorrectKeyException, decrypt(CiphertextBlob, { EncryptionContext, KeyId: other }));
  },

  "re-encrypt": async () => {
    const [source, destination] = [await newKey(), await newKey()];
    const answer = await kms.reEncrypt({
      CiphertextBlob: await encrypt(source.KeyId, "plaintext", { EncryptionContext }),
      SourceEncryptionContext: EncryptionContext,
      DestinationKeyId: destination.KeyId,
      DestinationEncryptionContext: OTHER,
    });
    equal([answer.SourceKeyId, answer.KeyId], [source.Arn, destination.Arn], "keys");
    await kms.disableKey({ KeyId: source.KeyId });
    equal(await decryptText(answer.CiphertextBlob, { EncryptionContext: OTHER }), "plaintext", "Plaintext");
  },

  "generate-data-key": async () => {
    const { KeyId, Arn } = await newKey();
    for (const [size, request] of [
      [32, { KeySpec: "AES_256" }],
      [64, { NumberOfBytes: 64 }],
    ]) {
      const answer = await kms.generateDataKey({ KeyId, EncryptionContext, ...request });
      equal(answer.KeyId, Arn, "KeyId");
      equal(answer.Plaintext.length, size, "length");
      sameBytes(await decrypt(answer.CiphertextBlob, { EncryptionContext }), answer.Plaintext, "Plaintext");
    }
  },

  "generate-data-key-without-plaintext": async () => {
    const { KeyId, Arn } = await newKey();
    const answer = await kms.generateDataKeyWithoutPlaintext({ KeyId, KeySpec: "AES_256", EncryptionContext });
    check(!("Plaintext" in answer), "an answer with Plaintext");
    equal(answer.KeyId, Arn, "KeyId");
    equal((await decrypt(answer.CiphertextBlob, { EncryptionContext })).length, 32, "length");
  },

  "generate-data-key-pair-rsa-2048": () => dataKeyPair("RSA_2048"),
  "generate-data-key-pair-ecc-nist-p256": () => dataKeyPair("ECC_NIST_P256"),
  "generate-data-key-pair-ml-kem-768": () => dataKeyPair("ML_KEM_768"),
  "generate-data-key-pair-without-plaintext-rsa-2048": () => dataKeyPairWithoutPlaintext("RSA_2048"),
  "generate-data-key-pair-without-plaintext-ecc-nist-p256": () => dataKeyPairWithoutPlaintext("ECC_NIST_P256"),
  "generate-data-key-pair-without-plaintext-ml-kem-768": () => dataKeyPairWithoutPlaintext("ML_KEM_768"),

  "generate-random": async () => {
    const random = async (NumberOfBytes) => (await kms.generateRandom({ NumberOfBytes })).Plaintext;
    const [one, two] = [await random(32), await random(32)];
    equal([one.length, two.length], [32, 32], "lengths");
    check(Buffer.compare(one, two) !== 0, "the same twice");
    equal((await random(1024)).length, 1024, "length");
  },
};

/** What the private key does must be undone by the public key. */
function pairFits(spec, pkcs8, spki) {
  const secret = crypto.createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
  const key = crypto.createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
  const message = Buffer.from("m");
  switch (spec) {
    case "RSA_2048":
      equal(key.asymmetricKeyDetails.modulusLength, 2048, "key size");
      check(crypto.verify("sha256", message, key, crypto.sign("sha256", message, secret)), "keys do not fit");
      break;
    case "ECC_NIST_P256":
      equal(key.asymmetricKeyDetails.namedCurve, "prime256v1", "curve");
      check(crypto.verify("sha256", message, key, crypto.sign("sha256", message, secret)), "keys do not fit");
      break;
    default: {
      equal(key.asymmetricKeyType, "ml-kem-768", "type");
      equal(pkcs8.length, 86, "length of the private key as a seed");
      const { sharedKey, ciphertext } = crypto.encapsulate(key);
      sameBytes(crypto.decapsulate(secret, ciphertext), sharedKey, "shared secret");
    }
  }
}

async function dataKeyPair(KeyPairSpec) {
  const { KeyId, Arn } = await newKey();
  const answer = await kms.generateDataKeyPair({ KeyId, KeyPairSpec, EncryptionContext });
  equal([answer.KeyId, answer.KeyPairSpec], [Arn, KeyPairSpec], "answer");
  const secret = await decrypt(answer.PrivateKeyCiphertextBlob, { EncryptionContext });
  sameBytes(secret, answer.PrivateKeyPlaintext, "private key");
  pairFits(KeyPairSpec, secret, answer.PublicKey);
}

async function dataKeyPairWithoutPlaintext(KeyPairSpec) {
  const { KeyId, Arn } = await newKey();
  const answer = await kms.generateDataKeyPairWithoutPlaintext({ KeyId, KeyPairSpec, EncryptionContext });
  check(!("PrivateKeyPlaintext" in answer), "an answer with PrivateKeyPlaintext");
  equal([answer.KeyId, answer.KeyPairSpec], [Arn, KeyPairSpec], "answer");
  pairFits(KeyPairSpec, await decrypt(answer.PrivateKeyCiphertextBlob, { EncryptionContext }), answer.PublicKey);
}
