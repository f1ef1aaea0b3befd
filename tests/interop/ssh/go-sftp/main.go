// sftp-clients is Go's client (github.com/pkg/sftp over golang.org/x/crypto/ssh) of an SFTP server, with one algorithm at a
// time.
//
//	sftp-clients PORT USER KEY KIND=NAME...
//
// KIND is kex, key, cipher, mac, or default, for which the name is not used. One line for each: go, kind, name, and ok,
// unsupported, or what failed.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

var content = bytes.Repeat([]byte("a line that comes back\n"), 15000)

func connect(port, user, kind, name string, signer ssh.Signer) string {
	supported := ssh.SupportedAlgorithms()
	config := &ssh.ClientConfig{
		User:            user,
		Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
		Timeout:         time.Minute,
	}
	names := []string{name}
	switch kind {
	case "kex":
		names, config.KeyExchanges = supported.KeyExchanges, []string{name}
	case "key":
		names, config.HostKeyAlgorithms = supported.HostKeys, []string{name}
	case "cipher":
		names, config.Ciphers = supported.Ciphers, []string{name}
	case "mac":
		names, config.MACs = supported.MACs, []string{name}
		config.Ciphers = []string{"aes256-ctr"}
	}
	if !slices.Contains(names, name) {
		return "unsupported"
	}
	if err := transfer(port, config); err != nil {
		return "failed " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	return "ok"
}

func transfer(port string, config *ssh.ClientConfig) error {
	connection, err := ssh.Dial("tcp", "127.0.0.1:"+port, config)
	if err != nil {
		return err
	}
	defer connection.Close()
	client, err := sftp.NewClient(connection, sftp.UseConcurrentWrites(true))
	if err != nil {
		return err
	}
	defer client.Close()
	file, err := client.Create("go")
	if err != nil {
		return err
	}
	if _, err := file.ReadFrom(bytes.NewReader(content)); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if file, err = client.Open("go"); err != nil {
		return err
	}
	defer file.Close()
	back, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(back, content) {
		return fmt.Errorf("got %d bytes", len(back))
	}
	return client.Remove("go")
}

func main() {
	key, err := os.ReadFile(os.Args[3])
	if err != nil {
		panic(err)
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		panic(err)
	}
	for _, argument := range os.Args[4:] {
		kind, name, _ := strings.Cut(argument, "=")
		fmt.Println("go", kind, name, connect(os.Args[1], os.Args[2], kind, name, signer))
	}
}
