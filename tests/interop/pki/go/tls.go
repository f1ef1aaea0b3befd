package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

// tlsClient asks an https URL, with a certificate if one is given, and prints what was negotiated.
func tlsClient(arguments []string) error {
	flags := flag.NewFlagSet("tls", flag.ContinueOnError)
	root := flags.String("root", "", "the root certificate")
	cert := flags.String("cert", "", "the client's certificate and its chain")
	key := flags.String("key", "", "the client's key, PKCS #8 (ML-DSA: the seed)")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	pem, err := os.ReadFile(*root)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("no certificate in %s", *root)
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 2 * time.Minute}
	response, err := client.Get(flags.Arg(0))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	state := response.TLS
	fmt.Printf("%s, %v, certificate %v, status %d\n", tls.VersionName(state.Version), state.CurveID,
		state.PeerCertificates[0].PublicKeyAlgorithm, response.StatusCode)
	return nil
}
