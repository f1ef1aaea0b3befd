// Command kms-whole is the program of KMS_STEPS.md by the AWS SDK for Go v2; with "secrets" as the
// first argument, that of SECRETS_STEPS.md.
//
// Everything comes from AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE; the SDK
// takes endpoint_url and ca_bundle from the profile. With OUTLAST_ROLE_ARN it takes on that role.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

type step struct {
	name string
	run  func()
}

// In the order of KMS_STEPS.md.
var steps = slices.Concat(keySteps, dataSteps, signatureSteps, agreementSteps, materialSteps, grantSteps, regionSteps, lastSteps, stsSteps)

var (
	ctx     = context.Background()
	session aws.Config
	region  string
	client  *kms.Client
	caller  *sts.Client
	run     = hex.EncodeToString(random(6))
	made    []madeKey
)

type madeKey struct {
	client *kms.Client
	id     string
}

// failure ends a step; skipped ends one that cannot be done here.
type (
	failure string
	skipped string
)

func fail(format string, arguments ...any) {
	panic(failure(fmt.Sprintf(format, arguments...)))
}

func check(condition bool, format string, arguments ...any) {
	if !condition {
		fail(format, arguments...)
	}
}

func equal(got, want any, what string) {
	check(reflect.DeepEqual(got, want), "%s: got %v, want %v", what, got, want)
}

func within(got *time.Time, want time.Time, tolerance time.Duration, what string) {
	check(got != nil, "no %s", what)
	check(got.Sub(want).Abs() < tolerance, "%s: got %v, want about %v", what, got, want)
}

func must[T any](value T, err error) T {
	done(err)
	return value
}

func done(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// refused wants the SDK's own type of a modelled error.
func refused[E error](err error) {
	var want E
	if !errors.As(err, &want) {
		fail("got %v, want %T", err, want)
	}
}

// refusedAs wants one of these codes.
func refusedAs(err error, codes ...string) {
	var answered smithy.APIError
	check(errors.As(err, &answered), "got %v, want %v", err, codes)
	check(slices.Contains(codes, answered.ErrorCode()), "got %v, want %v", err, codes)
}

func failed[T any](_ T, err error) error {
	return err
}

// eventually waits for what may take effect later; AWS promises no more than that.
func eventually(what string, condition func() bool) {
	for until := time.Now().Add(time.Minute); !condition(); time.Sleep(500 * time.Millisecond) {
		check(time.Now().Before(until), "%s: not within 60 seconds", what)
	}
}

func random(size int) []byte {
	bytes := make([]byte, size)
	rand.Read(bytes)
	return bytes
}

// token is one for ClientRequestToken.
func token() string {
	return hex.EncodeToString(random(16))
}

func flip(data []byte) []byte {
	changed := bytes.Clone(data)
	changed[len(changed)-1] ^= 1
	return changed
}

func newKey(input kms.CreateKeyInput) *types.KeyMetadata {
	if input.Description == nil {
		input.Description = aws.String("kms-whole " + run)
	}
	metadata := must(client.CreateKey(ctx, &input)).KeyMetadata
	made = append(made, madeKey{client, *metadata.KeyId})
	return metadata
}

func symmetricKey() *types.KeyMetadata {
	return newKey(kms.CreateKeyInput{})
}

func describeBy(by *kms.Client, key string) *types.KeyMetadata {
	return must(by.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &key})).KeyMetadata
}

func describe(key *string) *types.KeyMetadata {
	return describeBy(client, *key)
}

func encrypt(key *string, plaintext string, context map[string]string) []byte {
	return must(client.Encrypt(ctx, &kms.EncryptInput{
		KeyId: key, Plaintext: []byte(plaintext), EncryptionContext: context,
	})).CiphertextBlob
}

func tryEncrypt(key *string) error {
	return failed(client.Encrypt(ctx, &kms.EncryptInput{KeyId: key, Plaintext: []byte("plaintext")}))
}

func decrypt(blob []byte, context map[string]string) []byte {
	return must(client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: context})).Plaintext
}

func tryDecrypt(blob []byte, context map[string]string) error {
	return failed(client.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: blob, EncryptionContext: context}))
}

func attempt(run func()) (result any) {
	defer func() { result = recover() }()
	run()
	return nil
}

func connect() error {
	for _, name := range []string{"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE"} {
		if os.Getenv(name) == "" {
			return fmt.Errorf("the environment lacks %s", name)
		}
	}
	loaded, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	session, region = loaded, loaded.Region
	client, caller = kms.NewFromConfig(session), sts.NewFromConfig(session)
	secrets = secretsmanager.NewFromConfig(session)
	if client.Options().BaseEndpoint == nil {
		return errors.New("the profile has no endpoint_url")
	}
	return nil
}

func main() {
	wanted := os.Args[1:]
	if len(wanted) > 0 && wanted[0] == "secrets" {
		steps, wanted = secretSteps, wanted[1:]
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			fmt.Fprintln(os.Stderr, "unknown step", name)
			os.Exit(2)
		}
	}
	if err := connect(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	var passes, failures, skips int
	for _, step := range steps {
		if len(wanted) > 0 && !slices.Contains(wanted, step.name) {
			continue
		}
		switch result := attempt(step.run).(type) {
		case nil:
			passes++
			fmt.Println("ok", step.name)
		case skipped:
			skips++
			fmt.Printf("skipped %s: %s\n", step.name, string(result))
		default:
			failures++
			reason := []rune(strings.Join(strings.Fields(fmt.Sprint(result)), " "))
			fmt.Printf("FAILED %s: %s\n", step.name, string(reason[:min(len(reason), 400)]))
		}
	}
	deleteSecrets()
	for _, key := range made {
		_, _ = key.client.ScheduleKeyDeletion(ctx, &kms.ScheduleKeyDeletionInput{
			KeyId: &key.id, PendingWindowInDays: aws.Int32(7),
		})
	}
	fmt.Printf("%d steps passed, %d failed", passes, failures)
	if skips > 0 {
		fmt.Printf(", %d skipped", skips)
	}
	fmt.Println()
	if failures > 0 {
		os.Exit(1)
	}
}
