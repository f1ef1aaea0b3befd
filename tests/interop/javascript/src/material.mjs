import crypto from "node:crypto";

import { IncorrectKeyMaterialException, KMSInvalidStateException } from "@aws-sdk/client-kms";

import {
  DAY,
  HOUR,
  check,
  decryptText,
  describe,
  encrypt,
  equal,
  eventually,
  kms,
  newKey,
  refused,
  within,
} from "./common.mjs";

export const materialSteps = {
  "get-parameters-for-import": async () => {
    const { KeyId, Arn } = await externalKey();
    const answer = await parametersForImport(KeyId);
    equal(answer.KeyId, Arn, "KeyId");
    equal(wrappingKey(answer).asymmetricKeyDetails.modulusLength, 3072, "key size");
    check(answer.ImportToken.length > 0, "no ImportToken");
    within(answer.ParametersValidTo, Date.now() + DAY, HOUR, "ParametersValidTo");
  },

  "import-key-material": async () => {
    const { KeyId } = await externalKey();
    await importMaterial(KeyId, crypto.randomBytes(32));
    const { KeyState, ExpirationModel } = await describe(KeyId);
    equal([KeyState, ExpirationModel], ["Enabled", "KEY_MATERIAL_DOES_NOT_EXPIRE"], "key");
    equal(await decryptText(await encrypt(KeyId)), "plaintext", "Plaintext");
  },

  "delete-imported-key-material": async () => {
    const { KeyId } = await externalKey();
    const material = crypto.randomBytes(32);
    await importMaterial(KeyId, material);
    const blob = await encrypt(KeyId);
    await kms.deleteImportedKeyMaterial({ KeyId });
    equal((await describe(KeyId)).KeyState, "PendingImport", "KeyState");
    await refused(KMSInvalidStateException, encrypt(KeyId));
    await refused(KMSInvalidStateException, decryptText(blob));
    await importMaterial(KeyId, material);
    equal(await decryptText(blob), "plaintext", "Plaintext");
  },

  "import-other-key-material": async () => {
    const { KeyId } = await externalKey();
    await importMaterial(KeyId, crypto.randomBytes(32));
    await kms.deleteImportedKeyMaterial({ KeyId });
    await refused(IncorrectKeyMaterialException, importMaterial(KeyId, crypto.randomBytes(32)));
  },

  "key-rotation": async () => {
    const { KeyId } = await newKey();
    await kms.enableKeyRotation({ KeyId, RotationPeriodInDays: 90 });
    const status = await kms.getKeyRotationStatus({ KeyId });
    equal([status.KeyRotationEnabled, status.RotationPeriodInDays], [true, 90], "status");
    within(status.NextRotationDate, Date.now() + 90 * DAY, 2 * DAY, "NextRotationDate");
    equal((await kms.listKeyRotations({ KeyId })).Rotations, [], "Rotations");
    await kms.disableKeyRotation({ KeyId });
    equal((await kms.getKeyRotationStatus({ KeyId })).KeyRotationEnabled, false, "KeyRotationEnabled");
  },

  "rotate-key-on-demand": async () => {
    const { KeyId } = await newKey();
    await kms.enableKeyRotation({ KeyId, RotationPeriodInDays: 90 });
    const old = await encrypt(KeyId, "old");
    const material = (await describe(KeyId)).CurrentKeyMaterialId;
    check(material, "no CurrentKeyMaterialId");
    await kms.rotateKeyOnDemand({ KeyId });
    const rotations = await eventually("rotation", async () => {
      const { Rotations } = await kms.listKeyRotations({ KeyId });
      return Rotations.length > 0 && Rotations;
    });
    equal(
      rotations.map((rotation) => rotation.RotationType),
      ["ON_DEMAND"],
      "RotationType",
    );
    within(rotations[0].RotationDate, Date.now(), HOUR, "RotationDate");
    await eventually("new key material", async () => (await describe(KeyId)).CurrentKeyMaterialId !== material);
    equal(await decryptText(old), "old", "old Plaintext");
    equal(await decryptText(await encrypt(KeyId, "new")), "new", "new Plaintext");
    equal((await kms.getKeyRotationStatus({ KeyId })).RotationPeriodInDays, 90, "RotationPeriodInDays");
    await kms.disableKeyRotation({ KeyId });
  },
};

async function externalKey() {
  const key = await newKey({ Origin: "EXTERNAL" });
  equal([key.KeyState, key.Origin], ["PendingImport", "EXTERNAL"], "new key");
  return key;
}

function parametersForImport(KeyId) {
  return kms.getParametersForImport({ KeyId, WrappingAlgorithm: "RSAES_OAEP_SHA_256", WrappingKeySpec: "RSA_3072" });
}

function wrappingKey({ PublicKey }) {
  return crypto.createPublicKey({ key: Buffer.from(PublicKey), format: "der", type: "spki" });
}

async function importMaterial(KeyId, material) {
  const parameters = await parametersForImport(KeyId);
  const oaep = { key: wrappingKey(parameters), padding: crypto.constants.RSA_PKCS1_OAEP_PADDING, oaepHash: "sha256" };
  await kms.importKeyMaterial({
    KeyId,
    ImportToken: parameters.ImportToken,
    EncryptedKeyMaterial: crypto.publicEncrypt(oaep, material),
    ExpirationModel: "KEY_MATERIAL_DOES_NOT_EXPIRE",
  });
}
