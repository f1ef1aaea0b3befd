package outlast.interop;

import java.io.IOException;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.List;
import org.bouncycastle.asn1.ASN1ObjectIdentifier;
import org.bouncycastle.asn1.nist.NISTObjectIdentifiers;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.AlgorithmIdentifier;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.KeyUsage;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.jcajce.JcaCertStore;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.jcajce.spec.MLDSAParameterSpec;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.DigestCalculatorProvider;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;
import org.bouncycastle.tsp.TSPAlgorithms;
import org.bouncycastle.tsp.TimeStampRequest;
import org.bouncycastle.tsp.TimeStampRequestGenerator;
import org.bouncycastle.tsp.TimeStampResponse;
import org.bouncycastle.tsp.TimeStampResponseGenerator;
import org.bouncycastle.tsp.TimeStampTokenGenerator;
import org.bouncycastle.tsp.ers.ERSArchiveTimeStamp;
import org.bouncycastle.tsp.ers.ERSArchiveTimeStampGenerator;
import org.bouncycastle.tsp.ers.ERSByteData;
import org.bouncycastle.tsp.ers.ERSDataGroup;
import org.bouncycastle.tsp.ers.ERSEvidenceRecord;
import org.bouncycastle.tsp.ers.ERSEvidenceRecordGenerator;
import org.bouncycastle.tsp.ers.ERSFileData;

/** Evidence records (RFC 4998) over a file and its signature, made and verified by BouncyCastle. */
final class BouncyCastleErs {
    private static final AlgorithmIdentifier SHA256 = new AlgorithmIdentifier(NISTObjectIdentifiers.id_sha256);
    private static final AlgorithmIdentifier SHA512 = new AlgorithmIdentifier(NISTObjectIdentifiers.id_sha512);

    private BouncyCastleErs() {}

    static int run(String[] args) throws Exception {
        if (args.length >= 4 && args[0].equals("verify")) {
            // verify FILE SIGNATURE RECORD...: one line for each record.
            for (int i = 3; i < args.length; i++) {
                String said;
                try {
                    verify(Path.of(args[i]), Path.of(args[1]), Path.of(args[2]));
                    said = "ok";
                } catch (Exception e) {
                    said = "refused: " + e.getMessage();
                }
                System.out.println(said);
            }
        } else if (args.length == 4 && args[0].equals("make")) {
            make(Path.of(args[1]), Path.of(args[2]), Path.of(args[3]));
            System.out.println("ok");
        } else {
            throw new IllegalArgumentException("want: verify FILE SIGNATURE RECORD... | make DIR FILE SIGNATURE");
        }
        return 0;
    }

    private static DigestCalculatorProvider digests() throws Exception {
        return new JcaDigestCalculatorProviderBuilder().setProvider("BC").build();
    }

    private static ERSDataGroup group(Path file, Path signature) throws Exception {
        return new ERSDataGroup(new ERSFileData(file.toFile()), new ERSFileData(signature.toFile()));
    }

    private static void verify(Path record, Path file, Path signature) throws Exception {
        ERSEvidenceRecord found = new ERSEvidenceRecord(Files.readAllBytes(record), digests());
        found.validatePresent(group(file, signature), new Date());
        X509CertificateHolder authority = found.getSigningCertificate();
        found.validate(new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC").build(authority));
    }

    /**
     * Writes records in their stages, with the authority's root: of one file alone, of one of five, renewed once and twice,
     * with a new digest, and renewed once more.
     */
    private static void make(Path out, Path file, Path signature) throws Exception {
        Authority authority = new Authority();
        authority.writeRoot(out.resolve("root.pem"));
        ERSArchiveTimeStampGenerator alone = new ERSArchiveTimeStampGenerator(digests().get(SHA256));
        alone.addData(group(file, signature));
        ERSArchiveTimeStamp only = alone.generateArchiveTimeStamp(authority.stamp(alone.generateTimeStampRequest(requests())));
        write(out, "alone", new ERSEvidenceRecordGenerator(digests()).generate(only));

        ERSArchiveTimeStampGenerator five = new ERSArchiveTimeStampGenerator(digests().get(SHA256));
        five.addData(group(file, signature));
        for (byte i = 0; i < 4; i++) {
            five.addData(new ERSByteData(new byte[] {i}));
        }
        List<ERSArchiveTimeStamp> all =
                five.generateArchiveTimeStamps(authority.stamp(five.generateTimeStampRequest(requests())));
        ERSEvidenceRecord record = new ERSEvidenceRecordGenerator(digests()).generate(all.get(0));
        write(out, "one-of-five", record);
        for (String name : new String[] {"renewed", "renewed-twice"}) {
            record = record.renewTimeStamp(authority.stamp(record.generateTimeStampRenewalRequest(requests())));
            write(out, name, record);
        }
        TimeStampRequest fresh =
                record.generateHashRenewalRequest(digests().get(SHA512), group(file, signature), requests());
        record = record.renewHash(digests().get(SHA512), group(file, signature), authority.stamp(fresh));
        write(out, "new-digest", record);
        record = record.renewTimeStamp(authority.stamp(record.generateTimeStampRenewalRequest(requests())));
        write(out, "new-digest-renewed", record);
    }

    private static void write(Path out, String name, ERSEvidenceRecord record) throws IOException {
        Files.write(out.resolve(name + ".ers"), record.toASN1Structure().getEncoded("DER"));
    }

    private static TimeStampRequestGenerator requests() {
        TimeStampRequestGenerator requests = new TimeStampRequestGenerator();
        requests.setCertReq(true);
        return requests;
    }

    /** A time-stamping authority with ML-DSA-65. */
    private static final class Authority {
        private final X509CertificateHolder root;
        private final X509CertificateHolder leaf;
        private final ContentSigner signer;
        private long serial = 1;

        Authority() throws Exception {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("ML-DSA", "BC");
            generator.initialize(MLDSAParameterSpec.ml_dsa_65, new SecureRandom());
            KeyPair rootKey = generator.generateKeyPair();
            KeyPair leafKey = generator.generateKeyPair();
            signer = signer(leafKey);
            JcaX509ExtensionUtils utils = new JcaX509ExtensionUtils();
            X500Name name = new X500Name("CN=BouncyCastle Time Root");
            root = builder(name, name, rootKey)
                    .addExtension(Extension.basicConstraints, true, new BasicConstraints(true))
                    .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.keyCertSign | KeyUsage.cRLSign))
                    .addExtension(Extension.subjectKeyIdentifier, false,
                            utils.createSubjectKeyIdentifier(rootKey.getPublic()))
                    .build(signer(rootKey));
            leaf = builder(name, new X500Name("CN=BouncyCastle Time"), leafKey)
                    .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature))
                    .addExtension(Extension.extendedKeyUsage, true,
                            new ExtendedKeyUsage(KeyPurposeId.id_kp_timeStamping))
                    .addExtension(Extension.subjectKeyIdentifier, false,
                            utils.createSubjectKeyIdentifier(leafKey.getPublic()))
                    .addExtension(Extension.authorityKeyIdentifier, false,
                            utils.createAuthorityKeyIdentifier(rootKey.getPublic()))
                    .build(signer(rootKey));
        }

        private static ContentSigner signer(KeyPair key) throws Exception {
            return new JcaContentSignerBuilder("ML-DSA-65").setProvider("BC").build(key.getPrivate());
        }

        private static JcaX509v3CertificateBuilder builder(X500Name issuer, X500Name subject, KeyPair key) {
            Instant now = Instant.now();
            return new JcaX509v3CertificateBuilder(issuer, new BigInteger(127, new SecureRandom()).setBit(126),
                    Date.from(now.minusSeconds(300)), Date.from(now.plus(Duration.ofDays(365))), subject, key.getPublic());
        }

        void writeRoot(Path path) throws IOException {
            StringWriter text = new StringWriter();
            try (JcaPEMWriter pem = new JcaPEMWriter(text)) {
                pem.writeObject(root);
            }
            Files.writeString(path, text.toString(), StandardCharsets.US_ASCII);
        }

        TimeStampResponse stamp(TimeStampRequest request) throws Exception {
            TimeStampTokenGenerator tokens = new TimeStampTokenGenerator(
                    new JcaSignerInfoGeneratorBuilder(digests()).build(signer, leaf),
                    digests().get(SHA256), new ASN1ObjectIdentifier("1.3.6.1.4.1.99999.1"));
            tokens.addCertificates(new JcaCertStore(List.of(leaf)));
            TimeStampResponseGenerator responses = new TimeStampResponseGenerator(tokens, TSPAlgorithms.ALLOWED);
            BigInteger number = BigInteger.valueOf(serial++);
            byte[] answer = responses.generate(request, number, new Date()).getEncoded();
            TimeStampResponse response = new TimeStampResponse(answer);
            response.validate(request);
            return response;
        }
    }
}
