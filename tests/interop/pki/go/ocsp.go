package main

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ocsp"
)

// RFC 6960, section 4.2.1, as far as the signature needs it: x/crypto/ocsp has no ML-DSA.
type ocspEnvelope struct {
	Status   asn1.Enumerated
	Response struct {
		Type     asn1.ObjectIdentifier
		Response []byte
	} `asn1:"explicit,tag:0,optional"`
}

type ocspBasic struct {
	Data         asn1.RawValue
	Algorithm    pkix.AlgorithmIdentifier
	Signature    asn1.BitString
	Certificates []asn1.RawValue `asn1:"explicit,tag:0,optional"`
}

// RFC 9881, section 2.
var mlDSA = map[string]x509.SignatureAlgorithm{
	"2.16.840.1.101.3.4.3.17": x509.MLDSA44,
	"2.16.840.1.101.3.4.3.18": x509.MLDSA65,
	"2.16.840.1.101.3.4.3.19": x509.MLDSA87,
}

// answered is nil if the response says that the certificate is good, and is signed and current.
func answered(der []byte, certificate, issuer *x509.Certificate) error {
	var envelope ocspEnvelope
	if _, err := asn1.Unmarshal(der, &envelope); err != nil {
		return err
	}
	if envelope.Status != 0 {
		return fmt.Errorf("the responder says %v", ocsp.ResponseStatus(envelope.Status))
	}
	var basic ocspBasic
	if _, err := asn1.Unmarshal(envelope.Response.Response, &basic); err != nil {
		return err
	}
	algorithm, pq := mlDSA[basic.Algorithm.Algorithm.String()]
	var response *ocsp.Response
	var err error
	if pq {
		response, err = parsePQ(&basic, algorithm, certificate, issuer)
	} else {
		response, err = ocsp.ParseResponseForCert(der, certificate, issuer)
	}
	if err != nil {
		return err
	}
	if delegate := response.Certificate; delegate != nil && !delegate.Equal(issuer) {
		if err := delegated(delegate, issuer); err != nil {
			return err
		}
	}
	if certificate.SerialNumber.Cmp(response.SerialNumber) != 0 {
		return errors.New("the response is about another certificate")
	}
	now := time.Now()
	if response.ThisUpdate.After(now) || !response.NextUpdate.IsZero() && !response.NextUpdate.After(now) {
		return fmt.Errorf("the response is of %v to %v", response.ThisUpdate, response.NextUpdate)
	}
	switch response.Status {
	case ocsp.Good:
		return nil
	case ocsp.Revoked:
		return errRevoked
	default:
		return errors.New("unknown to the responder")
	}
}

// delegated holds a responder's own certificate against RFC 6960, section 4.2.2.2.
func delegated(delegate, issuer *x509.Certificate) error {
	if err := delegate.CheckSignatureFrom(issuer); err != nil {
		return fmt.Errorf("the responder's certificate: %w", err)
	}
	now := time.Now()
	if now.Before(delegate.NotBefore) || now.After(delegate.NotAfter) {
		return errors.New("the responder's certificate is not current")
	}
	if !slices.Contains(delegate.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning) {
		return errors.New("the responder's certificate is not for signing OCSP responses")
	}
	return nil
}

// parsePQ checks a signature by ML-DSA and has x/crypto/ocsp read the rest: without certificates and
// without an issuer, it does not look at the signature.
func parsePQ(basic *ocspBasic, algorithm x509.SignatureAlgorithm, certificate, issuer *x509.Certificate) (*ocsp.Response, error) {
	if len(basic.Algorithm.Parameters.FullBytes) > 0 {
		return nil, errors.New("ML-DSA with parameters")
	}
	signer := issuer
	var delegate *x509.Certificate
	if len(basic.Certificates) > 0 {
		var err error
		if delegate, err = x509.ParseCertificate(basic.Certificates[0].FullBytes); err != nil {
			return nil, err
		}
		signer = delegate
	}
	if err := signer.CheckSignature(algorithm, basic.Data.FullBytes, basic.Signature.Bytes); err != nil {
		return nil, fmt.Errorf("the response's signature: %w", err)
	}
	bare := *basic
	bare.Certificates = nil
	inner, err := asn1.Marshal(bare)
	if err != nil {
		return nil, err
	}
	var envelope ocspEnvelope
	envelope.Response.Type = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 1}
	envelope.Response.Response = inner
	der, err := asn1.Marshal(envelope)
	if err != nil {
		return nil, err
	}
	response, err := ocsp.ParseResponseForCert(der, certificate, nil)
	if err != nil {
		return nil, err
	}
	response.Certificate = delegate
	return response, nil
}

func checkOCSP(all *material) error {
	path, err := all.path()
	if err != nil {
		return err
	}
	der, err := os.ReadFile(filepath.Join(all.folder, "leaf.ocsp"))
	if err != nil {
		return err
	}
	return answered(der, path[0], path[1])
}

// fetchOCSP asks the responder that the leaf names, by POST and by GET.
func fetchOCSP(all *material) error {
	path, err := all.path()
	if err != nil {
		return err
	}
	if len(path[0].OCSPServer) == 0 {
		return errors.New("the leaf names no responder")
	}
	request, err := ocsp.CreateRequest(path[0], path[1], nil)
	if err != nil {
		return err
	}
	for _, server := range path[0].OCSPServer {
		posted, err := fetched(http.Post(server, "application/ocsp-request", bytes.NewReader(request)))
		if err != nil {
			return err
		}
		// RFC 6960, appendix A.1.
		got, err := fetched(http.Get(strings.TrimSuffix(server, "/") + "/" +
			url.PathEscape(base64.StdEncoding.EncodeToString(request))))
		if err != nil {
			return err
		}
		if err := answered(posted, path[0], path[1]); err != nil {
			return err
		}
		if err := answered(got, path[0], path[1]); err != nil {
			return fmt.Errorf("by GET: %w", err)
		}
	}
	return nil
}
