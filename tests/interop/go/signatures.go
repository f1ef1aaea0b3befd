package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/x509"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

type signing struct {
	spec      types.KeySpec
	algorithm types.SigningAlgorithmSpec
	digest    bool // also as MessageType DIGEST
	length    int  // of a signature; 0 if it varies
	public    int  // length of the raw public key, if this package cannot parse it
	local     func(spki, message, signature []byte) bool
}

var signatureSteps = []step{
	{"get-public-key", getPublicKey},
	{"sign-verify-rsa-2048-pss", func() {
		signVerify(signing{types.KeySpecRsa2048, types.SigningAlgorithmSpecRsassaPssSha256, true, 256, 0, verifyPss})
	}},
	{"sign-verify-rsa-2048-pkcs1", func() {
		signVerify(signing{types.KeySpecRsa2048, types.SigningAlgorithmSpecRsassaPkcs1V15Sha256, true, 256, 0, verifyPkcs1})
	}},
	{"sign-verify-ecc-nist-p256", func() {
		signVerify(signing{types.KeySpecEccNistP256, types.SigningAlgorithmSpecEcdsaSha256, true, 0, 0, verifyEcdsa})
	}},
	{"sign-verify-ecc-secg-p256k1", func() {
		signVerify(signing{types.KeySpecEccSecgP256k1, types.SigningAlgorithmSpecEcdsaSha256, true, 0, 0, nil})
	}},
	{"sign-verify-ecc-nist-edwards25519", func() {
		signVerify(signing{types.KeySpecEccNistEdwards25519, types.SigningAlgorithmSpecEd25519Sha512, false, 64, 0, verifyEd25519})
	}},
	{"sign-verify-ml-dsa-44", func() {
		signVerify(signing{types.KeySpecMlDsa44, types.SigningAlgorithmSpecMlDsaShake256, false, 2420, 1312, nil})
	}},
	{"sign-verify-ml-dsa-65", func() {
		signVerify(signing{types.KeySpecMlDsa65, types.SigningAlgorithmSpecMlDsaShake256, false, 3309, 1952, nil})
	}},
	{"sign-verify-ml-dsa-87", func() {
		signVerify(signing{types.KeySpecMlDsa87, types.SigningAlgorithmSpecMlDsaShake256, false, 4627, 2592, nil})
	}},
	{"sign-verify-ml-dsa-65-external-mu", externalMu},
}

func publicKey(key *types.KeyMetadata) []byte {
	return must(client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: key.KeyId})).PublicKey
}

func signingKey(spec types.KeySpec) *types.KeyMetadata {
	return newKey(kms.CreateKeyInput{KeySpec: spec, KeyUsage: types.KeyUsageTypeSignVerify})
}

func getPublicKey() {
	key := signingKey(types.KeySpecEccNistP256)
	for _, name := range []*string{key.KeyId, key.Arn} {
		answer := must(client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: name}))
		equal(*answer.KeyId, *key.Arn, "KeyId")
		equal(answer.KeySpec, types.KeySpecEccNistP256, "KeySpec")
		equal(answer.KeyUsage, types.KeyUsageTypeSignVerify, "KeyUsage")
		equal(answer.SigningAlgorithms, []types.SigningAlgorithmSpec{types.SigningAlgorithmSpecEcdsaSha256}, "SigningAlgorithms")
		check(must(x509.ParsePKIXPublicKey(answer.PublicKey)).(*ecdsa.PublicKey).Curve == elliptic.P256(), "another curve")
	}
}

func signVerify(s signing) {
	key := signingKey(s.spec)
	check(slices.Contains(key.SigningAlgorithms, s.algorithm), "SigningAlgorithms %v", key.SigningAlgorithms)
	message := random(500)
	answer := must(client.Sign(ctx, &kms.SignInput{
		KeyId: key.KeyId, Message: message, MessageType: types.MessageTypeRaw, SigningAlgorithm: s.algorithm,
	}))
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.SigningAlgorithm, s.algorithm, "SigningAlgorithm")
	if s.length != 0 {
		equal(len(answer.Signature), s.length, "length of the signature")
	}
	verify := func(kind types.MessageType, form []byte) (*kms.VerifyOutput, error) {
		return client.Verify(ctx, &kms.VerifyInput{
			KeyId: key.Arn, Message: form, MessageType: kind, Signature: answer.Signature, SigningAlgorithm: s.algorithm,
		})
	}
	equal(must(verify(types.MessageTypeRaw, message)).SignatureValid, true, "SignatureValid for RAW")
	refused[*types.KMSInvalidSignatureException](failed(verify(types.MessageTypeRaw, flip(message))))
	if s.digest {
		good, bad := sha256.Sum256(message), sha256.Sum256(flip(message))
		equal(must(verify(types.MessageTypeDigest, good[:])).SignatureValid, true, "SignatureValid for DIGEST")
		refused[*types.KMSInvalidSignatureException](failed(verify(types.MessageTypeDigest, bad[:])))
	}
	spki := publicKey(key)
	if s.public != 0 {
		equal(len(spki), spkiHeader+s.public, "length of the public key")
	}
	check(s.local == nil || s.local(spki, message, answer.Signature), "not valid by Go's own crypto")
}

func verifyPss(spki, message, signature []byte) bool {
	digest := sha256.Sum256(message)
	options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
	return rsa.VerifyPSS(must(x509.ParsePKIXPublicKey(spki)).(*rsa.PublicKey), crypto.SHA256, digest[:], signature, options) == nil
}

func verifyPkcs1(spki, message, signature []byte) bool {
	digest := sha256.Sum256(message)
	return rsa.VerifyPKCS1v15(must(x509.ParsePKIXPublicKey(spki)).(*rsa.PublicKey), crypto.SHA256, digest[:], signature) == nil
}

func verifyEcdsa(spki, message, signature []byte) bool {
	digest := sha256.Sum256(message)
	return ecdsa.VerifyASN1(must(x509.ParsePKIXPublicKey(spki)).(*ecdsa.PublicKey), digest[:], signature)
}

func verifyEd25519(spki, message, signature []byte) bool {
	return ed25519.Verify(must(x509.ParsePKIXPublicKey(spki)).(ed25519.PublicKey), message, signature)
}

func externalMu() {
	key := signingKey(types.KeySpecMlDsa65)
	spki := publicKey(key)
	equal(len(spki), spkiHeader+1952, "length of the public key")
	// FIPS 204, algorithm 7, line 6, with the empty context.
	tr := sha3.SumSHAKE256(spki[spkiHeader:], 64)
	mu := func(message []byte) []byte {
		return sha3.SumSHAKE256(slices.Concat(tr, []byte{0, 0}, message), 64)
	}
	message := random(500)
	signature := must(client.Sign(ctx, &kms.SignInput{
		KeyId: key.KeyId, Message: mu(message), MessageType: types.MessageTypeExternalMu,
		SigningAlgorithm: types.SigningAlgorithmSpecMlDsaShake256,
	})).Signature
	verify := func(kind types.MessageType, form []byte) (*kms.VerifyOutput, error) {
		return client.Verify(ctx, &kms.VerifyInput{
			KeyId: key.KeyId, Message: form, MessageType: kind, Signature: signature,
			SigningAlgorithm: types.SigningAlgorithmSpecMlDsaShake256,
		})
	}
	equal(must(verify(types.MessageTypeRaw, message)).SignatureValid, true, "SignatureValid for RAW")
	equal(must(verify(types.MessageTypeExternalMu, mu(message))).SignatureValid, true, "SignatureValid for EXTERNAL_MU")
	refused[*types.KMSInvalidSignatureException](failed(verify(types.MessageTypeExternalMu, mu(flip(message)))))
}
