package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/smithy-go"
)

var lastSteps = []step{
	{"dry-run", dryRun},
	{"get-key-last-usage", getKeyLastUsage},
	{"describe-custom-key-stores", describeCustomKeyStores},
	{"create-custom-key-store", createCustomKeyStore},
	{"not-found", notFound},
	{"validation", validation},
	{"foreign-arn", foreignArn},
	{"schedule-key-deletion", scheduleKeyDeletion},
	{"cancel-key-deletion", cancelKeyDeletion},
}

func dryRun() {
	key := symmetricKey().KeyId
	input := &kms.EncryptInput{KeyId: key, Plaintext: []byte("plaintext"), DryRun: aws.Bool(true)}
	refused[*types.DryRunOperationException](failed(client.Encrypt(ctx, input)))
	refused[*types.DryRunOperationException](failed(client.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{
		KeyId: key, KeySpec: types.DataKeySpecAes256, DryRun: aws.Bool(true),
	})))
	input.DryRun = aws.Bool(false)
	decrypt(must(client.Encrypt(ctx, input)).CiphertextBlob, nil)
}

func getKeyLastUsage() {
	key := symmetricKey()
	usage := func() *kms.GetKeyLastUsageOutput {
		return must(client.GetKeyLastUsage(ctx, &kms.GetKeyLastUsageInput{KeyId: key.KeyId}))
	}
	used := func() bool {
		last := usage().KeyLastUsage
		return last != nil && last.Timestamp != nil
	}
	check(!used(), "KeyLastUsage of an unused key")
	unused := usage()
	within(unused.KeyCreationDate, *key.CreationDate, time.Second, "KeyCreationDate")
	check(unused.TrackingStartDate != nil, "no TrackingStartDate")
	done(tryEncrypt(key.KeyId))
	eventually("usage recorded", used)
	last := usage().KeyLastUsage
	equal(string(last.Operation), "Encrypt", "Operation")
	within(last.Timestamp, time.Now(), time.Hour, "Timestamp")
}

func describeCustomKeyStores() {
	stores := must(client.DescribeCustomKeyStores(ctx, &kms.DescribeCustomKeyStoresInput{})).CustomKeyStores
	check(stores != nil && len(stores) == 0, "CustomKeyStores: got %v, want an empty list", stores)
}

func createCustomKeyStore() {
	err := failed(client.CreateCustomKeyStore(ctx, &kms.CreateCustomKeyStoreInput{
		CustomKeyStoreName:     aws.String("store-" + run),
		CloudHsmClusterId:      aws.String("cluster-2a23b4cdefg"),
		TrustAnchorCertificate: aws.String("no certificate"),
		KeyStorePassword:       aws.String("kmsPswd1"),
	}))
	var answered smithy.APIError
	check(errors.As(err, &answered), "got %v", err)
	// The errors of the operation's model have types of their own, others are generic.
	kind := fmt.Sprintf("%T", answered)
	check(strings.HasPrefix(kind, "*types.") && kind != "*types.KMSInternalException", "not a documented error: %v", err)
}

func tryDescribe(key string) error {
	return failed(client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &key}))
}

func notFound() {
	hex := fmt.Sprintf("%x", random(16))
	unknown := strings.Join([]string{hex[:8], hex[8:12], "4" + hex[13:16], "8" + hex[17:20], hex[20:]}, "-")
	refused[*types.NotFoundException](tryDescribe(unknown))
	refused[*types.NotFoundException](tryEncrypt(&unknown))
	refused[*types.NotFoundException](tryDescribe("alias/unknown-" + run))
}

func validation() {
	for _, input := range []*kms.CreateKeyInput{
		{KeySpec: "RSA_1024", KeyUsage: types.KeyUsageTypeSignVerify},
		{KeySpec: types.KeySpecMlDsa65},
	} {
		refusedAs(failed(client.CreateKey(ctx, input)), "ValidationException")
	}
}

func foreignArn() {
	key := symmetricKey()
	for _, arn := range []string{
		moved(key, "ap-southeast-2"),
		strings.Replace(*key.Arn, ":"+*key.AWSAccountId+":", ":999999999999:", 1),
	} {
		refusedAs(tryDescribe(arn), "NotFoundException", "InvalidArnException")
	}
}

func schedule(key *types.KeyMetadata) *kms.ScheduleKeyDeletionOutput {
	return must(client.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{KeyId: key.KeyId, PendingWindowInDays: aws.Int32(7)}))
}

func scheduleKeyDeletion() {
	key := symmetricKey()
	answer := schedule(key)
	equal(*answer.KeyId, *key.Arn, "KeyId")
	equal(answer.KeyState, types.KeyStatePendingDeletion, "KeyState")
	equal(answer.PendingWindowInDays, aws.Int32(7), "PendingWindowInDays")
	within(answer.DeletionDate, time.Now().Add(7*day), day, "DeletionDate")
	equal(describe(key.KeyId).KeyState, types.KeyStatePendingDeletion, "KeyState")
	refused[*types.KMSInvalidStateException](tryEncrypt(key.KeyId))
}

func cancelKeyDeletion() {
	key := symmetricKey()
	blob := encrypt(key.KeyId, "plaintext", nil)
	schedule(key)
	equal(*must(client.CancelKeyDeletion(ctx, &kms.CancelKeyDeletionInput{KeyId: key.KeyId})).KeyId, *key.Arn, "KeyId")
	equal(describe(key.KeyId).KeyState, types.KeyStateDisabled, "KeyState")
	must(client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: key.KeyId}))
	equal(string(decrypt(blob, nil)), "plaintext", "Plaintext")
}
