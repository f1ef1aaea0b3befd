package outlast.interop;

import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.bouncycastle.cert.X509CertificateHolder;
import org.bouncycastle.cms.jcajce.JcaSimpleSignerInfoVerifierBuilder;
import org.bouncycastle.tsp.TSPAlgorithms;
import org.bouncycastle.tsp.TimeStampRequest;
import org.bouncycastle.tsp.TimeStampRequestGenerator;
import org.bouncycastle.tsp.TimeStampResponse;
import org.bouncycastle.tsp.TimeStampToken;

/** Timestamp requests made, and responses verified, by BouncyCastle. */
final class BouncyCastleTsp {
    private BouncyCastleTsp() {}

    static int run(String[] args) throws Exception {
        List<Path> files = Arrays.stream(args).skip(1).map(Path::of).toList();
        String command = args.length == 0 ? "" : args[0];
        if (command.equals("query") && files.size() == 2) {
            query(files.get(0), files.get(1));
        } else if (command.equals("verify") && files.size() == 4) {
            verify(files.get(0), files.get(1), files.get(2), files.get(3));
        } else {
            throw new IllegalArgumentException("want: query FILE REQUEST | verify ROOT FILE RESPONSE REQUEST");
        }
        System.out.println("ok");
        return 0;
    }

    private static void query(Path file, Path out) throws Exception {
        TimeStampRequestGenerator generator = new TimeStampRequestGenerator();
        generator.setCertReq(true);
        BigInteger nonce = new BigInteger(128, new SecureRandom());
        byte[] digest = MessageDigest.getInstance("SHA-512").digest(Files.readAllBytes(file));
        Files.write(out, generator.generate(TSPAlgorithms.SHA512, digest, nonce).getEncoded());
    }

    private static void verify(Path root, Path file, Path response, Path request) throws Exception {
        TimeStampRequest asked = new TimeStampRequest(Files.readAllBytes(request));
        TimeStampResponse got = new TimeStampResponse(Files.readAllBytes(response));
        // Status, nonce, policy and imprint.
        got.validate(asked);
        TimeStampToken token = got.getTimeStampToken();
        Pki.check(token != null, "there is no token: " + got.getStatusString());
        String digest = switch (token.getTimeStampInfo().getMessageImprintDigest().length) {
            case 32 -> "SHA-256";
            case 48 -> "SHA-384";
            default -> "SHA-512";
        };
        byte[] expected = MessageDigest.getInstance(digest).digest(Files.readAllBytes(file));
        Pki.check(Arrays.equals(expected, token.getTimeStampInfo().getMessageImprintDigest()),
                "the timestamp is for other data");
        Collection<X509CertificateHolder> signers = token.getCertificates().getMatches(token.getSID());
        Pki.check(signers.size() == 1, "the signer's certificate is not there");
        X509CertificateHolder signer = signers.iterator().next();
        // The signature, signingCertificateV2, and the one critical purpose.
        token.validate(new JcaSimpleSignerInfoVerifierBuilder().setProvider("BC").build(signer));
        List<X509Certificate> others = new ArrayList<>();
        for (X509CertificateHolder one : token.getCertificates().getMatches(null)) {
            others.add(Pki.certificate(one));
        }
        Pki.chain(Pki.certificate(signer), others, Pki.certificates(root));
    }
}
