package main

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

var keySteps = []step{
	{"create-symmetric", createSymmetric},
	{"describe-key", describeKey},
	{"list-keys", listKeys},
	{"update-key-description", updateKeyDescription},
	{"tags", tags},
	{"enable-disable", enableDisable},
	{"alias", alias},
}

func createSymmetric() {
	key := newKey(kms.CreateKeyInput{
		Description: aws.String("first ä"),
		Tags:        []types.Tag{{TagKey: aws.String("run"), TagValue: &run}},
	})
	equal(key.KeySpec, types.KeySpecSymmetricDefault, "KeySpec")
	equal(key.KeyUsage, types.KeyUsageTypeEncryptDecrypt, "KeyUsage")
	equal(key.EncryptionAlgorithms, []types.EncryptionAlgorithmSpec{types.EncryptionAlgorithmSpecSymmetricDefault}, "EncryptionAlgorithms")
	equal(key.KeyState, types.KeyStateEnabled, "KeyState")
	equal(key.Enabled, true, "Enabled")
	equal(key.Origin, types.OriginTypeAwsKms, "Origin")
	equal(key.KeyManager, types.KeyManagerTypeCustomer, "KeyManager")
	equal(key.MultiRegion, aws.Bool(false), "MultiRegion")
	equal(*key.Description, "first ä", "Description")
	check(regexp.MustCompile(`^\d{12}$`).MatchString(*key.AWSAccountId), "AWSAccountId %s", *key.AWSAccountId)
	equal(*key.Arn, "arn:aws:kms:"+region+":"+*key.AWSAccountId+":key/"+*key.KeyId, "Arn")
	within(key.CreationDate, time.Now(), time.Hour, "CreationDate")
	equal(tagsOf(key), map[string]string{"run": run}, "tags")
}

func describeKey() {
	key := symmetricKey()
	for _, name := range []*string{key.KeyId, key.Arn} {
		equal(describe(name), key, "metadata of "+*name)
	}
}

func listKeys() {
	wanted := []string{*symmetricKey().Arn, *symmetricKey().Arn, *symmetricKey().Arn}
	listed := map[string]bool{}
	pages := kms.NewListKeysPaginator(client, &kms.ListKeysInput{Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx)).Keys
		check(len(page) <= 2, "a page of more than 2")
		for _, key := range page {
			check(!listed[*key.KeyArn], "%s listed twice", *key.KeyArn)
			listed[*key.KeyArn] = true
		}
	}
	for _, arn := range wanted {
		check(listed[arn], "not listed: %s", arn)
	}
}

func updateKeyDescription() {
	key := symmetricKey().KeyId
	must(client.UpdateKeyDescription(ctx, &kms.UpdateKeyDescriptionInput{KeyId: key, Description: aws.String("second ä")}))
	equal(*describe(key).Description, "second ä", "Description")
}

func tagsOf(key *types.KeyMetadata) map[string]string {
	found := map[string]string{}
	pages := kms.NewListResourceTagsPaginator(client, &kms.ListResourceTagsInput{KeyId: key.KeyId})
	for pages.HasMorePages() {
		for _, tag := range must(pages.NextPage(ctx)).Tags {
			found[*tag.TagKey] = *tag.TagValue
		}
	}
	return found
}

func tags() {
	key := symmetricKey()
	must(client.TagResource(ctx, &kms.TagResourceInput{KeyId: key.KeyId, Tags: []types.Tag{
		{TagKey: aws.String("team"), TagValue: aws.String("ä/+ 1")},
		{TagKey: aws.String("stage"), TagValue: aws.String("test")},
	}}))
	equal(tagsOf(key), map[string]string{"team": "ä/+ 1", "stage": "test"}, "tags")
	must(client.UntagResource(ctx, &kms.UntagResourceInput{KeyId: key.KeyId, TagKeys: []string{"stage"}}))
	equal(tagsOf(key), map[string]string{"team": "ä/+ 1"}, "tags after UntagResource")
}

func enableDisable() {
	key := symmetricKey().KeyId
	must(client.DisableKey(ctx, &kms.DisableKeyInput{KeyId: key}))
	metadata := describe(key)
	equal(metadata.KeyState, types.KeyStateDisabled, "KeyState")
	equal(metadata.Enabled, false, "Enabled")
	refused[*types.DisabledException](tryEncrypt(key))
	must(client.EnableKey(ctx, &kms.EnableKeyInput{KeyId: key}))
	metadata = describe(key)
	equal(metadata.KeyState, types.KeyStateEnabled, "KeyState")
	equal(metadata.Enabled, true, "Enabled")
	done(tryEncrypt(key))
}

func alias() {
	first, second := symmetricKey(), symmetricKey()
	name := "alias/kms-whole-" + run
	create := &kms.CreateAliasInput{AliasName: &name, TargetKeyId: first.KeyId}
	must(client.CreateAlias(ctx, create))
	equal(*describe(&name).KeyId, *first.KeyId, "KeyId by the alias")
	refused[*types.AlreadyExistsException](failed(client.CreateAlias(ctx, create)))
	must(client.UpdateAlias(ctx, &kms.UpdateAliasInput{AliasName: &name, TargetKeyId: second.KeyId}))
	equal(*describe(&name).KeyId, *second.KeyId, "KeyId by the alias after UpdateAlias")

	ofKey := must(client.ListAliases(ctx, &kms.ListAliasesInput{KeyId: second.KeyId})).Aliases
	equal(len(ofKey), 1, "number of aliases of the key")
	equal(*ofKey[0].AliasName, name, "AliasName")
	equal(*ofKey[0].TargetKeyId, *second.KeyId, "TargetKeyId")
	var listed []string
	pages := kms.NewListAliasesPaginator(client, &kms.ListAliasesInput{Limit: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, entry := range must(pages.NextPage(ctx)).Aliases {
			if *entry.AliasName == name {
				listed = append(listed, *entry.AliasArn)
			}
		}
	}
	prefix := (*second.Arn)[:strings.LastIndex(*second.Arn, ":")]
	check(slices.Equal(listed, []string{prefix + ":" + name}), "listed alias: %v", listed)

	must(client.DeleteAlias(ctx, &kms.DeleteAliasInput{AliasName: &name}))
	refused[*types.NotFoundException](failed(client.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: &name})))
}
