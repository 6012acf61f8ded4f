import { createHash } from 'node:crypto';
import { canonicalJson } from '../values/canonical-json.ts';
import { JsonParameter } from '../values/json-parameter.ts';
import type { CopiedColumn } from './copied-column.ts';

const MODULUS = 2n ** 128n;

/**
 * The number of rows and a checksum that does not depend on their order: the sum of the rows' SHA-256, of which 128 bits. Databases sort text and read
 * tables in orders of their own, and a sum, unlike an exclusive or, does not lose rows that are there twice.
 */
export class RowDigest {
  readonly #columns: readonly CopiedColumn[];
  #sum = 0n;
  #rows = 0;

  constructor(columns: readonly CopiedColumn[]) {
    this.#columns = columns;
  }

  add(row: Readonly<Record<string, unknown>>): void {
    const values = this.#columns.map(({ name, encode }) => plain(encode(row[name])));
    const hash = createHash('sha256').update(canonicalJson(values)).digest('hex');
    this.#sum = (this.#sum + BigInt(`0x${hash.slice(0, 32)}`)) % MODULUS;
    this.#rows++;
  }

  get rows(): number {
    return this.#rows;
  }

  get checksum(): string {
    return this.#sum.toString(16).padStart(32, '0');
  }
}

function plain(value: unknown): unknown {
  if (value instanceof JsonParameter) return value.value;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return Array.isArray(value) ? value.map(plain) : value;
}
