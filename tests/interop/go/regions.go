package main

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

var regionSteps = []step{
	{"replicate-key", replicateKey},
	{"update-primary-region", updatePrimaryRegion},
}

// replicatedKey makes a multi-region key and a replica; gives the replica's region and a client there.
func replicatedKey() (*types.KeyMetadata, string, *kms.Client) {
	other := "eu-west-1"
	if region == other {
		other = "eu-central-1"
	}
	there := kms.NewFromConfig(session, func(o *kms.Options) { o.Region = other })
	key := newKey(kms.CreateKeyInput{MultiRegion: aws.Bool(true)})
	check(strings.HasPrefix(*key.KeyId, "mrk-"), "KeyId %s", *key.KeyId)
	equal(key.MultiRegionConfiguration.MultiRegionKeyType, types.MultiRegionKeyTypePrimary, "MultiRegionKeyType")
	equal(*key.MultiRegionConfiguration.PrimaryKey.Arn, *key.Arn, "PrimaryKey")
	equal(*key.MultiRegionConfiguration.PrimaryKey.Region, region, "PrimaryKey")
	replica := must(client.ReplicateKey(ctx, &kms.ReplicateKeyInput{KeyId: key.KeyId, ReplicaRegion: &other})).ReplicaKeyMetadata
	made = append(made, madeKey{there, *key.KeyId})
	equal(*replica.KeyId, *key.KeyId, "KeyId of the replica")
	equal(*replica.Arn, moved(key, other), "Arn of the replica")
	equal(replica.MultiRegionConfiguration.MultiRegionKeyType, types.MultiRegionKeyTypeReplica, "MultiRegionKeyType")
	eventually("replica enabled", func() bool { return describeBy(there, *key.KeyId).KeyState == types.KeyStateEnabled })
	return key, other, there
}

func moved(key *types.KeyMetadata, other string) string {
	return strings.Replace(*key.Arn, ":"+region+":", ":"+other+":", 1)
}

func replicateKey() {
	key, other, there := replicatedKey()
	answer := must(there.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: encrypt(key.KeyId, "plaintext", nil), KeyId: key.KeyId}))
	equal(string(answer.Plaintext), "plaintext", "Plaintext")
	equal(*answer.KeyId, moved(key, other), "KeyId")
	back := must(there.Encrypt(ctx, &kms.EncryptInput{KeyId: key.KeyId, Plaintext: []byte("back")})).CiphertextBlob
	equal(string(decrypt(back, nil)), "back", "Plaintext of the way back")
	replicas := describe(key.KeyId).MultiRegionConfiguration.ReplicaKeys
	equal(len(replicas), 1, "number of replicas")
	equal(*replicas[0].Region, other, "region of the replica")
}

func updatePrimaryRegion() {
	key, other, there := replicatedKey()
	must(client.UpdatePrimaryRegion(ctx, &kms.UpdatePrimaryRegionInput{KeyId: key.KeyId, PrimaryRegion: &other}))
	changed := func(by *kms.Client, kind types.MultiRegionKeyType) func() bool {
		return func() bool {
			metadata := describeBy(by, *key.KeyId)
			configuration := metadata.MultiRegionConfiguration
			return metadata.KeyState == types.KeyStateEnabled && configuration.MultiRegionKeyType == kind &&
				*configuration.PrimaryKey.Region == other
		}
	}
	eventually("the replica is the primary", changed(there, types.MultiRegionKeyTypePrimary))
	eventually("the primary is a replica", changed(client, types.MultiRegionKeyTypeReplica))
}
