// Clients, checks, and the calls that many steps make.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

import { KMS, KMSServiceException } from "@aws-sdk/client-kms";
import { STS } from "@aws-sdk/client-sts";

export const RUN = randomBytes(6).toString("hex");
export const HOUR = 3600_000;
export const DAY = 24 * HOUR;

/** The step cannot be done here; the message says why. */
export class Skipped extends Error {}

export let kms;
export let sts;
export let region;
const made = [];

/** Settings of a client besides what the SDK finds by itself. */
export function settings(more = {}) {
  const ca = process.env.OUTLAST_CA;
  return ca ? { requestHandler: { httpsAgent: new Agent({ ca: readFileSync(ca), keepAlive: true }) }, ...more } : more;
}

export async function connect() {
  for (const name of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"]) {
    if (!process.env[name]) {
      throw new Error(`the environment lacks ${name}`);
    }
  }
  if (!endpoint()) {
    throw new Error("the profile has no endpoint_url");
  }
  kms = new KMS(settings());
  sts = new STS(settings());
  region = await kms.config.region();
}

/** The endpoint_url of the configuration; the SDK reads it by itself. */
export function endpoint() {
  return /^endpoint_url\s*=\s*(\S+)/m.exec(readFileSync(process.env.AWS_CONFIG_FILE, "utf8"))?.[1];
}

export function check(condition, message) {
  if (!condition) {
    throw new Error(message);
  }
}

export function equal(got, want, what) {
  try {
    assert.deepEqual(got, want);
  } catch {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

export function sameBytes(got, want, what) {
  check(Buffer.compare(got, want) === 0, `${what}: got ${got.length} other bytes`);
}

export function within(got, want, tolerance, what) {
  check(got instanceof Date, `no ${what}`);
  check(Math.abs(got - want) < tolerance, `${what}: got ${got}, want about ${new Date(want)}`);
}

/** The call must be answered with this error, by the SDK's own class. */
export async function refused(kind, call) {
  const error = await failure(call, kind.name);
  check(error instanceof kind, `got ${error.name} (${error.message}), want ${kind.name}`);
}

/** The call must be answered with one of these error codes. */
export async function refusedAs(codes, call) {
  const error = await failure(call, codes);
  check(codes.includes(error.name), `got ${error.name} (${error.message}), want ${codes}`);
}

/** The call must be answered with an error which the model knows. */
export async function refusedByModel(call) {
  const error = await failure(call, "a documented error");
  const modelled = error instanceof KMSServiceException && error.constructor !== KMSServiceException;
  check(modelled && error.name !== "KMSInternalException", `got ${error.name} (${error.message})`);
}

async function failure(call, wanted) {
  try {
    await call;
  } catch (error) {
    return error;
  }
  throw new Error(`no ${wanted}`);
}

/** Waits for what may take effect later; AWS promises no more than that. */
export async function eventually(what, condition) {
  const until = Date.now() + 60_000;
  for (;;) {
    const result = await condition();
    if (result) {
      return result;
    }
    check(Date.now() < until, `${what}: not within 60 seconds`);
    await sleep(500);
  }
}

export async function collect(pages, member) {
  const all = [];
  for await (const page of pages) {
    all.push(...page[member]);
  }
  return all;
}

export async function newKey(input = {}) {
  const { KeyMetadata } = await kms.createKey({ Description: `kms-whole ${RUN}`, ...input });
  note(kms, KeyMetadata.KeyId);
  return KeyMetadata;
}

/** The key is to be deleted in the end. */
export function note(client, id) {
  made.push([client, id]);
}

export async function cleanUp() {
  for (const [client, KeyId] of made) {
    await client.scheduleKeyDeletion({ KeyId, PendingWindowInDays: 7 }).catch(() => {});
  }
}

export async function describe(KeyId, client = kms) {
  return (await client.describeKey({ KeyId })).KeyMetadata;
}

export async function publicKey({ KeyId }) {
  return Buffer.from((await kms.getPublicKey({ KeyId })).PublicKey);
}

export async function encrypt(KeyId, text = "plaintext", more = {}) {
  return (await kms.encrypt({ KeyId, Plaintext: Buffer.from(text), ...more })).CiphertextBlob;
}

export async function decrypt(CiphertextBlob, more = {}) {
  return Buffer.from((await kms.decrypt({ CiphertextBlob, ...more })).Plaintext);
}

export async function decryptText(blob, more = {}) {
  return (await decrypt(blob, more)).toString();
}

export function flip(data) {
  const changed = Buffer.from(data);
  changed[changed.length - 1] ^= 1;
  return changed;
}
