package outlast.ssh;

import com.jcraft.jsch.ChannelSftp;
import com.jcraft.jsch.JSch;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.security.KeyPair;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.apache.sshd.client.ClientBuilder;
import org.apache.sshd.client.SshClient;
import org.apache.sshd.client.auth.pubkey.UserAuthPublicKeyFactory;
import org.apache.sshd.client.keyverifier.AcceptAllServerKeyVerifier;
import org.apache.sshd.client.session.ClientSession;
import org.apache.sshd.common.NamedFactory;
import org.apache.sshd.common.cipher.BuiltinCiphers;
import org.apache.sshd.common.kex.BuiltinDHFactories;
import org.apache.sshd.common.keyprovider.FileKeyPairProvider;
import org.apache.sshd.common.mac.BuiltinMacs;
import org.apache.sshd.common.signature.BuiltinSignatures;
import org.apache.sshd.sftp.client.SftpClient;
import org.apache.sshd.sftp.client.SftpClientFactory;

/**
 * Apache MINA SSHD and JSch as clients of an SFTP server, each with one algorithm at a time.
 *
 * <pre>Clients LIBRARY PORT USER KEY KIND=NAME...</pre>
 *
 * LIBRARY is mina or jsch. KIND is kex, key, cipher, mac, or default, for which the name is not used. KEY is a private key file
 * without a passphrase; whatever key the host has is accepted, because the server's test compares it. One line for each
 * algorithm: library, kind, name, and <code>ok</code>, <code>unsupported</code> (the library does not have the algorithm), or what
 * failed.
 */
public final class Clients {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final byte[] CONTENT = new byte[300_000];

    private Clients() {}

    /** The library does not have the algorithm. */
    private static final class Unsupported extends Exception {
        private static final long serialVersionUID = 1;
    }

    private static <T> T known(T found) throws Unsupported {
        if (found == null) {
            throw new Unsupported();
        }
        return found;
    }

    private static void mina(int port, String user, Path key, String kind, String name) throws Exception {
        try (SshClient client = SshClient.setUpDefaultClient()) {
            client.setServerKeyVerifier(AcceptAllServerKeyVerifier.INSTANCE);
            client.setHostConfigEntryResolver(org.apache.sshd.client.config.hosts.HostConfigEntryResolver.EMPTY);
            // The signatures of users' keys are chosen apart from those of host keys.
            UserAuthPublicKeyFactory keys = new UserAuthPublicKeyFactory();
            keys.setSignatureFactories(client.getSignatureFactories());
            client.setUserAuthFactories(List.of(keys));
            switch (kind) {
                case "kex" -> {
                    BuiltinDHFactories row = known(BuiltinDHFactories.fromFactoryName(name));
                    supported(row.isSupported());
                    client.setKeyExchangeFactories(
                        NamedFactory.setUpTransformedFactories(true, List.of(row), ClientBuilder.DH2KEX));
                }
                case "key" -> {
                    BuiltinSignatures row = known(BuiltinSignatures.fromFactoryName(name));
                    supported(row.isSupported());
                    client.setSignatureFactories(List.of(row));
                }
                case "cipher" -> {
                    BuiltinCiphers row = known(BuiltinCiphers.fromFactoryName(name));
                    supported(row.isSupported());
                    client.setCipherFactories(List.of(row));
                }
                case "mac" -> {
                    BuiltinMacs row = known(BuiltinMacs.fromFactoryName(name));
                    supported(row.isSupported());
                    client.setMacFactories(List.of(row));
                    client.setCipherFactories(List.of(BuiltinCiphers.aes256ctr));
                }
                default -> { }
            }
            client.start();
            try (ClientSession session = client.connect(user, "127.0.0.1", port).verify(PATIENCE).getSession()) {
                for (KeyPair pair : new FileKeyPairProvider(key).loadKeys(session)) {
                    session.addPublicKeyIdentity(pair);
                }
                session.auth().verify(PATIENCE);
                try (SftpClient sftp = SftpClientFactory.instance().createSftpClient(session)) {
                    try (OutputStream out = sftp.write("mina")) {
                        out.write(CONTENT);
                    }
                    try (InputStream in = sftp.read("mina")) {
                        check(in.readAllBytes());
                    }
                    sftp.remove("mina");
                }
            }
        }
    }

    private static void supported(boolean is) throws Unsupported {
        if (!is) {
            throw new Unsupported();
        }
    }

    private static void jsch(int port, String user, Path key, String kind, String name) throws Exception {
        JSch library = new JSch();
        library.addIdentity(key.toString());
        com.jcraft.jsch.Session session = library.getSession(user, "127.0.0.1", port);
        session.setConfig("StrictHostKeyChecking", "no");
        session.setConfig("PreferredAuthentications", "publickey");
        switch (kind) {
            case "kex" -> session.setConfig("kex", name);
            case "key" -> session.setConfig("server_host_key", name);
            case "cipher" -> both(session, "cipher", name);
            case "mac" -> {
                both(session, "mac", name);
                both(session, "cipher", "aes256-ctr");
            }
            default -> { }
        }
        // JSch has a class for each algorithm that it knows.
        if (!kind.equals("default") && JSch.getConfig(name) == null) {
            throw new Unsupported();
        }
        session.connect((int) PATIENCE.toMillis());
        try {
            ChannelSftp sftp = (ChannelSftp) session.openChannel("sftp");
            sftp.connect((int) PATIENCE.toMillis());
            sftp.put(new ByteArrayInputStream(CONTENT), "jsch");
            ByteArrayOutputStream back = new ByteArrayOutputStream();
            sftp.get("jsch", back);
            check(back.toByteArray());
            sftp.rm("jsch");
            sftp.disconnect();
        } finally {
            session.disconnect();
        }
    }

    private static void both(com.jcraft.jsch.Session session, String kind, String name) {
        session.setConfig(kind + ".s2c", name);
        session.setConfig(kind + ".c2s", name);
    }

    private static void check(byte[] back) throws IOException {
        if (!Arrays.equals(back, CONTENT)) {
            throw new IOException("got " + back.length + " bytes");
        }
    }

    /** Runs the cases. */
    public static void main(String[] arguments) {
        String library = arguments[0];
        int port = Integer.parseInt(arguments[1]);
        String user = arguments[2];
        Path key = Path.of(arguments[3]);
        for (int at = 0; at < CONTENT.length; at++) {
            CONTENT[at] = (byte) (at / 7);
        }
        for (String argument : Arrays.copyOfRange(arguments, 4, arguments.length)) {
            String[] parts = argument.split("=", 2);
            String outcome = "ok";
            try {
                if (library.equals("mina")) {
                    mina(port, user, key, parts[0], parts[1]);
                } else {
                    jsch(port, user, key, parts[0], parts[1]);
                }
            } catch (Unsupported unsupported) {
                outcome = "unsupported";
            } catch (Exception failed) {
                outcome = ("failed " + failed).replace('\n', ' ');
            }
            System.out.println(library + " " + parts[0] + " " + parts[1] + " " + outcome);
        }
        // MINA's threads may still be ending.
        System.exit(0);
    }
}
