// Signs with ML-DSA-65 by the AWS SDK for JavaScript v3. Set-up: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and
// AWS_PROFILE; NODE_EXTRA_CA_CERTS names client/ca.pem before Node starts.
import { CreateKeyCommand, KMSClient, SignCommand, VerifyCommand } from "@aws-sdk/client-kms";

const kms = new KMSClient({});
const made = await kms.send(new CreateKeyCommand({ KeySpec: "ML_DSA_65", KeyUsage: "SIGN_VERIFY" }));
const key = made.KeyMetadata.KeyId;
const request = { KeyId: key, Message: Buffer.from("release 1"), SigningAlgorithm: "ML_DSA_SHAKE_256" };
const { Signature } = await kms.send(new SignCommand(request));
const { SignatureValid } = await kms.send(new VerifyCommand({ ...request, Signature }));
console.log(`key ${key}: a signature of ${Signature.length} bytes, valid: ${SignatureValid}`);
