// jws.mjs verify SIGNATURE FILE: verifies a detached JWS with jose, by the key of the certificate in its header.
import { readFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { decodeProtectedHeader, flattenedVerify } from 'jose'

const [, , command, signature, file] = process.argv
if (command !== 'verify') throw new Error('usage: jws.mjs verify SIGNATURE FILE')
const [protectedHeader, , value] = readFileSync(signature, 'utf8').trimEnd().split('.')
const { alg, x5c } = decodeProtectedHeader({ protected: protectedHeader })
const key = new X509Certificate(Buffer.from(x5c[0], 'base64')).publicKey
const payload = new Uint8Array(readFileSync(file))
const jws = { payload, protected: protectedHeader, signature: value }
await flattenedVerify(jws, key, { algorithms: [alg] })
console.log(`verified ${alg}`)
