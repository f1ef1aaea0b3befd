// sftp-server is an SFTP server of the libraries that SFTPGo's is made of: golang.org/x/crypto/ssh and the request server of
// github.com/pkg/sftp, with its allocator. The benchmark measures it; it confines nobody and records nothing.
//
//	sftp-server ADDRESS HOST_KEY AUTHORIZED_KEYS FOLDER
//
// Paths of clients are below FOLDER.
package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// folder serves the files below it.
type folder string

func (f folder) place(r *sftp.Request) string {
	return filepath.Join(string(f), r.Filepath)
}

func (f folder) Fileread(r *sftp.Request) (io.ReaderAt, error) {
	return os.Open(f.place(r))
}

func (f folder) Filewrite(r *sftp.Request) (io.WriterAt, error) {
	flags := os.O_WRONLY
	asked := r.Pflags()
	for _, flag := range []struct {
		asked bool
		flag  int
	}{{asked.Creat, os.O_CREATE}, {asked.Trunc, os.O_TRUNC}, {asked.Excl, os.O_EXCL}} {
		if flag.asked {
			flags |= flag.flag
		}
	}
	return os.OpenFile(f.place(r), flags, 0o644)
}

func (f folder) Filecmd(r *sftp.Request) error {
	switch r.Method {
	case "Setstat":
		// OpenSSH's client sets the mode of what it uploads.
		if r.AttrFlags().Permissions {
			return os.Chmod(f.place(r), r.Attributes().FileMode().Perm())
		}
		return nil
	case "Remove":
		return os.Remove(f.place(r))
	}
	return sftp.ErrSSHFxOpUnsupported
}

// list is what a folder has, or the one file that was asked for.
type list []os.FileInfo

func (l list) ListAt(to []os.FileInfo, offset int64) (int, error) {
	if offset >= int64(len(l)) {
		return 0, io.EOF
	}
	count := copy(to, l[offset:])
	if count < len(to) {
		return count, io.EOF
	}
	return count, nil
}

func (f folder) Filelist(r *sftp.Request) (sftp.ListerAt, error) {
	switch r.Method {
	case "Stat":
		info, err := os.Stat(f.place(r))
		return list{info}, err
	case "List":
		entries, err := os.ReadDir(f.place(r))
		if err != nil {
			return nil, err
		}
		var infos list
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				infos = append(infos, info)
			}
		}
		return infos, nil
	}
	return nil, sftp.ErrSSHFxOpUnsupported
}

// serve talks to one client until it leaves.
func (f folder) serve(stream net.Conn, config *ssh.ServerConfig) {
	connection, channels, requests, err := ssh.NewServerConn(stream, config)
	if err != nil {
		stream.Close()
		return
	}
	defer connection.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			offered.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go f.session(channel, requests)
	}
}

// session starts SFTP on a channel when the client asks for it.
func (f folder) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for request := range requests {
		var asked struct{ Name string }
		isSftp := request.Type == "subsystem" && ssh.Unmarshal(request.Payload, &asked) == nil && asked.Name == "sftp"
		request.Reply(isSftp, nil)
		if isSftp {
			go func() {
				defer channel.Close()
				handlers := sftp.Handlers{FileGet: f, FilePut: f, FileCmd: f, FileList: f}
				server := sftp.NewRequestServer(channel, handlers, sftp.WithRSAllocator())
				defer server.Close()
				if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
					log.Print(err)
				}
				channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			}()
		}
	}
}

// key reads a private key file.
func key(path string) (ssh.Signer, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ssh.ParsePrivateKey(pem)
}

func run(address, hostKey, authorizedKeys, place string) error {
	line, err := os.ReadFile(authorizedKeys)
	if err != nil {
		return err
	}
	authorized, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if bytes.Equal(key.Marshal(), authorized.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("another key")
		},
	}
	signer, err := key(hostKey)
	if err != nil {
		return err
	}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		stream, err := listener.Accept()
		if err != nil {
			return err
		}
		go folder(place).serve(stream, config)
	}
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("usage: sftp-server ADDRESS HOST_KEY AUTHORIZED_KEYS FOLDER")
	}
	log.Fatal(run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]))
}
