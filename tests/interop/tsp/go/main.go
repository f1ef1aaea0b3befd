// tsp-check makes timestamp requests and verifies responses with github.com/digitorus/timestamp, and verifies
// detached CMS signatures with github.com/digitorus/pkcs7.
//
//	tsp-check query FILE REQUEST
//	tsp-check verify ROOT.pem FILE RESPONSE REQUEST
//	tsp-check cms ROOT.pem FILE SIGNATURE
package main

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/digitorus/pkcs7"
	"github.com/digitorus/timestamp"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "query":
		return query(args[1], args[2])
	case len(args) == 5 && args[0] == "verify":
		return verify(args[1], args[2], args[3], args[4])
	case len(args) == 4 && args[0] == "cms":
		return cms(args[1], args[2], args[3])
	}
	return fmt.Errorf("want: query FILE REQUEST | verify ROOT FILE RESPONSE REQUEST | cms ROOT FILE SIGNATURE")
}

func pool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", path)
	}
	return roots, nil
}

func cms(root, file, signature string) error {
	roots, err := pool(root)
	if err != nil {
		return err
	}
	der, err := os.ReadFile(signature)
	if err != nil {
		return err
	}
	message, err := pkcs7.Parse(der)
	if err != nil {
		return err
	}
	if message.Content, err = os.ReadFile(file); err != nil {
		return err
	}
	if len(message.Signers) == 0 {
		return fmt.Errorf("there is no signer")
	}
	others := x509.NewCertPool()
	for _, certificate := range message.Certificates {
		others.AddCert(certificate)
	}
	return message.VerifyWithOpts(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: others,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	})
}

func query(file, out string) error {
	data, err := os.Open(file)
	if err != nil {
		return err
	}
	defer data.Close()
	der, err := timestamp.CreateRequest(data, &timestamp.RequestOptions{Hash: crypto.SHA256, Certificates: true})
	if err != nil {
		return err
	}
	return os.WriteFile(out, der, 0o644)
}

func verify(root, file, response, request string) error {
	roots, err := pool(root)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	reply, err := os.ReadFile(response)
	if err != nil {
		return err
	}
	asked, err := os.ReadFile(request)
	if err != nil {
		return err
	}
	want, err := timestamp.ParseRequest(asked)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	// Verifies the signature, too.
	got, err := timestamp.ParseResponse(reply)
	if err != nil {
		return fmt.Errorf("response: %w", err)
	}
	hash := got.HashAlgorithm.New()
	hash.Write(data)
	if !bytes.Equal(got.HashedMessage, hash.Sum(nil)) || !bytes.Equal(got.HashedMessage, want.HashedMessage) {
		return fmt.Errorf("the timestamp is for other data")
	}
	if want.Nonce != nil && (got.Nonce == nil || want.Nonce.Cmp(got.Nonce) != 0) {
		return fmt.Errorf("the nonce is another one")
	}
	others := x509.NewCertPool()
	for _, certificate := range got.Certificates {
		others.AddCert(certificate)
	}
	for _, certificate := range got.Certificates {
		if certificate.IsCA {
			continue
		}
		_, err = certificate.Verify(x509.VerifyOptions{
			Roots:         roots,
			Intermediates: others,
			CurrentTime:   got.Time,
			KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping},
		})
		if err != nil {
			return fmt.Errorf("chain: %w", err)
		}
	}
	if len(got.Certificates) == 0 {
		return fmt.Errorf("there is no certificate")
	}
	return nil
}
