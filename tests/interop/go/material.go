package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

const day = 24 * time.Hour

var materialSteps = []step{
	{"get-parameters-for-import", getParametersForImport},
	{"import-key-material", importKeyMaterial},
	{"delete-imported-key-material", deleteImportedKeyMaterial},
	{"import-other-key-material", importOtherKeyMaterial},
	{"key-rotation", keyRotation},
	{"rotate-key-on-demand", rotateKeyOnDemand},
}

func externalKey() *types.KeyMetadata {
	key := newKey(kms.CreateKeyInput{Origin: types.OriginTypeExternal})
	equal(key.KeyState, types.KeyStatePendingImport, "KeyState")
	equal(key.Origin, types.OriginTypeExternal, "Origin")
	return key
}

func parametersForImport(key *types.KeyMetadata) *kms.GetParametersForImportOutput {
	return must(client.GetParametersForImport(ctx, &kms.GetParametersForImportInput{
		KeyId: key.KeyId, WrappingAlgorithm: types.AlgorithmSpecRsaesOaepSha256, WrappingKeySpec: types.WrappingKeySpecRsa3072,
	}))
}

func importMaterial(key *types.KeyMetadata, material []byte) error {
	parameters := parametersForImport(key)
	wrapping := must(x509.ParsePKIXPublicKey(parameters.PublicKey)).(*rsa.PublicKey)
	return failed(client.ImportKeyMaterial(ctx, &kms.ImportKeyMaterialInput{
		KeyId:                key.KeyId,
		ImportToken:          parameters.ImportToken,
		EncryptedKeyMaterial: must(rsa.EncryptOAEP(sha256.New(), rand.Reader, wrapping, material, nil)),
		ExpirationModel:      types.ExpirationModelTypeKeyMaterialDoesNotExpire,
	}))
}

func deleteMaterial(key *types.KeyMetadata) {
	must(client.DeleteImportedKeyMaterial(ctx, &kms.DeleteImportedKeyMaterialInput{KeyId: key.KeyId}))
}

func getParametersForImport() {
	key := externalKey()
	answer := parametersForImport(key)
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(must(x509.ParsePKIXPublicKey(answer.PublicKey)).(*rsa.PublicKey).N.BitLen(), 3072, "key size")
	check(len(answer.ImportToken) > 0, "no ImportToken")
	within(answer.ParametersValidTo, time.Now().Add(day), time.Hour, "ParametersValidTo")
}

func importKeyMaterial() {
	key := externalKey()
	done(importMaterial(key, random(32)))
	metadata := describe(key.KeyId)
	equal(metadata.KeyState, types.KeyStateEnabled, "KeyState")
	equal(metadata.ExpirationModel, types.ExpirationModelTypeKeyMaterialDoesNotExpire, "ExpirationModel")
	equal(string(decrypt(encrypt(key.KeyId, "plaintext", nil), nil)), "plaintext", "Plaintext")
}

func deleteImportedKeyMaterial() {
	key := externalKey()
	material := random(32)
	done(importMaterial(key, material))
	blob := encrypt(key.KeyId, "plaintext", nil)
	deleteMaterial(key)
	equal(describe(key.KeyId).KeyState, types.KeyStatePendingImport, "KeyState")
	refused[*types.KMSInvalidStateException](tryEncrypt(key.KeyId))
	refused[*types.KMSInvalidStateException](tryDecrypt(blob, nil))
	done(importMaterial(key, material))
	equal(string(decrypt(blob, nil)), "plaintext", "Plaintext")
}

func importOtherKeyMaterial() {
	key := externalKey()
	done(importMaterial(key, random(32)))
	deleteMaterial(key)
	refused[*types.IncorrectKeyMaterialException](importMaterial(key, random(32)))
}

func rotationStatus(key *string) *kms.GetKeyRotationStatusOutput {
	return must(client.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: key}))
}

func rotationsOf(key *string) []types.RotationsListEntry {
	return must(client.ListKeyRotations(ctx, &kms.ListKeyRotationsInput{KeyId: key})).Rotations
}

func enableRotation(key *string) {
	must(client.EnableKeyRotation(ctx, &kms.EnableKeyRotationInput{KeyId: key, RotationPeriodInDays: aws.Int32(90)}))
}

func disableRotation(key *string) {
	must(client.DisableKeyRotation(ctx, &kms.DisableKeyRotationInput{KeyId: key}))
}

func keyRotation() {
	key := symmetricKey().KeyId
	enableRotation(key)
	status := rotationStatus(key)
	equal(status.KeyRotationEnabled, true, "KeyRotationEnabled")
	equal(status.RotationPeriodInDays, aws.Int32(90), "RotationPeriodInDays")
	within(status.NextRotationDate, time.Now().Add(90*day), 2*day, "NextRotationDate")
	equal(len(rotationsOf(key)), 0, "number of rotations")
	disableRotation(key)
	equal(rotationStatus(key).KeyRotationEnabled, false, "KeyRotationEnabled")
}

func rotateKeyOnDemand() {
	key := symmetricKey().KeyId
	enableRotation(key)
	old, material := encrypt(key, "old", nil), *describe(key).CurrentKeyMaterialId
	must(client.RotateKeyOnDemand(ctx, &kms.RotateKeyOnDemandInput{KeyId: key}))
	var rotations []types.RotationsListEntry
	eventually("rotation", func() bool {
		rotations = rotationsOf(key)
		return len(rotations) > 0
	})
	equal(len(rotations), 1, "number of rotations")
	equal(rotations[0].RotationType, types.RotationTypeOnDemand, "RotationType")
	within(rotations[0].RotationDate, time.Now(), time.Hour, "RotationDate")
	eventually("new key material", func() bool { return *describe(key).CurrentKeyMaterialId != material })
	equal(string(decrypt(old, nil)), "old", "old Plaintext")
	equal(string(decrypt(encrypt(key, "new", nil), nil)), "new", "new Plaintext")
	equal(rotationStatus(key).RotationPeriodInDays, aws.Int32(90), "RotationPeriodInDays")
	disableRotation(key)
}
