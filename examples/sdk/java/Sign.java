// Signs with ML-DSA-65 by the AWS SDK for Java v2 and its CRT client, which negotiates hybrid keys. Set-up: AWS_CONFIG_FILE,
// AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE. The CRT trusts the system's CA file only: add client/ca.pem to it
// (update-ca-certificates), since neither ca_bundle nor the JVM's trust store count.
import java.nio.charset.StandardCharsets;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.crt.AwsCrtHttpClient;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.model.KeySpec;
import software.amazon.awssdk.services.kms.model.KeyUsageType;
import software.amazon.awssdk.services.kms.model.SigningAlgorithmSpec;

public final class Sign {
    public static void main(String[] arguments) {
        SdkBytes message = SdkBytes.fromString("release 1", StandardCharsets.UTF_8);
        SigningAlgorithmSpec algorithm = SigningAlgorithmSpec.ML_DSA_SHAKE_256;
        try (KmsClient kms = KmsClient.builder()
                .httpClientBuilder(AwsCrtHttpClient.builder().postQuantumTlsEnabled(true))
                .build()) {
            String key = kms.createKey(r -> r.keySpec(KeySpec.ML_DSA_65).keyUsage(KeyUsageType.SIGN_VERIFY))
                    .keyMetadata().keyId();
            SdkBytes signature = kms.sign(r -> r.keyId(key).message(message).signingAlgorithm(algorithm))
                    .signature();
            boolean valid = kms.verify(r -> r.keyId(key).message(message).signature(signature)
                    .signingAlgorithm(algorithm)).signatureValid();
            System.out.printf("key %s: a signature of %d bytes, valid: %b%n", key,
                    signature.asByteArray().length, valid);
        }
    }
}
