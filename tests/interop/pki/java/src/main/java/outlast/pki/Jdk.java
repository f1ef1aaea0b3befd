package outlast.pki;

import java.security.Security;
import java.security.cert.CertPathValidator;
import java.security.cert.CertStore;
import java.security.cert.CollectionCertStoreParameters;
import java.security.cert.PKIXParameters;
import java.security.cert.PKIXRevocationChecker;
import java.security.cert.PKIXRevocationChecker.Option;
import java.security.cert.X509CRL;
import java.util.Collection;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The JDK's own path validation, with its revocation checker. */
final class Jdk implements Check.Verifier {
    Jdk() {
        // The checker follows CRLDistributionPoints, and asks responders with a nonce, only when told.
        System.setProperty("com.sun.security.enableCRLDP", "true");
        System.setProperty("jdk.security.certpath.ocspNonce", "true");
        Security.setProperty("ocsp.enable", "false");
    }

    @Override
    public void chain(Material material) throws Exception {
        PKIXParameters parameters = new PKIXParameters(material.anchors());
        parameters.setRevocationEnabled(false);
        validate(material, parameters);
    }

    @Override
    public void crl(Material material) throws Exception {
        revocation(material, material.crls(), Map.of(), EnumSet.of(Option.PREFER_CRLS, Option.NO_FALLBACK));
    }

    @Override
    public void ocsp(Material material) throws Exception {
        revocation(material, List.of(), Map.of(material.leaf(), material.ocsp()),
                EnumSet.of(Option.ONLY_END_ENTITY, Option.NO_FALLBACK));
    }

    @Override
    public void fetchCrl(Material material) throws Exception {
        revocation(material, List.of(), Map.of(), EnumSet.of(Option.PREFER_CRLS, Option.NO_FALLBACK));
    }

    @Override
    public void fetchOcsp(Material material) throws Exception {
        revocation(material, List.of(), Map.of(), EnumSet.of(Option.ONLY_END_ENTITY, Option.NO_FALLBACK));
    }

    private static void revocation(Material material, Collection<X509CRL> crls,
            Map<java.security.cert.X509Certificate, byte[]> responses, Set<Option> options) throws Exception {
        PKIXParameters parameters = new PKIXParameters(material.anchors());
        parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(crls)));
        PKIXRevocationChecker checker =
                (PKIXRevocationChecker) CertPathValidator.getInstance("PKIX", "SUN").getRevocationChecker();
        checker.setOptions(options);
        checker.setOcspResponses(responses);
        parameters.addCertPathChecker(checker);
        validate(material, parameters);
        Check.check(checker.getSoftFailExceptions().isEmpty(), "soft failures: " + checker.getSoftFailExceptions());
    }

    private static void validate(Material material, PKIXParameters parameters) throws Exception {
        CertPathValidator.getInstance("PKIX", "SUN").validate(material.path(), parameters);
    }
}
