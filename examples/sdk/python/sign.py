"""Signs with ML-DSA-65 by boto3. Set-up: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE; no AWS_CA_BUNDLE."""

import boto3

kms = boto3.client("kms")
key = kms.create_key(KeySpec="ML_DSA_65", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["KeyId"]
request = {"KeyId": key, "Message": b"release 1", "SigningAlgorithm": "ML_DSA_SHAKE_256"}
signature = kms.sign(**request)["Signature"]
verified = kms.verify(**request, Signature=signature)["SignatureValid"]
print(f"key {key}: a signature of {len(signature)} bytes, valid: {str(verified).lower()}")
