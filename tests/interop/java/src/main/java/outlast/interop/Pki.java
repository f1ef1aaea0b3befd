package outlast.interop;

import java.io.IOException;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.CertPathBuilder;
import java.security.cert.CertStore;
import java.security.cert.CollectionCertStoreParameters;
import java.security.cert.PKIXBuilderParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509CertSelector;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cms.CMSException;
import org.bouncycastle.cms.CMSSignedData;
import org.bouncycastle.cms.SignerInformation;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.operator.OperatorCreationException;

/** Certificates, chains and CMS verification by BouncyCastle. */
final class Pki {
    private Pki() {}

    /** A check which did not hold. */
    static final class Failed extends Exception {
        private static final long serialVersionUID = 1;

        Failed(String message) {
            super(message);
        }
    }

    static void check(boolean condition, String message) throws Failed {
        if (!condition) {
            throw new Failed(message);
        }
    }

    /** All certificates in a PEM text, in their order. */
    static List<X509Certificate> certificates(String pem) throws IOException, GeneralSecurityException {
        List<X509Certificate> found = new ArrayList<>();
        try (PEMParser parser = new PEMParser(new StringReader(pem))) {
            for (Object o = parser.readObject(); o != null; o = parser.readObject()) {
                if (o instanceof X509CertificateHolder holder) {
                    found.add(certificate(holder));
                }
            }
        }
        return found;
    }

    static List<X509Certificate> certificates(Path file) throws IOException, GeneralSecurityException, Failed {
        List<X509Certificate> found = certificates(Files.readString(file, StandardCharsets.US_ASCII));
        check(!found.isEmpty(), "no certificate in " + file);
        return found;
    }

    /** The only certificate in a PEM text. */
    static X509Certificate certificate(String pem) throws IOException, GeneralSecurityException, Failed {
        List<X509Certificate> found = certificates(pem);
        check(found.size() == 1, "want one certificate, got " + found.size());
        return found.get(0);
    }

    static X509Certificate certificate(X509CertificateHolder holder) throws GeneralSecurityException {
        return new JcaX509CertificateConverter().setProvider("BC").getCertificate(holder);
    }

    /** Builds and validates the path from leaf to one of the roots (PKIX, no revocation). */
    static void chain(X509Certificate leaf, Collection<X509Certificate> others, Collection<X509Certificate> roots)
            throws GeneralSecurityException {
        Set<TrustAnchor> anchors = new HashSet<>();
        for (X509Certificate root : roots) {
            anchors.add(new TrustAnchor(root, null));
        }
        X509CertSelector target = new X509CertSelector();
        target.setCertificate(leaf);
        List<X509Certificate> all = new ArrayList<>(others);
        all.add(leaf);
        PKIXBuilderParameters parameters = new PKIXBuilderParameters(anchors, target);
        parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(all), "BC"));
        parameters.setRevocationEnabled(false);
        CertPathBuilder.getInstance("PKIX", "BC").build(parameters);
    }

    /** A certificate for this one purpose: critical extended key usage and digital signatures. */
    static void purpose(X509Certificate leaf, KeyPurposeId purpose) throws GeneralSecurityException, Failed {
        List<String> usages = leaf.getExtendedKeyUsage();
        check(usages != null && usages.contains(purpose.getId()),
                "the signer's extended key usage is " + usages + ", want " + purpose.getId());
        boolean[] keyUsage = leaf.getKeyUsage();
        check(keyUsage == null || keyUsage[0], "the signer's key usage lacks digitalSignature");
        check(leaf.getBasicConstraints() < 0, "the signer is a CA");
    }

    /**
     * Verifies every signer of a CMS, each with its certificate in the CMS, and the chain of
     * each to one of the roots. Returns the signers' certificates.
     */
    static List<X509Certificate> signers(CMSSignedData cms, Collection<X509Certificate> roots, KeyPurposeId purpose)
            throws GeneralSecurityException, CMSException, OperatorCreationException, Failed {
        List<X509Certificate> included = new ArrayList<>();
        for (X509CertificateHolder holder : cms.getCertificates().getMatches(null)) {
            included.add(certificate(holder));
        }
        List<X509Certificate> signers = new ArrayList<>();
        for (SignerInformation signer : cms.getSignerInfos().getSigners()) {
            @SuppressWarnings("unchecked")
            Collection<X509CertificateHolder> matches = cms.getCertificates().getMatches(signer.getSID());
            check(matches.size() == 1, "want one certificate of the signer in the CMS, got " + matches.size());
            X509Certificate leaf = certificate(matches.iterator().next());
            check(signer.verify(new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC").build(leaf)),
                    "the signature of " + leaf.getSubjectX500Principal() + " is not valid");
            chain(leaf, included, roots);
            if (purpose != null) {
                purpose(leaf, purpose);
            }
            signers.add(leaf);
        }
        check(!signers.isEmpty(), "the CMS has no signer");
        return signers;
    }
}
