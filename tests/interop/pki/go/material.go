package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
)

// material is what a folder has: root.pem, chain.pem, leaf.pem, *.crl, leaf.ocsp.
type material struct {
	root   *x509.Certificate
	chain  []*x509.Certificate
	leaf   *x509.Certificate
	crls   []*x509.RevocationList
	folder string
}

func read(folder string) (*material, error) {
	all := &material{folder: folder}
	roots, err := certificates(filepath.Join(folder, "root.pem"))
	if err != nil {
		return nil, err
	}
	leaves, err := certificates(filepath.Join(folder, "leaf.pem"))
	if err != nil {
		return nil, err
	}
	if len(roots) != 1 || len(leaves) != 1 {
		return nil, fmt.Errorf("%d roots, %d leaves", len(roots), len(leaves))
	}
	all.root, all.leaf = roots[0], leaves[0]
	if all.chain, err = certificates(filepath.Join(folder, "chain.pem")); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.crl"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		der, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crl, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all.crls = append(all.crls, crl)
	}
	return all, nil
}

func certificates(file string) ([]*x509.Certificate, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var found []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return found, nil
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, certificate)
	}
}

// path is the leaf, its issuers and the root, as Go finds them.
func (all *material) path() ([]*x509.Certificate, error) {
	options := x509.VerifyOptions{
		Roots:         x509.NewCertPool(),
		Intermediates: x509.NewCertPool(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	options.Roots.AddCert(all.root)
	for _, certificate := range all.chain {
		options.Intermediates.AddCert(certificate)
	}
	paths, err := all.leaf.Verify(options)
	if err != nil {
		return nil, err
	}
	path := paths[0]
	if len(path) < 2 || !bytes.Equal(path[len(path)-1].Raw, all.root.Raw) {
		return nil, fmt.Errorf("a path of %d certificates", len(path))
	}
	return path, nil
}

func checkChain(all *material) error {
	_, err := all.path()
	return err
}
