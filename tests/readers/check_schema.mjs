// SPDX-License-Identifier: Apache-2.0
//
// node check_schema.mjs SCHEMA FILE...: checks JSON files against a JSON schema (draft 7) with ajv.
// Prints what does not fit of the first that does not; exit status 1 then.
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'

const read = (path) => JSON.parse(readFileSync(path))
const [schema, ...documents] = process.argv.slice(2)
const validate = new Ajv({ allErrors: true, strict: false }).compile(read(schema))
for (const document of documents) {
  if (validate(read(document))) continue
  console.error(`${document}: ${JSON.stringify(validate.errors.slice(0, 20), null, 1)}`)
  process.exit(1)
}
