package main

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

var oidIssuingDistributionPoint = asn1.ObjectIdentifier{2, 5, 29, 28}

// RFC 5280, section 5.2.5.
type issuingDistributionPoint struct {
	DistributionPoint     distributionPointName `asn1:"optional,tag:0"`
	OnlyUser              bool                  `asn1:"optional,tag:1"`
	OnlyCA                bool                  `asn1:"optional,tag:2"`
	OnlySomeReasons       asn1.BitString        `asn1:"optional,tag:3"`
	Indirect              bool                  `asn1:"optional,tag:4"`
	OnlyAttributeCertifcs bool                  `asn1:"optional,tag:5"`
}

type distributionPointName struct {
	FullName []asn1.RawValue `asn1:"optional,tag:0"`
}

// covers says whether a CRL of the certificate's issuer is about it.
func covers(crl *x509.RevocationList, certificate *x509.Certificate) (bool, error) {
	for _, extension := range crl.Extensions {
		if !extension.Id.Equal(oidIssuingDistributionPoint) {
			continue
		}
		if !extension.Critical {
			return false, errors.New("an IssuingDistributionPoint that is not critical")
		}
		var point issuingDistributionPoint
		if rest, err := asn1.Unmarshal(extension.Value, &point); err != nil || len(rest) > 0 {
			return false, fmt.Errorf("IssuingDistributionPoint: %v", err)
		}
		if point.Indirect || point.OnlyAttributeCertifcs || point.OnlySomeReasons.BitLength > 0 ||
			point.OnlyUser && certificate.IsCA || point.OnlyCA && !certificate.IsCA {
			return false, nil
		}
		if names := point.DistributionPoint.FullName; len(names) > 0 &&
			!slices.ContainsFunc(names, func(name asn1.RawValue) bool {
				return name.Tag == 6 && slices.Contains(certificate.CRLDistributionPoints, string(name.Bytes))
			}) {
			return false, nil
		}
	}
	return true, nil
}

// unrevoked is nil if a CRL of the issuer, signed by it and current, covers the certificate and does not list it.
func unrevoked(certificate, issuer *x509.Certificate, crls []*x509.RevocationList) error {
	found := false
	for _, crl := range crls {
		if !bytes.Equal(crl.RawIssuer, certificate.RawIssuer) {
			continue
		}
		about, err := covers(crl, certificate)
		if err != nil {
			return err
		}
		if !about {
			continue
		}
		if err := crl.CheckSignatureFrom(issuer); err != nil {
			return fmt.Errorf("the CRL's signature: %w", err)
		}
		if !bytes.Equal(crl.AuthorityKeyId, issuer.SubjectKeyId) {
			return errors.New("the CRL's authority key identifier is not its issuer's")
		}
		if crl.Number == nil {
			return errors.New("the CRL has no number")
		}
		now := time.Now()
		if crl.ThisUpdate.After(now) || !crl.NextUpdate.After(now) {
			return fmt.Errorf("the CRL is of %v to %v", crl.ThisUpdate, crl.NextUpdate)
		}
		for _, entry := range crl.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(certificate.SerialNumber) == 0 {
				return errRevoked
			}
		}
		found = true
	}
	if !found {
		return fmt.Errorf("no CRL for %v", certificate.Subject)
	}
	return nil
}

func checkCRLs(all *material) error {
	path, err := all.path()
	if err != nil {
		return err
	}
	for n, certificate := range path[:len(path)-1] {
		if err := unrevoked(certificate, path[n+1], all.crls); err != nil {
			return err
		}
	}
	return nil
}

// fetchCRLs takes the CRLs from the places that the certificates name.
func fetchCRLs(all *material) error {
	path, err := all.path()
	if err != nil {
		return err
	}
	for n, certificate := range path[:len(path)-1] {
		if len(certificate.CRLDistributionPoints) == 0 {
			return fmt.Errorf("%v names no CRL", certificate.Subject)
		}
		for _, url := range certificate.CRLDistributionPoints {
			der, err := fetched(http.Get(url))
			if err != nil {
				return err
			}
			crl, err := x509.ParseRevocationList(der)
			if err != nil {
				return fmt.Errorf("%s: %w", url, err)
			}
			if err := unrevoked(certificate, path[n+1], []*x509.RevocationList{crl}); err != nil {
				return err
			}
		}
	}
	return nil
}

func fetched(response *http.Response, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%v: %s", response.Request.URL, response.Status)
	}
	return io.ReadAll(response.Body)
}
