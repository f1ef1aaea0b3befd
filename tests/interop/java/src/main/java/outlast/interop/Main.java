package outlast.interop;

import java.security.Security;
import java.util.Arrays;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** Dispatches to the programs of this package. */
public final class Main {
    private static final String USAGE = """
            usage: outlast.interop.Main COMMAND
              aws-sdk [--prefix NAME] [--expect-existing]
              cms sign --out DIR FILE
              cms verify --root ROOT.pem [--purpose codesign|timestampsign|any] SIGNATURE FILE
              cms chain --root ROOT.pem LEAF.pem [CERT.pem ...]
              tsp query FILE REQUEST
              tsp verify ROOT.pem FILE RESPONSE REQUEST
              ers verify FILE SIGNATURE RECORD.ers ...
              ers make DIR FILE SIGNATURE
            """;

    private Main() {}

    public static void main(String[] args) {
        Security.addProvider(new BouncyCastleProvider());
        int status;
        try {
            status = run(args);
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            status = 1;
        }
        System.out.flush();
        System.exit(status);
    }

    private static int run(String[] args) throws Exception {
        String[] rest = args.length == 0 ? args : Arrays.copyOfRange(args, 1, args.length);
        switch (args.length == 0 ? "" : args[0]) {
            case "aws-sdk":
            case "AwsSdk":
                return AwsSdk.run(rest);
            case "cms":
            case "BouncyCastleCms":
                return BouncyCastleCms.run(rest);
            case "tsp":
                return BouncyCastleTsp.run(rest);
            case "ers":
                return BouncyCastleErs.run(rest);
            case "help":
                System.out.print(USAGE);
                return 0;
            default:
                System.err.print(USAGE);
                return 2;
        }
    }
}
