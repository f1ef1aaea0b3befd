package main

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

var grantSteps = []step{
	{"create-grant", createGrant},
	{"list-retirable-grants", listRetirableGrants},
	{"grant-token", grantToken},
	{"retire-grant", retireGrant},
	{"revoke-grant", revokeGrant},
	{"get-key-policy", getKeyPolicy},
	{"put-key-policy", putKeyPolicy},
	{"put-key-policy-lockout", putKeyPolicyLockout},
}

var context42Only = map[string]string{"tenant": "42"}

// newGrant makes a key and a grant on it for the caller, and gives the caller's ARN too.
func newGrant() (*types.KeyMetadata, *string, *kms.CreateGrantOutput) {
	key := symmetricKey()
	arn := must(caller.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})).Arn
	answer := must(client.CreateGrant(ctx, &kms.CreateGrantInput{
		KeyId:             key.KeyId,
		GranteePrincipal:  arn,
		RetiringPrincipal: arn,
		Operations:        []types.GrantOperation{types.GrantOperationEncrypt, types.GrantOperationDecrypt},
		Constraints:       &types.GrantConstraints{EncryptionContextEquals: context42Only},
		Name:              aws.String("grant-" + run),
	}))
	check(*answer.GrantToken != "" && *answer.GrantId != "", "no GrantToken or no GrantId")
	return key, arn, answer
}

func isListed(key *types.KeyMetadata, id string) bool {
	pages := kms.NewListGrantsPaginator(client, &kms.ListGrantsInput{KeyId: key.KeyId})
	for pages.HasMorePages() {
		for _, grant := range must(pages.NextPage(ctx)).Grants {
			if *grant.GrantId == id {
				return true
			}
		}
	}
	return false
}

func createGrant() {
	key, arn, grant := newGrant()
	listed := must(client.ListGrants(ctx, &kms.ListGrantsInput{KeyId: key.KeyId, GrantId: grant.GrantId})).Grants
	equal(len(listed), 1, "number of grants")
	entry := listed[0]
	equal(*entry.GrantId, *grant.GrantId, "GrantId")
	equal(*entry.KeyId, *key.Arn, "KeyId")
	equal(*entry.GranteePrincipal, *arn, "GranteePrincipal")
	equal(*entry.RetiringPrincipal, *arn, "RetiringPrincipal")
	equal(entry.Constraints.EncryptionContextEquals, context42Only, "EncryptionContextEquals")
	equal(*entry.Name, "grant-"+run, "Name")
	slices.Sort(entry.Operations)
	equal(entry.Operations, []types.GrantOperation{types.GrantOperationDecrypt, types.GrantOperationEncrypt}, "Operations")
	within(entry.CreationDate, time.Now(), time.Hour, "CreationDate")
}

func listRetirableGrants() {
	_, arn, grant := newGrant()
	found := 0
	pages := kms.NewListRetirableGrantsPaginator(client, &kms.ListRetirableGrantsInput{RetiringPrincipal: arn})
	for pages.HasMorePages() {
		for _, entry := range must(pages.NextPage(ctx)).Grants {
			if *entry.GrantId == *grant.GrantId {
				found++
			}
		}
	}
	equal(found, 1, "occurrences of the grant")
}

func grantToken() {
	key, _, grant := newGrant()
	input := &kms.EncryptInput{
		KeyId: key.KeyId, Plaintext: []byte("plaintext"), EncryptionContext: context42Only, GrantTokens: []string{*grant.GrantToken},
	}
	decrypted := must(client.Decrypt(ctx, &kms.DecryptInput{
		CiphertextBlob:    must(client.Encrypt(ctx, input)).CiphertextBlob,
		EncryptionContext: context42Only,
		GrantTokens:       []string{*grant.GrantToken},
	}))
	equal(string(decrypted.Plaintext), "plaintext", "Plaintext")
	input.GrantTokens = []string{"no-grant-token"}
	refused[*types.InvalidGrantTokenException](failed(client.Encrypt(ctx, input)))
}

func retireGrant() {
	key, _, grant := newGrant()
	check(isListed(key, *grant.GrantId), "the grant is not listed")
	must(client.RetireGrant(ctx, &kms.RetireGrantInput{GrantToken: grant.GrantToken}))
	eventually("grant gone", func() bool { return !isListed(key, *grant.GrantId) })
}

func revokeGrant() {
	key, _, grant := newGrant()
	input := &kms.RevokeGrantInput{KeyId: key.KeyId, GrantId: grant.GrantId}
	must(client.RevokeGrant(ctx, input))
	eventually("grant gone", func() bool { return !isListed(key, *grant.GrantId) })
	refusedAs(failed(client.RevokeGrant(ctx, input)), "NotFoundException", "InvalidGrantIdException")
}

func policyOf(key *string) *string {
	return must(client.GetKeyPolicy(ctx, &kms.GetKeyPolicyInput{KeyId: key, PolicyName: aws.String("default")})).Policy
}

func parsed(policy *string) map[string]any {
	var object map[string]any
	done(json.Unmarshal([]byte(*policy), &object))
	return object
}

func getKeyPolicy() {
	key := symmetricKey().KeyId
	names := must(client.ListKeyPolicies(ctx, &kms.ListKeyPoliciesInput{KeyId: key})).PolicyNames
	equal(names, []string{"default"}, "PolicyNames")
	policy := parsed(policyOf(key))
	check(policy["Version"] != nil && policy["Statement"] != nil, "policy %v", policy)
}

func putKeyPolicy() {
	key := symmetricKey().KeyId
	policy := policyOf(key)
	must(client.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{KeyId: key, PolicyName: aws.String("default"), Policy: policy}))
	equal(parsed(policyOf(key)), parsed(policy), "policy")
}

func putKeyPolicyLockout() {
	key := symmetricKey()
	policy := must(json.Marshal(map[string]any{
		"Version": "2012-10-17",
		"Statement": []any{map[string]any{
			"Effect":    "Allow",
			"Principal": map[string]string{"AWS": "arn:aws:iam::" + *key.AWSAccountId + ":root"},
			"Action":    "kms:DescribeKey",
			"Resource":  "*",
		}},
	}))
	refused[*types.MalformedPolicyDocumentException](failed(client.PutKeyPolicy(ctx, &kms.PutKeyPolicyInput{
		KeyId: key.KeyId, PolicyName: aws.String("default"), Policy: aws.String(string(policy)),
	})))
	done(tryEncrypt(key.KeyId))
}
