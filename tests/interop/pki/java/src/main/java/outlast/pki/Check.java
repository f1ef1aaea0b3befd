package outlast.pki;

import java.nio.file.Path;
import java.security.Security;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertPathValidatorException.BasicReason;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * Holds certificates, CRLs and OCSP responses against what the JDK or BouncyCastle says of them;
 * tests/interop/pki/STEPS.md says what each step checks.
 */
public final class Check {
    private static final String USAGE = "usage: outlast.pki.Check jdk|bouncycastle FOLDER STEP...\n";

    private Check() {}

    /** One way of verifying. */
    interface Verifier {
        void chain(Material material) throws Exception;

        void crl(Material material) throws Exception;

        void ocsp(Material material) throws Exception;

        void fetchCrl(Material material) throws Exception;

        void fetchOcsp(Material material) throws Exception;
    }

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

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("help")) {
            System.out.print(USAGE);
            return;
        }
        if (args.length < 3) {
            System.err.print(USAGE);
            System.exit(2);
        }
        Verifier verifier;
        if (args[0].equals("jdk")) {
            verifier = new Jdk();
        } else {
            Security.addProvider(new BouncyCastleProvider());
            verifier = new BouncyCastle();
        }
        Material material = Material.read(Path.of(args[1]), args[0].equals("jdk") ? "SUN" : "BC");
        int failed = 0;
        for (int i = 2; i < args.length; i++) {
            try {
                step(verifier, args[i], material);
                System.out.println("ok " + args[i]);
            } catch (Exception e) {
                failed++;
                System.out.println("FAIL " + args[i] + " " + reason(e));
            }
        }
        System.out.println((args.length - 2 - failed) + " ok, " + failed + " failed");
        System.out.flush();
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void step(Verifier verifier, String name, Material material) throws Exception {
        switch (name) {
            case "chain" -> verifier.chain(material);
            case "crl" -> verifier.crl(material);
            case "ocsp" -> verifier.ocsp(material);
            case "fetch-crl" -> verifier.fetchCrl(material);
            case "fetch-ocsp" -> verifier.fetchOcsp(material);
            default -> throw new Failed("no such step");
        }
    }

    /** "revoked" alone if that is the only objection. */
    private static String reason(Throwable thrown) {
        StringBuilder text = new StringBuilder();
        for (Throwable t = thrown; t != null; t = t.getCause()) {
            // BouncyCastle has no reason of its own for it.
            String message = String.valueOf(t.getMessage());
            if (t instanceof CertPathValidatorException e && e.getReason() == BasicReason.REVOKED
                    || message.startsWith("Certificate revocation after")) {
                return "revoked";
            }
            text.append(text.length() == 0 ? "" : ": ");
            text.append(t instanceof Failed ? message : t.getClass().getSimpleName() + " " + message);
        }
        return text.toString().replace('\n', ' ');
    }
}
