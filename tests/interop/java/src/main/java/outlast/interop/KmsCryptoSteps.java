package outlast.interop;

import static outlast.interop.KmsCalls.*;

import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.MGF1ParameterSpec;
import java.security.spec.PSSParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import javax.crypto.KeyAgreement;
import org.bouncycastle.crypto.digests.SHAKEDigest;
import org.bouncycastle.jcajce.SecretKeyWithEncapsulation;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.kms.model.*;

/** Signatures, MACs, key agreement and ML-KEM. */
final class KmsCryptoSteps {
    private static final int ML_KEM_CIPHERTEXT = 1088;

    interface Verifier {
        boolean verify(byte[] spki, byte[] message, byte[] signature) throws Exception;
    }

    private KmsCryptoSteps() {}

    // Signatures

    static void getPublicKey() throws Exception {
        KeyMetadata key = newKey(KeySpec.ECC_NIST_P256, KeyUsageType.SIGN_VERIFY);
        for (String name : List.of(key.keyId(), key.arn())) {
            GetPublicKeyResponse answer = kms.getPublicKey(r -> r.keyId(name));
            equal(answer.keyId(), key.arn(), "KeyId");
            equal(answer.keySpec(), KeySpec.ECC_NIST_P256, "KeySpec");
            equal(answer.keyUsage(), KeyUsageType.SIGN_VERIFY, "KeyUsage");
            equal(answer.signingAlgorithms(), List.of(SigningAlgorithmSpec.ECDSA_SHA_256), "SigningAlgorithms");
            ECPublicKey parsed = (ECPublicKey) parsed("EC", answer.publicKey().asByteArray());
            equal(parsed.getParams().getOrder().bitLength(), 256, "key size");
        }
    }

    static void signVerify(KeySpec spec, SigningAlgorithmSpec algorithm, boolean digest, int length, Verifier local)
            throws Exception {
        KeyMetadata key = newKey(spec, KeyUsageType.SIGN_VERIFY);
        check(key.signingAlgorithms().contains(algorithm), "SigningAlgorithms " + key.signingAlgorithms());
        byte[] message = random(500);
        SignResponse answer = kms.sign(r -> r.keyId(key.keyId()).message(bytes(message))
                .messageType(MessageType.RAW).signingAlgorithm(algorithm));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.signingAlgorithm(), algorithm, "SigningAlgorithm");
        byte[] signature = answer.signature().asByteArray();
        check(length == 0 || signature.length == length, "length of the signature: " + signature.length);
        Map<MessageType, List<byte[]>> forms = new LinkedHashMap<>();
        forms.put(MessageType.RAW, List.of(message, flip(message)));
        if (digest) {
            MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
            forms.put(MessageType.DIGEST, List.of(sha256.digest(message), sha256.digest(flip(message))));
        }
        for (Map.Entry<MessageType, List<byte[]>> form : forms.entrySet()) {
            Consumer<VerifyRequest.Builder> request = r -> r.keyId(key.arn()).messageType(form.getKey())
                    .signature(answer.signature()).signingAlgorithm(algorithm);
            equal(kms.verify(r -> request.accept(r.message(bytes(form.getValue().get(0))))).signatureValid(), true,
                    "SignatureValid for " + form.getKey());
            refused(KmsInvalidSignatureException.class,
                    () -> kms.verify(r -> request.accept(r.message(bytes(form.getValue().get(1))))));
        }
        check(local.verify(publicKey(key), message, signature), "not valid by Java's own crypto");
    }

    static Verifier verifier(String key, String algorithm) {
        return (spki, message, signature) -> {
            Signature verifier = Signature.getInstance(algorithm, "BC");
            verifier.initVerify(parsed(key, spki));
            verifier.update(message);
            return verifier.verify(signature);
        };
    }

    static boolean verifyPss(byte[] spki, byte[] message, byte[] signature) throws GeneralSecurityException {
        Signature verifier = Signature.getInstance("RSASSA-PSS");
        verifier.setParameter(new PSSParameterSpec("SHA-256", "MGF1", MGF1ParameterSpec.SHA256, 32, 1));
        verifier.initVerify(parsed("RSA", spki));
        verifier.update(message);
        return verifier.verify(signature);
    }

    static void externalMu() throws Exception {
        KeyMetadata key = newKey(KeySpec.ML_DSA_65, KeyUsageType.SIGN_VERIFY);
        byte[] spki = publicKey(key);
        equal(spki.length, SPKI_HEADER + 1952, "length of the public key");
        byte[] message = random(500);
        SdkBytes signature = kms.sign(r -> r.keyId(key.keyId()).message(mu(spki, message))
                .messageType(MessageType.EXTERNAL_MU).signingAlgorithm(SigningAlgorithmSpec.ML_DSA_SHAKE_256))
                .signature();
        Consumer<VerifyRequest.Builder> request = r -> r.keyId(key.keyId()).signature(signature)
                .signingAlgorithm(SigningAlgorithmSpec.ML_DSA_SHAKE_256);
        equal(kms.verify(r -> request.accept(r.message(bytes(message)).messageType(MessageType.RAW))).signatureValid(),
                true, "SignatureValid for RAW");
        equal(kms.verify(r -> request.accept(r.message(mu(spki, message)).messageType(MessageType.EXTERNAL_MU)))
                .signatureValid(), true, "SignatureValid for EXTERNAL_MU");
        refused(KmsInvalidSignatureException.class, () -> kms.verify(
                r -> request.accept(r.message(mu(spki, flip(message))).messageType(MessageType.EXTERNAL_MU))));
        check(verifier("ML-DSA", "ML-DSA").verify(spki, message, signature.asByteArray()), "not valid by BouncyCastle");
    }

    /** FIPS 204, algorithm 7, line 6, with the empty context. */
    static SdkBytes mu(byte[] spki, byte[] message) {
        byte[] tr = shake256(Arrays.copyOfRange(spki, SPKI_HEADER, spki.length));
        return bytes(shake256(tr, new byte[2], message));
    }

    static byte[] shake256(byte[]... parts) {
        SHAKEDigest digest = new SHAKEDigest(256);
        for (byte[] part : parts) {
            digest.update(part, 0, part.length);
        }
        byte[] out = new byte[64];
        digest.doFinal(out, 0, out.length);
        return out;
    }

    // MAC, key agreement, ML-KEM

    static void macHmac256() throws Exception {
        KeyMetadata key = newKey(KeySpec.HMAC_256, KeyUsageType.GENERATE_VERIFY_MAC);
        equal(key.macAlgorithms(), List.of(MacAlgorithmSpec.HMAC_SHA_256), "MacAlgorithms");
        GenerateMacResponse answer = kms.generateMac(
                r -> r.keyId(key.keyId()).message(PLAINTEXT).macAlgorithm(MacAlgorithmSpec.HMAC_SHA_256));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.macAlgorithm(), MacAlgorithmSpec.HMAC_SHA_256, "MacAlgorithm");
        SdkBytes mac = answer.mac();
        equal(mac.asByteArray().length, 32, "length");
        Consumer<VerifyMacRequest.Builder> request =
                r -> r.keyId(key.keyId()).macAlgorithm(MacAlgorithmSpec.HMAC_SHA_256);
        equal(kms.verifyMac(r -> request.accept(r.message(PLAINTEXT).mac(mac))).macValid(), true, "MacValid");
        refused(KmsInvalidMacException.class,
                () -> kms.verifyMac(r -> request.accept(r.message(flip(PLAINTEXT)).mac(mac))));
        refused(KmsInvalidMacException.class,
                () -> kms.verifyMac(r -> request.accept(r.message(PLAINTEXT).mac(flip(mac)))));
    }

    static KeyMetadata agreementKey() {
        KeyMetadata key = newKey(KeySpec.ECC_NIST_P256, KeyUsageType.KEY_AGREEMENT);
        equal(key.keyAgreementAlgorithms(), List.of(KeyAgreementAlgorithmSpec.ECDH), "KeyAgreementAlgorithms");
        return key;
    }

    static SdkBytes derive(KeyMetadata key, byte[] spki) {
        DeriveSharedSecretResponse answer = kms.deriveSharedSecret(r -> r.keyId(key.keyId())
                .keyAgreementAlgorithm(KeyAgreementAlgorithmSpec.ECDH).publicKey(bytes(spki)));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.keyAgreementAlgorithm(), KeyAgreementAlgorithmSpec.ECDH, "KeyAgreementAlgorithm");
        equal(answer.sharedSecret().asByteArray().length, 32, "length");
        return answer.sharedSecret();
    }

    static void deriveSharedSecret() {
        KeyMetadata one = agreementKey();
        KeyMetadata two = agreementKey();
        check(derive(one, publicKey(two)).equals(derive(two, publicKey(one))), "different secrets");
    }

    static void deriveSharedSecretLocal() throws Exception {
        KeyMetadata key = agreementKey();
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        KeyPair local = generator.generateKeyPair();
        KeyAgreement agreement = KeyAgreement.getInstance("ECDH");
        agreement.init(local.getPrivate());
        agreement.doPhase(KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(publicKey(key))), true);
        SdkBytes ours = bytes(agreement.generateSecret());
        check(derive(key, local.getPublic().getEncoded()).equals(ours), "different secrets");
    }

    static KeyMetadata kemKey() {
        KeyMetadata key = newKey(KeySpec.ML_KEM_768, KeyUsageType.ENCAPSULATE_DECAPSULATE);
        equal(key.encapsulationAlgorithms(), List.of(EncapsulationAlgorithmSpec.ML_KEM), "EncapsulationAlgorithms");
        return key;
    }

    static SdkBytes decapsulate(KeyMetadata key, SdkBytes blob) {
        DecapsulateResponse answer = kms.decapsulate(r -> r.keyId(key.keyId())
                .encapsulationAlgorithm(EncapsulationAlgorithmSpec.ML_KEM).sharedSecretCiphertextBlob(blob));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.encapsulationAlgorithm(), EncapsulationAlgorithmSpec.ML_KEM, "EncapsulationAlgorithm");
        equal(answer.sharedSecret().asByteArray().length, 32, "length of the secret");
        return answer.sharedSecret();
    }

    static void mlKem() {
        KeyMetadata key = kemKey();
        EncapsulateResponse answer = kms.encapsulate(
                r -> r.keyId(key.keyId()).encapsulationAlgorithm(EncapsulationAlgorithmSpec.ML_KEM));
        equal(answer.keyId(), key.arn(), "KeyId");
        equal(answer.encapsulationAlgorithm(), EncapsulationAlgorithmSpec.ML_KEM, "EncapsulationAlgorithm");
        SdkBytes blob = answer.sharedSecretCiphertextBlob();
        equal(blob.asByteArray().length, ML_KEM_CIPHERTEXT, "length of the ciphertext");
        check(decapsulate(key, blob).equals(answer.sharedSecret()), "different secrets");
        SdkBytes changed = decapsulate(key, flip(blob));
        check(!changed.equals(answer.sharedSecret()), "a changed ciphertext gives the same secret");
    }

    static void mlKemLocal() throws Exception {
        KeyMetadata key = kemKey();
        byte[] spki = publicKey(key);
        equal(spki.length, SPKI_HEADER + ML_KEM_PUBLIC, "length of the public key");
        SecretKeyWithEncapsulation shared = KmsKeySteps.encapsulate(parsed("ML-KEM", spki));
        SdkBytes theirs = decapsulate(key, bytes(shared.getEncapsulation()));
        check(theirs.equals(bytes(shared.getEncoded())), "different secrets");
    }

    static void mlKemWrongLength() throws Exception {
        KeyMetadata key = kemKey();
        refused(InvalidCiphertextException.class, () -> decapsulate(key, bytes(new byte[ML_KEM_CIPHERTEXT - 1])));
    }
}
