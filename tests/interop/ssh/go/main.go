// ssh-clients is Go's client (golang.org/x/crypto/ssh) of a server that echoes, with one algorithm at a time.
//
//	ssh-clients PORT KEY KIND=NAME...
//
// KIND is kex, key, cipher or mac. One line for each: go, kind, name, and ok, unsupported, or what failed.
package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

var message = bytes.Repeat([]byte("a line that comes back\n"), 5000)

func connect(port, kind, name string, signer ssh.Signer) string {
	supported := ssh.SupportedAlgorithms()
	config := &ssh.ClientConfig{
		User:            "alice",
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout:         time.Minute,
	}
	var names []string
	switch kind {
	case "kex":
		names, config.KeyExchanges = supported.KeyExchanges, []string{name}
	case "key":
		names, config.HostKeyAlgorithms = supported.HostKeys, []string{name}
	case "cipher":
		names, config.Ciphers = supported.Ciphers, []string{name}
	case "mac":
		names, config.MACs = supported.MACs, []string{name}
		config.Ciphers = []string{"aes128-ctr"}
	}
	if !slices.Contains(names, name) {
		return "unsupported"
	}
	client, err := ssh.Dial("tcp", "127.0.0.1:"+port, config)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return err.Error()
	}
	session.Stdin = bytes.NewReader(message)
	output, err := session.Output("echo")
	if err != nil {
		return err.Error()
	}
	if !bytes.Equal(output, message) {
		return fmt.Sprintf("got %d bytes", len(output))
	}
	return "ok"
}

func main() {
	key, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		panic(err)
	}
	for _, argument := range os.Args[3:] {
		kind, name, _ := strings.Cut(argument, "=")
		fmt.Println("go", kind, name, connect(os.Args[1], kind, name, signer))
	}
}
