// Command pki-check holds certificates, CRLs and OCSP responses against what Go 1.27 says of them
// (crypto/x509, crypto/mldsa, golang.org/x/crypto/ocsp). tests/interop/pki/STEPS.md says what each step checks.
package main

import (
	"errors"
	"fmt"
	"os"
)

const usage = `usage: pki-check FOLDER STEP...
       pki-check tls --root ROOT.pem [--cert CHAIN.pem --key KEY.pem] URL
`

var steps = map[string]func(*material) error{
	"chain":      checkChain,
	"crl":        checkCRLs,
	"ocsp":       checkOCSP,
	"fetch-crl":  fetchCRLs,
	"fetch-ocsp": fetchOCSP,
}

// errRevoked is what a step ends with when everything is in order, but the certificate is revoked.
var errRevoked = errors.New("revoked")

func main() {
	if len(os.Args) < 3 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if os.Args[1] == "tls" {
		report("tls", tlsClient(os.Args[2:]))
		finish()
	}
	all, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	for _, name := range os.Args[2:] {
		step, known := steps[name]
		if !known {
			fmt.Fprintf(os.Stderr, "error: no step %q\n%s", name, usage)
			os.Exit(2)
		}
		report(name, step(all))
	}
	finish()
}

var passed, failed int

func report(name string, err error) {
	if err != nil {
		failed++
		fmt.Printf("FAIL %s %v\n", name, err)
		return
	}
	passed++
	fmt.Println("ok", name)
}

func finish() {
	fmt.Printf("%d ok, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}
