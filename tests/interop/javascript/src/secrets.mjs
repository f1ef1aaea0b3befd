import { randomUUID } from "node:crypto";
import process from "node:process";

import {
  InvalidNextTokenException,
  InvalidParameterException,
  InvalidRequestException,
  ResourceExistsException,
  ResourceNotFoundException,
  SecretsManager,
  paginateListSecrets,
} from "@aws-sdk/client-secrets-manager";

import {
  DAY,
  HOUR,
  RUN,
  Skipped,
  check,
  collect,
  equal,
  eventually,
  refused,
  region,
  sameBytes,
  settings,
  within,
} from "./common.mjs";

let secrets;
const made = [];

export function connectSecrets() {
  secrets = new SecretsManager(settings());
}

export async function deleteSecrets() {
  for (const SecretId of made) {
    await secrets.deleteSecret({ SecretId, ForceDeleteWithoutRecovery: true }).catch(() => {});
  }
}

function nameOf(what) {
  return `secrets-whole/${RUN}/${what}`;
}

/** A secret with this value: the answer of CreateSecret. */
async function newSecret(what, SecretString = "first", more = {}) {
  const Name = nameOf(what);
  made.push(Name);
  return secrets.createSecret({ Name, SecretString, ...more });
}

async function put(SecretId, SecretString, more = {}, client = secrets) {
  return client.putSecretValue({ SecretId, SecretString, ...more });
}

async function read(SecretId, more = {}, client = secrets) {
  return (await client.getSecretValue({ SecretId, ...more })).SecretString;
}

async function describe(SecretId, client = secrets) {
  return client.describeSecret({ SecretId });
}

async function stages(SecretId) {
  return (await describe(SecretId)).VersionIdsToStages;
}

/** Whether the call is answered with ResourceNotFoundException. */
async function isGone(call) {
  try {
    await call;
    return false;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) {
      return true;
    }
    throw error;
  }
}

function rotationFunction() {
  const arn = process.env.OUTLAST_ROTATION_FUNCTION;
  if (!arn) {
    throw new Skipped("OUTLAST_ROTATION_FUNCTION is not set");
  }
  return arn;
}

export const secretSteps = {
  "create-secret": async () => {
    const ClientRequestToken = randomUUID();
    const Tags = [{ Key: "run", Value: RUN }];
    const more = { Description: "first ä", Tags, ClientRequestToken };
    const answer = await newSecret("create", "first", more);
    const Name = nameOf("create");
    equal([answer.Name, answer.VersionId], [Name, ClientRequestToken], "answer");
    const arn = new RegExp(`^arn:aws:secretsmanager:${region}:\\d{12}:secret:${Name}-[A-Za-z0-9]{6}$`);
    check(arn.test(answer.ARN), `ARN ${answer.ARN}`);
    const secret = await describe(answer.ARN);
    for (const [field, want] of Object.entries({
      ARN: answer.ARN,
      Name,
      Description: "first ä",
      Tags,
      VersionIdsToStages: { [ClientRequestToken]: ["AWSCURRENT"] },
    })) {
      equal(secret[field], want, field);
    }
    within(secret.CreatedDate, Date.now(), HOUR, "CreatedDate");
    within(secret.LastChangedDate, Date.now(), HOUR, "LastChangedDate");
    check(!secret.RotationEnabled, "RotationEnabled");
    check(secret.DeletedDate === undefined, "DeletedDate");
    const again = await newSecret("create", "first", more);
    equal([again.ARN, again.VersionId], [answer.ARN, ClientRequestToken], "answer to the same token again");
    await refused(ResourceExistsException, newSecret("create", "other"));
  },

  "get-secret-value": async () => {
    const { ARN, Name, VersionId } = await newSecret("get", "first ä");
    for (const SecretId of [Name, ARN]) {
      const got = await secrets.getSecretValue({ SecretId });
      equal([got.ARN, got.Name, got.VersionId], [ARN, Name, VersionId], "answer");
      equal(got.SecretString, "first ä", "SecretString");
      equal(got.VersionStages, ["AWSCURRENT"], "VersionStages");
      within(got.CreatedDate, Date.now(), HOUR, "CreatedDate");
      check(got.SecretBinary === undefined, "SecretBinary");
    }
  },

  "put-secret-value": async () => {
    const first = await newSecret("put");
    const ClientRequestToken = randomUUID();
    for (let time = 0; time < 2; time += 1) {
      const answer = await put(first.Name, "second", { ClientRequestToken });
      equal([answer.ARN, answer.Name, answer.VersionId], [first.ARN, first.Name, ClientRequestToken], "answer");
      equal(answer.VersionStages, ["AWSCURRENT"], "VersionStages");
    }
    await refused(ResourceExistsException, put(first.Name, "third", { ClientRequestToken }));
    equal(await read(first.Name), "second", "SecretString");
    const want = { [ClientRequestToken]: ["AWSCURRENT"], [first.VersionId]: ["AWSPREVIOUS"] };
    equal(await stages(first.Name), want, "VersionIdsToStages");
  },

  "previous-version": async () => {
    const { Name, VersionId } = await newSecret("previous");
    await put(Name, "second");
    const got = await secrets.getSecretValue({ SecretId: Name, VersionStage: "AWSPREVIOUS" });
    equal([got.SecretString, got.VersionId], ["first", VersionId], "version");
    equal(got.VersionStages, ["AWSPREVIOUS"], "VersionStages");
    equal(await read(Name, { VersionId }), "first", "SecretString by VersionId");
    await refused(ResourceNotFoundException, read(Name, { VersionStage: "AWSPENDING" }));
  },

  "binary-value": async () => {
    const value = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const Name = nameOf("binary");
    made.push(Name);
    await secrets.createSecret({ Name, SecretBinary: value });
    const got = await secrets.getSecretValue({ SecretId: Name });
    sameBytes(Buffer.from(got.SecretBinary), value, "SecretBinary");
    check(got.SecretString === undefined, "SecretString");
  },

  "update-secret-version-stage": async () => {
    const { Name: SecretId, VersionId: first } = await newSecret("stage");
    const { VersionId: second } = await put(SecretId, "second");
    const VersionStage = "AWSCURRENT";
    await secrets.updateSecretVersionStage({
      SecretId,
      VersionStage,
      MoveToVersionId: first,
      RemoveFromVersionId: second,
    });
    equal(await stages(SecretId), { [first]: ["AWSCURRENT"], [second]: ["AWSPREVIOUS"] }, "VersionIdsToStages");
    equal(await read(SecretId), "first", "SecretString");
    await secrets.updateSecretVersionStage({ SecretId, VersionStage: "kept", MoveToVersionId: second });
    equal(await read(SecretId, { VersionStage: "kept" }), "second", "SecretString by a stage of one's own");
    await refused(
      InvalidParameterException,
      secrets.updateSecretVersionStage({ SecretId, VersionStage, MoveToVersionId: second }),
    );
  },

  "replicate-secret": async () => {
    const { ARN, Name: SecretId, VersionId } = await newSecret("replicate");
    const other = region === "eu-central-1" ? "eu-west-1" : "eu-central-1";
    const there = new SecretsManager(settings({ region: other }));
    const answer = await secrets.replicateSecretToRegions({ SecretId, AddReplicaRegions: [{ Region: other }] });
    equal(answer.ARN, ARN, "ARN");
    equal(
      answer.ReplicationStatus.map((status) => status.Region),
      [other],
      "ReplicationStatus",
    );
    await eventually("the replica is InSync", async () => {
      const { ReplicationStatus } = await describe(SecretId);
      return ReplicationStatus.length === 1 && ReplicationStatus[0].Status === "InSync";
    });
    const got = await there.getSecretValue({ SecretId });
    equal(got.ARN, ARN.replace(`:${region}:`, `:${other}:`), "ARN of the replica");
    equal([got.SecretString, got.VersionId], ["first", VersionId], "the replica's value");
    equal((await describe(SecretId, there)).PrimaryRegion, region, "PrimaryRegion");
    await put(SecretId, "second");
    await eventually("the replica has the new value", async () => (await read(SecretId, {}, there)) === "second");
    await refused(InvalidRequestException, put(SecretId, "third", {}, there));
    await secrets.removeRegionsFromReplication({ SecretId, RemoveReplicaRegions: [other] });
    await eventually("the replica is gone", () => isGone(read(SecretId, {}, there)));
  },

  "rotate-secret": async () => {
    const RotationLambdaARN = rotationFunction();
    const value = { username: "user", password: "first" };
    const first = await newSecret("rotate", JSON.stringify(value));
    const SecretId = first.Name;
    const { VersionId } = await secrets.rotateSecret({ SecretId, RotationLambdaARN });
    await eventually(
      "the new version is current",
      async () => (await stages(SecretId))[VersionId]?.join() === "AWSCURRENT",
    );
    const secret = await describe(SecretId);
    within(secret.LastRotatedDate, Date.now(), HOUR, "LastRotatedDate");
    equal(secret.VersionIdsToStages[first.VersionId], ["AWSPREVIOUS"], "stages of the first version");
    const rotated = JSON.parse(await read(SecretId));
    equal(rotated.username, "user", "username");
    check(rotated.password !== "first", "the password is still the first");
    equal(JSON.parse(await read(SecretId, { VersionStage: "AWSPREVIOUS" })), value, "the previous value");
  },

  "rotate-secret-later": async () => {
    const RotationLambdaARN = rotationFunction();
    const { ARN, Name } = await newSecret("rotate-later", JSON.stringify({ username: "user", password: "first" }));
    const RotationRules = { AutomaticallyAfterDays: 30 };
    const answer = await secrets.rotateSecret({
      SecretId: Name,
      RotationLambdaARN,
      RotationRules,
      RotateImmediately: false,
    });
    equal([answer.ARN, answer.Name], [ARN, Name], "answer");
    const secret = await describe(Name);
    equal(secret.RotationEnabled, true, "RotationEnabled");
    equal(secret.RotationLambdaARN, RotationLambdaARN, "RotationLambdaARN");
    equal(secret.RotationRules, RotationRules, "RotationRules");
    within(secret.NextRotationDate, Date.now() + 30 * DAY, 2 * DAY, "NextRotationDate");
    equal((await secrets.cancelRotateSecret({ SecretId: Name })).ARN, ARN, "ARN");
    check(!(await describe(Name)).RotationEnabled, "RotationEnabled after CancelRotateSecret");
    equal(JSON.parse(await read(Name)).password, "first", "password");
  },

  "list-secrets": async () => {
    const names = [];
    for (const Value of ["0", "1", "2"]) {
      names.push((await newSecret(`list-${Value}`, "first", { Tags: [{ Key: `list-${RUN}`, Value }] })).Name);
    }
    const listed = async (Key, value) => {
      const Filters = [{ Key, Values: [value] }];
      const found = [];
      for await (const { SecretList } of paginateListSecrets({ client: secrets, pageSize: 2 }, { Filters })) {
        check(SecretList.length <= 2, "a page of more than 2");
        found.push(...SecretList.map((secret) => secret.Name));
      }
      return found.sort().join() === names.join();
    };
    await eventually("all are listed once, by name", () => listed("name", nameOf("list-")));
    await eventually("all are listed once, by tag", () => listed("tag-key", `list-${RUN}`));
    const Filters = [{ Key: "name", Values: [names[1]] }];
    const [secret] = await collect(paginateListSecrets({ client: secrets }, { Filters }), "SecretList");
    equal(secret.Tags, [{ Key: `list-${RUN}`, Value: "1" }], "Tags");
    within(secret.CreatedDate, Date.now(), HOUR, "CreatedDate");
    equal(Object.values(secret.SecretVersionsToStages), [["AWSCURRENT"]], "SecretVersionsToStages");
  },

  "batch-get-secret-value": async () => {
    const [first, second] = [(await newSecret("batch-1", "1")).Name, (await newSecret("batch-2", "2")).Name];
    const missing = nameOf("missing");
    const answer = await secrets.batchGetSecretValue({ SecretIdList: [first, second, missing] });
    const values = answer.SecretValues.map((secret) => [secret.Name, secret.SecretString]);
    equal(Object.fromEntries(values), { [first]: "1", [second]: "2" }, "SecretValues");
    const errors = answer.Errors.map((error) => [error.SecretId, error.ErrorCode]);
    equal(errors, [[missing, "ResourceNotFoundException"]], "Errors");
  },

  "get-random-password": async () => {
    const { RandomPassword: first } = await secrets.getRandomPassword({});
    equal(first.length, 32, "length");
    check((await secrets.getRandomPassword({})).RandomPassword !== first, "the same password twice");
    const letters = { PasswordLength: 100, ExcludePunctuation: true, ExcludeNumbers: true };
    const { RandomPassword } = await secrets.getRandomPassword(letters);
    check(/^[A-Za-z]{100}$/.test(RandomPassword), `password ${RandomPassword}`);
  },

  "not-found": async () => {
    await refused(ResourceNotFoundException, read(nameOf("missing")));
    await refused(ResourceNotFoundException, put(nameOf("missing"), "value"));
    await refused(ResourceNotFoundException, describe(nameOf("missing")));
  },

  "invalid-parameter": async () => {
    const { Name: SecretId } = await newSecret("invalid");
    await refused(InvalidParameterException, secrets.deleteSecret({ SecretId, RecoveryWindowInDays: 6 }));
    const both = { SecretId, RecoveryWindowInDays: 7, ForceDeleteWithoutRecovery: true };
    await refused(InvalidParameterException, secrets.deleteSecret(both));
    await refused(InvalidNextTokenException, secrets.listSecrets({ NextToken: "no token" }));
    equal(await read(SecretId), "first", "SecretString");
  },

  "delete-and-restore": async () => {
    const { ARN, Name: SecretId } = await newSecret("delete");
    const deleted = await secrets.deleteSecret({ SecretId, RecoveryWindowInDays: 7 });
    equal([deleted.ARN, deleted.Name], [ARN, SecretId], "answer");
    within(deleted.DeletionDate, Date.now() + 7 * DAY, HOUR, "DeletionDate");
    await refused(InvalidRequestException, read(SecretId));
    within((await describe(SecretId)).DeletedDate, Date.now(), 8 * DAY, "DeletedDate");
    equal((await secrets.restoreSecret({ SecretId })).ARN, ARN, "ARN");
    equal(await read(SecretId), "first", "SecretString");
    check((await describe(SecretId)).DeletedDate === undefined, "DeletedDate after RestoreSecret");
  },

  "force-delete": async () => {
    const { ARN, Name: SecretId } = await newSecret("force");
    const deleted = await secrets.deleteSecret({ SecretId, ForceDeleteWithoutRecovery: true });
    equal(deleted.ARN, ARN, "ARN");
    within(deleted.DeletionDate, Date.now(), HOUR, "DeletionDate");
    await eventually("the secret is gone", () => isGone(describe(SecretId)));
  },
};
