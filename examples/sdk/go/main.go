// Command sign signs with ML-DSA-65 by the AWS SDK for Go v2. Set-up: AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and
// AWS_PROFILE; the SDK takes the CA from the profile.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"
)

func main() {
	ctx := context.Background()
	session, err := config.LoadDefaultConfig(ctx)
	check(err)
	client := kms.NewFromConfig(session)
	made, err := client.CreateKey(ctx, &kms.CreateKeyInput{
		KeySpec: types.KeySpecMlDsa65, KeyUsage: types.KeyUsageTypeSignVerify,
	})
	check(err)
	key := made.KeyMetadata.KeyId
	signed, err := client.Sign(ctx, &kms.SignInput{
		KeyId: key, Message: []byte("release 1"), SigningAlgorithm: types.SigningAlgorithmSpecMlDsaShake256,
	})
	check(err)
	verified, err := client.Verify(ctx, &kms.VerifyInput{
		KeyId: key, Message: []byte("release 1"), Signature: signed.Signature,
		SigningAlgorithm: types.SigningAlgorithmSpecMlDsaShake256,
	})
	check(err)
	fmt.Printf("key %s: a signature of %d bytes, valid: %t\n", *key, len(signed.Signature), verified.SignatureValid)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
