package main

import (
	"bytes"
	"crypto/mldsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/transparency-dev/formats/log"
	fnote "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/proof"
	"github.com/transparency-dev/formats/witness"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const height = 8

// A source is where a log is served: a folder or an URL.
type source string

func (s source) read(path string) ([]byte, error) {
	if !strings.HasPrefix(string(s), "http://") {
		return os.ReadFile(filepath.Join(string(s), filepath.FromSlash(path)))
	}
	response, err := http.Get(strings.TrimSuffix(string(s), "/") + "/" + path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, 1<<25))
}

// path is that of c2sp.org/tlog-tiles, which has no height and calls data entries.
func path(tile tlog.Tile) string {
	path := strings.Replace(tile.Path(), "tile/8/", "tile/", 1)
	return strings.Replace(path, "tile/data/", "tile/entries/", 1)
}

func (s source) Height() int                     { return height }
func (s source) SaveTiles([]tlog.Tile, [][]byte) {}
func (s source) ReadTiles(tiles []tlog.Tile) (all [][]byte, err error) {
	for _, tile := range tiles {
		data, err := s.read(path(tile))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// readKeys gives the verifiers of a file of verifier keys.
func readKeys(file string) (verifiers []note.Verifier, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Fields(string(text)) {
		verifier, err := fnote.NewVerifier(line)
		if err != nil {
			return nil, err
		}
		verifiers = append(verifiers, verifier)
		if own, err := newMLDSA(line); err == nil {
			// Both must agree.
			verifiers[len(verifiers)-1] = both{verifier, own}
		}
	}
	return verifiers, nil
}

// both is a verifier of formats and ours by crypto/mldsa.
type both struct {
	note.Verifier
	own *ownMLDSA
}

func (b both) Verify(msg, sig []byte) bool {
	theirs, ours := b.Verifier.Verify(msg, sig), b.own.verify(msg, sig)
	if theirs != ours {
		panic(fmt.Sprintf("%s: formats says %v, crypto/mldsa says %v", b.Name(), theirs, ours))
	}
	return theirs && ours
}

// ownMLDSA verifies by the text of c2sp.org/tlog-cosignature and Go's own ML-DSA.
type ownMLDSA struct {
	name string
	key  *mldsa.PublicKey
}

func newMLDSA(vkey string) (*ownMLDSA, error) {
	parts := strings.SplitN(vkey, "+", 3)
	if len(parts) != 3 {
		return nil, errors.New("not a verifier key")
	}
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) < 1 || key[0] != 6 {
		return nil, errors.New("not a verifier key of ML-DSA-44")
	}
	public, err := mldsa.NewPublicKey(mldsa.MLDSA44(), key[1:])
	return &ownMLDSA{parts[0], public}, err
}

func (o *ownMLDSA) verify(msg, sig []byte) bool {
	var head log.Checkpoint
	if rest, err := head.Unmarshal(msg); err != nil || len(rest) != 0 || len(sig) < 8 {
		return false
	}
	signed := []byte("subtree/v1\n\x00")
	signed = append(append(signed, byte(len(o.name))), o.name...)
	signed = append(signed, sig[:8]...)
	signed = append(append(signed, byte(len(head.Origin))), head.Origin...)
	signed = binary.BigEndian.AppendUint64(signed, 0)
	signed = binary.BigEndian.AppendUint64(signed, head.Size)
	signed = append(signed, head.Hash...)
	return mldsa.Verify(o.key, signed, sig[8:], nil) == nil
}

// open verifies a signed checkpoint and wants a signature of every key.
func open(checkpoint []byte, keys []note.Verifier) (tlog.Tree, error) {
	opened, err := note.Open(checkpoint, note.VerifierList(keys...))
	if err != nil {
		return tlog.Tree{}, err
	}
	if len(opened.Sigs) != len(keys) {
		return tlog.Tree{}, fmt.Errorf("%d of %d keys have signed", len(opened.Sigs), len(keys))
	}
	return parse([]byte(opened.Text))
}

func parse(text []byte) (tree tlog.Tree, err error) {
	var head log.Checkpoint
	if _, err := head.Unmarshal(text); err != nil {
		return tree, err
	}
	tree.N = int64(head.Size)
	copy(tree.Hash[:], head.Hash)
	return tree, nil
}

func checkLog(from, keyFile string, old []string) error {
	logSource := source(from)
	keys, err := readKeys(keyFile)
	if err != nil {
		return err
	}
	checkpoint, err := logSource.read("checkpoint")
	if err != nil {
		return err
	}
	tree, err := open(checkpoint, keys)
	if err != nil {
		return err
	}
	// It checks every tile that it reads against the signed root.
	hashes := tlog.TileHashReader(tree, logSource)
	for first := int64(0); first < tree.N; first += 1 << height {
		width := min(tree.N-first, 1<<height)
		tile := tlog.Tile{H: height, L: -1, N: first >> height, W: int(width)}
		bundle, err := logSource.read(path(tile))
		if err != nil {
			return err
		}
		indexes := make([]int64, width)
		for i := range indexes {
			indexes[i] = tlog.StoredHashIndex(0, first+int64(i))
		}
		leaves, err := hashes.ReadHashes(indexes)
		if err != nil {
			return err
		}
		for i, leaf := range leaves {
			if len(bundle) < 2 || len(bundle)-2 < int(binary.BigEndian.Uint16(bundle)) {
				return fmt.Errorf("the bundle of entry %d is cut off", first+int64(i))
			}
			end := 2 + int(binary.BigEndian.Uint16(bundle))
			if tlog.RecordHash(bundle[2:end]) != leaf {
				return fmt.Errorf("entry %d is not what its tile says", first+int64(i))
			}
			bundle = bundle[end:]
		}
		if len(bundle) != 0 {
			return fmt.Errorf("the bundle of entry %d is too long", first)
		}
	}
	for _, file := range old {
		earlier, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		before, err := open(earlier, keys)
		if err != nil {
			return err
		}
		if before.N > 0 {
			proof, err := tlog.ProveTree(tree.N, before.N, hashes)
			if err != nil {
				return err
			}
			if err := tlog.CheckTree(proof, tree.N, tree.Hash, before.N, before.Hash); err != nil {
				return err
			}
		}
		fmt.Printf("consistent with %d\n", before.N)
	}
	fmt.Printf("ok %d entries\n", tree.N)
	return nil
}

func checkProof(proofFile, policyFile, entryFile, keyFile string) error {
	text, err := os.ReadFile(proofFile)
	if err != nil {
		return err
	}
	policyText, err := os.ReadFile(policyFile)
	if err != nil {
		return err
	}
	entry, err := os.ReadFile(entryFile)
	if err != nil {
		return err
	}
	keys, err := readKeys(keyFile)
	if err != nil {
		return err
	}
	var found proof.TLogProof
	if err := found.Unmarshal(text); err != nil {
		return err
	}
	if !bytes.Equal(found.Marshal(), text) {
		return errors.New("the proof file is not as formats writes it")
	}
	tree, err := open(found.Checkpoint, keys)
	if err != nil {
		return err
	}
	policy, err := witness.ParsePolicy(policyText)
	if err != nil {
		return err
	}
	if !policy.Satisfied(found.Checkpoint) {
		return errors.New("the policy's quorum has not cosigned")
	}
	hashes := make(tlog.RecordProof, len(found.Hashes))
	for i, hash := range found.Hashes {
		hashes[i] = hash
	}
	leaf := tlog.RecordHash(entry)
	if err := tlog.CheckRecord(hashes, tree.N, tree.Hash, int64(found.Index), leaf); err != nil {
		return err
	}
	fmt.Printf("ok entry %d of %d\n", found.Index, tree.N)
	return nil
}
