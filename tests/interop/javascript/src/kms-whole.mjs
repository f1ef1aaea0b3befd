// The program of KMS_STEPS.md by the AWS SDK for JavaScript v3; with `secrets` as the first argument, that of
// SECRETS_STEPS.md.
//
// Everything comes from AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE, but for the
// CA: the SDK does not read ca_bundle, OUTLAST_CA names it. With OUTLAST_ROLE_ARN it takes on that role.

import process from "node:process";

import { agreementSteps } from "./agreement.mjs";
import { Skipped, cleanUp, connect } from "./common.mjs";
import { dataSteps } from "./data.mjs";
import { grantSteps } from "./grants.mjs";
import { keySteps } from "./keys.mjs";
import { lastSteps } from "./last.mjs";
import { materialSteps } from "./material.mjs";
import { regionSteps } from "./regions.mjs";
import { connectSecrets, deleteSecrets, secretSteps } from "./secrets.mjs";
import { signatureSteps } from "./signatures.mjs";
import { stsSteps } from "./sts.mjs";

// In the order of KMS_STEPS.md.
const kmsSteps = {
  ...keySteps,
  ...dataSteps,
  ...signatureSteps,
  ...agreementSteps,
  ...materialSteps,
  ...grantSteps,
  ...regionSteps,
  ...lastSteps,
  ...stsSteps,
};

const wanted = process.argv.slice(2);
const ofSecrets = wanted[0] === "secrets";
if (ofSecrets) {
  wanted.shift();
}
const steps = ofSecrets ? secretSteps : kmsSteps;
const unknown = wanted.find((name) => !(name in steps));
if (unknown) {
  console.error(`unknown step ${unknown}`);
  process.exit(2);
}
try {
  await connect();
  connectSecrets();
} catch (error) {
  console.error(error.message);
  process.exit(2);
}

let passed = 0;
let failed = 0;
let skipped = 0;
for (const name of wanted.length ? wanted : Object.keys(steps)) {
  try {
    await steps[name]();
    passed += 1;
    console.log(`ok ${name}`);
  } catch (error) {
    if (error instanceof Skipped) {
      skipped += 1;
      console.log(`skipped ${name}: ${error.message}`);
    } else {
      failed += 1;
      const reason = `${error?.name}: ${error?.message}`.split(/\s+/).join(" ");
      console.log(`FAILED ${name}: ${reason.slice(0, 400)}`);
    }
  }
}
await (ofSecrets ? deleteSecrets() : cleanUp());
console.log(`${passed} steps passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed ? 1 : 0;
