import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

import { KMS } from "@aws-sdk/client-kms";
import { STS } from "@aws-sdk/client-sts";

import { RUN, Skipped, check, decryptText, endpoint, equal, newKey, region, settings, sts } from "./common.mjs";

export const stsSteps = {
  "get-caller-identity": async () => {
    const { Account, Arn, UserId } = await sts.getCallerIdentity({});
    check(/^\d{12}$/.test(Account), `Account ${Account}`);
    equal(Account, (await newKey()).AWSAccountId, "Account");
    check(new RegExp(`^arn:aws:(iam|sts)::${Account}:`).test(Arn), `Arn ${Arn}`);
    check(UserId, "no UserId");
  },

  "assume-role": async () => {
    const name = `kms-whole-${RUN}`;
    const answer = await sts.assumeRole({ RoleArn: roleArn(), RoleSessionName: name });
    check(answer.AssumedRoleUser.Arn.endsWith(`/${name}`), `AssumedRoleUser ${answer.AssumedRoleUser.Arn}`);
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = answer.Credentials;
    check(Expiration > Date.now(), `Expiration ${Expiration}`);
    const credentials = {
      accessKeyId: AccessKeyId,
      secretAccessKey: SecretAccessKey,
      sessionToken: SessionToken,
    };
    await asRole({ credentials }, name);
  },

  "assume-role-profile": async () => {
    const { AWS_CONFIG_FILE, AWS_PROFILE } = process.env;
    const folder = mkdtempSync(join(tmpdir(), "kms-whole-"));
    try {
      const role = [
        `[profile kms-whole-role]`,
        `role_arn = ${roleArn()}`,
        `source_profile = ${AWS_PROFILE}`,
        `region = ${region}`,
        `endpoint_url = ${endpoint()}`,
      ];
      const config = join(folder, "config");
      writeFileSync(config, `${readFileSync(AWS_CONFIG_FILE, "utf8")}\n${role.join("\n")}\n`);
      Object.assign(process.env, { AWS_CONFIG_FILE: config, AWS_PROFILE: "kms-whole-role" });
      await asRole({});
    } finally {
      Object.assign(process.env, { AWS_CONFIG_FILE, AWS_PROFILE });
      rmSync(folder, { recursive: true });
    }
  },
};

function roleArn() {
  const arn = process.env.OUTLAST_ROLE_ARN;
  if (!arn) {
    throw new Skipped("OUTLAST_ROLE_ARN is not set");
  }
  return arn;
}

/** What a session of the role must be able to do; name is its own, if we gave it. */
async function asRole(more, name) {
  const account = roleArn().split(":")[4];
  const want = `arn:aws:sts::${account}:assumed-role/${roleArn().split("/").at(-1)}/`;
  const { Arn } = await new STS(settings(more)).getCallerIdentity({});
  check(name ? Arn === want + name : Arn.startsWith(want), `Arn: got ${Arn}, want ${want}${name ?? "..."}`);
  const { KeyId } = await newKey();
  const { CiphertextBlob } = await new KMS(settings(more)).encrypt({ KeyId, Plaintext: Buffer.from("by the role") });
  equal(await decryptText(CiphertextBlob), "by the role", "Plaintext");
}
