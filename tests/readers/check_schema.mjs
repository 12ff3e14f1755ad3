// SPDX-License-Identifier: Apache-2.0
//
// node check_schema.mjs SCHEMA FILE: checks a JSON file against a JSON schema (draft 7) with ajv.
// Prints what does not fit; exit status 1 then.
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'

const [schema, document] = process.argv.slice(2, 4).map((path) => JSON.parse(readFileSync(path)))
const validate = new Ajv({ allErrors: true, strict: false }).compile(schema)
if (!validate(document)) {
  console.error(JSON.stringify(validate.errors.slice(0, 20), null, 1))
  process.exit(1)
}
