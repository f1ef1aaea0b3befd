module outlast/tsp-check

go 1.27

require (
	github.com/digitorus/pkcs7 v0.0.0-20260914070511-d678ea5ea03f
	github.com/digitorus/timestamp v0.0.0-20260914073129-b4b58b92aa51
)
