// Command tlog-check holds transparency logs against what others say of them: trees and proofs by golang.org/x/mod/sumdb/tlog, notes by
// golang.org/x/mod/sumdb/note, cosignatures, proof files and policies by github.com/transparency-dev/formats, and ML-DSA-44 once more by
// Go's own crypto/mldsa.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: tlog-check log SOURCE KEYS [OLD-CHECKPOINT]
           reads the log at SOURCE (a folder or an http URL) by the verifier keys in the file KEYS, one a line, checks every tile and
           entry of it, and that OLD-CHECKPOINT is of the same log
       tlog-check proof PROOF POLICY ENTRY KEYS
           checks offline that the entry is in a log
       tlog-check make FOLDER SIZE
           makes a log, its keys, witnesses, policy and proofs
       tlog-check ask URL WITNESS-KEY FOLDER SIZE...
           asks the witness for cosignatures of the log that make has made, at these sizes, and checks them
`

func main() {
	err := fmt.Errorf("\n%s", usage)
	switch arguments := os.Args[1:]; {
	case len(arguments) >= 3 && len(arguments) <= 4 && arguments[0] == "log":
		err = checkLog(arguments[1], arguments[2], arguments[3:])
	case len(arguments) == 5 && arguments[0] == "proof":
		err = checkProof(arguments[1], arguments[2], arguments[3], arguments[4])
	case len(arguments) == 3 && arguments[0] == "make":
		err = makeLog(arguments[1], arguments[2])
	case len(arguments) >= 5 && arguments[0] == "ask":
		err = ask(arguments[1], arguments[2], arguments[3], arguments[4:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
