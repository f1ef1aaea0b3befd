import { KMS } from "@aws-sdk/client-kms";

import {
  check,
  decryptText,
  describe,
  encrypt,
  equal,
  eventually,
  kms,
  newKey,
  note,
  region,
  settings,
} from "./common.mjs";

export const regionSteps = {
  "replicate-key": async () => {
    const { key, other, there } = await replicatedKey();
    const answer = await there.decrypt({ CiphertextBlob: await encrypt(key.KeyId), KeyId: key.KeyId });
    equal(Buffer.from(answer.Plaintext).toString(), "plaintext", "Plaintext");
    equal(answer.KeyId, moved(key, other), "KeyId");
    const back = await there.encrypt({ KeyId: key.KeyId, Plaintext: Buffer.from("back") });
    equal(await decryptText(back.CiphertextBlob), "back", "Plaintext of the way back");
    const { ReplicaKeys } = (await describe(key.KeyId)).MultiRegionConfiguration;
    equal(
      ReplicaKeys.map((replica) => replica.Region),
      [other],
      "regions of the replicas",
    );
  },

  "update-primary-region": async () => {
    const { key, other, there } = await replicatedKey();
    await kms.updatePrimaryRegion({ KeyId: key.KeyId, PrimaryRegion: other });
    const changed = (client, type) => async () => {
      const { KeyState, MultiRegionConfiguration: configuration } = await describe(key.KeyId, client);
      return (
        KeyState === "Enabled" &&
        configuration.MultiRegionKeyType === type &&
        configuration.PrimaryKey.Region === other
      );
    };
    await eventually("the replica is the primary", changed(there, "PRIMARY"));
    await eventually("the primary is a replica", changed(kms, "REPLICA"));
  },
};

/** A multi-region key, its replica's region, and a client there. */
async function replicatedKey() {
  const other = region === "eu-west-1" ? "eu-central-1" : "eu-west-1";
  const there = new KMS(settings({ region: other }));
  const key = await newKey({ MultiRegion: true });
  check(key.KeyId.startsWith("mrk-"), `KeyId ${key.KeyId}`);
  equal(key.MultiRegionConfiguration.MultiRegionKeyType, "PRIMARY", "MultiRegionKeyType");
  equal(key.MultiRegionConfiguration.PrimaryKey, { Arn: key.Arn, Region: region }, "PrimaryKey");
  const replica = (await kms.replicateKey({ KeyId: key.KeyId, ReplicaRegion: other })).ReplicaKeyMetadata;
  note(there, key.KeyId);
  equal(replica.KeyId, key.KeyId, "KeyId of the replica");
  equal(replica.Arn, moved(key, other), "Arn of the replica");
  equal(replica.MultiRegionConfiguration.MultiRegionKeyType, "REPLICA", "MultiRegionKeyType");
  await eventually("replica enabled", async () => (await describe(key.KeyId, there)).KeyState === "Enabled");
  return { key, other, there };
}

/** The key's ARN as it is in another region. */
export function moved({ Arn }, other) {
  return Arn.replace(`:${region}:`, `:${other}:`);
}
