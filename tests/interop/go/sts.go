package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

var stsSteps = []step{
	{"get-caller-identity", getCallerIdentity},
	{"assume-role", assumeRole},
	{"assume-role-profile", assumeRoleProfile},
}

func getCallerIdentity() {
	answer := must(caller.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))
	check(regexp.MustCompile(`^\d{12}$`).MatchString(*answer.Account), "Account %s", *answer.Account)
	equal(*answer.Account, *symmetricKey().AWSAccountId, "Account")
	check(regexp.MustCompile(`^arn:aws:(iam|sts)::`+*answer.Account+":").MatchString(*answer.Arn), "Arn %s", *answer.Arn)
	check(*answer.UserId != "", "no UserId")
}

func roleArn() string {
	arn := os.Getenv("OUTLAST_ROLE_ARN")
	if arn == "" {
		panic(skipped("OUTLAST_ROLE_ARN is not set"))
	}
	return arn
}

// asRole checks what a session of the role must be able to do; name is its own, if we gave it.
func asRole(role aws.Config, name string) {
	arn := roleArn()
	want := fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", strings.Split(arn, ":")[4], arn[strings.LastIndex(arn, "/")+1:], name)
	got := *must(sts.NewFromConfig(role).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})).Arn
	if name == "" {
		check(strings.HasPrefix(got, want), "Arn: got %s, want %s...", got, want)
	} else {
		equal(got, want, "Arn")
	}
	blob := must(kms.NewFromConfig(role).Encrypt(ctx, &kms.EncryptInput{
		KeyId: symmetricKey().KeyId, Plaintext: []byte("by the role"),
	})).CiphertextBlob
	equal(string(decrypt(blob, nil)), "by the role", "Plaintext")
}

func assumeRole() {
	arn, name := roleArn(), "kms-whole-"+run
	answer := must(caller.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &arn, RoleSessionName: &name}))
	check(ends(answer.AssumedRoleUser.Arn, "/"+name), "AssumedRoleUser %v", *answer.AssumedRoleUser.Arn)
	given := answer.Credentials
	check(given.Expiration.After(time.Now()), "Expiration %v", given.Expiration)
	role := session.Copy()
	role.Credentials = credentials.NewStaticCredentialsProvider(*given.AccessKeyId, *given.SecretAccessKey, *given.SessionToken)
	asRole(role, name)
}

func assumeRoleProfile() {
	arn := roleArn()
	own := must(config.LoadSharedConfigProfile(ctx, os.Getenv("AWS_PROFILE"), func(o *config.LoadSharedConfigOptions) {
		o.ConfigFiles = []string{os.Getenv("AWS_CONFIG_FILE")}
	}))
	// The SDK's own STS client is made before endpoint_url of a profile is read: it wants a services section.
	text := string(must(os.ReadFile(os.Getenv("AWS_CONFIG_FILE")))) + fmt.Sprintf(
		"\n[services kms-whole]\nsts =\n  endpoint_url = %s\n\n[profile kms-whole-role]\nservices = kms-whole\n"+
			"role_arn = %s\nsource_profile = %s\nregion = %s\nendpoint_url = %s\n",
		own.BaseEndpoint, arn, os.Getenv("AWS_PROFILE"), region, own.BaseEndpoint)
	if own.CustomCABundle != "" {
		text += "ca_bundle = " + own.CustomCABundle + "\n"
	}
	file := must(os.CreateTemp("", "kms-whole"))
	defer os.Remove(file.Name())
	must(file.WriteString(text))
	done(file.Close())
	asRole(must(config.LoadDefaultConfig(ctx,
		config.WithSharedConfigFiles([]string{file.Name()}),
		config.WithSharedConfigProfile("kms-whole-role"))), "")
}
