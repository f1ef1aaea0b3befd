package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/x509"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

var agreementSteps = []step{
	{"mac-hmac-256", macHmac256},
	{"derive-shared-secret", deriveSharedSecret},
	{"derive-shared-secret-local", deriveSharedSecretLocal},
	{"ml-kem-768", mlKem},
	{"ml-kem-768-local", mlKemLocal},
	{"ml-kem-768-wrong-length", mlKemWrongLength},
}

func macHmac256() {
	key := newKey(kms.CreateKeyInput{KeySpec: types.KeySpecHmac256, KeyUsage: types.KeyUsageTypeGenerateVerifyMac})
	equal(key.MacAlgorithms, []types.MacAlgorithmSpec{types.MacAlgorithmSpecHmacSha256}, "MacAlgorithms")
	answer := must(client.GenerateMac(ctx, &kms.GenerateMacInput{
		KeyId: key.KeyId, Message: []byte("message"), MacAlgorithm: types.MacAlgorithmSpecHmacSha256,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.MacAlgorithm, types.MacAlgorithmSpecHmacSha256, "MacAlgorithm")
	equal(len(answer.Mac), 32, "length")
	verify := func(message string, mac []byte) (*kms.VerifyMacOutput, error) {
		return client.VerifyMac(ctx, &kms.VerifyMacInput{
			KeyId: key.KeyId, Message: []byte(message), Mac: mac, MacAlgorithm: types.MacAlgorithmSpecHmacSha256,
		})
	}
	equal(must(verify("message", answer.Mac)).MacValid, true, "MacValid")
	refused[*types.KMSInvalidMacException](failed(verify("messagf", answer.Mac)))
	refused[*types.KMSInvalidMacException](failed(verify("message", flip(answer.Mac))))
}

func agreementKey() *types.KeyMetadata {
	key := newKey(kms.CreateKeyInput{KeySpec: types.KeySpecEccNistP256, KeyUsage: types.KeyUsageTypeKeyAgreement})
	equal(key.KeyAgreementAlgorithms, []types.KeyAgreementAlgorithmSpec{types.KeyAgreementAlgorithmSpecEcdh}, "KeyAgreementAlgorithms")
	return key
}

func derive(key *types.KeyMetadata, public []byte) []byte {
	answer := must(client.DeriveSharedSecret(ctx, &kms.DeriveSharedSecretInput{
		KeyId: key.KeyId, KeyAgreementAlgorithm: types.KeyAgreementAlgorithmSpecEcdh, PublicKey: public,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.KeyAgreementAlgorithm, types.KeyAgreementAlgorithmSpecEcdh, "KeyAgreementAlgorithm")
	equal(len(answer.SharedSecret), 32, "length")
	return answer.SharedSecret
}

func deriveSharedSecret() {
	one, two := agreementKey(), agreementKey()
	equal(derive(one, publicKey(two)), derive(two, publicKey(one)), "shared secret")
}

func deriveSharedSecretLocal() {
	key := agreementKey()
	local := must(ecdh.P256().GenerateKey(rand.Reader))
	theirs := must(must(x509.ParsePKIXPublicKey(publicKey(key))).(*ecdsa.PublicKey).ECDH())
	equal(derive(key, must(x509.MarshalPKIXPublicKey(local.PublicKey()))), must(local.ECDH(theirs)), "shared secret")
}

func kemKey() *types.KeyMetadata {
	key := newKey(kms.CreateKeyInput{KeySpec: types.KeySpecMlKem768, KeyUsage: types.KeyUsageTypeEncapsulateDecapsulate})
	equal(key.EncapsulationAlgorithms, []types.EncapsulationAlgorithmSpec{types.EncapsulationAlgorithmSpecMlKem}, "EncapsulationAlgorithms")
	return key
}

func tryDecapsulate(key *types.KeyMetadata, blob []byte) (*kms.DecapsulateOutput, error) {
	return client.Decapsulate(ctx, &kms.DecapsulateInput{
		KeyId: key.KeyId, EncapsulationAlgorithm: types.EncapsulationAlgorithmSpecMlKem, SharedSecretCiphertextBlob: blob,
	})
}

func decapsulate(key *types.KeyMetadata, blob []byte) []byte {
	answer := must(tryDecapsulate(key, blob))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.EncapsulationAlgorithm, types.EncapsulationAlgorithmSpecMlKem, "EncapsulationAlgorithm")
	equal(len(answer.SharedSecret), 32, "length of the secret")
	return answer.SharedSecret
}

func mlKem() {
	key := kemKey()
	answer := must(client.Encapsulate(ctx, &kms.EncapsulateInput{
		KeyId: key.KeyId, EncapsulationAlgorithm: types.EncapsulationAlgorithmSpecMlKem,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.EncapsulationAlgorithm, types.EncapsulationAlgorithmSpecMlKem, "EncapsulationAlgorithm")
	blob := answer.SharedSecretCiphertextBlob
	equal(len(blob), mlKemCiphertext, "length of the ciphertext")
	equal(decapsulate(key, blob), answer.SharedSecret, "shared secret")
	check(!bytes.Equal(decapsulate(key, flip(blob)), answer.SharedSecret), "a changed ciphertext gives the same secret")
}

func mlKemLocal() {
	key := kemKey()
	spki := publicKey(key)
	equal(len(spki), spkiHeader+mlKemPublic, "length of the public key")
	shared, blob := must(mlkem.NewEncapsulationKey768(spki[spkiHeader:])).Encapsulate()
	equal(decapsulate(key, blob), shared, "shared secret")
}

func mlKemWrongLength() {
	refused[*types.InvalidCiphertextException](failed(tryDecapsulate(kemKey(), make([]byte, mlKemCiphertext-1))))
}
