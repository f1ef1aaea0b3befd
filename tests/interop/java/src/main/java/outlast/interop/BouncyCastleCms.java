package outlast.interop;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.KeyUsage;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.X509v3CertificateBuilder;
import org.bouncycastle.cert.jcajce.JcaX509ExtensionUtils;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.cms.CMSProcessableFile;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.CMSSignedDataStreamGenerator;
import org.bouncycastle.cms.jcajce.JcaSignerInfoGeneratorBuilder;
import org.bouncycastle.jcajce.spec.MLDSAParameterSpec;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.ContentSigner;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;

/** Detached CMS signatures with ML-DSA, made and verified by BouncyCastle. */
final class BouncyCastleCms {
    private BouncyCastleCms() {}

    static int run(String[] args) throws Exception {
        Path out = null;
        Path root = null;
        String purpose = "codesign";
        List<Path> files = new ArrayList<>();
        for (int i = 1; i < args.length; i++) {
            if (args[i].startsWith("--")) {
                if (i + 1 == args.length) {
                    throw new IllegalArgumentException(args[i] + " needs a value");
                }
                String value = args[i + 1];
                switch (args[i]) {
                    case "--out" -> out = Path.of(value);
                    case "--root" -> root = Path.of(value);
                    case "--purpose" -> purpose = value;
                    default -> throw new IllegalArgumentException("unknown option " + args[i]);
                }
                i++;
            } else {
                files.add(Path.of(args[i]));
            }
        }
        String command = args.length == 0 ? "" : args[0];
        if (command.equals("sign") && out != null && files.size() == 1) {
            sign(out, files.get(0));
        } else if (command.equals("verify") && root != null && files.size() == 2) {
            verify(root, purposeOf(purpose), files.get(0), files.get(1));
        } else if (command.equals("judge") && root != null && files.size() >= 2) {
            judge(root, files.get(0), files.subList(1, files.size()));
        } else if (command.equals("chain") && root != null && !files.isEmpty()) {
            chain(root, files);
        } else {
            throw new IllegalArgumentException(
                    "want: sign --out DIR FILE | verify --root ROOT SIGNATURE FILE | judge --root ROOT FILE SIGNATURE... | chain --root ROOT CERT...");
        }
        System.out.println("ok");
        return 0;
    }

    private static KeyPurposeId purposeOf(String name) {
        return switch (name) {
            case "codesign" -> KeyPurposeId.id_kp_codeSigning;
            case "timestampsign" -> KeyPurposeId.id_kp_timeStamping;
            case "any" -> null;
            default -> throw new IllegalArgumentException("unknown purpose " + name);
        };
    }

    /** Makes a root, a code-signing certificate and a detached CMS of the file. */
    private static void sign(Path out, Path file) throws Exception {
        Files.createDirectories(out);
        KeyPairGenerator generator = KeyPairGenerator.getInstance("ML-DSA", "BC");
        generator.initialize(MLDSAParameterSpec.ml_dsa_65, new SecureRandom());
        KeyPair rootKey = generator.generateKeyPair();
        KeyPair leafKey = generator.generateKeyPair();
        ContentSigner rootSigner = signer(rootKey);
        JcaX509ExtensionUtils utils = new JcaX509ExtensionUtils();
        X500Name rootName = new X500Name("CN=BouncyCastle ML-DSA-65 Root");

        X509CertificateHolder root = builder(rootName, rootName, rootKey, Duration.ofDays(3650))
                .addExtension(Extension.basicConstraints, true, new BasicConstraints(true))
                .addExtension(Extension.keyUsage, true,
                        new KeyUsage(KeyUsage.digitalSignature | KeyUsage.keyCertSign | KeyUsage.cRLSign))
                .addExtension(Extension.subjectKeyIdentifier, false,
                        utils.createSubjectKeyIdentifier(rootKey.getPublic()))
                .build(rootSigner);
        X509CertificateHolder leaf = builder(rootName, new X500Name("CN=BouncyCastle ML-DSA-65 Code Signing"),
                leafKey, Duration.ofDays(365))
                .addExtension(Extension.basicConstraints, false, new BasicConstraints(false))
                .addExtension(Extension.keyUsage, true, new KeyUsage(KeyUsage.digitalSignature))
                .addExtension(Extension.extendedKeyUsage, true, new ExtendedKeyUsage(KeyPurposeId.id_kp_codeSigning))
                .addExtension(Extension.subjectKeyIdentifier, false,
                        utils.createSubjectKeyIdentifier(leafKey.getPublic()))
                .addExtension(Extension.authorityKeyIdentifier, false,
                        utils.createAuthorityKeyIdentifier(rootKey.getPublic()))
                .build(rootSigner);

        CMSSignedDataStreamGenerator cms = new CMSSignedDataStreamGenerator();
        cms.addSignerInfoGenerator(new JcaSignerInfoGeneratorBuilder(
                new JcaDigestCalculatorProviderBuilder().setProvider("BC").build()).build(signer(leafKey), leaf));
        cms.addCertificate(leaf);
        try (OutputStream raw = Files.newOutputStream(out.resolve("signature.p7s"));
                OutputStream content = cms.open(raw, false);
                InputStream in = Files.newInputStream(file)) {
            in.transferTo(content);
        }
        writePem(out.resolve("root.pem"), root);
        writePem(out.resolve("leaf.pem"), leaf);
    }

    private static ContentSigner signer(KeyPair key) throws Exception {
        return new JcaContentSignerBuilder("ML-DSA-65").setProvider("BC").build(key.getPrivate());
    }

    private static X509v3CertificateBuilder builder(X500Name issuer, X500Name subject, KeyPair key, Duration validity) {
        Instant now = Instant.now();
        return new JcaX509v3CertificateBuilder(issuer, new BigInteger(127, new SecureRandom()).setBit(126),
                Date.from(now.minusSeconds(300)), Date.from(now.plus(validity)), subject, key.getPublic());
    }

    private static void writePem(Path file, X509CertificateHolder certificate) throws IOException {
        StringWriter text = new StringWriter();
        try (JcaPEMWriter pem = new JcaPEMWriter(text)) {
            pem.writeObject(certificate);
        }
        Files.writeString(file, text.toString(), StandardCharsets.US_ASCII);
    }

    private static void verify(Path root, KeyPurposeId purpose, Path signature, Path file) throws Exception {
        CMSSignedData cms = new CMSSignedData(new CMSProcessableFile(file.toFile()), der(signature));
        Pki.signers(cms, Pki.certificates(root), purpose);
    }

    /** Prints a line for each signature of the file: accepted, or refused and why. */
    private static void judge(Path root, Path file, List<Path> signatures) throws Exception {
        for (Path signature : signatures) {
            try {
                verify(root, KeyPurposeId.id_kp_codeSigning, signature, file);
                System.out.println("accepted " + signature);
            } catch (Exception e) {
                System.out.println("refused " + signature + ": " + e.toString().replace('\n', ' '));
            }
        }
    }

    /** The signature's bytes, from a DER, BER or PEM file. */
    private static byte[] der(Path file) throws IOException, Pki.Failed {
        byte[] bytes = Files.readAllBytes(file);
        if (bytes.length == 0 || bytes[0] != '-') {
            return bytes;
        }
        try (PEMParser parser = new PEMParser(
                new InputStreamReader(new ByteArrayInputStream(bytes), StandardCharsets.US_ASCII))) {
            Object o = parser.readObject();
            Pki.check(o instanceof org.bouncycastle.asn1.cms.ContentInfo, file + " is not a CMS");
            return ((org.bouncycastle.asn1.cms.ContentInfo) o).getEncoded();
        }
    }

    private static void chain(Path root, List<Path> files) throws Exception {
        List<X509Certificate> certificates = new ArrayList<>();
        for (Path file : files) {
            certificates.addAll(Pki.certificates(file));
        }
        Pki.chain(certificates.get(0), certificates.subList(1, certificates.size()), Pki.certificates(root));
    }
}
