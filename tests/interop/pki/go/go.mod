module outlast/pki-check

go 1.27

require golang.org/x/crypto v0.58.0
