package outlast.pki;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.CertPath;
import java.security.cert.CertificateFactory;
import java.security.cert.X509CRL;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.security.cert.TrustAnchor;

/** What a folder has: root.pem, chain.pem (leaf's issuer first), leaf.pem, *.crl, leaf.ocsp; read by one provider. */
record Material(
        X509Certificate root, List<X509Certificate> chain, X509Certificate leaf, List<X509CRL> crls, Path folder,
        CertificateFactory factory) {

    static Material read(Path folder, String provider) throws IOException, GeneralSecurityException {
        CertificateFactory factory = CertificateFactory.getInstance("X.509", provider);
        List<X509CRL> crls = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "*.crl")) {
            for (Path file : files) {
                try (InputStream in = Files.newInputStream(file)) {
                    crls.add((X509CRL) factory.generateCRL(in));
                }
            }
        }
        Path chain = folder.resolve("chain.pem");
        return new Material(certificates(factory, folder.resolve("root.pem")).get(0),
                Files.exists(chain) ? certificates(factory, chain) : List.of(),
                certificates(factory, folder.resolve("leaf.pem")).get(0), crls, folder, factory);
    }

    private static List<X509Certificate> certificates(CertificateFactory factory, Path file)
            throws IOException, GeneralSecurityException {
        List<X509Certificate> found = new ArrayList<>();
        try (InputStream in = Files.newInputStream(file)) {
            for (var certificate : factory.generateCertificates(in)) {
                found.add((X509Certificate) certificate);
            }
        }
        return found;
    }

    /** The leaf and its issuers, without the root. */
    CertPath path() throws GeneralSecurityException {
        List<X509Certificate> path = new ArrayList<>();
        path.add(leaf);
        for (X509Certificate certificate : chain) {
            if (!certificate.equals(root)) {
                path.add(certificate);
            }
        }
        return factory.generateCertPath(path);
    }

    X509Certificate issuer() {
        return chain.isEmpty() ? root : chain.get(0);
    }

    Set<TrustAnchor> anchors() {
        return Set.of(new TrustAnchor(root, null));
    }

    byte[] ocsp() throws IOException {
        return Files.readAllBytes(folder.resolve("leaf.ocsp"));
    }

    X509CRL crl(byte[] der) throws GeneralSecurityException {
        return (X509CRL) factory.generateCRL(new ByteArrayInputStream(der));
    }
}
