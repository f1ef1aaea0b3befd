package outlast.interop;

import static outlast.interop.Pki.check;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.bouncycastle.asn1.DERNull;
import org.bouncycastle.asn1.nist.NISTObjectIdentifiers;
import org.bouncycastle.asn1.pkcs.PKCSObjectIdentifiers;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.SubjectPublicKeyInfo;
import org.bouncycastle.cert.jcajce.JcaX509CertificateHolder;
import org.bouncycastle.cms.CMSProcessableByteArray;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.CMSSignedDataGenerator;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.crypto.digests.SHAKEDigest;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;
import org.bouncycastle.pkcs.PKCS10CertificationRequestBuilder;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.http.SdkHttpClient;
import software.amazon.awssdk.http.crt.AwsCrtHttpClient;
import software.amazon.awssdk.services.acmpca.AcmPcaClient;
import software.amazon.awssdk.services.acmpca.model.ASN1Subject;
import software.amazon.awssdk.services.acmpca.model.CertificateAuthority;
import software.amazon.awssdk.services.acmpca.model.CertificateAuthorityStatus;
import software.amazon.awssdk.services.acmpca.model.CertificateAuthorityType;
import software.amazon.awssdk.services.acmpca.model.GetCertificateAuthorityCertificateResponse;
import software.amazon.awssdk.services.acmpca.model.GetCertificateResponse;
import software.amazon.awssdk.services.acmpca.model.KeyAlgorithm;
import software.amazon.awssdk.services.acmpca.model.SigningAlgorithm;
import software.amazon.awssdk.services.acmpca.model.ValidityPeriodType;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.model.AliasListEntry;
import software.amazon.awssdk.services.kms.model.CreateKeyResponse;
import software.amazon.awssdk.services.kms.model.DataKeySpec;
import software.amazon.awssdk.services.kms.model.DecryptResponse;
import software.amazon.awssdk.services.kms.model.GenerateDataKeyResponse;
import software.amazon.awssdk.services.kms.model.GetPublicKeyResponse;
import software.amazon.awssdk.services.kms.model.InvalidCiphertextException;
import software.amazon.awssdk.services.kms.model.KeySpec;
import software.amazon.awssdk.services.kms.model.KeyUsageType;
import software.amazon.awssdk.services.kms.model.KmsInvalidSignatureException;
import software.amazon.awssdk.services.kms.model.ListAliasesResponse;
import software.amazon.awssdk.services.kms.model.MessageType;
import software.amazon.awssdk.services.kms.model.SigningAlgorithmSpec;

/**
 * The flow of AWS's code-signing sample (private CA hierarchy, key in KMS, CSR, certificate,
 * CMS) by the AWS SDK for Java v2 over the CRT client with post-quantum TLS, for RSA and then
 * for ML-DSA. Endpoint, credentials and region come from the environment. Every flow is run
 * twice: the second time must find the CAs, the key and the alias of the first.
 */
final class AwsSdk {
    private record Algorithms(
            KeyAlgorithm caKey, SigningAlgorithm ca, KeySpec key, SigningAlgorithmSpec signing, AlgorithmIdentifier id) {}

    private static final List<Algorithms> ALL = List.of(
            new Algorithms(KeyAlgorithm.RSA_2048, SigningAlgorithm.SHA256_WITHRSA, KeySpec.RSA_2048,
                    SigningAlgorithmSpec.RSASSA_PKCS1_V1_5_SHA_256,
                    new AlgorithmIdentifier(PKCSObjectIdentifiers.sha256WithRSAEncryption, DERNull.INSTANCE)),
            new Algorithms(KeyAlgorithm.ML_DSA_65, SigningAlgorithm.ML_DSA_65, KeySpec.ML_DSA_65,
                    SigningAlgorithmSpec.ML_DSA_SHAKE_256,
                    new AlgorithmIdentifier(NISTObjectIdentifiers.id_ml_dsa_65)));

    private static final String TEMPLATE = "arn:aws:acm-pca:::template/";

    /** A certificate authority with its certificate. */
    private record Ca(String arn, X509Certificate certificate, boolean created) {}

    /** A key in KMS with its public key. */
    private record Key(String arn, byte[] spki, boolean created) {}

    private interface Step<T> {
        T run() throws Exception;
    }

    private interface Action {
        void run() throws Exception;
    }

    /** The steps after a failed one are left out. */
    private static final class Aborted extends Exception {
        private static final long serialVersionUID = 1;
    }

    private final KmsClient kms;
    private final AcmPcaClient pca;
    private final String prefix;
    private int passed;
    private int failed;

    private AwsSdk(KmsClient kms, AcmPcaClient pca, String prefix) {
        this.kms = kms;
        this.pca = pca;
        this.prefix = prefix;
    }

    static int run(String[] args) {
        String prefix = "outlast-interop";
        boolean existing = false;
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--prefix") && i + 1 < args.length) {
                prefix = args[++i];
            } else if (args[i].equals("--expect-existing")) {
                existing = true;
            } else {
                throw new IllegalArgumentException("unknown argument " + args[i]);
            }
        }
        for (String name : List.of("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")) {
            if (System.getenv(name) == null) {
                throw new IllegalArgumentException("the environment lacks " + name);
            }
        }
        ClientOverrideConfiguration timeout =
                ClientOverrideConfiguration.builder().apiCallTimeout(Duration.ofSeconds(60)).build();
        try (SdkHttpClient http = AwsCrtHttpClient.builder().postQuantumTlsEnabled(true).build();
                KmsClient kms = KmsClient.builder().httpClient(http).overrideConfiguration(timeout).build();
                AcmPcaClient pca = AcmPcaClient.builder().httpClient(http).overrideConfiguration(timeout).build()) {
            return new AwsSdk(kms, pca, prefix).all(existing);
        }
    }

    private int all(boolean existing) {
        for (Algorithms algorithms : ALL) {
            group(() -> {
                boolean first = flow(algorithms, "first", existing);
                step(algorithms.key() + " first: " + (existing ? "found what exists" : "done"),
                        () -> check(!(existing && first), "created what should have existed"));
                flow(algorithms, "again", true);
            });
        }
        group(this::externalMu);
        group(this::dataKey);
        System.out.println(passed + " passed, " + failed + " failed");
        return failed == 0 ? 0 : 1;
    }

    private void group(Action action) {
        try {
            action.run();
        } catch (Aborted e) {
            // counted and printed by step
        } catch (Exception e) {
            failed++;
            e.printStackTrace();
        }
    }

    private <T> T get(String name, Step<T> step) throws Aborted {
        try {
            T result = step.run();
            passed++;
            System.out.println("ok " + name);
            return result;
        } catch (Exception | AssertionError e) {
            failed++;
            System.out.println("FAILED " + name);
            System.out.flush();
            e.printStackTrace();
            throw new Aborted();
        }
    }

    private void step(String name, Action action) throws Aborted {
        get(name, () -> {
            action.run();
            return null;
        });
    }

    // The sample's flow

    /** Returns whether anything was created. */
    private boolean flow(Algorithms algorithms, String run, boolean existing) throws Aborted {
        String label = algorithms.key() + " " + run + ": ";
        Ca root = authority(algorithms, label, CertificateAuthorityType.ROOT, null, existing);
        Ca sub = authority(algorithms, label, CertificateAuthorityType.SUBORDINATE, root, existing);
        Key key = signingKey(algorithms, label, existing);

        X500Name subject = new X500Name("CN=" + prefix + " signer,O=Outlast");
        byte[] csr = get(label + "CSR signed by KMS", () -> {
            PKCS10CertificationRequest request = new PKCS10CertificationRequestBuilder(
                    subject, SubjectPublicKeyInfo.getInstance(key.spki())).build(new KmsSigner(key.arn(), algorithms));
            check(request.isSignatureValid(new JcaContentVerifierProviderBuilder().setProvider("BC")
                    .build(request.getSubjectPublicKeyInfo())), "the CSR's signature is not valid");
            return pem(request).getBytes(StandardCharsets.US_ASCII);
        });
        GetCertificateResponse issued = issue(label + "CodeSigningCertificate ", sub.arn(), algorithms,
                SdkBytes.fromByteArray(csr), "CodeSigningCertificate/V1", 1);
        List<X509Certificate> chain = new ArrayList<>();
        X509Certificate leaf = get(label + "code-signing certificate", () -> {
            X509Certificate certificate = Pki.certificate(issued.certificate());
            chain.addAll(Pki.certificates(issued.certificateChain()));
            check(Arrays.equals(certificate.getPublicKey().getEncoded(), key.spki()), "not the key of KMS");
            check(new JcaX509CertificateHolder(certificate).getSubject().equals(subject), "not the subject of the CSR");
            check(!chain.isEmpty() && chain.get(0).equals(sub.certificate()), "the chain does not begin with the issuer");
            check(certificate.getSigAlgOID().equals(algorithms.id().getAlgorithm().getId()),
                    "signature algorithm " + certificate.getSigAlgOID());
            check(certificate.getCriticalExtensionOIDs().contains("2.5.29.37"), "the extended key usage is not critical");
            boolean[] usage = certificate.getKeyUsage();
            check(usage != null && usage[0] && !usage[2] && !usage[5], "key usage " + Arrays.toString(usage));
            Pki.purpose(certificate, KeyPurposeId.id_kp_codeSigning);
            Pki.chain(certificate, List.of(sub.certificate()), List.of(root.certificate()));
            return certificate;
        });

        byte[] content = ("content of " + label + UUID.randomUUID()).getBytes(StandardCharsets.UTF_8);
        byte[] cms = get(label + "CMS signed by KMS", () -> {
            CMSSignedDataGenerator generator = new CMSSignedDataGenerator();
            generator.addSignerInfoGenerator(new JcaSignerInfoGeneratorBuilder(
                    new JcaDigestCalculatorProviderBuilder().setProvider("BC").build())
                    .build(new KmsSigner(key.arn(), algorithms), leaf));
            generator.addCertificate(new JcaX509CertificateHolder(leaf));
            generator.addCertificate(new JcaX509CertificateHolder(sub.certificate()));
            return generator.generate(new CMSProcessableByteArray(content), false).getEncoded();
        });
        step(label + "CMS verified", () -> {
            CMSSignedData parsed = new CMSSignedData(new CMSProcessableByteArray(content), cms);
            List<X509Certificate> signers =
                    Pki.signers(parsed, List.of(root.certificate()), KeyPurposeId.id_kp_codeSigning);
            check(signers.equals(List.of(leaf)), "signed by " + signers);
        });
        return root.created() || sub.created() || key.created();
    }

    /** Finds the CA which fits, or makes it. */
    private Ca authority(Algorithms algorithms, String label, CertificateAuthorityType type, Ca issuer, boolean existing)
            throws Aborted {
        boolean root = type == CertificateAuthorityType.ROOT;
        String name = prefix + " " + (root ? "root " : "sub ") + algorithms.caKey();
        String what = label + type + " ";
        Optional<CertificateAuthority> found = get(what + "ListCertificateAuthorities", () -> {
            Optional<CertificateAuthority> one = active(algorithms, type, name);
            check(one.isPresent() || !existing, "no ACTIVE CA '" + name + "'");
            return one;
        });
        if (found.isPresent()) {
            return get(what + "GetCertificateAuthorityCertificate", () -> {
                GetCertificateAuthorityCertificateResponse response =
                        pca.getCertificateAuthorityCertificate(r -> r.certificateAuthorityArn(found.get().arn()));
                X509Certificate certificate = Pki.certificate(response.certificate());
                if (!root) {
                    check(Pki.certificates(response.certificateChain()).contains(issuer.certificate()),
                            "the chain lacks the root");
                }
                authorityCertificate(certificate, algorithms, name, issuer);
                return new Ca(found.get().arn(), certificate, false);
            });
        }

        String arn = get(what + "CreateCertificateAuthority", () -> pca.createCertificateAuthority(r -> r
                .certificateAuthorityType(type)
                .idempotencyToken(token())
                .tags(t -> t.key("Name").value(name))
                .certificateAuthorityConfiguration(c -> c
                        .keyAlgorithm(algorithms.caKey())
                        .signingAlgorithm(algorithms.ca())
                        .subject(ASN1Subject.builder().commonName(name).organization("Outlast").country("DE").build())))
                .certificateAuthorityArn());
        step(what + "DescribeCertificateAuthority", () -> {
            CertificateAuthority ca = pca.describeCertificateAuthority(r -> r.certificateAuthorityArn(arn))
                    .certificateAuthority();
            check(ca.arn().equals(arn), "arn " + ca.arn());
            check(ca.type() == type, "type " + ca.type());
            check(ca.status() == CertificateAuthorityStatus.CREATING
                    || ca.status() == CertificateAuthorityStatus.PENDING_CERTIFICATE, "status " + ca.status());
            check(ca.createdAt() != null, "no createdAt");
            check(fits(ca, algorithms, type, name), "not what was asked for: " + ca);
        });
        step(what + "waiter CertificateAuthorityCSRCreated", () -> {
            try (var waiter = pca.waiter()) {
                check(waiter.waitUntilCertificateAuthorityCSRCreated(r -> r.certificateAuthorityArn(arn))
                        .matched().response().isPresent(), "no response");
            }
        });
        String csr = get(what + "GetCertificateAuthorityCsr", () -> {
            String text = pca.getCertificateAuthorityCsr(r -> r.certificateAuthorityArn(arn)).csr();
            check(text.startsWith("-----BEGIN CERTIFICATE REQUEST-----"), "not a PEM CSR: " + text);
            return text;
        });
        GetCertificateResponse issued = root
                ? issue(what, arn, algorithms, SdkBytes.fromUtf8String(csr), "RootCACertificate/V1", 10)
                : issue(what, issuer.arn(), algorithms, SdkBytes.fromUtf8String(csr),
                        "SubordinateCACertificate_PathLen0/V1", 5);
        X509Certificate certificate = get(what + "certificate", () -> {
            X509Certificate c = Pki.certificate(issued.certificate());
            authorityCertificate(c, algorithms, name, issuer);
            return c;
        });
        step(what + "ImportCertificateAuthorityCertificate", () -> pca.importCertificateAuthorityCertificate(r -> {
            r.certificateAuthorityArn(arn).certificate(SdkBytes.fromUtf8String(issued.certificate()));
            if (!root) {
                r.certificateChain(SdkBytes.fromUtf8String(issued.certificateChain()));
            }
        }));
        step(what + "is listed ACTIVE", () -> check(active(algorithms, type, name).map(CertificateAuthority::arn)
                .filter(arn::equals).isPresent(), "not listed as ACTIVE"));
        return new Ca(arn, certificate, true);
    }

    private Optional<CertificateAuthority> active(Algorithms algorithms, CertificateAuthorityType type, String name) {
        return pca.listCertificateAuthoritiesPaginator().certificateAuthorities().stream()
                .filter(ca -> ca.status() == CertificateAuthorityStatus.ACTIVE)
                .filter(ca -> fits(ca, algorithms, type, name))
                .findFirst();
    }

    private static boolean fits(CertificateAuthority ca, Algorithms algorithms, CertificateAuthorityType type, String name) {
        var configuration = ca.certificateAuthorityConfiguration();
        return ca.type() == type
                && configuration.keyAlgorithm() == algorithms.caKey()
                && configuration.signingAlgorithm() == algorithms.ca()
                && name.equals(configuration.subject().commonName());
    }

    private static void authorityCertificate(X509Certificate certificate, Algorithms algorithms, String name, Ca issuer)
            throws Exception {
        X509Certificate signer = issuer == null ? certificate : issuer.certificate();
        check(certificate.getSubjectX500Principal().getName().contains("CN=" + name),
                "subject " + certificate.getSubjectX500Principal());
        check(certificate.getIssuerX500Principal().equals(signer.getSubjectX500Principal()),
                "issuer " + certificate.getIssuerX500Principal());
        check(certificate.getSigAlgOID().equals(algorithms.id().getAlgorithm().getId()),
                "signature algorithm " + certificate.getSigAlgOID());
        int length = certificate.getBasicConstraints();
        check(issuer == null ? length == Integer.MAX_VALUE : length == 0, "path length " + length);
        boolean[] usage = certificate.getKeyUsage();
        check(usage != null && usage[0] && usage[5] && usage[6], "key usage " + Arrays.toString(usage));
        certificate.checkValidity();
        certificate.verify(signer.getPublicKey(), "BC");
    }

    private GetCertificateResponse issue(
            String what, String ca, Algorithms algorithms, SdkBytes csr, String template, long years) throws Aborted {
        String arn = get(what + "IssueCertificate", () -> pca.issueCertificate(r -> r
                .certificateAuthorityArn(ca)
                .csr(csr)
                .signingAlgorithm(algorithms.ca())
                .templateArn(TEMPLATE + template)
                .validity(v -> v.type(ValidityPeriodType.YEARS).value(years))
                .idempotencyToken(token()))
                .certificateArn());
        step(what + "waiter CertificateIssued", () -> {
            try (var waiter = pca.waiter()) {
                check(waiter.waitUntilCertificateIssued(r -> r.certificateAuthorityArn(ca).certificateArn(arn))
                        .matched().response().isPresent(), "no response");
            }
        });
        return get(what + "GetCertificate",
                () -> pca.getCertificate(r -> r.certificateAuthorityArn(ca).certificateArn(arn)));
    }

    private Key signingKey(Algorithms algorithms, String label, boolean existing) throws Aborted {
        String alias = "alias/" + prefix + "-" + algorithms.key().toString().toLowerCase().replace('_', '-');
        String found = get(label + "ListAliases", () -> {
            String target = aliasTarget(alias);
            check(target != null || !existing, "no alias " + alias);
            return target;
        });
        String id = found;
        if (found == null) {
            id = get(label + "CreateKey", () -> {
                CreateKeyResponse response = kms.createKey(r -> r.keySpec(algorithms.key())
                        .keyUsage(KeyUsageType.SIGN_VERIFY).description(prefix));
                check(response.keyMetadata().keySpec() == algorithms.key(), "spec " + response.keyMetadata().keySpec());
                check(response.keyMetadata().signingAlgorithms().contains(algorithms.signing()),
                        "algorithms " + response.keyMetadata().signingAlgorithms());
                return response.keyMetadata().keyId();
            });
            String target = id;
            step(label + "CreateAlias", () -> {
                kms.createAlias(r -> r.aliasName(alias).targetKeyId(target));
                check(target.equals(aliasTarget(alias)), "the alias is not listed");
            });
        }
        GetPublicKeyResponse response = get(label + "GetPublicKey", () -> {
            GetPublicKeyResponse key = kms.getPublicKey(r -> r.keyId(alias));
            check(key.keySpec() == algorithms.key(), "spec " + key.keySpec());
            check(key.keyUsage() == KeyUsageType.SIGN_VERIFY, "usage " + key.keyUsage());
            return key;
        });
        return new Key(response.keyId(), response.publicKey().asByteArray(), found == null);
    }

    private String aliasTarget(String alias) throws Pki.Failed {
        String marker = null;
        Set<String> markers = new HashSet<>();
        while (true) {
            String from = marker;
            ListAliasesResponse page = kms.listAliases(r -> r.marker(from));
            check(page.truncated() != null, "ListAliases without Truncated");
            for (AliasListEntry entry : page.aliases()) {
                if (entry.aliasName().equals(alias)) {
                    return entry.targetKeyId();
                }
            }
            if (!page.truncated()) {
                return null;
            }
            marker = page.nextMarker();
            check(marker != null && markers.add(marker), "truncated without a new NextMarker");
        }
    }

    // More about ML-DSA and data keys

    private void externalMu() throws Aborted {
        Algorithms algorithms = ALL.get(1);
        Key key = signingKey(algorithms, "EXTERNAL_MU ", false);
        byte[] message = new byte[10_000];
        new SecureRandom().nextBytes(message);
        byte[] mu = get("EXTERNAL_MU computed", () -> mu(key.spki(), message));

        SdkBytes signature = get("EXTERNAL_MU Sign", () -> kms.sign(r -> r.keyId(key.arn())
                .message(SdkBytes.fromByteArray(mu)).messageType(MessageType.EXTERNAL_MU)
                .signingAlgorithm(algorithms.signing())).signature());
        step("EXTERNAL_MU verified by BouncyCastle as a plain signature",
                () -> check(verify(key.spki(), message, signature.asByteArray()), "not valid"));
        step("EXTERNAL_MU Verify EXTERNAL_MU", () -> check(kms.verify(r -> r.keyId(key.arn())
                .message(SdkBytes.fromByteArray(mu)).messageType(MessageType.EXTERNAL_MU).signature(signature)
                .signingAlgorithm(algorithms.signing())).signatureValid(), "not valid"));

        byte[] small = Arrays.copyOf(message, 4096);
        SdkBytes smallSignature = get("EXTERNAL_MU Sign for a message of 4096 bytes", () -> kms.sign(r -> r
                .keyId(key.arn()).message(SdkBytes.fromByteArray(mu(key.spki(), small)))
                .messageType(MessageType.EXTERNAL_MU).signingAlgorithm(algorithms.signing())).signature());
        step("EXTERNAL_MU Verify RAW", () -> check(kms.verify(r -> r.keyId(key.arn())
                .message(SdkBytes.fromByteArray(small)).messageType(MessageType.RAW).signature(smallSignature)
                .signingAlgorithm(algorithms.signing())).signatureValid(), "not valid"));
        step("RAW Sign, verified by BouncyCastle", () -> check(verify(key.spki(), small, kms.sign(r -> r
                .keyId(key.arn()).message(SdkBytes.fromByteArray(small)).messageType(MessageType.RAW)
                .signingAlgorithm(algorithms.signing())).signature().asByteArray()), "not valid"));
        step("Verify of a tampered signature throws KmsInvalidSignatureException", () -> {
            byte[] tampered = smallSignature.asByteArray();
            tampered[100] ^= 1;
            try {
                kms.verify(r -> r.keyId(key.arn()).message(SdkBytes.fromByteArray(small))
                        .signature(SdkBytes.fromByteArray(tampered)).signingAlgorithm(algorithms.signing()));
            } catch (KmsInvalidSignatureException e) {
                return;
            }
            check(false, "no exception");
        });
    }

    /** FIPS 204: SHAKE256(SHAKE256(public key, 64) || 0 || 0 || message, 64), with the empty context. */
    private static byte[] mu(byte[] spki, byte[] message) {
        byte[] mu = shake(shake(SubjectPublicKeyInfo.getInstance(spki).getPublicKeyData().getOctets()),
                new byte[2], message);
        if (mu.length != 64) {
            throw new AssertionError("mu of " + mu.length + " bytes");
        }
        return mu;
    }

    private static byte[] shake(byte[]... parts) {
        SHAKEDigest digest = new SHAKEDigest(256);
        for (byte[] part : parts) {
            digest.update(part, 0, part.length);
        }
        byte[] out = new byte[64];
        digest.doFinal(out, 0, out.length);
        return out;
    }

    private static boolean verify(byte[] spki, byte[] message, byte[] signature) throws Exception {
        PublicKey key = KeyFactory.getInstance("ML-DSA", "BC").generatePublic(new X509EncodedKeySpec(spki));
        Signature verifier = Signature.getInstance("ML-DSA", "BC");
        verifier.initVerify(key);
        verifier.update(message);
        return verifier.verify(signature);
    }

    private void dataKey() throws Aborted {
        String key = get("CreateKey SYMMETRIC_DEFAULT", () -> {
            CreateKeyResponse response = kms.createKey(r -> r.description(prefix + " data keys"));
            check(response.keyMetadata().keySpec() == KeySpec.SYMMETRIC_DEFAULT,
                    "spec " + response.keyMetadata().keySpec());
            return response.keyMetadata().arn();
        });
        Map<String, String> context = Map.of("purpose", "interop", "tenant", "42");
        GenerateDataKeyResponse data = get("GenerateDataKey with an encryption context", () -> {
            GenerateDataKeyResponse response = kms.generateDataKey(r -> r.keyId(key).keySpec(DataKeySpec.AES_256)
                    .encryptionContext(context));
            check(response.plaintext().asByteArray().length == 32, "not 32 bytes");
            check(response.keyId().equals(key), "key " + response.keyId());
            return response;
        });
        step("Decrypt of the data key", () -> {
            DecryptResponse response = kms.decrypt(r -> r.ciphertextBlob(data.ciphertextBlob())
                    .encryptionContext(context));
            check(response.plaintext().equals(data.plaintext()), "another plaintext");
            check(response.keyId().equals(key), "key " + response.keyId());
        });
        step("Decrypt with another context throws InvalidCiphertextException", () -> {
            try {
                kms.decrypt(r -> r.ciphertextBlob(data.ciphertextBlob())
                        .encryptionContext(Map.of("purpose", "interop", "tenant", "43")));
            } catch (InvalidCiphertextException e) {
                return;
            }
            check(false, "no exception");
        });
        step("ScheduleKeyDeletion", () -> check(kms.scheduleKeyDeletion(r -> r.keyId(key).pendingWindowInDays(7))
                .deletionDate() != null, "no date"));
    }

    private static String token() {
        return UUID.randomUUID().toString().replace("-", "");
    }

    private static String pem(Object object) throws java.io.IOException {
        StringWriter text = new StringWriter();
        try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
            writer.writeObject(object);
        }
        return text.toString();
    }

    /** Signs by KMS Sign, with MessageType left out. */
    private final class KmsSigner implements ContentSigner {
        private final String key;
        private final Algorithms algorithms;
        private final ByteArrayOutputStream message = new ByteArrayOutputStream();

        KmsSigner(String key, Algorithms algorithms) {
            this.key = key;
            this.algorithms = algorithms;
        }

        @Override
        public AlgorithmIdentifier getAlgorithmIdentifier() {
            return algorithms.id();
        }

        @Override
        public OutputStream getOutputStream() {
            return message;
        }

        @Override
        public byte[] getSignature() {
            return kms.sign(r -> r.keyId(key).message(SdkBytes.fromByteArray(message.toByteArray()))
                    .signingAlgorithm(algorithms.signing())).signature().asByteArray();
        }
    }
}
