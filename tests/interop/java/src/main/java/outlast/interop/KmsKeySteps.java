package outlast.interop;

import static outlast.interop.KmsCalls.*;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.interfaces.RSAPublicKey;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import javax.crypto.KeyGenerator;
import org.bouncycastle.jcajce.SecretKeyWithEncapsulation;
import org.bouncycastle.jcajce.spec.KEMExtractSpec;
import org.bouncycastle.jcajce.spec.KEMGenerateSpec;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.kms.model.*;
import software.amazon.awssdk.services.kms.model.Tag;

/** Keys, tags, aliases, encryption and data keys. */
final class KmsKeySteps {
    private static final Map<String, String> CONTEXT = Map.of("tenant", "42", "purpose", "interop ü");
    private static final Map<String, String> OTHER_CONTEXT = Map.of("tenant", "43", "purpose", "interop ü");

    private KmsKeySteps() {}

    // Keys

    static void createSymmetric() {
        Tag tag = Tag.builder().tagKey("run").tagValue(run).build();
        KeyMetadata key = newKey(r -> r.description("first ä").tags(tag));
        equal(key.keySpec(), KeySpec.SYMMETRIC_DEFAULT, "KeySpec");
        equal(key.keyUsage(), KeyUsageType.ENCRYPT_DECRYPT, "KeyUsage");
        equal(key.encryptionAlgorithms(), List.of(EncryptionAlgorithmSpec.SYMMETRIC_DEFAULT), "EncryptionAlgorithms");
        equal(key.keyState(), KeyState.ENABLED, "KeyState");
        equal(key.enabled(), true, "Enabled");
        equal(key.origin(), OriginType.AWS_KMS, "Origin");
        equal(key.keyManager(), KeyManagerType.CUSTOMER, "KeyManager");
        equal(key.multiRegion(), false, "MultiRegion");
        equal(key.description(), "first ä", "Description");
        check(key.awsAccountId().matches("\\d{12}"), "AWSAccountId " + key.awsAccountId());
        equal(key.arn(), "arn:aws:kms:" + region + ":" + key.awsAccountId() + ":key/" + key.keyId(), "Arn");
        within(key.creationDate(), Instant.now(), Duration.ofHours(1), "CreationDate");
        equal(tagsOf(key.keyId()), Map.of("run", run), "tags");
    }

    static void describeKey() {
        KeyMetadata key = newKey();
        for (String name : List.of(key.keyId(), key.arn())) {
            equal(describe(name), key, "metadata of " + name);
        }
    }

    static void listKeys() {
        Set<String> wanted = new HashSet<>(List.of(newKey().arn(), newKey().arn(), newKey().arn()));
        Set<String> listed = new HashSet<>();
        for (ListKeysResponse page : kms.listKeysPaginator(r -> r.limit(2))) {
            check(page.keys().size() <= 2, "a page of more than 2");
            for (KeyListEntry key : page.keys()) {
                check(listed.add(key.keyArn()), key.keyArn() + " listed twice");
            }
        }
        wanted.removeAll(listed);
        check(wanted.isEmpty(), "not listed: " + wanted);
    }

    static void updateKeyDescription() {
        String key = newKey().keyId();
        kms.updateKeyDescription(r -> r.keyId(key).description("second ä"));
        equal(describe(key).description(), "second ä", "Description");
    }

    static Map<String, String> tagsOf(String key) {
        return kms.listResourceTagsPaginator(r -> r.keyId(key)).tags().stream()
                .collect(Collectors.toMap(Tag::tagKey, Tag::tagValue));
    }

    static void tags() {
        String key = newKey().keyId();
        kms.tagResource(r -> r.keyId(key).tags(
                t -> t.tagKey("team").tagValue("ä/+ 1"), t -> t.tagKey("stage").tagValue("test")));
        equal(tagsOf(key), Map.of("team", "ä/+ 1", "stage", "test"), "tags");
        kms.untagResource(r -> r.keyId(key).tagKeys("stage"));
        equal(tagsOf(key), Map.of("team", "ä/+ 1"), "tags after UntagResource");
    }

    static void enableDisable() throws Exception {
        String key = newKey().keyId();
        kms.disableKey(r -> r.keyId(key));
        equal(describe(key).keyState(), KeyState.DISABLED, "KeyState");
        equal(describe(key).enabled(), false, "Enabled");
        refused(DisabledException.class, () -> encrypt(key));
        kms.enableKey(r -> r.keyId(key));
        equal(describe(key).keyState(), KeyState.ENABLED, "KeyState");
        equal(describe(key).enabled(), true, "Enabled");
        encrypt(key);
    }

    static void alias() throws Exception {
        KeyMetadata first = newKey();
        KeyMetadata second = newKey();
        String name = "alias/kms-whole-" + run;
        kms.createAlias(r -> r.aliasName(name).targetKeyId(first.keyId()));
        equal(describe(name).keyId(), first.keyId(), "KeyId by the alias");
        refused(AlreadyExistsException.class, () -> kms.createAlias(r -> r.aliasName(name).targetKeyId(first.keyId())));
        kms.updateAlias(r -> r.aliasName(name).targetKeyId(second.keyId()));
        equal(describe(name).keyId(), second.keyId(), "KeyId by the alias after UpdateAlias");

        List<AliasListEntry> ofKey = kms.listAliases(r -> r.keyId(second.keyId())).aliases();
        equal(ofKey.stream().map(AliasListEntry::aliasName).toList(), List.of(name), "aliases of the key");
        equal(ofKey.get(0).targetKeyId(), second.keyId(), "TargetKeyId");
        List<String> listed = kms.listAliasesPaginator(r -> r.limit(2)).aliases().stream()
                .filter(entry -> entry.aliasName().equals(name)).map(AliasListEntry::aliasArn).toList();
        equal(listed, List.of(second.arn().replace("key/" + second.keyId(), name)), "listed alias");

        kms.deleteAlias(r -> r.aliasName(name));
        refused(NotFoundException.class, () -> describe(name));
    }

    // Data and data keys

    static void encryptDecrypt() throws Exception {
        KeyMetadata key = newKey();
        SdkBytes plaintext = bytes(random(256));
        EncryptResponse encrypted =
                kms.encrypt(r -> r.keyId(key.keyId()).plaintext(plaintext).encryptionContext(CONTEXT));
        equal(encrypted.keyId(), key.arn(), "KeyId");
        equal(encrypted.encryptionAlgorithm(), EncryptionAlgorithmSpec.SYMMETRIC_DEFAULT, "EncryptionAlgorithm");
        SdkBytes blob = encrypted.ciphertextBlob();
        DecryptResponse decrypted = kms.decrypt(r -> r.ciphertextBlob(blob).encryptionContext(CONTEXT));
        equal(decrypted.plaintext(), plaintext, "Plaintext");
        equal(decrypted.keyId(), key.arn(), "KeyId");
        equal(decrypted.encryptionAlgorithm(), EncryptionAlgorithmSpec.SYMMETRIC_DEFAULT, "EncryptionAlgorithm");
        refused(InvalidCiphertextException.class, () -> decrypt(blob, OTHER_CONTEXT));
        refused(InvalidCiphertextException.class, () -> decrypt(blob));
        refused(InvalidCiphertextException.class, () -> decrypt(flip(blob), CONTEXT));
        String other = newKey().keyId();
        refused(IncorrectKeyException.class,
                () -> kms.decrypt(r -> r.ciphertextBlob(blob).encryptionContext(CONTEXT).keyId(other)));
    }

    static void reEncrypt() {
        KeyMetadata source = newKey();
        KeyMetadata destination = newKey();
        SdkBytes blob = kms.encrypt(r -> r.keyId(source.keyId()).plaintext(PLAINTEXT).encryptionContext(CONTEXT))
                .ciphertextBlob();
        ReEncryptResponse answer = kms.reEncrypt(r -> r
                .ciphertextBlob(blob).sourceEncryptionContext(CONTEXT)
                .destinationKeyId(destination.keyId()).destinationEncryptionContext(OTHER_CONTEXT));
        equal(answer.sourceKeyId(), source.arn(), "SourceKeyId");
        equal(answer.keyId(), destination.arn(), "KeyId");
        kms.disableKey(r -> r.keyId(source.keyId()));
        equal(decrypt(answer.ciphertextBlob(), OTHER_CONTEXT), PLAINTEXT, "Plaintext");
    }

    static void generateDataKey() {
        KeyMetadata key = newKey();
        Map<Integer, Consumer<GenerateDataKeyRequest.Builder>> forms =
                Map.of(32, r -> r.keySpec(DataKeySpec.AES_256), 64, r -> r.numberOfBytes(64));
        forms.forEach((size, form) -> {
            GenerateDataKeyResponse answer =
                    kms.generateDataKey(r -> form.accept(r.keyId(key.keyId()).encryptionContext(CONTEXT)));
            equal(answer.keyId(), key.arn(), "KeyId");
            equal(answer.plaintext().asByteArray().length, size, "length");
            equal(decrypt(answer.ciphertextBlob(), CONTEXT), answer.plaintext(), "Plaintext");
        });
    }

    static void generateDataKeyWithoutPlaintext() {
        KeyMetadata key = newKey();
        GenerateDataKeyWithoutPlaintextResponse answer = kms.generateDataKeyWithoutPlaintext(
                r -> r.keyId(key.keyId()).keySpec(DataKeySpec.AES_256).encryptionContext(CONTEXT));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(decrypt(answer.ciphertextBlob(), CONTEXT).asByteArray().length, 32, "length");
    }

    /** What the private key does must be undone by the public key. */
    static void pairFits(DataKeyPairSpec spec, byte[] pkcs8, byte[] spki) throws Exception {
        String algorithm = switch (spec) {
            case RSA_2048 -> "RSA";
            case ECC_NIST_P256 -> "EC";
            default -> "ML-KEM";
        };
        PrivateKey secret = KeyFactory.getInstance(algorithm, "BC").generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
        PublicKey key = parsed(algorithm, spki);
        if (spec == DataKeyPairSpec.ML_KEM_768) {
            equal(spki.length, SPKI_HEADER + ML_KEM_PUBLIC, "length of the public key");
            equal(pkcs8.length, 86, "length of the private key as a seed");
            SecretKeyWithEncapsulation shared = encapsulate(key);
            KeyGenerator extractor = KeyGenerator.getInstance("ML-KEM", "BC");
            byte[] blob = shared.getEncapsulation();
            extractor.init(new KEMExtractSpec.Builder(secret, blob, "AES", 256).withNoKdf().build());
            check(Arrays.equals(extractor.generateKey().getEncoded(), shared.getEncoded()), "keys do not fit");
            return;
        }
        int size = key instanceof RSAPublicKey rsa ? rsa.getModulus().bitLength()
                : ((ECPublicKey) key).getParams().getOrder().bitLength();
        equal(size, spec == DataKeyPairSpec.RSA_2048 ? 2048 : 256, "key size");
        String signing = algorithm.equals("RSA") ? "SHA256withRSA" : "SHA256withECDSA";
        Signature signature = Signature.getInstance(signing, "BC");
        signature.initSign(secret);
        signature.update(spki);
        byte[] signed = signature.sign();
        signature.initVerify(key);
        signature.update(spki);
        check(signature.verify(signed), "keys do not fit");
    }

    static SecretKeyWithEncapsulation encapsulate(PublicKey key) throws GeneralSecurityException {
        KeyGenerator generator = KeyGenerator.getInstance("ML-KEM", "BC");
        generator.init(new KEMGenerateSpec.Builder(key, "AES", 256).withNoKdf().build());
        return (SecretKeyWithEncapsulation) generator.generateKey();
    }

    static void dataKeyPair(DataKeyPairSpec spec) throws Exception {
        KeyMetadata key = newKey();
        GenerateDataKeyPairResponse answer =
                kms.generateDataKeyPair(r -> r.keyId(key.keyId()).keyPairSpec(spec).encryptionContext(CONTEXT));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.keyPairSpec(), spec, "KeyPairSpec");
        SdkBytes secret = decrypt(answer.privateKeyCiphertextBlob(), CONTEXT);
        equal(secret, answer.privateKeyPlaintext(), "private key");
        pairFits(spec, secret.asByteArray(), answer.publicKey().asByteArray());
    }

    static void dataKeyPairWithoutPlaintext(DataKeyPairSpec spec) throws Exception {
        KeyMetadata key = newKey();
        GenerateDataKeyPairWithoutPlaintextResponse answer = kms.generateDataKeyPairWithoutPlaintext(
                r -> r.keyId(key.keyId()).keyPairSpec(spec).encryptionContext(CONTEXT));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.keyPairSpec(), spec, "KeyPairSpec");
        SdkBytes secret = decrypt(answer.privateKeyCiphertextBlob(), CONTEXT);
        pairFits(spec, secret.asByteArray(), answer.publicKey().asByteArray());
    }

    static void generateRandom() {
        SdkBytes one = kms.generateRandom(r -> r.numberOfBytes(32)).plaintext();
        SdkBytes two = kms.generateRandom(r -> r.numberOfBytes(32)).plaintext();
        equal(one.asByteArray().length + two.asByteArray().length, 64, "lengths");
        check(!one.equals(two), "the same twice");
        equal(kms.generateRandom(r -> r.numberOfBytes(1024)).plaintext().asByteArray().length, 1024, "length");
    }
}
