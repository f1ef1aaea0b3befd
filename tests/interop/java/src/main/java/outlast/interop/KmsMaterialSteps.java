package outlast.interop;

import static outlast.interop.KmsCalls.*;

import java.security.GeneralSecurityException;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.MGF1ParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import javax.crypto.Cipher;
import javax.crypto.spec.OAEPParameterSpec;
import javax.crypto.spec.PSource;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.services.kms.model.*;

/** Imported key material, rotation, grants and policies. */
final class KmsMaterialSteps {
    private static final Map<String, String> TENANT = Map.of("tenant", "42");

    private record Grant(KeyMetadata key, String caller, String id, String token) {}

    private KmsMaterialSteps() {}

    // Imported key material, rotation

    static KeyMetadata externalKey() {
        KeyMetadata key = newKey(r -> r.origin(OriginType.EXTERNAL));
        equal(key.keyState(), KeyState.PENDING_IMPORT, "KeyState");
        equal(key.origin(), OriginType.EXTERNAL, "Origin");
        return key;
    }

    static GetParametersForImportResponse parametersForImport(KeyMetadata key) {
        return kms.getParametersForImport(r -> r.keyId(key.keyId()).wrappingAlgorithm(AlgorithmSpec.RSAES_OAEP_SHA_256)
                .wrappingKeySpec(WrappingKeySpec.RSA_3072));
    }

    static void importMaterial(KeyMetadata key, byte[] material) throws GeneralSecurityException {
        GetParametersForImportResponse parameters = parametersForImport(key);
        Cipher cipher = Cipher.getInstance("RSA/ECB/OAEPPadding");
        cipher.init(Cipher.ENCRYPT_MODE, parsed("RSA", parameters.publicKey().asByteArray()),
                new OAEPParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, PSource.PSpecified.DEFAULT));
        SdkBytes wrapped = bytes(cipher.doFinal(material));
        kms.importKeyMaterial(r -> r.keyId(key.keyId()).importToken(parameters.importToken())
                .encryptedKeyMaterial(wrapped).expirationModel(ExpirationModelType.KEY_MATERIAL_DOES_NOT_EXPIRE));
    }

    static void getParametersForImport() throws Exception {
        KeyMetadata key = externalKey();
        GetParametersForImportResponse answer = parametersForImport(key);
        equal(answer.keyId(), key.arn(), "KeyId");
        RSAPublicKey wrapping = (RSAPublicKey) parsed("RSA", answer.publicKey().asByteArray());
        equal(wrapping.getModulus().bitLength(), 3072, "key size");
        check(answer.importToken().asByteArray().length > 0, "no ImportToken");
        Instant tomorrow = Instant.now().plus(Duration.ofDays(1));
        within(answer.parametersValidTo(), tomorrow, Duration.ofHours(1), "ParametersValidTo");
    }

    static void importKeyMaterial() throws Exception {
        KeyMetadata key = externalKey();
        importMaterial(key, random(32));
        KeyMetadata metadata = describe(key.keyId());
        equal(metadata.keyState(), KeyState.ENABLED, "KeyState");
        equal(metadata.expirationModel(), ExpirationModelType.KEY_MATERIAL_DOES_NOT_EXPIRE, "ExpirationModel");
        equal(decrypt(encrypt(key.keyId())), PLAINTEXT, "Plaintext");
    }

    static void deleteImportedKeyMaterial() throws Exception {
        KeyMetadata key = externalKey();
        byte[] material = random(32);
        importMaterial(key, material);
        SdkBytes blob = encrypt(key.keyId());
        kms.deleteImportedKeyMaterial(r -> r.keyId(key.keyId()));
        equal(describe(key.keyId()).keyState(), KeyState.PENDING_IMPORT, "KeyState");
        refused(KmsInvalidStateException.class, () -> encrypt(key.keyId()));
        refused(KmsInvalidStateException.class, () -> decrypt(blob));
        importMaterial(key, material);
        equal(decrypt(blob), PLAINTEXT, "Plaintext");
    }

    static void importOtherKeyMaterial() throws Exception {
        KeyMetadata key = externalKey();
        importMaterial(key, random(32));
        kms.deleteImportedKeyMaterial(r -> r.keyId(key.keyId()));
        refused(IncorrectKeyMaterialException.class, () -> importMaterial(key, random(32)));
    }

    static void keyRotation() {
        String key = newKey().keyId();
        kms.enableKeyRotation(r -> r.keyId(key).rotationPeriodInDays(90));
        GetKeyRotationStatusResponse status = kms.getKeyRotationStatus(r -> r.keyId(key));
        equal(status.keyRotationEnabled(), true, "KeyRotationEnabled");
        equal(status.rotationPeriodInDays(), 90, "RotationPeriodInDays");
        Instant next = Instant.now().plus(Duration.ofDays(90));
        within(status.nextRotationDate(), next, Duration.ofDays(2), "NextRotationDate");
        equal(kms.listKeyRotations(r -> r.keyId(key)).rotations(), List.of(), "Rotations");
        kms.disableKeyRotation(r -> r.keyId(key));
        equal(kms.getKeyRotationStatus(r -> r.keyId(key)).keyRotationEnabled(), false, "KeyRotationEnabled");
    }

    static void rotateKeyOnDemand() throws Exception {
        String key = newKey().keyId();
        kms.enableKeyRotation(r -> r.keyId(key).rotationPeriodInDays(90));
        SdkBytes old = encrypt(key, SdkBytes.fromUtf8String("old"));
        String material = describe(key).currentKeyMaterialId();
        check(material != null, "no CurrentKeyMaterialId");
        kms.rotateKeyOnDemand(r -> r.keyId(key));
        eventually("rotation", () -> !kms.listKeyRotations(r -> r.keyId(key)).rotations().isEmpty());
        List<RotationsListEntry> rotations = kms.listKeyRotations(r -> r.keyId(key)).rotations();
        List<RotationType> types = rotations.stream().map(RotationsListEntry::rotationType).toList();
        equal(types, List.of(RotationType.ON_DEMAND), "RotationType");
        within(rotations.get(0).rotationDate(), Instant.now(), Duration.ofHours(1), "RotationDate");
        eventually("new key material", () -> !material.equals(describe(key).currentKeyMaterialId()));
        equal(decrypt(old), SdkBytes.fromUtf8String("old"), "old Plaintext");
        equal(decrypt(encrypt(key)), PLAINTEXT, "new Plaintext");
        equal(kms.getKeyRotationStatus(r -> r.keyId(key)).rotationPeriodInDays(), 90, "RotationPeriodInDays");
        kms.disableKeyRotation(r -> r.keyId(key));
    }

    // Grants and policies

    static Grant newGrant() {
        KeyMetadata key = newKey();
        String caller = sts.getCallerIdentity().arn();
        CreateGrantResponse answer = kms.createGrant(r -> r.keyId(key.keyId())
                .granteePrincipal(caller).retiringPrincipal(caller)
                .operations(GrantOperation.ENCRYPT, GrantOperation.DECRYPT)
                .constraints(c -> c.encryptionContextEquals(TENANT))
                .name("grant-" + run));
        check(!answer.grantToken().isEmpty() && !answer.grantId().isEmpty(), "no GrantToken or no GrantId");
        return new Grant(key, caller, answer.grantId(), answer.grantToken());
    }

    static boolean isListed(Grant grant) {
        return kms.listGrantsPaginator(r -> r.keyId(grant.key().keyId())).grants().stream()
                .anyMatch(entry -> entry.grantId().equals(grant.id()));
    }

    static void createGrant() {
        Grant grant = newGrant();
        List<GrantListEntry> listed =
                kms.listGrants(r -> r.keyId(grant.key().keyId()).grantId(grant.id())).grants();
        equal(listed.stream().map(GrantListEntry::grantId).toList(), List.of(grant.id()), "grants");
        GrantListEntry entry = listed.get(0);
        equal(entry.keyId(), grant.key().arn(), "KeyId");
        equal(entry.granteePrincipal(), grant.caller(), "GranteePrincipal");
        equal(entry.retiringPrincipal(), grant.caller(), "RetiringPrincipal");
        equal(entry.constraints().encryptionContextEquals(), TENANT, "EncryptionContextEquals");
        equal(entry.name(), "grant-" + run, "Name");
        equal(new HashSet<>(entry.operations()), Set.of(GrantOperation.ENCRYPT, GrantOperation.DECRYPT), "Operations");
        within(entry.creationDate(), Instant.now(), Duration.ofHours(1), "CreationDate");
    }

    static void listRetirableGrants() {
        Grant grant = newGrant();
        long found = kms.listRetirableGrantsPaginator(r -> r.retiringPrincipal(grant.caller())).grants().stream()
                .filter(entry -> entry.grantId().equals(grant.id())).count();
        equal(found, 1L, "occurrences of the grant");
    }

    static void grantToken() throws Exception {
        Grant grant = newGrant();
        Consumer<EncryptRequest.Builder> request =
                r -> r.keyId(grant.key().keyId()).plaintext(PLAINTEXT).encryptionContext(TENANT);
        SdkBytes blob = kms.encrypt(r -> request.accept(r.grantTokens(grant.token()))).ciphertextBlob();
        equal(kms.decrypt(r -> r.ciphertextBlob(blob).encryptionContext(TENANT).grantTokens(grant.token())).plaintext(),
                PLAINTEXT, "Plaintext");
        refused(InvalidGrantTokenException.class,
                () -> kms.encrypt(r -> request.accept(r.grantTokens("no-grant-token"))));
    }

    static void retireGrant() throws Exception {
        Grant grant = newGrant();
        check(isListed(grant), "the grant is not listed");
        kms.retireGrant(r -> r.grantToken(grant.token()));
        eventually("grant gone", () -> !isListed(grant));
    }

    static void revokeGrant() throws Exception {
        Grant grant = newGrant();
        kms.revokeGrant(r -> r.keyId(grant.key().keyId()).grantId(grant.id()));
        eventually("grant gone", () -> !isListed(grant));
        refusedAs(List.of("NotFoundException", "InvalidGrantIdException"),
                () -> kms.revokeGrant(r -> r.keyId(grant.key().keyId()).grantId(grant.id())));
    }

    static String policyOf(String key) {
        return kms.getKeyPolicy(r -> r.keyId(key).policyName("default")).policy();
    }

    static void getKeyPolicy() {
        String key = newKey().keyId();
        equal(kms.listKeyPolicies(r -> r.keyId(key)).policyNames(), List.of("default"), "PolicyNames");
        Map<String, JsonNode> policy = JsonNode.parser().parse(policyOf(key)).asObject();
        check(policy.containsKey("Version") && policy.containsKey("Statement"), "policy " + policy);
    }

    static void putKeyPolicy() {
        String key = newKey().keyId();
        String policy = policyOf(key);
        kms.putKeyPolicy(r -> r.keyId(key).policyName("default").policy(policy));
        equal(JsonNode.parser().parse(policyOf(key)), JsonNode.parser().parse(policy), "policy");
    }

    static void putKeyPolicyLockout() throws Exception {
        KeyMetadata key = newKey();
        String policy = """
                {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "kms:DescribeKey",
                 "Principal": {"AWS": "arn:aws:iam::%s:root"}, "Resource": "*"}]}
                """.formatted(key.awsAccountId());
        refused(MalformedPolicyDocumentException.class,
                () -> kms.putKeyPolicy(r -> r.keyId(key.keyId()).policyName("default").policy(policy)));
        encrypt(key.keyId());
    }
}
