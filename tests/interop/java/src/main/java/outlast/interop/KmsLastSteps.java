package outlast.interop;

import static outlast.interop.KmsCalls.*;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import outlast.interop.KmsCalls.Failed;
import outlast.interop.KmsCalls.Skipped;
import software.amazon.awssdk.auth.credentials.AwsSessionCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.profiles.ProfileFile;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.model.*;
import software.amazon.awssdk.services.sts.StsClient;

/** Several regions, dry runs, last usage, custom key stores, errors, deletion, STS. */
final class KmsLastSteps {
    private record Replicated(KeyMetadata key, String other, KmsClient there) {}

    private KmsLastSteps() {}

    // Several regions

    static String moved(KeyMetadata key, String other) {
        return key.arn().replace(":" + region + ":", ":" + other + ":");
    }

    static Replicated replicatedKey() throws Exception {
        String other = region.equals("eu-west-1") ? "eu-central-1" : "eu-west-1";
        KmsClient there = KmsClient.builder().httpClient(http).region(Region.of(other)).build();
        KeyMetadata key = newKey(r -> r.multiRegion(true));
        check(key.keyId().startsWith("mrk-"), "KeyId " + key.keyId());
        equal(key.multiRegionConfiguration().multiRegionKeyType(), MultiRegionKeyType.PRIMARY, "MultiRegionKeyType");
        equal(key.multiRegionConfiguration().primaryKey(),
                MultiRegionKey.builder().arn(key.arn()).region(region).build(), "PrimaryKey");
        KeyMetadata replica = kms.replicateKey(r -> r.keyId(key.keyId()).replicaRegion(other)).replicaKeyMetadata();
        note(there, key.keyId());
        equal(replica.keyId(), key.keyId(), "KeyId of the replica");
        equal(replica.arn(), moved(key, other), "Arn of the replica");
        MultiRegionKeyType type = replica.multiRegionConfiguration().multiRegionKeyType();
        equal(type, MultiRegionKeyType.REPLICA, "MultiRegionKeyType");
        eventually("replica enabled", () -> describe(there, key.keyId()).keyState() == KeyState.ENABLED);
        return new Replicated(key, other, there);
    }

    static void replicateKey() throws Exception {
        Replicated replicated = replicatedKey();
        KeyMetadata key = replicated.key();
        SdkBytes blob = encrypt(key.keyId());
        DecryptResponse answer = replicated.there().decrypt(r -> r.ciphertextBlob(blob).keyId(key.keyId()));
        equal(answer.plaintext(), PLAINTEXT, "Plaintext");
        equal(answer.keyId(), moved(key, replicated.other()), "KeyId");
        SdkBytes back = replicated.there().encrypt(r -> r.keyId(key.keyId()).plaintext(PLAINTEXT)).ciphertextBlob();
        equal(decrypt(back), PLAINTEXT, "Plaintext of the way back");
        List<String> regions = describe(key.keyId()).multiRegionConfiguration().replicaKeys().stream()
                .map(MultiRegionKey::region).toList();
        equal(regions, List.of(replicated.other()), "regions of the replicas");
    }

    static void updatePrimaryRegion() throws Exception {
        Replicated replicated = replicatedKey();
        String other = replicated.other();
        kms.updatePrimaryRegion(r -> r.keyId(replicated.key().keyId()).primaryRegion(other));
        eventually("the replica is the primary", () -> is(replicated.there(), replicated, MultiRegionKeyType.PRIMARY));
        eventually("the primary is a replica", () -> is(kms, replicated, MultiRegionKeyType.REPLICA));
    }

    static boolean is(KmsClient client, Replicated replicated, MultiRegionKeyType type) {
        KeyMetadata key = describe(client, replicated.key().keyId());
        return key.keyState() == KeyState.ENABLED && key.multiRegionConfiguration().multiRegionKeyType() == type
                && key.multiRegionConfiguration().primaryKey().region().equals(replicated.other());
    }

    // Dry runs, last usage, custom key stores

    static void dryRun() throws Exception {
        String key = newKey().keyId();
        refused(DryRunOperationException.class, () -> kms.encrypt(r -> r.keyId(key).plaintext(PLAINTEXT).dryRun(true)));
        refused(DryRunOperationException.class,
                () -> kms.generateDataKey(r -> r.keyId(key).keySpec(DataKeySpec.AES_256).dryRun(true)));
        decrypt(kms.encrypt(r -> r.keyId(key).plaintext(PLAINTEXT).dryRun(false)).ciphertextBlob());
    }

    static GetKeyLastUsageResponse usage(KeyMetadata key) {
        return kms.getKeyLastUsage(r -> r.keyId(key.keyId()));
    }

    static boolean isUsed(KeyMetadata key) {
        KeyLastUsageData used = usage(key).keyLastUsage();
        return used != null && used.timestamp() != null;
    }

    static void getKeyLastUsage() throws Exception {
        KeyMetadata key = newKey();
        check(!isUsed(key), "KeyLastUsage of an unused key");
        within(usage(key).keyCreationDate(), key.creationDate(), Duration.ofSeconds(1), "KeyCreationDate");
        check(usage(key).trackingStartDate() != null, "no TrackingStartDate");
        encrypt(key.keyId());
        eventually("usage recorded", () -> isUsed(key));
        KeyLastUsageData used = usage(key).keyLastUsage();
        equal(used.operation(), KeyLastUsageTrackingOperation.ENCRYPT, "Operation");
        within(used.timestamp(), Instant.now(), Duration.ofHours(1), "Timestamp");
    }

    static void describeCustomKeyStores() {
        DescribeCustomKeyStoresResponse answer = kms.describeCustomKeyStores();
        check(answer.hasCustomKeyStores() && answer.customKeyStores().isEmpty(), "CustomKeyStores: got " + answer);
    }

    static void createCustomKeyStore() {
        try {
            kms.createCustomKeyStore(r -> r.customKeyStoreName("store-" + run).cloudHsmClusterId("cluster-2a23b4cdefg")
                    .trustAnchorCertificate("no certificate").keyStorePassword("kmsPswd1"));
        } catch (KmsException e) {
            // What the model does not have is a plain KmsException.
            check(e.getClass() != KmsException.class && !(e instanceof KmsInternalException), "got " + described(e));
            return;
        }
        throw new Failed("no error");
    }

    // Errors, deletion

    static void notFound() throws Exception {
        String unknown = UUID.randomUUID().toString();
        refused(NotFoundException.class, () -> describe(unknown));
        refused(NotFoundException.class, () -> encrypt(unknown));
        refused(NotFoundException.class, () -> describe("alias/unknown-" + run));
    }

    static void validation() throws Exception {
        List<String> wanted = List.of("ValidationException");
        refusedAs(wanted, () -> newKey(r -> r.keySpec("RSA_1024").keyUsage(KeyUsageType.SIGN_VERIFY)));
        refusedAs(wanted, () -> newKey(r -> r.keySpec(KeySpec.ML_DSA_65)));
    }

    static void foreignArn() throws Exception {
        KeyMetadata key = newKey();
        String otherAccount = key.arn().replace(":" + key.awsAccountId() + ":", ":999999999999:");
        for (String arn : List.of(moved(key, "ap-southeast-2"), otherAccount)) {
            refusedAs(List.of("NotFoundException", "InvalidArnException"), () -> describe(arn));
        }
    }

    static void scheduleKeyDeletion() throws Exception {
        KeyMetadata key = newKey();
        ScheduleKeyDeletionResponse answer = kms.scheduleKeyDeletion(r -> r.keyId(key.keyId()).pendingWindowInDays(7));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.keyState(), KeyState.PENDING_DELETION, "KeyState");
        equal(answer.pendingWindowInDays(), 7, "PendingWindowInDays");
        within(answer.deletionDate(), Instant.now().plus(Duration.ofDays(7)), Duration.ofDays(1), "DeletionDate");
        equal(describe(key.keyId()).keyState(), KeyState.PENDING_DELETION, "KeyState");
        refused(KmsInvalidStateException.class, () -> encrypt(key.keyId()));
    }

    static void cancelKeyDeletion() {
        KeyMetadata key = newKey();
        SdkBytes blob = encrypt(key.keyId());
        kms.scheduleKeyDeletion(r -> r.keyId(key.keyId()).pendingWindowInDays(7));
        equal(kms.cancelKeyDeletion(r -> r.keyId(key.keyId())).keyId(), key.arn(), "KeyId");
        equal(describe(key.keyId()).keyState(), KeyState.DISABLED, "KeyState");
        kms.enableKey(r -> r.keyId(key.keyId()));
        equal(decrypt(blob), PLAINTEXT, "Plaintext");
    }

    // STS

    static void getCallerIdentity() {
        var caller = sts.getCallerIdentity();
        check(caller.account().matches("\\d{12}"), "Account " + caller.account());
        equal(caller.account(), newKey().awsAccountId(), "Account");
        check(caller.arn().matches("arn:aws:(iam|sts)::" + caller.account() + ":.*"), "Arn " + caller.arn());
        check(!caller.userId().isEmpty(), "no UserId");
    }

    static String roleArn() {
        String arn = System.getenv("OUTLAST_ROLE_ARN");
        if (arn == null || arn.isEmpty()) {
            throw new Skipped("OUTLAST_ROLE_ARN is not set");
        }
        return arn;
    }

    /** What a session of the role must be able to do; name is its own, if we gave it. */
    static void asRole(KmsClient roleKms, StsClient roleSts, String name) {
        String arn = roleArn();
        String role = arn.substring(arn.lastIndexOf('/') + 1);
        String want = "arn:aws:sts::" + arn.split(":")[4] + ":assumed-role/" + role + "/";
        String got = roleSts.getCallerIdentity().arn();
        boolean fits = name == null ? got.startsWith(want) : got.equals(want + name);
        check(fits, "Arn: got " + got + ", want " + want + name);
        String key = newKey().keyId();
        SdkBytes blob = roleKms.encrypt(r -> r.keyId(key).plaintext(PLAINTEXT)).ciphertextBlob();
        equal(decrypt(blob), PLAINTEXT, "Plaintext");
    }

    static void assumeRole() {
        String name = "kms-whole-" + run;
        var answer = sts.assumeRole(r -> r.roleArn(roleArn()).roleSessionName(name));
        check(answer.assumedRoleUser().arn().endsWith("/" + name), "AssumedRoleUser " + answer.assumedRoleUser());
        var given = answer.credentials();
        check(given.expiration().isAfter(Instant.now()), "Expiration " + given.expiration());
        var provider = StaticCredentialsProvider.create(
                AwsSessionCredentials.create(given.accessKeyId(), given.secretAccessKey(), given.sessionToken()));
        asRole(KmsClient.builder().httpClient(http).credentialsProvider(provider).build(),
                StsClient.builder().httpClient(http).credentialsProvider(provider).build(), name);
    }

    static void assumeRoleProfile() throws IOException {
        String role = """

                [profile kms-whole-role]
                role_arn = %s
                source_profile = %s
                region = %s
                endpoint_url = %s
                """.formatted(roleArn(), System.getenv("AWS_PROFILE"), region, endpoint());
        Path file = Files.createTempFile("kms-whole", ".config");
        try {
            String own = Files.readString(Path.of(System.getenv("AWS_CONFIG_FILE")), StandardCharsets.UTF_8);
            Files.writeString(file, own + role, StandardCharsets.UTF_8);
            ProfileFile files = ProfileFile.aggregator()
                    .addFile(ProfileFile.builder().content(file).type(ProfileFile.Type.CONFIGURATION).build())
                    .addFile(ProfileFile.builder().content(Path.of(System.getenv("AWS_SHARED_CREDENTIALS_FILE")))
                            .type(ProfileFile.Type.CREDENTIALS).build())
                    .build();
            Consumer<ClientOverrideConfiguration.Builder> profile =
                    c -> c.defaultProfileFile(files).defaultProfileName("kms-whole-role");
            asRole(KmsClient.builder().httpClient(http).overrideConfiguration(profile).build(),
                    StsClient.builder().httpClient(http).overrideConfiguration(profile).build(), null);
        } finally {
            Files.delete(file);
        }
    }
}
