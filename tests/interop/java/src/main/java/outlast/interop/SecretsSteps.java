package outlast.interop;

import static outlast.interop.KmsCalls.*;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import outlast.interop.KmsCalls.Failed;
import outlast.interop.KmsCalls.Skipped;
import outlast.interop.KmsCalls.Step;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.secretsmanager.SecretsManagerClient;
import software.amazon.awssdk.services.secretsmanager.model.*;

/** The steps of SECRETS_STEPS.md. */
final class SecretsSteps {
    private static final SecretsManagerClient secrets = SecretsManagerClient.builder().httpClient(http).build();
    private static final Duration HOUR = Duration.ofHours(1);
    private static final String LOGIN = "{\"username\":\"user\",\"password\":\"first\"}";
    private static final List<String> made = new ArrayList<>();

    private SecretsSteps() {}

    // In the order of SECRETS_STEPS.md.
    static Map<String, Step> all() {
        Map<String, Step> steps = new LinkedHashMap<>();
        steps.put("create-secret", SecretsSteps::createSecret);
        steps.put("get-secret-value", SecretsSteps::getSecretValue);
        steps.put("put-secret-value", SecretsSteps::putSecretValue);
        steps.put("previous-version", SecretsSteps::previousVersion);
        steps.put("binary-value", SecretsSteps::binaryValue);
        steps.put("update-secret-version-stage", SecretsSteps::updateSecretVersionStage);
        steps.put("replicate-secret", SecretsSteps::replicateSecret);
        steps.put("rotate-secret", SecretsSteps::rotateSecret);
        steps.put("rotate-secret-later", SecretsSteps::rotateSecretLater);
        steps.put("list-secrets", SecretsSteps::listSecrets);
        steps.put("batch-get-secret-value", SecretsSteps::batchGetSecretValue);
        steps.put("get-random-password", SecretsSteps::getRandomPassword);
        steps.put("not-found", SecretsSteps::notFound);
        steps.put("invalid-parameter", SecretsSteps::invalidParameter);
        steps.put("delete-and-restore", SecretsSteps::deleteAndRestore);
        steps.put("force-delete", SecretsSteps::forceDelete);
        return steps;
    }

    static void deleteAll() {
        for (String name : made) {
            try {
                secrets.deleteSecret(r -> r.secretId(name).forceDeleteWithoutRecovery(true));
            } catch (SecretsManagerException e) {
                // It is deleted already, or the service cannot.
            }
        }
    }

    private static String nameOf(String what) {
        return "secrets-whole/" + run + "/" + what;
    }

    /** A secret with this value. */
    private static CreateSecretResponse newSecret(String what, String value, Tag... tags) {
        String name = nameOf(what);
        made.add(name);
        return secrets.createSecret(r -> r.name(name).secretString(value).tags(tags));
    }

    private static String put(String name, String value) {
        return secrets.putSecretValue(r -> r.secretId(name).secretString(value)).versionId();
    }

    private static String read(String name) {
        return read(secrets, name);
    }

    private static String read(SecretsManagerClient client, String name) {
        return client.getSecretValue(r -> r.secretId(name)).secretString();
    }

    private static DescribeSecretResponse describe(String name) {
        return secrets.describeSecret(r -> r.secretId(name));
    }

    private static boolean rotates(String name) {
        return Boolean.TRUE.equals(describe(name).rotationEnabled());
    }

    /** The call must be answered with this error, by the SDK's own class. */
    private static void refused(Class<? extends SecretsManagerException> kind, Step call) throws Exception {
        try {
            call.run();
        } catch (AwsServiceException e) {
            check(kind.isInstance(e), "got " + described(e) + ", want " + kind.getSimpleName());
            return;
        }
        throw new Failed("no " + kind.getSimpleName());
    }

    /** Whether the call is answered with ResourceNotFoundException. */
    private static boolean isGone(Runnable call) {
        try {
            call.run();
            return false;
        } catch (ResourceNotFoundException e) {
            return true;
        }
    }

    private static String rotationFunction() {
        String arn = System.getenv("OUTLAST_ROTATION_FUNCTION");
        if (arn == null) {
            throw new Skipped("OUTLAST_ROTATION_FUNCTION is not set");
        }
        return arn;
    }

    private static void createSecret() throws Exception {
        String name = nameOf("create");
        String token = UUID.randomUUID().toString();
        Tag tag = Tag.builder().key("run").value(run).build();
        CreateSecretRequest request = CreateSecretRequest.builder().name(name).secretString("first")
                .description("first ä").tags(tag).clientRequestToken(token).build();
        made.add(name);
        CreateSecretResponse answer = secrets.createSecret(request);
        equal(answer.name(), name, "Name");
        equal(answer.versionId(), token, "VersionId");
        String arn = "arn:aws:secretsmanager:" + region + ":\\d{12}:secret:" + name + "-[A-Za-z0-9]{6}";
        check(answer.arn().matches(arn), "ARN " + answer.arn());
        DescribeSecretResponse secret = describe(answer.arn());
        equal(secret.arn(), answer.arn(), "ARN");
        equal(secret.name(), name, "Name");
        equal(secret.description(), "first ä", "Description");
        equal(secret.tags(), List.of(tag), "Tags");
        equal(secret.versionIdsToStages(), Map.of(token, List.of("AWSCURRENT")), "VersionIdsToStages");
        within(secret.createdDate(), Instant.now(), HOUR, "CreatedDate");
        within(secret.lastChangedDate(), Instant.now(), HOUR, "LastChangedDate");
        check(!rotates(name), "RotationEnabled");
        check(secret.deletedDate() == null, "DeletedDate");
        CreateSecretResponse again = secrets.createSecret(request);
        equal(again.arn(), answer.arn(), "ARN by the same token again");
        equal(again.versionId(), token, "VersionId by the same token again");
        refused(ResourceExistsException.class, () -> secrets.createSecret(r -> r.name(name).secretString("other")));
    }

    private static void getSecretValue() {
        CreateSecretResponse answer = newSecret("get", "first ä");
        for (String name : List.of(answer.name(), answer.arn())) {
            GetSecretValueResponse got = secrets.getSecretValue(r -> r.secretId(name));
            equal(got.arn(), answer.arn(), "ARN");
            equal(got.name(), answer.name(), "Name");
            equal(got.versionId(), answer.versionId(), "VersionId");
            equal(got.secretString(), "first ä", "SecretString");
            equal(got.versionStages(), List.of("AWSCURRENT"), "VersionStages");
            within(got.createdDate(), Instant.now(), HOUR, "CreatedDate");
            check(got.secretBinary() == null, "SecretBinary");
        }
    }

    private static void putSecretValue() throws Exception {
        CreateSecretResponse first = newSecret("put", "first");
        String name = first.name();
        String token = UUID.randomUUID().toString();
        for (int time = 0; time < 2; time++) {
            PutSecretValueResponse answer = secrets.putSecretValue(
                    r -> r.secretId(name).secretString("second").clientRequestToken(token));
            equal(answer.arn(), first.arn(), "ARN");
            equal(answer.name(), name, "Name");
            equal(answer.versionId(), token, "VersionId");
            equal(answer.versionStages(), List.of("AWSCURRENT"), "VersionStages");
        }
        refused(ResourceExistsException.class, () -> secrets.putSecretValue(
                r -> r.secretId(name).secretString("third").clientRequestToken(token)));
        equal(read(name), "second", "SecretString");
        equal(describe(name).versionIdsToStages(),
                Map.of(token, List.of("AWSCURRENT"), first.versionId(), List.of("AWSPREVIOUS")), "VersionIdsToStages");
    }

    private static void previousVersion() throws Exception {
        CreateSecretResponse first = newSecret("previous", "first");
        String name = first.name();
        put(name, "second");
        GetSecretValueResponse got = secrets.getSecretValue(r -> r.secretId(name).versionStage("AWSPREVIOUS"));
        equal(got.secretString(), "first", "SecretString");
        equal(got.versionId(), first.versionId(), "VersionId");
        equal(got.versionStages(), List.of("AWSPREVIOUS"), "VersionStages");
        got = secrets.getSecretValue(r -> r.secretId(name).versionId(first.versionId()));
        equal(got.secretString(), "first", "SecretString by VersionId");
        refused(ResourceNotFoundException.class,
                () -> secrets.getSecretValue(r -> r.secretId(name).versionStage("AWSPENDING")));
    }

    private static void binaryValue() {
        byte[] value = new byte[256];
        for (int index = 0; index < value.length; index++) {
            value[index] = (byte) index;
        }
        String name = nameOf("binary");
        made.add(name);
        secrets.createSecret(r -> r.name(name).secretBinary(SdkBytes.fromByteArray(value)));
        GetSecretValueResponse got = secrets.getSecretValue(r -> r.secretId(name));
        equal(got.secretBinary(), SdkBytes.fromByteArray(value), "SecretBinary");
        check(got.secretString() == null, "SecretString");
    }

    private static void updateSecretVersionStage() throws Exception {
        CreateSecretResponse answer = newSecret("stage", "first");
        String name = answer.name();
        String first = answer.versionId();
        String second = put(name, "second");
        secrets.updateSecretVersionStage(r -> r.secretId(name).versionStage("AWSCURRENT").moveToVersionId(first)
                .removeFromVersionId(second));
        equal(describe(name).versionIdsToStages(),
                Map.of(first, List.of("AWSCURRENT"), second, List.of("AWSPREVIOUS")), "VersionIdsToStages");
        equal(read(name), "first", "SecretString");
        secrets.updateSecretVersionStage(r -> r.secretId(name).versionStage("kept").moveToVersionId(second));
        equal(secrets.getSecretValue(r -> r.secretId(name).versionStage("kept")).secretString(), "second",
                "SecretString by a stage of one's own");
        refused(InvalidParameterException.class, () -> secrets.updateSecretVersionStage(
                r -> r.secretId(name).versionStage("AWSCURRENT").moveToVersionId(second)));
    }

    private static void replicateSecret() throws Exception {
        CreateSecretResponse first = newSecret("replicate", "first");
        String name = first.name();
        String other = region.equals("eu-central-1") ? "eu-west-1" : "eu-central-1";
        SecretsManagerClient there = SecretsManagerClient.builder().httpClient(http).region(Region.of(other)).build();
        ReplicateSecretToRegionsResponse answer =
                secrets.replicateSecretToRegions(r -> r.secretId(name).addReplicaRegions(a -> a.region(other)));
        equal(answer.arn(), first.arn(), "ARN");
        equal(answer.replicationStatus().stream().map(ReplicationStatusType::region).toList(), List.of(other),
                "ReplicationStatus");
        eventually("the replica is InSync", () -> {
            List<ReplicationStatusType> status = describe(name).replicationStatus();
            return status.size() == 1 && status.get(0).status() == StatusType.IN_SYNC;
        });
        GetSecretValueResponse got = there.getSecretValue(r -> r.secretId(name));
        equal(got.arn(), first.arn().replace(":" + region + ":", ":" + other + ":"), "ARN of the replica");
        equal(got.secretString(), "first", "the replica's value");
        equal(got.versionId(), first.versionId(), "the replica's version");
        equal(there.describeSecret(r -> r.secretId(name)).primaryRegion(), region, "PrimaryRegion");
        put(name, "second");
        eventually("the replica has the new value", () -> read(there, name).equals("second"));
        refused(InvalidRequestException.class,
                () -> there.putSecretValue(r -> r.secretId(name).secretString("third")));
        secrets.removeRegionsFromReplication(r -> r.secretId(name).removeReplicaRegions(other));
        eventually("the replica is gone", () -> isGone(() -> read(there, name)));
    }

    private static void rotateSecret() throws Exception {
        String function = rotationFunction();
        CreateSecretResponse first = newSecret("rotate", LOGIN);
        String name = first.name();
        String version = secrets.rotateSecret(r -> r.secretId(name).rotationLambdaARN(function)).versionId();
        eventually("the new version is current",
                () -> List.of("AWSCURRENT").equals(describe(name).versionIdsToStages().get(version)));
        DescribeSecretResponse secret = describe(name);
        within(secret.lastRotatedDate(), Instant.now(), HOUR, "LastRotatedDate");
        equal(secret.versionIdsToStages().get(first.versionId()), List.of("AWSPREVIOUS"),
                "stages of the first version");
        String value = read(name);
        check(value.contains("user") && !value.contains("first"), "the rotated value: " + value);
        equal(secrets.getSecretValue(r -> r.secretId(name).versionStage("AWSPREVIOUS")).secretString(), LOGIN,
                "the previous value");
    }

    private static void rotateSecretLater() {
        String function = rotationFunction();
        CreateSecretResponse first = newSecret("rotate-later", LOGIN);
        String name = first.name();
        RotateSecretResponse answer = secrets.rotateSecret(r -> r.secretId(name).rotationLambdaARN(function)
                .rotationRules(rules -> rules.automaticallyAfterDays(30L)).rotateImmediately(false));
        equal(answer.arn(), first.arn(), "ARN");
        equal(answer.name(), name, "Name");
        DescribeSecretResponse secret = describe(name);
        equal(secret.rotationEnabled(), true, "RotationEnabled");
        equal(secret.rotationLambdaARN(), function, "RotationLambdaARN");
        equal(secret.rotationRules().automaticallyAfterDays(), 30L, "AutomaticallyAfterDays");
        within(secret.nextRotationDate(), Instant.now().plus(Duration.ofDays(30)), Duration.ofDays(2),
                "NextRotationDate");
        equal(secrets.cancelRotateSecret(r -> r.secretId(name)).arn(), first.arn(), "ARN");
        check(!rotates(name), "RotationEnabled after CancelRotateSecret");
        equal(read(name), LOGIN, "SecretString");
    }

    private static void listSecrets() throws Exception {
        List<String> names = new ArrayList<>();
        for (String number : List.of("0", "1", "2")) {
            Tag tag = Tag.builder().key("list-" + run).value(number).build();
            names.add(newSecret("list-" + number, "first", tag).name());
        }
        eventually("all are listed once, by name",
                () -> listed(FilterNameStringType.NAME, nameOf("list-")).equals(names));
        eventually("all are listed once, by tag",
                () -> listed(FilterNameStringType.TAG_KEY, "list-" + run).equals(names));
        SecretListEntry entry = secrets
                .listSecrets(r -> r.filters(f -> f.key(FilterNameStringType.NAME).values(names.get(1))))
                .secretList().get(0);
        equal(entry.tags(), List.of(Tag.builder().key("list-" + run).value("1").build()), "Tags");
        within(entry.createdDate(), Instant.now(), HOUR, "CreatedDate");
        equal(List.copyOf(entry.secretVersionsToStages().values()), List.of(List.of("AWSCURRENT")),
                "SecretVersionsToStages");
    }

    private static List<String> listed(FilterNameStringType key, String value) {
        List<String> found = new ArrayList<>();
        for (ListSecretsResponse page : secrets
                .listSecretsPaginator(r -> r.maxResults(2).filters(f -> f.key(key).values(value)))) {
            check(page.secretList().size() <= 2, "a page of more than 2");
            page.secretList().forEach(secret -> found.add(secret.name()));
        }
        return found.stream().sorted().toList();
    }

    private static void batchGetSecretValue() {
        String first = newSecret("batch-1", "1").name();
        String second = newSecret("batch-2", "2").name();
        String missing = nameOf("missing");
        BatchGetSecretValueResponse answer = secrets.batchGetSecretValue(r -> r.secretIdList(first, second, missing));
        Map<String, String> values = answer.secretValues().stream()
                .collect(Collectors.toMap(SecretValueEntry::name, SecretValueEntry::secretString));
        equal(values, Map.of(first, "1", second, "2"), "SecretValues");
        equal(answer.errors().stream().map(APIErrorType::secretId).toList(), List.of(missing), "SecretId of the error");
        equal(answer.errors().get(0).errorCode(), "ResourceNotFoundException", "ErrorCode");
    }

    private static void getRandomPassword() {
        String password = secrets.getRandomPassword().randomPassword();
        equal(password.length(), 32, "length");
        check(!secrets.getRandomPassword().randomPassword().equals(password), "the same password twice");
        String letters = secrets.getRandomPassword(
                r -> r.passwordLength(100L).excludePunctuation(true).excludeNumbers(true)).randomPassword();
        check(letters.matches("[A-Za-z]{100}"), "password " + letters);
    }

    private static void notFound() throws Exception {
        String missing = nameOf("missing");
        refused(ResourceNotFoundException.class, () -> read(missing));
        refused(ResourceNotFoundException.class, () -> put(missing, "value"));
        refused(ResourceNotFoundException.class, () -> describe(missing));
    }

    private static void invalidParameter() throws Exception {
        String name = newSecret("invalid", "first").name();
        refused(InvalidParameterException.class,
                () -> secrets.deleteSecret(r -> r.secretId(name).recoveryWindowInDays(6L)));
        refused(InvalidParameterException.class, () -> secrets.deleteSecret(
                r -> r.secretId(name).recoveryWindowInDays(7L).forceDeleteWithoutRecovery(true)));
        refused(InvalidNextTokenException.class, () -> secrets.listSecrets(r -> r.nextToken("no token")));
        equal(read(name), "first", "SecretString");
    }

    private static void deleteAndRestore() throws Exception {
        CreateSecretResponse first = newSecret("delete", "first");
        String name = first.name();
        DeleteSecretResponse deleted = secrets.deleteSecret(r -> r.secretId(name).recoveryWindowInDays(7L));
        equal(deleted.arn(), first.arn(), "ARN");
        equal(deleted.name(), name, "Name");
        within(deleted.deletionDate(), Instant.now().plus(Duration.ofDays(7)), HOUR, "DeletionDate");
        refused(InvalidRequestException.class, () -> read(name));
        within(describe(name).deletedDate(), Instant.now(), Duration.ofDays(8), "DeletedDate");
        equal(secrets.restoreSecret(r -> r.secretId(name)).arn(), first.arn(), "ARN");
        equal(read(name), "first", "SecretString");
        check(describe(name).deletedDate() == null, "DeletedDate after RestoreSecret");
    }

    private static void forceDelete() throws Exception {
        CreateSecretResponse first = newSecret("force", "first");
        String name = first.name();
        DeleteSecretResponse deleted =
                secrets.deleteSecret(r -> r.secretId(name).forceDeleteWithoutRecovery(true));
        equal(deleted.arn(), first.arn(), "ARN");
        within(deleted.deletionDate(), Instant.now(), HOUR, "DeletionDate");
        eventually("the secret is gone", () -> isGone(() -> describe(name)));
    }
}
