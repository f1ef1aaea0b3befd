package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

// Lengths of ML-KEM-768, FIPS 203, table 3, and of the header of a public key.
const (
	spkiHeader       = 22
	mlKemCiphertext  = mlkem.CiphertextSize768
	mlKemPublic      = mlkem.EncapsulationKeySize768
	mlKemSeedPrivate = 86
)

var dataSteps = []step{
	{"encrypt-decrypt", encryptDecrypt},
	{"re-encrypt", reEncrypt},
	{"generate-data-key", generateDataKey},
	{"generate-data-key-without-plaintext", generateDataKeyWithoutPlaintext},
	{"generate-data-key-pair-rsa-2048", func() { dataKeyPair(types.DataKeyPairSpecRsa2048) }},
	{"generate-data-key-pair-ecc-nist-p256", func() { dataKeyPair(types.DataKeyPairSpecEccNistP256) }},
	{"generate-data-key-pair-ml-kem-768", func() { dataKeyPair(types.DataKeyPairSpecMlKem768) }},
	{"generate-data-key-pair-without-plaintext-rsa-2048", func() { dataKeyPairWithoutPlaintext(types.DataKeyPairSpecRsa2048) }},
	{"generate-data-key-pair-without-plaintext-ecc-nist-p256", func() { dataKeyPairWithoutPlaintext(types.DataKeyPairSpecEccNistP256) }},
	{"generate-data-key-pair-without-plaintext-ml-kem-768", func() { dataKeyPairWithoutPlaintext(types.DataKeyPairSpecMlKem768) }},
	{"generate-random", generateRandom},
}

var (
	context42 = map[string]string{"tenant": "42", "purpose": "interop ü"}
	context43 = map[string]string{"tenant": "43", "purpose": "interop ü"}
)

func encryptDecrypt() {
	key := symmetricKey()
	plaintext := random(256)
	encrypted := must(client.Encrypt(ctx, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: plaintext, EncryptionContext: context42}))
	equal(*encrypted.KeyId, *key.Arn, "KeyId")
	equal(encrypted.EncryptionAlgorithm, types.EncryptionAlgorithmSpecSymmetricDefault, "EncryptionAlgorithm")
	blob := encrypted.CiphertextBlob
	decrypted := must(client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: context42}))
	equal(decrypted.Plaintext, plaintext, "Plaintext")
	equal(*decrypted.KeyId, *key.Arn, "KeyId")
	equal(decrypted.EncryptionAlgorithm, types.EncryptionAlgorithmSpecSymmetricDefault, "EncryptionAlgorithm")
	refused[*types.InvalidCiphertextException](tryDecrypt(blob, context43))
	refused[*types.InvalidCiphertextException](tryDecrypt(blob, nil))
	refused[*types.InvalidCiphertextException](tryDecrypt(flip(blob), context42))
	refused[*types.IncorrectKeyException](failed(client.Decrypt(ctx, &kms.DecryptInput{
		CiphertextBlob: blob, EncryptionContext: context42, KeyId: symmetricKey().KeyId,
	})))
}

func reEncrypt() {
	source, destination := symmetricKey(), symmetricKey()
	answer := must(client.ReEncrypt(ctx, &kms.ReEncryptInput{
		CiphertextBlob:               encrypt(source.KeyId, "plaintext", context42),
		SourceEncryptionContext:      context42,
		DestinationKeyId:             destination.KeyId,
		DestinationEncryptionContext: context43,
	}))
	equal(*answer.SourceKeyId, *source.Arn, "SourceKeyId")
	equal(*answer.KeyId, *destination.Arn, "KeyId")
	must(client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: source.KeyId}))
	equal(string(decrypt(answer.CiphertextBlob, context43)), "plaintext", "Plaintext")
}

func generateDataKey() {
	key := symmetricKey()
	for size, input := range map[int]*kms.GenerateDataKeyInput{
		32: {KeySpec: types.DataKeySpecAes256}, 64: {NumberOfBytes: aws.Int32(64)},
	} {
		input.KeyId, input.EncryptionContext = key.KeyId, context42
		answer := must(client.GenerateDataKey(ctx, input))
		equal(*answer.KeyId, *key.Arn, "KeyId")
		equal(len(answer.Plaintext), size, "length")
		equal(decrypt(answer.CiphertextBlob, context42), answer.Plaintext, "Plaintext")
	}
}

func generateDataKeyWithoutPlaintext() {
	key := symmetricKey()
	answer := must(client.GenerateDataKeyWithoutPlaintext(ctx, &kms.GenerateDataKeyWithoutPlaintextInput{
		KeyId: key.KeyId, KeySpec: types.DataKeySpecAes256, EncryptionContext: context42,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(len(decrypt(answer.CiphertextBlob, context42)), 32, "length")
}

// pairFits checks that what the private key does is undone by the public key.
func pairFits(spec types.DataKeyPairSpec, private, public []byte) {
	digest := sha256.Sum256([]byte("m"))
	switch spec {
	case types.DataKeyPairSpecRsa2048:
		secret := must(x509.ParsePKCS8PrivateKey(private)).(*rsa.PrivateKey)
		key := must(x509.ParsePKIXPublicKey(public)).(*rsa.PublicKey)
		equal(key.N.BitLen(), 2048, "key size")
		label := []byte("interop")
		ciphertext := must(rsa.EncryptOAEP(sha256.New(), rand.Reader, key, digest[:], label))
		equal(must(rsa.DecryptOAEP(sha256.New(), nil, secret, ciphertext, label)), digest[:], "decrypted")
	case types.DataKeyPairSpecEccNistP256:
		secret := must(x509.ParsePKCS8PrivateKey(private)).(*ecdsa.PrivateKey)
		key := must(x509.ParsePKIXPublicKey(public)).(*ecdsa.PublicKey)
		check(key.Curve == elliptic.P256(), "another curve")
		check(ecdsa.VerifyASN1(key, digest[:], must(ecdsa.SignASN1(rand.Reader, secret, digest[:]))), "keys do not fit")
	default:
		equal(len(public), spkiHeader+mlKemPublic, "length of the public key")
		equal(len(private), mlKemSeedPrivate, "length of the private key as a seed")
		secret := must(mlkem.NewDecapsulationKey768(private[len(private)-mlkem.SeedSize:]))
		check(bytes.Equal(secret.EncapsulationKey().Bytes(), public[spkiHeader:]), "keys do not fit")
	}
}

func dataKeyPair(spec types.DataKeyPairSpec) {
	key := symmetricKey()
	answer := must(client.GenerateDataKeyPair(ctx, &kms.GenerateDataKeyPairInput{
		KeyId: key.KeyId, KeyPairSpec: spec, EncryptionContext: context42,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.KeyPairSpec, spec, "KeyPairSpec")
	private := decrypt(answer.PrivateKeyCiphertextBlob, context42)
	equal(private, answer.PrivateKeyPlaintext, "private key")
	pairFits(spec, private, answer.PublicKey)
}

func dataKeyPairWithoutPlaintext(spec types.DataKeyPairSpec) {
	key := symmetricKey()
	answer := must(client.GenerateDataKeyPairWithoutPlaintext(ctx, &kms.GenerateDataKeyPairWithoutPlaintextInput{
		KeyId: key.KeyId, KeyPairSpec: spec, EncryptionContext: context42,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.KeyPairSpec, spec, "KeyPairSpec")
	pairFits(spec, decrypt(answer.PrivateKeyCiphertextBlob, context42), answer.PublicKey)
}

func generateRandom() {
	numbers := func(size int32) []byte {
		return must(client.GenerateRandom(ctx, &kms.GenerateRandomInput{NumberOfBytes: &size})).Plaintext
	}
	one, two := numbers(32), numbers(32)
	equal(len(one)+len(two), 64, "lengths")
	check(!bytes.Equal(one, two), "the same twice")
	equal(len(numbers(1024)), 1024, "length")
}

func ends(text *string, suffix string) bool {
	return text != nil && strings.HasSuffix(*text, suffix)
}
