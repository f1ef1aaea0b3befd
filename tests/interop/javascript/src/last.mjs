import crypto from "node:crypto";

import { DryRunOperationException, KMSInvalidStateException, NotFoundException } from "@aws-sdk/client-kms";

import {
  DAY,
  HOUR,
  RUN,
  check,
  decryptText,
  describe,
  encrypt,
  equal,
  eventually,
  kms,
  newKey,
  refused,
  refusedAs,
  refusedByModel,
  within,
} from "./common.mjs";
import { moved } from "./regions.mjs";

export const lastSteps = {
  "dry-run": async () => {
    const { KeyId } = await newKey();
    await refused(DryRunOperationException, encrypt(KeyId, "plaintext", { DryRun: true }));
    await refused(DryRunOperationException, kms.generateDataKey({ KeyId, KeySpec: "AES_256", DryRun: true }));
    await decryptText(await encrypt(KeyId, "plaintext", { DryRun: false }));
  },

  "get-key-last-usage": async () => {
    const { KeyId, CreationDate } = await newKey();
    const unused = await kms.getKeyLastUsage({ KeyId });
    check(!unused.KeyLastUsage?.Timestamp, "KeyLastUsage of an unused key");
    within(unused.KeyCreationDate, CreationDate, 1000, "KeyCreationDate");
    check(unused.TrackingStartDate instanceof Date, "no TrackingStartDate");
    await encrypt(KeyId);
    const used = await eventually("usage recorded", async () => {
      const { KeyLastUsage } = await kms.getKeyLastUsage({ KeyId });
      return KeyLastUsage?.Timestamp && KeyLastUsage;
    });
    equal(used.Operation, "Encrypt", "Operation");
    within(used.Timestamp, Date.now(), HOUR, "Timestamp");
  },

  "describe-custom-key-stores": async () => {
    equal((await kms.describeCustomKeyStores({})).CustomKeyStores, [], "CustomKeyStores");
  },

  "create-custom-key-store": async () => {
    await refusedByModel(
      kms.createCustomKeyStore({
        CustomKeyStoreName: `store-${RUN}`,
        CloudHsmClusterId: "cluster-2a23b4cdefg",
        TrustAnchorCertificate: "no certificate",
        KeyStorePassword: "kmsPswd1",
      }),
    );
  },

  "not-found": async () => {
    const unknown = crypto.randomUUID();
    await refused(NotFoundException, describe(unknown));
    await refused(NotFoundException, encrypt(unknown));
    await refused(NotFoundException, describe(`alias/unknown-${RUN}`));
  },

  validation: async () => {
    await refusedAs(["ValidationException"], newKey({ KeySpec: "RSA_1024", KeyUsage: "SIGN_VERIFY" }));
    await refusedAs(["ValidationException"], newKey({ KeySpec: "ML_DSA_65" }));
  },

  "foreign-arn": async () => {
    const key = await newKey();
    for (const arn of [
      moved(key, "ap-southeast-2"),
      key.Arn.replace(`:${key.AWSAccountId}:`, ":999999999999:"),
    ]) {
      await refusedAs(["NotFoundException", "InvalidArnException"], describe(arn));
    }
  },

  "schedule-key-deletion": async () => {
    const { KeyId, Arn } = await newKey();
    const answer = await kms.scheduleKeyDeletion({ KeyId, PendingWindowInDays: 7 });
    equal([answer.KeyId, answer.KeyState, answer.PendingWindowInDays], [Arn, "PendingDeletion", 7], "answer");
    within(answer.DeletionDate, Date.now() + 7 * DAY, DAY, "DeletionDate");
    equal((await describe(KeyId)).KeyState, "PendingDeletion", "KeyState");
    await refused(KMSInvalidStateException, encrypt(KeyId));
  },

  "cancel-key-deletion": async () => {
    const { KeyId, Arn } = await newKey();
    const blob = await encrypt(KeyId);
    await kms.scheduleKeyDeletion({ KeyId, PendingWindowInDays: 7 });
    equal((await kms.cancelKeyDeletion({ KeyId })).KeyId, Arn, "KeyId");
    equal((await describe(KeyId)).KeyState, "Disabled", "KeyState");
    await kms.enableKey({ KeyId });
    equal(await decryptText(blob), "plaintext", "Plaintext");
  },
};
