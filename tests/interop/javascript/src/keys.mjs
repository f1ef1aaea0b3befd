import {
  AlreadyExistsException,
  DisabledException,
  NotFoundException,
  paginateListAliases,
  paginateListKeys,
  paginateListResourceTags,
} from "@aws-sdk/client-kms";

import {
  HOUR,
  RUN,
  check,
  collect,
  describe,
  encrypt,
  equal,
  kms,
  newKey,
  refused,
  region,
  within,
} from "./common.mjs";

export const keySteps = {
  "create-symmetric": async () => {
    const key = await newKey({ Description: "first ä", Tags: [{ TagKey: "run", TagValue: RUN }] });
    for (const [field, want] of Object.entries({
      KeySpec: "SYMMETRIC_DEFAULT",
      KeyUsage: "ENCRYPT_DECRYPT",
      EncryptionAlgorithms: ["SYMMETRIC_DEFAULT"],
      KeyState: "Enabled",
      Enabled: true,
      Origin: "AWS_KMS",
      KeyManager: "CUSTOMER",
      MultiRegion: false,
      Description: "first ä",
    })) {
      equal(key[field], want, field);
    }
    check(/^\d{12}$/.test(key.AWSAccountId), `AWSAccountId ${key.AWSAccountId}`);
    equal(key.Arn, `arn:aws:kms:${region}:${key.AWSAccountId}:key/${key.KeyId}`, "Arn");
    within(key.CreationDate, Date.now(), HOUR, "CreationDate");
    equal(await tagsOf(key.KeyId), { run: RUN }, "tags");
  },

  "describe-key": async () => {
    const key = await newKey();
    for (const name of [key.KeyId, key.Arn]) {
      equal(await describe(name), key, `metadata of ${name}`);
    }
  },

  "list-keys": async () => {
    const made = [await newKey(), await newKey(), await newKey()];
    const listed = [];
    for await (const { Keys } of paginateListKeys({ client: kms, pageSize: 2 }, {})) {
      check(Keys.length <= 2, "a page of more than 2");
      listed.push(...Keys.map((key) => key.KeyArn));
    }
    equal(new Set(listed).size, listed.length, "number of distinct keys");
    for (const { Arn } of made) {
      check(listed.includes(Arn), `not listed: ${Arn}`);
    }
  },

  "update-key-description": async () => {
    const { KeyId } = await newKey();
    await kms.updateKeyDescription({ KeyId, Description: "second ä" });
    equal((await describe(KeyId)).Description, "second ä", "Description");
  },

  tags: async () => {
    const { KeyId } = await newKey();
    const Tags = [
      { TagKey: "team", TagValue: "ä/+ 1" },
      { TagKey: "stage", TagValue: "test" },
    ];
    await kms.tagResource({ KeyId, Tags });
    equal(await tagsOf(KeyId), { team: "ä/+ 1", stage: "test" }, "tags");
    await kms.untagResource({ KeyId, TagKeys: ["stage"] });
    equal(await tagsOf(KeyId), { team: "ä/+ 1" }, "tags after UntagResource");
  },

  "enable-disable": async () => {
    const { KeyId } = await newKey();
    const state = async () => {
      const { KeyState, Enabled } = await describe(KeyId);
      return { KeyState, Enabled };
    };
    await kms.disableKey({ KeyId });
    equal(await state(), { KeyState: "Disabled", Enabled: false }, "state");
    await refused(DisabledException, encrypt(KeyId));
    await kms.enableKey({ KeyId });
    equal(await state(), { KeyState: "Enabled", Enabled: true }, "state");
    await encrypt(KeyId);
  },

  alias: async () => {
    const [first, second] = [await newKey(), await newKey()];
    const AliasName = `alias/kms-whole-${RUN}`;
    await kms.createAlias({ AliasName, TargetKeyId: first.KeyId });
    equal((await describe(AliasName)).KeyId, first.KeyId, "KeyId by the alias");
    await refused(AlreadyExistsException, kms.createAlias({ AliasName, TargetKeyId: first.KeyId }));
    await kms.updateAlias({ AliasName, TargetKeyId: second.KeyId });
    equal((await describe(AliasName)).KeyId, second.KeyId, "KeyId by the alias after UpdateAlias");

    const ofKey = (await kms.listAliases({ KeyId: second.KeyId })).Aliases;
    equal(
      ofKey.map((alias) => [alias.AliasName, alias.TargetKeyId]),
      [[AliasName, second.KeyId]],
      "aliases of the key",
    );
    const all = await collect(paginateListAliases({ client: kms, pageSize: 2 }, {}), "Aliases");
    equal(
      all.filter((alias) => alias.AliasName === AliasName).map((alias) => alias.AliasArn),
      [`${second.Arn.slice(0, second.Arn.lastIndexOf(":"))}:${AliasName}`],
      "listed alias",
    );

    await kms.deleteAlias({ AliasName });
    await refused(NotFoundException, describe(AliasName));
  },
};

async function tagsOf(KeyId) {
  const tags = await collect(paginateListResourceTags({ client: kms }, { KeyId }), "Tags");
  return Object.fromEntries(tags.map((tag) => [tag.TagKey, tag.TagValue]));
}
