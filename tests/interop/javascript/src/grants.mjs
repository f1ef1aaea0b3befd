import {
  InvalidGrantTokenException,
  MalformedPolicyDocumentException,
  paginateListGrants,
  paginateListRetirableGrants,
} from "@aws-sdk/client-kms";

import {
  HOUR,
  RUN,
  check,
  collect,
  decryptText,
  encrypt,
  equal,
  eventually,
  kms,
  newKey,
  refused,
  refusedAs,
  sts,
  within,
} from "./common.mjs";

const EncryptionContext = { tenant: "42" };
const PolicyName = "default";

export const grantSteps = {
  "create-grant": async () => {
    const { key, caller, GrantId } = await newGrant();
    const { Grants } = await kms.listGrants({ KeyId: key.KeyId, GrantId });
    equal(
      Grants.map((grant) => grant.GrantId),
      [GrantId],
      "grants",
    );
    const [grant] = Grants;
    for (const [field, want] of Object.entries({
      KeyId: key.Arn,
      GranteePrincipal: caller,
      RetiringPrincipal: caller,
      Constraints: { EncryptionContextEquals: EncryptionContext },
      Name: `grant-${RUN}`,
    })) {
      equal(grant[field], want, field);
    }
    equal(grant.Operations.toSorted(), ["Decrypt", "Encrypt"], "Operations");
    within(grant.CreationDate, Date.now(), HOUR, "CreationDate");
  },

  "list-retirable-grants": async () => {
    const { caller, GrantId } = await newGrant();
    const pages = paginateListRetirableGrants({ client: kms }, { RetiringPrincipal: caller });
    const found = (await collect(pages, "Grants")).filter((grant) => grant.GrantId === GrantId);
    equal(found.length, 1, "occurrences of the grant");
  },

  "grant-token": async () => {
    const { key, GrantToken } = await newGrant();
    const more = { EncryptionContext, GrantTokens: [GrantToken] };
    equal(await decryptText(await encrypt(key.KeyId, "plaintext", more), more), "plaintext", "Plaintext");
    const wrong = { GrantTokens: ["no-grant-token"] };
    await refused(InvalidGrantTokenException, encrypt(key.KeyId, "plaintext", wrong));
  },

  "retire-grant": async () => {
    const { key, GrantId, GrantToken } = await newGrant();
    check(await isListed(key, GrantId), "the grant is not listed");
    await kms.retireGrant({ GrantToken });
    await eventually("grant gone", async () => !(await isListed(key, GrantId)));
  },

  "revoke-grant": async () => {
    const { key, GrantId } = await newGrant();
    await kms.revokeGrant({ KeyId: key.KeyId, GrantId });
    await eventually("grant gone", async () => !(await isListed(key, GrantId)));
    const again = kms.revokeGrant({ KeyId: key.KeyId, GrantId });
    await refusedAs(["NotFoundException", "InvalidGrantIdException"], again);
  },

  "get-key-policy": async () => {
    const { KeyId } = await newKey();
    equal((await kms.listKeyPolicies({ KeyId })).PolicyNames, [PolicyName], "PolicyNames");
    const policy = JSON.parse(await policyOf(KeyId));
    check(policy.Version && policy.Statement, `policy ${JSON.stringify(policy)}`);
  },

  "put-key-policy": async () => {
    const { KeyId } = await newKey();
    const Policy = await policyOf(KeyId);
    await kms.putKeyPolicy({ KeyId, PolicyName, Policy });
    equal(JSON.parse(await policyOf(KeyId)), JSON.parse(Policy), "policy");
  },

  "put-key-policy-lockout": async () => {
    const { KeyId, AWSAccountId } = await newKey();
    const Policy = JSON.stringify({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: { AWS: `arn:aws:iam::${AWSAccountId}:root` },
          Action: "kms:DescribeKey",
          Resource: "*",
        },
      ],
    });
    await refused(MalformedPolicyDocumentException, kms.putKeyPolicy({ KeyId, PolicyName, Policy }));
    await encrypt(KeyId);
  },
};

/** A key, the caller's ARN, and a grant for it on the key. */
async function newGrant() {
  const key = await newKey();
  const caller = (await sts.getCallerIdentity({})).Arn;
  const { GrantId, GrantToken } = await kms.createGrant({
    KeyId: key.KeyId,
    GranteePrincipal: caller,
    RetiringPrincipal: caller,
    Operations: ["Encrypt", "Decrypt"],
    Constraints: { EncryptionContextEquals: EncryptionContext },
    Name: `grant-${RUN}`,
  });
  check(GrantId && GrantToken, "no GrantId or no GrantToken");
  return { key, caller, GrantId, GrantToken };
}

async function isListed({ KeyId }, GrantId) {
  const grants = await collect(paginateListGrants({ client: kms }, { KeyId }), "Grants");
  return grants.some((grant) => grant.GrantId === GrantId);
}

async function policyOf(KeyId) {
  return (await kms.getKeyPolicy({ KeyId, PolicyName })).Policy;
}
