// Command endpoints connects with Go's crypto/tls as it is told: a case on each line of stdin, a result on each of stdout.
// ../PROTOCOL.md says what is in them.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Case is what to do.
type Case struct {
	ID      int      `json:"id"`
	Address string   `json:"address"`
	Name    string   `json:"name"`
	CA      string   `json:"ca"`
	Groups  []string `json:"groups"`
	// Version is the only one that is offered; both are without it.
	Version string `json:"version"`
	// Repeat is how often to connect; the last connection is reported.
	Repeat int `json:"repeat"`
	// Cert and Key are the client's, in PEM.
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Result is what came of it.
type Result struct {
	ID          int    `json:"id"`
	OK          bool   `json:"ok"`
	Version     string `json:"version,omitempty"`
	Group       string `json:"group,omitempty"`
	HelloRetry  bool   `json:"hello_retry"`
	Suite       string `json:"suite,omitempty"`
	Resumed     bool   `json:"resumed"`
	Certificate string `json:"certificate,omitempty"`
	Error       string `json:"error,omitempty"`
	Alert       string `json:"alert,omitempty"`
}

// IANA's names.
var groups = map[string]tls.CurveID{
	"X25519MLKEM768":     tls.X25519MLKEM768,
	"SecP256r1MLKEM768":  tls.SecP256r1MLKEM768,
	"SecP384r1MLKEM1024": tls.SecP384r1MLKEM1024,
	"MLKEM1024":          tls.MLKEM1024,
	"x25519":             tls.X25519,
	"secp256r1":          tls.CurveP256,
	"secp384r1":          tls.CurveP384,
	"secp521r1":          tls.CurveP521,
}

var versions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

const (
	patience = 2 * time.Minute
	atOnce   = 4
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	var writing sync.Mutex
	var running sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for lines.Scan() {
		var wanted Case
		if err := json.Unmarshal(lines.Bytes(), &wanted); err != nil {
			fmt.Fprintln(os.Stderr, "error: not a case:", err)
			os.Exit(2)
		}
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			result := run(wanted)
			writing.Lock()
			defer writing.Unlock()
			if err := out.Encode(result); err != nil {
				fmt.Fprintln(os.Stderr, "error:", err)
				os.Exit(1)
			}
		})
	}
	running.Wait()
}

func run(wanted Case) Result {
	config, err := configure(wanted)
	if err != nil {
		return Result{ID: wanted.ID, Error: err.Error()}
	}
	var result Result
	for range max(1, wanted.Repeat) {
		result, err = connect(wanted.Address, config)
		if err != nil {
			result = Result{Error: err.Error(), Alert: alert(err)}
			break
		}
	}
	result.ID = wanted.ID
	return result
}

func configure(wanted Case) (*tls.Config, error) {
	pem, err := os.ReadFile(wanted.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("there is no certificate in the CA file")
	}
	config := &tls.Config{
		RootCAs:            roots,
		ServerName:         wanted.Name,
		MinVersion:         tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(4),
	}
	for _, name := range wanted.Groups {
		group, known := groups[name]
		if !known {
			return nil, fmt.Errorf("Go has no group %s", name)
		}
		config.CurvePreferences = append(config.CurvePreferences, group)
	}
	if wanted.Version != "" {
		version, known := versions[wanted.Version]
		if !known {
			return nil, fmt.Errorf("%s is no version", wanted.Version)
		}
		config.MinVersion, config.MaxVersion = version, version
	}
	if wanted.Cert != "" {
		own, err := tls.LoadX509KeyPair(wanted.Cert, wanted.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// connect does the handshake, asks for something and reads until the server ends: tickets and late alerts come after a handshake of TLS 1.3.
func connect(address string, config *tls.Config) (Result, error) {
	plain, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return Result{}, err
	}
	defer plain.Close()
	if err := plain.SetDeadline(time.Now().Add(patience)); err != nil {
		return Result{}, err
	}
	connection := tls.Client(plain, config)
	if err := connection.Handshake(); err != nil {
		return Result{}, err
	}
	if _, err := fmt.Fprintf(connection, "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", config.ServerName); err != nil {
		return Result{}, err
	}
	if _, err := io.Copy(io.Discard, connection); err != nil {
		return Result{}, err
	}
	state := connection.ConnectionState()
	result := Result{
		OK:         true,
		Version:    strings.Replace(tls.VersionName(state.Version), "TLS ", "TLSv", 1),
		HelloRetry: state.HelloRetryRequest,
		Suite:      tls.CipherSuiteName(state.CipherSuite),
		Resumed:    state.DidResume,
	}
	for name, group := range groups {
		if group == state.CurveID {
			result.Group = name
		}
	}
	if len(state.PeerCertificates) > 0 {
		result.Certificate = state.PeerCertificates[0].PublicKeyAlgorithm.String()
	}
	return result, connection.Close()
}

// alert is IANA's name of the alert that the server sent, if it sent one.
func alert(err error) string {
	var remote *net.OpError
	if !errors.As(err, &remote) || remote.Op != "remote error" {
		return ""
	}
	switch text := strings.TrimPrefix(remote.Err.Error(), "tls: "); text {
	case "protocol version not supported":
		return "protocol_version"
	case "error decoding message":
		return "decode_error"
	case "error decrypting message":
		return "decrypt_error"
	case "unknown certificate authority":
		return "unknown_ca"
	case "revoked certificate":
		return "certificate_revoked"
	case "expired certificate":
		return "certificate_expired"
	case "insufficient security level":
		return "insufficient_security"
	default:
		return strings.ReplaceAll(text, " ", "_")
	}
}
