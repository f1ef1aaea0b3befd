package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/transparency-dev/formats/log"
	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const origin = "go.example/log"

// stored is a log in memory, by number of its stored hash.
type stored []tlog.Hash

func (s stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(s)) {
			return nil, errors.New("no such hash")
		}
		hashes[i] = s[index]
	}
	return hashes, nil
}

func entry(number int64) []byte { return fmt.Appendf(nil, "entry %d", number) }

// grown is the log of this size.
func grown(size int64) (hashes stored, err error) {
	for number := range size {
		more, err := tlog.StoredHashes(number, entry(number), hashes)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, more...)
	}
	return hashes, nil
}

func encode(hashes []tlog.Hash) string {
	var text strings.Builder
	for _, hash := range hashes {
		text.WriteString(base64.StdEncoding.EncodeToString(hash[:]) + "\n")
	}
	return text.String()
}

func head(size int64, hashes stored) (string, error) {
	root, err := tlog.TreeHash(size, hashes)
	if err != nil {
		return "", err
	}
	return string(log.Checkpoint{Origin: origin, Size: uint64(size), Hash: root[:]}.Marshal()), nil
}

// signers are those of a folder: the log with both kinds of key, a witness of each kind.
func signers(folder string, create bool) (all []note.Signer, err error) {
	file := filepath.Join(folder, "signers")
	if create {
		ed25519, ed25519Key, err := note.GenerateKey(rand.Reader, origin)
		if err != nil {
			return nil, err
		}
		logMLDSA, logMLDSAKey, err := fnote.GenerateMLDSAKey(origin)
		if err != nil {
			return nil, err
		}
		first, firstKey, err := note.GenerateKey(rand.Reader, "one.example")
		if err != nil {
			return nil, err
		}
		if firstKey, err = fnote.VKeyToCosignatureV1(firstKey); err != nil {
			return nil, err
		}
		second, secondKey, err := fnote.GenerateMLDSAKey("two.example")
		if err != nil {
			return nil, err
		}
		secrets := strings.Join([]string{ed25519, logMLDSA, first, second}, "\n") + "\n"
		if err := os.WriteFile(file, []byte(secrets), 0o600); err != nil {
			return nil, err
		}
		policy := fmt.Sprintf("log %s\nlog %s\nwitness one %s http://localhost/one\nwitness two %s http://localhost/two\n"+
			"group both all one two\nquorum both\n", ed25519Key, logMLDSAKey, firstKey, secondKey)
		if err := os.WriteFile(filepath.Join(folder, "policy"), []byte(policy), 0o644); err != nil {
			return nil, err
		}
		keys := strings.Join([]string{ed25519Key, logMLDSAKey, firstKey, secondKey}, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(folder, "keys"), []byte(keys), 0o644); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	secrets := strings.Fields(string(text))
	if len(secrets) != 4 {
		return nil, errors.New("the folder's signers are not as make has made them")
	}
	ed25519, err := note.NewSigner(secrets[0])
	if err != nil {
		return nil, err
	}
	logMLDSA, err := fnote.NewMLDSASigner(secrets[1])
	if err != nil {
		return nil, err
	}
	first, err := fnote.NewSignerForCosignatureV1(secrets[2])
	if err != nil {
		return nil, err
	}
	second, err := fnote.NewMLDSASigner(secrets[3])
	if err != nil {
		return nil, err
	}
	return []note.Signer{ed25519, logMLDSA, first, second}, nil
}

func makeLog(folder, sizeText string) error {
	size, err := strconv.ParseInt(sizeText, 10, 32)
	if err != nil || size < 1 {
		return errors.New("the size is not a number above 0")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	by, err := signers(folder, true)
	if err != nil {
		return err
	}
	hashes, err := grown(size)
	if err != nil {
		return err
	}
	write := func(name string, data []byte) error {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644)
	}
	for _, tile := range tlog.NewTiles(height, 0, size) {
		data, err := tlog.ReadTileData(tile, hashes)
		if err != nil {
			return err
		}
		if err := write(path(tile), data); err != nil {
			return err
		}
		if tile.L == 0 {
			var bundle []byte
			for i := range tile.W {
				data := entry(tile.N<<height + int64(i))
				bundle = append(binary.BigEndian.AppendUint16(bundle, uint16(len(data))), data...)
			}
			tile.L = -1
			if err := write(path(tile), bundle); err != nil {
				return err
			}
		}
	}
	text, err := head(size, hashes)
	if err != nil {
		return err
	}
	checkpoint, err := note.Sign(&note.Note{Text: text}, by...)
	if err != nil {
		return err
	}
	if err := write("checkpoint", checkpoint); err != nil {
		return err
	}
	for _, number := range []int64{0, size / 3, size - 1} {
		record, err := tlog.ProveRecord(size, number, hashes)
		if err != nil {
			return err
		}
		file := proof.TLogProof{Index: uint64(number), Checkpoint: checkpoint, ExtraData: entry(number)}
		for _, hash := range record {
			file.Hashes = append(file.Hashes, hash)
		}
		if err := write(fmt.Sprintf("%d.tlog-proof", number), file.Marshal()); err != nil {
			return err
		}
	}
	for _, old := range []int64{1, size / 2, size - 1, size} {
		if old < 1 {
			continue
		}
		before, err := tlog.TreeHash(old, hashes)
		if err != nil {
			return err
		}
		steps, err := tlog.ProveTree(size, old, hashes)
		if err != nil {
			return err
		}
		// Its first line is the old root.
		if err := write(fmt.Sprintf("consistency-%d", old), []byte(encode(append([]tlog.Hash{before}, steps...)))); err != nil {
			return err
		}
	}
	fmt.Printf("made %d entries\n", size)
	return nil
}

func ask(url, vkey, folder string, sizes []string) error {
	by, err := signers(folder, false)
	if err != nil {
		return err
	}
	verifier, err := fnote.NewVerifier(vkey)
	if err != nil {
		return err
	}
	own, err := newMLDSA(vkey)
	if err != nil {
		return err
	}
	var old int64
	for _, text := range sizes {
		size, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return err
		}
		hashes, err := grown(size)
		if err != nil {
			return err
		}
		text, err := head(size, hashes)
		if err != nil {
			return err
		}
		signed, err := note.Sign(&note.Note{Text: text}, by[0], by[1])
		if err != nil {
			return err
		}
		var steps []tlog.Hash
		if old > 0 && old < size {
			if steps, err = tlog.ProveTree(size, old, hashes); err != nil {
				return err
			}
		}
		body := fmt.Sprintf("old %d\n%s\n%s", old, encode(steps), signed)
		response, err := http.Post(strings.TrimSuffix(url, "/")+"/add-checkpoint", "text/plain", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		response.Body.Close()
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", response.Status, answer)
		}
		opened, err := note.Open(append(signed, answer...), note.VerifierList(both{verifier, own}))
		if err != nil {
			return err
		}
		when, err := fnote.CoSigV1Timestamp(opened.Sigs[0])
		if err != nil {
			return err
		}
		fmt.Printf("ok %d cosigned at %d\n", size, when.Unix())
		old = size
	}
	return nil
}
