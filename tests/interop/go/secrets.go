package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// In the order of SECRETS_STEPS.md.
var secretSteps = []step{
	{"create-secret", createSecret},
	{"get-secret-value", getSecretValue},
	{"put-secret-value", putSecretValue},
	{"previous-version", previousVersion},
	{"binary-value", binaryValue},
	{"update-secret-version-stage", updateSecretVersionStage},
	{"replicate-secret", replicateSecret},
	{"rotate-secret", rotateSecret},
	{"rotate-secret-later", rotateSecretLater},
	{"list-secrets", listSecrets},
	{"batch-get-secret-value", batchGetSecretValue},
	{"get-random-password", getRandomPassword},
	{"not-found", secretNotFound},
	{"invalid-parameter", invalidParameter},
	{"delete-and-restore", deleteAndRestore},
	{"force-delete", forceDelete},
}

var (
	secrets     *secretsmanager.Client
	madeSecrets []string
)

func nameOf(what string) string {
	return "secrets-whole/" + run + "/" + what
}

// newSecret makes a secret with this value.
func newSecret(what, value string, tags ...types.Tag) *secretsmanager.CreateSecretOutput {
	name := nameOf(what)
	madeSecrets = append(madeSecrets, name)
	return must(secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretString: &value, Tags: tags}))
}

func deleteSecrets() {
	for _, name := range madeSecrets {
		_, _ = secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
			SecretId: &name, ForceDeleteWithoutRecovery: aws.Bool(true),
		})
	}
}

func put(name *string, value string) *secretsmanager.PutSecretValueOutput {
	return must(secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: name, SecretString: &value}))
}

func tryRead(by *secretsmanager.Client, name string) error {
	return failed(by.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name}))
}

func get(name *string) *secretsmanager.GetSecretValueOutput {
	return must(secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name}))
}

func getStage(name *string, stage string) *secretsmanager.GetSecretValueOutput {
	return must(secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: name, VersionStage: &stage}))
}

func read(name *string) string {
	return *get(name).SecretString
}

func describeSecret(name *string) *secretsmanager.DescribeSecretOutput {
	return must(secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: name}))
}

func tryDescribeSecret(name string) error {
	return failed(secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &name}))
}

// gone says whether the answer was that there is no such secret.
func gone(err error) bool {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return true
	}
	done(err)
	return false
}

func rotationFunction() *string {
	function := os.Getenv("OUTLAST_ROTATION_FUNCTION")
	if function == "" {
		panic(skipped("OUTLAST_ROTATION_FUNCTION is not set"))
	}
	return &function
}

func passwordOf(value string) string {
	var login struct{ Username, Password string }
	done(json.Unmarshal([]byte(value), &login))
	equal(login.Username, "user", "username")
	return login.Password
}

func createSecret() {
	name, token := nameOf("create"), token()
	tag := types.Tag{Key: aws.String("run"), Value: &run}
	input := &secretsmanager.CreateSecretInput{
		Name: &name, SecretString: aws.String("first"), Description: aws.String("first ä"),
		Tags: []types.Tag{tag}, ClientRequestToken: &token,
	}
	madeSecrets = append(madeSecrets, name)
	answer := must(secrets.CreateSecret(ctx, input))
	equal(*answer.Name, name, "Name")
	equal(*answer.VersionId, token, "VersionId")
	arn := regexp.MustCompile(`^arn:aws:secretsmanager:` + region + `:\d{12}:secret:` + name + `-[A-Za-z0-9]{6}$`)
	check(arn.MatchString(*answer.ARN), "ARN %s", *answer.ARN)
	secret := describeSecret(answer.ARN)
	equal(*secret.ARN, *answer.ARN, "ARN")
	equal(*secret.Name, name, "Name")
	equal(*secret.Description, "first ä", "Description")
	equal(len(secret.Tags), 1, "number of tags")
	equal(*secret.Tags[0].Key, "run", "key of the tag")
	equal(*secret.Tags[0].Value, run, "value of the tag")
	equal(secret.VersionIdsToStages, map[string][]string{token: {"AWSCURRENT"}}, "VersionIdsToStages")
	within(secret.CreatedDate, time.Now(), time.Hour, "CreatedDate")
	within(secret.LastChangedDate, time.Now(), time.Hour, "LastChangedDate")
	check(!aws.ToBool(secret.RotationEnabled), "RotationEnabled")
	check(secret.DeletedDate == nil, "DeletedDate")
	again := must(secrets.CreateSecret(ctx, input))
	equal(*again.ARN, *answer.ARN, "ARN by the same token again")
	equal(*again.VersionId, token, "VersionId by the same token again")
	refused[*types.ResourceExistsException](failed(secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: &name, SecretString: aws.String("other"),
	})))
}

func getSecretValue() {
	made := newSecret("get", "first ä")
	for _, name := range []*string{made.Name, made.ARN} {
		got := get(name)
		equal(*got.ARN, *made.ARN, "ARN")
		equal(*got.Name, *made.Name, "Name")
		equal(*got.VersionId, *made.VersionId, "VersionId")
		equal(*got.SecretString, "first ä", "SecretString")
		equal(got.VersionStages, []string{"AWSCURRENT"}, "VersionStages")
		within(got.CreatedDate, time.Now(), time.Hour, "CreatedDate")
		check(got.SecretBinary == nil, "SecretBinary")
	}
}

func putSecretValue() {
	first, token := newSecret("put", "first"), token()
	input := &secretsmanager.PutSecretValueInput{
		SecretId: first.Name, SecretString: aws.String("second"), ClientRequestToken: &token,
	}
	for range 2 {
		answer := must(secrets.PutSecretValue(ctx, input))
		equal(*answer.ARN, *first.ARN, "ARN")
		equal(*answer.Name, *first.Name, "Name")
		equal(*answer.VersionId, token, "VersionId")
		equal(answer.VersionStages, []string{"AWSCURRENT"}, "VersionStages")
	}
	input.SecretString = aws.String("third")
	refused[*types.ResourceExistsException](failed(secrets.PutSecretValue(ctx, input)))
	equal(read(first.Name), "second", "SecretString")
	stages := map[string][]string{token: {"AWSCURRENT"}, *first.VersionId: {"AWSPREVIOUS"}}
	equal(describeSecret(first.Name).VersionIdsToStages, stages, "VersionIdsToStages")
}

func previousVersion() {
	made := newSecret("previous", "first")
	put(made.Name, "second")
	got := getStage(made.Name, "AWSPREVIOUS")
	equal(*got.SecretString, "first", "SecretString")
	equal(*got.VersionId, *made.VersionId, "VersionId")
	equal(got.VersionStages, []string{"AWSPREVIOUS"}, "VersionStages")
	got = must(secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: made.Name, VersionId: made.VersionId}))
	equal(*got.SecretString, "first", "SecretString by VersionId")
	refused[*types.ResourceNotFoundException](failed(secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{
		SecretId: made.Name, VersionStage: aws.String("AWSPENDING"),
	})))
}

func binaryValue() {
	name, value := nameOf("binary"), make([]byte, 256)
	for index := range value {
		value[index] = byte(index)
	}
	madeSecrets = append(madeSecrets, name)
	must(secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: &name, SecretBinary: value}))
	got := get(&name)
	check(bytes.Equal(got.SecretBinary, value), "SecretBinary: got %x", got.SecretBinary)
	check(got.SecretString == nil, "SecretString")
}

func updateSecretVersionStage() {
	made := newSecret("stage", "first")
	first, second := made.VersionId, put(made.Name, "second").VersionId
	must(secrets.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: made.Name, VersionStage: aws.String("AWSCURRENT"), MoveToVersionId: first, RemoveFromVersionId: second,
	}))
	stages := map[string][]string{*first: {"AWSCURRENT"}, *second: {"AWSPREVIOUS"}}
	equal(describeSecret(made.Name).VersionIdsToStages, stages, "VersionIdsToStages")
	equal(read(made.Name), "first", "SecretString")
	must(secrets.UpdateSecretVersionStage(ctx, &secretsmanager.UpdateSecretVersionStageInput{
		SecretId: made.Name, VersionStage: aws.String("kept"), MoveToVersionId: second,
	}))
	equal(*getStage(made.Name, "kept").SecretString, "second", "SecretString by a stage of one's own")
	refused[*types.InvalidParameterException](failed(secrets.UpdateSecretVersionStage(ctx,
		&secretsmanager.UpdateSecretVersionStageInput{
			SecretId: made.Name, VersionStage: aws.String("AWSCURRENT"), MoveToVersionId: second,
		})))
}

func replicateSecret() {
	made := newSecret("replicate", "first")
	other := "eu-central-1"
	if region == other {
		other = "eu-west-1"
	}
	there := secretsmanager.NewFromConfig(session, func(o *secretsmanager.Options) { o.Region = other })
	answer := must(secrets.ReplicateSecretToRegions(ctx, &secretsmanager.ReplicateSecretToRegionsInput{
		SecretId: made.Name, AddReplicaRegions: []types.ReplicaRegionType{{Region: &other}},
	}))
	equal(*answer.ARN, *made.ARN, "ARN")
	equal(len(answer.ReplicationStatus), 1, "number of replicas")
	equal(*answer.ReplicationStatus[0].Region, other, "region of the replica")
	eventually("the replica is InSync", func() bool {
		status := describeSecret(made.Name).ReplicationStatus
		return len(status) == 1 && status[0].Status == types.StatusTypeInSync
	})
	got := must(there.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: made.Name}))
	equal(*got.ARN, strings.Replace(*made.ARN, ":"+region+":", ":"+other+":", 1), "ARN of the replica")
	equal(*got.SecretString, "first", "the replica's value")
	equal(*got.VersionId, *made.VersionId, "the replica's version")
	replica := must(there.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: made.Name}))
	equal(*replica.PrimaryRegion, region, "PrimaryRegion")
	put(made.Name, "second")
	eventually("the replica has the new value", func() bool {
		return *must(there.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: made.Name})).SecretString == "second"
	})
	refused[*types.InvalidRequestException](failed(there.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: made.Name, SecretString: aws.String("third"),
	})))
	must(secrets.RemoveRegionsFromReplication(ctx, &secretsmanager.RemoveRegionsFromReplicationInput{
		SecretId: made.Name, RemoveReplicaRegions: []string{other},
	}))
	eventually("the replica is gone", func() bool { return gone(tryRead(there, *made.Name)) })
}

const login = `{"username":"user","password":"first"}`

func rotateSecret() {
	function := rotationFunction()
	made := newSecret("rotate", login)
	answer := must(secrets.RotateSecret(ctx, &secretsmanager.RotateSecretInput{SecretId: made.Name, RotationLambdaARN: function}))
	eventually("the new version is current", func() bool {
		return slices.Equal(describeSecret(made.Name).VersionIdsToStages[*answer.VersionId], []string{"AWSCURRENT"})
	})
	secret := describeSecret(made.Name)
	within(secret.LastRotatedDate, time.Now(), time.Hour, "LastRotatedDate")
	equal(secret.VersionIdsToStages[*made.VersionId], []string{"AWSPREVIOUS"}, "stages of the first version")
	check(passwordOf(read(made.Name)) != "first", "the password is still the first")
	equal(passwordOf(*getStage(made.Name, "AWSPREVIOUS").SecretString), "first", "the previous password")
}

func rotateSecretLater() {
	function := rotationFunction()
	made := newSecret("rotate-later", login)
	answer := must(secrets.RotateSecret(ctx, &secretsmanager.RotateSecretInput{
		SecretId: made.Name, RotationLambdaARN: function, RotateImmediately: aws.Bool(false),
		RotationRules: &types.RotationRulesType{AutomaticallyAfterDays: aws.Int64(30)},
	}))
	equal(*answer.ARN, *made.ARN, "ARN")
	equal(*answer.Name, *made.Name, "Name")
	secret := describeSecret(made.Name)
	equal(secret.RotationEnabled, aws.Bool(true), "RotationEnabled")
	equal(*secret.RotationLambdaARN, *function, "RotationLambdaARN")
	equal(secret.RotationRules.AutomaticallyAfterDays, aws.Int64(30), "AutomaticallyAfterDays")
	within(secret.NextRotationDate, time.Now().Add(30*day), 2*day, "NextRotationDate")
	must(secrets.CancelRotateSecret(ctx, &secretsmanager.CancelRotateSecretInput{SecretId: made.Name}))
	check(!aws.ToBool(describeSecret(made.Name).RotationEnabled), "RotationEnabled after CancelRotateSecret")
	equal(passwordOf(read(made.Name)), "first", "password")
}

func listSecrets() {
	var names []string
	for _, number := range []string{"0", "1", "2"} {
		tag := types.Tag{Key: aws.String("list-" + run), Value: &number}
		names = append(names, *newSecret("list-"+number, "first", tag).Name)
	}
	listed := func(key types.FilterNameStringType, value string) func() bool {
		return func() bool {
			var found []string
			pages := secretsmanager.NewListSecretsPaginator(secrets, &secretsmanager.ListSecretsInput{
				MaxResults: aws.Int32(2), Filters: []types.Filter{{Key: key, Values: []string{value}}},
			})
			for pages.HasMorePages() {
				page := must(pages.NextPage(ctx)).SecretList
				check(len(page) <= 2, "a page of more than 2")
				for _, secret := range page {
					found = append(found, *secret.Name)
				}
			}
			slices.Sort(found)
			return slices.Equal(found, names)
		}
	}
	eventually("all are listed once, by name", listed(types.FilterNameStringTypeName, nameOf("list-")))
	eventually("all are listed once, by tag", listed(types.FilterNameStringTypeTagKey, "list-"+run))
	entry := must(secrets.ListSecrets(ctx, &secretsmanager.ListSecretsInput{
		Filters: []types.Filter{{Key: types.FilterNameStringTypeName, Values: names[1:2]}},
	})).SecretList[0]
	equal(*entry.Tags[0].Key, "list-"+run, "key of the tag")
	equal(*entry.Tags[0].Value, "1", "value of the tag")
	within(entry.CreatedDate, time.Now(), time.Hour, "CreatedDate")
	equal(len(entry.SecretVersionsToStages), 1, "number of versions")
	for _, stages := range entry.SecretVersionsToStages {
		equal(stages, []string{"AWSCURRENT"}, "stages")
	}
}

func batchGetSecretValue() {
	first, second, missing := *newSecret("batch-1", "1").Name, *newSecret("batch-2", "2").Name, nameOf("missing")
	answer := must(secrets.BatchGetSecretValue(ctx, &secretsmanager.BatchGetSecretValueInput{
		SecretIdList: []string{first, second, missing},
	}))
	values := map[string]string{}
	for _, secret := range answer.SecretValues {
		values[*secret.Name] = *secret.SecretString
	}
	equal(values, map[string]string{first: "1", second: "2"}, "SecretValues")
	equal(len(answer.Errors), 1, "number of errors")
	equal(*answer.Errors[0].SecretId, missing, "SecretId of the error")
	equal(*answer.Errors[0].ErrorCode, "ResourceNotFoundException", "ErrorCode")
}

func getRandomPassword() {
	some := func() string {
		return *must(secrets.GetRandomPassword(ctx, &secretsmanager.GetRandomPasswordInput{})).RandomPassword
	}
	password := some()
	equal(len(password), 32, "length")
	check(some() != password, "the same password twice")
	password = *must(secrets.GetRandomPassword(ctx, &secretsmanager.GetRandomPasswordInput{
		PasswordLength: aws.Int64(100), ExcludePunctuation: aws.Bool(true), ExcludeNumbers: aws.Bool(true),
	})).RandomPassword
	check(regexp.MustCompile(`^[A-Za-z]{100}$`).MatchString(password), "password %s", password)
}

func secretNotFound() {
	missing := nameOf("missing")
	refused[*types.ResourceNotFoundException](tryRead(secrets, missing))
	refused[*types.ResourceNotFoundException](failed(secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: &missing, SecretString: aws.String("value"),
	})))
	refused[*types.ResourceNotFoundException](tryDescribeSecret(missing))
}

func invalidParameter() {
	name := newSecret("invalid", "first").Name
	refused[*types.InvalidParameterException](failed(secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: name, RecoveryWindowInDays: aws.Int64(6),
	})))
	refused[*types.InvalidParameterException](failed(secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: name, RecoveryWindowInDays: aws.Int64(7), ForceDeleteWithoutRecovery: aws.Bool(true),
	})))
	refused[*types.InvalidNextTokenException](failed(secrets.ListSecrets(ctx, &secretsmanager.ListSecretsInput{
		NextToken: aws.String("no token"),
	})))
	equal(read(name), "first", "SecretString")
}

func deleteAndRestore() {
	made := newSecret("delete", "first")
	deleted := must(secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: made.Name, RecoveryWindowInDays: aws.Int64(7),
	}))
	equal(*deleted.ARN, *made.ARN, "ARN")
	equal(*deleted.Name, *made.Name, "Name")
	within(deleted.DeletionDate, time.Now().Add(7*day), time.Hour, "DeletionDate")
	refused[*types.InvalidRequestException](tryRead(secrets, *made.Name))
	within(describeSecret(made.Name).DeletedDate, time.Now(), 8*day, "DeletedDate")
	restored := must(secrets.RestoreSecret(ctx, &secretsmanager.RestoreSecretInput{SecretId: made.Name}))
	equal(*restored.ARN, *made.ARN, "ARN")
	equal(read(made.Name), "first", "SecretString")
	check(describeSecret(made.Name).DeletedDate == nil, "DeletedDate after RestoreSecret")
}

func forceDelete() {
	made := newSecret("force", "first")
	deleted := must(secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: made.Name, ForceDeleteWithoutRecovery: aws.Bool(true),
	}))
	equal(*deleted.ARN, *made.ARN, "ARN")
	within(deleted.DeletionDate, time.Now(), time.Hour, "DeletionDate")
	eventually("the secret is gone", func() bool { return gone(tryDescribeSecret(*made.Name)) })
}
