// quicgo ADDRESS CA.pem [GROUP,...]: gets https://ADDRESS/healthz over HTTP/3 by quic-go, and prints as JSON what was
// negotiated and answered. Groups are those that Go has; without them it offers what it offers by default.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

var groups = map[string]tls.CurveID{
	"X25519MLKEM768":     tls.X25519MLKEM768,
	"SecP256r1MLKEM768":  tls.SecP256r1MLKEM768,
	"SecP384r1MLKEM1024": tls.SecP384r1MLKEM1024,
	"x25519":             tls.X25519,
	"secp256r1":          tls.CurveP256,
	"secp384r1":          tls.CurveP384,
}

type report struct {
	Group      string `json:"group"`
	Protocol   string `json:"protocol"`
	Status     int    `json:"status"`
	Body       string `json:"body"`
	HelloRetry bool   `json:"hello_retry"`
	Resumed    bool   `json:"resumed"`
	Error      string `json:"error,omitempty"`
}

func main() {
	var found report
	if err := get(&found); err != nil {
		found.Error = err.Error()
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func get(found *report) error {
	pem, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	config.RootCAs.AppendCertsFromPEM(pem)
	if len(os.Args) > 3 {
		for _, name := range strings.Split(os.Args[3], ",") {
			config.CurvePreferences = append(config.CurvePreferences, groups[name])
		}
	}
	transport := &http3.Transport{
		TLSClientConfig: config,
		QUICConfig:      &quic.Config{HandshakeIdleTimeout: 2 * time.Minute},
	}
	defer transport.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", "https://"+os.Args[1]+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	found.Status, found.Protocol, found.Body = response.StatusCode, response.Proto, string(body)
	if state := response.TLS; state != nil {
		found.HelloRetry, found.Resumed = state.HelloRetryRequest, state.DidResume
		found.Group = state.CurveID.String()
		for name, id := range groups {
			if id == state.CurveID {
				found.Group = name
			}
		}
	}
	return nil
}
