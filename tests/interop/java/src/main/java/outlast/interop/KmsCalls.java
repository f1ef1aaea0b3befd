package outlast.interop;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.http.crt.AwsCrtHttpClient;
import software.amazon.awssdk.profiles.ProfileFile;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.model.*;
import software.amazon.awssdk.services.sts.StsClient;

/** Clients, checks, and the calls that many steps make. */
final class KmsCalls {
    static final int SPKI_HEADER = 22;
    static final int ML_KEM_PUBLIC = 1184;
    static final SdkBytes PLAINTEXT = SdkBytes.fromUtf8String("plaintext");

    static final SdkHttpClient http =
            AwsCrtHttpClient.builder().postQuantumTlsEnabled(true).connectionTimeout(Duration.ofSeconds(10)).build();
    static final KmsClient kms = KmsClient.builder().httpClient(http).build();
    static final StsClient sts = StsClient.builder().httpClient(http).build();
    static final String region = kms.serviceClientConfiguration().region().id();
    /** Distinguishes this run's names. */
    static final String run = HexFormat.of().formatHex(random(6));
    private static final List<Made> made = new ArrayList<>();

    interface Step {
        void run() throws Exception;
    }

    static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failed(String message) {
            super(message);
        }
    }

    /** The step cannot be done here. */
    static final class Skipped extends RuntimeException {
        private static final long serialVersionUID = 1;

        Skipped(String message) {
            super(message);
        }
    }

    private record Made(KmsClient client, String key) {}

    private KmsCalls() {}

    /** The key is to be deleted in the end. */
    static void note(KmsClient client, String key) {
        made.add(new Made(client, key));
    }

    static void cleanUp() {
        for (Made key : made) {
            try {
                key.client().scheduleKeyDeletion(r -> r.keyId(key.key()).pendingWindowInDays(7));
            } catch (KmsException e) {
                // It is deleted already, or the service cannot.
            }
        }
    }

    /** The endpoint_url of the profile; the SDK reads it by itself. */
    static String endpoint() {
        return ProfileFile.defaultProfileFile().profile(System.getenv("AWS_PROFILE"))
                .flatMap(profile -> profile.property("endpoint_url")).orElse(null);
    }

    static void check(boolean condition, String message) {
        if (!condition) {
            throw new Failed(message);
        }
    }

    static void equal(Object got, Object want, String what) {
        check(want.equals(got), what + ": got " + got + ", want " + want);
    }

    static void within(Instant got, Instant want, Duration tolerance, String what) {
        check(got != null, "no " + what);
        boolean near = Duration.between(want, got).abs().compareTo(tolerance) <= 0;
        check(near, what + ": got " + got + ", want about " + want);
    }

    /** The SDK's own texts leave out the code. */
    static String described(Throwable e) {
        boolean answered = e instanceof AwsServiceException a && a.awsErrorDetails() != null;
        return (answered ? ((AwsServiceException) e).awsErrorDetails().errorCode() + ": " : "") + e;
    }

    /** The call must be answered with this error, by the SDK's own class. */
    static void refused(Class<? extends KmsException> kind, Step call) throws Exception {
        try {
            call.run();
        } catch (AwsServiceException e) {
            check(kind.isInstance(e), "got " + described(e) + ", want " + kind.getSimpleName());
            return;
        }
        throw new Failed("no " + kind.getSimpleName());
    }

    /** The call must be answered with one of these error codes. */
    static void refusedAs(List<String> codes, Step call) throws Exception {
        try {
            call.run();
        } catch (AwsServiceException e) {
            check(codes.contains(e.awsErrorDetails().errorCode()), "got " + described(e) + ", want " + codes);
            return;
        }
        throw new Failed("no " + codes);
    }

    /** Waits for what may take effect later; AWS promises no more than that. */
    static void eventually(String what, BooleanSupplier condition) throws InterruptedException {
        Instant until = Instant.now().plusSeconds(60);
        while (!condition.getAsBoolean()) {
            check(Instant.now().isBefore(until), what + ": not within 60 seconds");
            Thread.sleep(500);
        }
    }

    static String dashed(Object spec) {
        return spec.toString().toLowerCase().replace('_', '-');
    }

    static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new SecureRandom().nextBytes(bytes);
        return bytes;
    }

    static byte[] flip(byte[] data) {
        byte[] changed = data.clone();
        changed[changed.length - 1] ^= 1;
        return changed;
    }

    static SdkBytes flip(SdkBytes data) {
        return SdkBytes.fromByteArray(flip(data.asByteArray()));
    }

    static SdkBytes bytes(byte[] data) {
        return SdkBytes.fromByteArray(data);
    }

    static KeyMetadata newKey() {
        return newKey(r -> {});
    }

    static KeyMetadata newKey(Consumer<CreateKeyRequest.Builder> with) {
        CreateKeyRequest.Builder request = CreateKeyRequest.builder().description("kms-whole " + run);
        with.accept(request);
        KeyMetadata key = kms.createKey(request.build()).keyMetadata();
        note(kms, key.keyId());
        return key;
    }

    static KeyMetadata newKey(KeySpec spec, KeyUsageType usage) {
        return newKey(r -> r.keySpec(spec).keyUsage(usage));
    }

    static KeyMetadata describe(String key) {
        return describe(kms, key);
    }

    static KeyMetadata describe(KmsClient client, String key) {
        return client.describeKey(r -> r.keyId(key)).keyMetadata();
    }

    static SdkBytes encrypt(String key, SdkBytes plaintext) {
        return kms.encrypt(r -> r.keyId(key).plaintext(plaintext)).ciphertextBlob();
    }

    static SdkBytes encrypt(String key) {
        return encrypt(key, PLAINTEXT);
    }

    static SdkBytes decrypt(SdkBytes blob) {
        return decrypt(blob, Map.of());
    }

    static SdkBytes decrypt(SdkBytes blob, Map<String, String> context) {
        return kms.decrypt(r -> r.ciphertextBlob(blob).encryptionContext(context)).plaintext();
    }

    static byte[] publicKey(KeyMetadata key) {
        return kms.getPublicKey(r -> r.keyId(key.keyId())).publicKey().asByteArray();
    }

    static PublicKey parsed(String algorithm, byte[] spki) throws GeneralSecurityException {
        return KeyFactory.getInstance(algorithm, "BC").generatePublic(new X509EncodedKeySpec(spki));
    }
}
