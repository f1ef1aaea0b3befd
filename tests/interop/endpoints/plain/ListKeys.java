import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.http.crt.AwsCrtHttpClient;
import software.amazon.awssdk.services.kms.KmsClient;

/**
 * Lists KMS keys with the AWS SDK for Java over the CRT client. Endpoint, region and credentials come from the environment.
 *
 * <p>usage: ListKeys pq|classical
 */
final class ListKeys {
    private ListKeys() {}

    public static void main(String[] args) {
        boolean postQuantum = args[0].equals("pq");
        try (SdkHttpClient http =
                        AwsCrtHttpClient.builder().postQuantumTlsEnabled(postQuantum).build();
                KmsClient kms = KmsClient.builder().httpClient(http).build()) {
            System.out.println(kms.listKeys().keys().size() + " keys");
        }
        System.exit(0);
    }
}
