package outlast.interop;

import static outlast.interop.KmsCalls.*;
import static outlast.interop.KmsCryptoSteps.verifier;

import java.security.Security;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import outlast.interop.KmsCalls.Failed;
import outlast.interop.KmsCalls.Skipped;
import outlast.interop.KmsCalls.Step;
import software.amazon.awssdk.services.kms.model.DataKeyPairSpec;
import software.amazon.awssdk.services.kms.model.KeySpec;
import software.amazon.awssdk.services.kms.model.SigningAlgorithmSpec;

/**
 * The program of KMS_STEPS.md by the AWS SDK for Java v2 over the CRT client with post-quantum TLS; with "secrets" as
 * the first argument, that of SECRETS_STEPS.md.
 *
 * <p>Everything comes from AWS_CONFIG_FILE, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE, but for the CA: the
 * CRT trusts what the system trusts, so start it by run-with-ca.sh. With OUTLAST_ROLE_ARN it takes on that role.
 */
public final class KmsWhole {
    private final Map<String, Step> steps = new LinkedHashMap<>();

    public static void main(String[] arguments) {
        Security.addProvider(new BouncyCastleProvider());
        for (String name : List.of("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_PROFILE")) {
            if (System.getenv(name) == null) {
                System.err.println("the environment lacks " + name);
                System.exit(2);
            }
        }
        if (endpoint() == null) {
            System.err.println("the profile has no endpoint_url");
            System.exit(2);
        }
        List<String> wanted = List.of(arguments);
        boolean secrets = !wanted.isEmpty() && wanted.get(0).equals("secrets");
        System.exit(secrets
                ? run(SecretsSteps.all(), wanted.subList(1, wanted.size()), SecretsSteps::deleteAll)
                : run(new KmsWhole().steps, wanted, KmsCalls::cleanUp));
    }

    // In the order of KMS_STEPS.md.
    private KmsWhole() {
        steps.put("create-symmetric", KmsKeySteps::createSymmetric);
        steps.put("describe-key", KmsKeySteps::describeKey);
        steps.put("list-keys", KmsKeySteps::listKeys);
        steps.put("update-key-description", KmsKeySteps::updateKeyDescription);
        steps.put("tags", KmsKeySteps::tags);
        steps.put("enable-disable", KmsKeySteps::enableDisable);
        steps.put("alias", KmsKeySteps::alias);
        steps.put("encrypt-decrypt", KmsKeySteps::encryptDecrypt);
        steps.put("re-encrypt", KmsKeySteps::reEncrypt);
        steps.put("generate-data-key", KmsKeySteps::generateDataKey);
        steps.put("generate-data-key-without-plaintext", KmsKeySteps::generateDataKeyWithoutPlaintext);
        List<DataKeyPairSpec> pairs =
                List.of(DataKeyPairSpec.RSA_2048, DataKeyPairSpec.ECC_NIST_P256, DataKeyPairSpec.ML_KEM_768);
        for (DataKeyPairSpec spec : pairs) {
            steps.put("generate-data-key-pair-" + dashed(spec), () -> KmsKeySteps.dataKeyPair(spec));
        }
        for (DataKeyPairSpec spec : pairs) {
            steps.put("generate-data-key-pair-without-plaintext-" + dashed(spec),
                    () -> KmsKeySteps.dataKeyPairWithoutPlaintext(spec));
        }
        steps.put("generate-random", KmsKeySteps::generateRandom);
        steps.put("get-public-key", KmsCryptoSteps::getPublicKey);
        signVerify(KeySpec.RSA_2048, "-pss", SigningAlgorithmSpec.RSASSA_PSS_SHA_256, true, 256,
                KmsCryptoSteps::verifyPss);
        signVerify(KeySpec.RSA_2048, "-pkcs1", SigningAlgorithmSpec.RSASSA_PKCS1_V1_5_SHA_256, true, 256,
                verifier("RSA", "SHA256withRSA"));
        signVerify(KeySpec.ECC_NIST_P256, "", SigningAlgorithmSpec.ECDSA_SHA_256, true, 0,
                verifier("EC", "SHA256withECDSA"));
        signVerify(KeySpec.ECC_SECG_P256_K1, "", SigningAlgorithmSpec.ECDSA_SHA_256, true, 0,
                verifier("EC", "SHA256withECDSA"));
        signVerify(KeySpec.ECC_NIST_EDWARDS25519, "", SigningAlgorithmSpec.ED25519_SHA_512, false, 64,
                verifier("Ed25519", "Ed25519"));
        KmsCryptoSteps.Verifier mlDsa = verifier("ML-DSA", "ML-DSA");
        signVerify(KeySpec.ML_DSA_44, "", SigningAlgorithmSpec.ML_DSA_SHAKE_256, false, 2420, mlDsa);
        signVerify(KeySpec.ML_DSA_65, "", SigningAlgorithmSpec.ML_DSA_SHAKE_256, false, 3309, mlDsa);
        signVerify(KeySpec.ML_DSA_87, "", SigningAlgorithmSpec.ML_DSA_SHAKE_256, false, 4627, mlDsa);
        steps.put("sign-verify-ml-dsa-65-external-mu", KmsCryptoSteps::externalMu);
        steps.put("mac-hmac-256", KmsCryptoSteps::macHmac256);
        steps.put("derive-shared-secret", KmsCryptoSteps::deriveSharedSecret);
        steps.put("derive-shared-secret-local", KmsCryptoSteps::deriveSharedSecretLocal);
        steps.put("ml-kem-768", KmsCryptoSteps::mlKem);
        steps.put("ml-kem-768-local", KmsCryptoSteps::mlKemLocal);
        steps.put("ml-kem-768-wrong-length", KmsCryptoSteps::mlKemWrongLength);
        steps.put("get-parameters-for-import", KmsMaterialSteps::getParametersForImport);
        steps.put("import-key-material", KmsMaterialSteps::importKeyMaterial);
        steps.put("delete-imported-key-material", KmsMaterialSteps::deleteImportedKeyMaterial);
        steps.put("import-other-key-material", KmsMaterialSteps::importOtherKeyMaterial);
        steps.put("key-rotation", KmsMaterialSteps::keyRotation);
        steps.put("rotate-key-on-demand", KmsMaterialSteps::rotateKeyOnDemand);
        steps.put("create-grant", KmsMaterialSteps::createGrant);
        steps.put("list-retirable-grants", KmsMaterialSteps::listRetirableGrants);
        steps.put("grant-token", KmsMaterialSteps::grantToken);
        steps.put("retire-grant", KmsMaterialSteps::retireGrant);
        steps.put("revoke-grant", KmsMaterialSteps::revokeGrant);
        steps.put("get-key-policy", KmsMaterialSteps::getKeyPolicy);
        steps.put("put-key-policy", KmsMaterialSteps::putKeyPolicy);
        steps.put("put-key-policy-lockout", KmsMaterialSteps::putKeyPolicyLockout);
        steps.put("replicate-key", KmsLastSteps::replicateKey);
        steps.put("update-primary-region", KmsLastSteps::updatePrimaryRegion);
        steps.put("dry-run", KmsLastSteps::dryRun);
        steps.put("get-key-last-usage", KmsLastSteps::getKeyLastUsage);
        steps.put("describe-custom-key-stores", KmsLastSteps::describeCustomKeyStores);
        steps.put("create-custom-key-store", KmsLastSteps::createCustomKeyStore);
        steps.put("not-found", KmsLastSteps::notFound);
        steps.put("validation", KmsLastSteps::validation);
        steps.put("foreign-arn", KmsLastSteps::foreignArn);
        steps.put("schedule-key-deletion", KmsLastSteps::scheduleKeyDeletion);
        steps.put("cancel-key-deletion", KmsLastSteps::cancelKeyDeletion);
        steps.put("get-caller-identity", KmsLastSteps::getCallerIdentity);
        steps.put("assume-role", KmsLastSteps::assumeRole);
        steps.put("assume-role-profile", KmsLastSteps::assumeRoleProfile);
    }

    private void signVerify(KeySpec spec, String suffix, SigningAlgorithmSpec algorithm, boolean digest, int length,
            KmsCryptoSteps.Verifier local) {
        steps.put("sign-verify-" + dashed(spec) + suffix,
                () -> KmsCryptoSteps.signVerify(spec, algorithm, digest, length, local));
    }

    private static int run(Map<String, Step> steps, List<String> wanted, Runnable cleanUp) {
        for (String name : wanted) {
            if (!steps.containsKey(name)) {
                System.err.println("unknown step " + name);
                return 2;
            }
        }
        int passed = 0;
        int failed = 0;
        int skipped = 0;
        for (String name : wanted.isEmpty() ? steps.keySet() : wanted) {
            try {
                steps.get(name).run();
                passed++;
                System.out.println("ok " + name);
            } catch (Skipped e) {
                skipped++;
                System.out.println("skipped " + name + ": " + e.getMessage());
            } catch (Exception | LinkageError e) {
                failed++;
                String reason = (e instanceof Failed ? e.getMessage() : described(e)).replaceAll("\\s+", " ");
                System.out.println("FAILED " + name + ": " + reason.substring(0, Math.min(reason.length(), 400)));
            }
        }
        cleanUp.run();
        String rest = skipped > 0 ? ", " + skipped + " skipped" : "";
        System.out.println(passed + " steps passed, " + failed + " failed" + rest);
        return failed > 0 ? 1 : 0;
    }
}
