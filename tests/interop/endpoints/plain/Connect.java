import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.List;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * Connects once with the JDK's JSSE as it is, and prints a result as ../PROTOCOL.md has it.
 *
 * <p>usage: Connect HOST:PORT NAME CA.pem
 */
final class Connect {
    private static final String ALERT = "Received fatal alert: ";

    private Connect() {}

    public static void main(String[] args) throws Exception {
        String[] address = args[0].split(":");
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust(args[2]).getTrustManagers(), null);
        try (Socket plain = new Socket()) {
            plain.connect(new InetSocketAddress(address[0], Integer.parseInt(address[1])), 20_000);
            plain.setSoTimeout(20_000);
            SSLSocket connection =
                    (SSLSocket) context.getSocketFactory().createSocket(plain, args[1], plain.getPort(), true);
            SSLParameters parameters = connection.getSSLParameters();
            parameters.setServerNames(List.of(new SNIHostName(args[1])));
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            connection.setSSLParameters(parameters);
            connection.startHandshake();
            String request = "GET /healthz HTTP/1.1\r\nHost: " + args[1] + "\r\nConnection: close\r\n\r\n";
            connection.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            InputStream input = connection.getInputStream();
            while (input.read() >= 0) {}
            System.out.printf(
                    "{\"ok\":true,\"version\":\"%s\",\"suite\":\"%s\"}%n",
                    connection.getSession().getProtocol(), connection.getSession().getCipherSuite());
            connection.close();
        } catch (SSLException e) {
            String text = String.valueOf(e.getMessage());
            int at = text.indexOf(ALERT);
            String alert = at < 0 ? "null" : '"' + text.substring(at + ALERT.length()) + '"';
            System.out.printf("{\"ok\":false,\"error\":\"%s\",\"alert\":%s}%n", text.replace('"', '\''), alert);
        }
    }

    private static TrustManagerFactory trust(String ca) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        int index = 0;
        try (InputStream pem = Files.newInputStream(Path.of(ca))) {
            for (Certificate root : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
                store.setCertificateEntry("root" + index++, root);
            }
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        return trust;
    }
}
