package outlast.pki;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.SecureRandom;
import java.security.cert.CertPathValidator;
import java.security.cert.CertStore;
import java.security.cert.CollectionCertStoreParameters;
import java.security.cert.PKIXParameters;
import java.security.cert.X509CRL;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import org.bouncycastle.asn1.DEROctetString;
import org.bouncycastle.asn1.ocsp.OCSPObjectIdentifiers;
import org.bouncycastle.asn1.x509.AccessDescription;
import org.bouncycastle.asn1.x509.AuthorityInformationAccess;
import org.bouncycastle.asn1.x509.CRLDistPoint;
import org.bouncycastle.asn1.x509.DistributionPoint;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.Extensions;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cert.jcajce.JcaX509CertificateHolder;
import org.bouncycastle.cert.ocsp.BasicOCSPResp;
import org.bouncycastle.cert.ocsp.CertificateID;
import org.bouncycastle.cert.ocsp.CertificateStatus;
import org.bouncycastle.cert.ocsp.OCSPReq;
import org.bouncycastle.cert.ocsp.OCSPReqBuilder;
import org.bouncycastle.cert.ocsp.OCSPResp;
import org.bouncycastle.cert.ocsp.RevokedStatus;
import org.bouncycastle.cert.ocsp.SingleResp;
import org.bouncycastle.operator.ContentVerifierProvider;
import org.bouncycastle.operator.DigestCalculatorProvider;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.operator.jcajce.JcaDigestCalculatorProviderBuilder;

/** BouncyCastle's path validation with CRLs, and OCSP by its own classes. */
final class BouncyCastle implements Check.Verifier {
    @Override
    public void chain(Material material) throws Exception {
        PKIXParameters parameters = new PKIXParameters(material.anchors());
        parameters.setRevocationEnabled(false);
        validate(material, parameters);
    }

    @Override
    public void crl(Material material) throws Exception {
        crl(material, material.crls());
    }

    @Override
    public void fetchCrl(Material material) throws Exception {
        List<X509CRL> crls = new ArrayList<>();
        for (var certificate : material.path().getCertificates()) {
            var points = CRLDistPoint.fromExtensions(
                    new JcaX509CertificateHolder((X509Certificate) certificate).getExtensions());
            Check.check(points != null, "a certificate that names no CRL");
            for (DistributionPoint point : points.getDistributionPoints()) {
                GeneralName name =
                        GeneralNames.getInstance(point.getDistributionPoint().getName()).getNames()[0];
                crls.add(material.crl(send(HttpRequest.newBuilder(URI.create(name.getName().toString())))));
            }
        }
        crl(material, crls);
    }

    private static void crl(Material material, List<X509CRL> crls) throws Exception {
        PKIXParameters parameters = new PKIXParameters(material.anchors());
        List<Object> all = new ArrayList<>(crls);
        all.add(material.root());
        all.addAll(material.chain());
        parameters.addCertStore(CertStore.getInstance("Collection", new CollectionCertStoreParameters(all), "BC"));
        validate(material, parameters);
    }

    private static void validate(Material material, PKIXParameters parameters) throws Exception {
        CertPathValidator.getInstance("PKIX", "BC").validate(material.path(), parameters);
    }

    @Override
    public void ocsp(Material material) throws Exception {
        chain(material);
        answered(material, material.ocsp(), null);
    }

    @Override
    public void fetchOcsp(Material material) throws Exception {
        chain(material);
        JcaX509CertificateHolder leaf = new JcaX509CertificateHolder(material.leaf());
        CertificateID id = new CertificateID(digests().get(CertificateID.HASH_SHA1),
                new JcaX509CertificateHolder(material.issuer()), leaf.getSerialNumber());
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        byte[] nonce = new DEROctetString(random).getEncoded();
        OCSPReq request = new OCSPReqBuilder().addRequest(id)
                .setRequestExtensions(
                        new Extensions(new Extension(OCSPObjectIdentifiers.id_pkix_ocsp_nonce, false, nonce)))
                .build();
        AuthorityInformationAccess access = AuthorityInformationAccess.fromExtensions(leaf.getExtensions());
        Check.check(access != null, "the leaf names no responder");
        int asked = 0;
        for (AccessDescription description : access.getAccessDescriptions()) {
            if (description.getAccessMethod().equals(AccessDescription.id_ad_ocsp)) {
                URI uri = URI.create(description.getAccessLocation().getName().toString());
                answered(material, send(HttpRequest.newBuilder(uri)
                        .header("Content-Type", "application/ocsp-request")
                        .POST(BodyPublishers.ofByteArray(request.getEncoded()))), nonce);
                asked++;
            }
        }
        Check.check(asked > 0, "the leaf names no responder");
    }

    /** Holds if the response says that the leaf is good, and is signed, current and with this nonce. */
    private static void answered(Material material, byte[] der, byte[] nonce) throws Exception {
        OCSPResp response = new OCSPResp(der);
        Check.check(response.getStatus() == OCSPResp.SUCCESSFUL, "status " + response.getStatus());
        BasicOCSPResp basic = (BasicOCSPResp) response.getResponseObject();
        JcaX509CertificateHolder issuer = new JcaX509CertificateHolder(material.issuer());
        X509CertificateHolder signer = issuer;
        if (basic.getCerts().length > 0 && !basic.getCerts()[0].equals(issuer)) {
            // RFC 6960, section 4.2.2.2: issued by the CA itself, for this.
            signer = basic.getCerts()[0];
            Check.check(signer.isSignatureValid(verifier(issuer)), "the responder's certificate is not by the issuer");
            Check.check(signer.getIssuer().equals(issuer.getSubject()), "the responder's issuer is another");
            Check.check(signer.isValidOn(new Date()), "the responder's certificate is not current");
            ExtendedKeyUsage usage = ExtendedKeyUsage.fromExtensions(signer.getExtensions());
            Check.check(usage != null && usage.hasKeyPurposeId(KeyPurposeId.id_kp_OCSPSigning),
                    "the responder's certificate is not for signing OCSP responses");
            Check.check(signer.getExtension(OCSPObjectIdentifiers.id_pkix_ocsp_nocheck) != null,
                    "the responder's certificate lacks ocsp-nocheck");
        }
        Check.check(basic.isSignatureValid(verifier(signer)), "the response's signature is not valid");
        if (nonce != null) {
            Extension echoed = basic.getExtension(OCSPObjectIdentifiers.id_pkix_ocsp_nonce);
            Check.check(echoed != null && java.util.Arrays.equals(echoed.getExtnValue().getOctets(), nonce),
                    "the nonce is not ours");
        }
        for (SingleResp single : basic.getResponses()) {
            CertificateID id = single.getCertID();
            if (!id.getSerialNumber().equals(material.leaf().getSerialNumber())
                    || !id.matchesIssuer(issuer, digests())) {
                continue;
            }
            Date now = new Date();
            Check.check(!single.getThisUpdate().after(now)
                    && (single.getNextUpdate() == null || single.getNextUpdate().after(now)),
                    "the response is of " + single.getThisUpdate() + " to " + single.getNextUpdate());
            Check.check(!(single.getCertStatus() instanceof RevokedStatus), "revoked");
            Check.check(single.getCertStatus() == CertificateStatus.GOOD, "unknown to the responder");
            return;
        }
        throw new Check.Failed("the response is about another certificate");
    }

    private static ContentVerifierProvider verifier(X509CertificateHolder holder) throws Exception {
        return new JcaContentVerifierProviderBuilder().setProvider("BC").build(holder);
    }

    private static DigestCalculatorProvider digests() throws Exception {
        return new JcaDigestCalculatorProviderBuilder().setProvider("BC").build();
    }

    private static byte[] send(HttpRequest.Builder request) throws IOException, InterruptedException, Check.Failed {
        HttpResponse<byte[]> response =
                HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofByteArray());
        Check.check(response.statusCode() == 200, response.uri() + ": status " + response.statusCode());
        return response.body();
    }
}
