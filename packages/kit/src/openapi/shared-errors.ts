import { createHash } from 'node:crypto';
import type { ErrorFormat } from '../errors/render.ts';
import type { RaisedError } from '../http/compiled-route.ts';
import { errorExample, errorResponse } from './error-responses.ts';
import { pascalCase } from './schema-names.ts';

/** Error responses of a document: one component per status and set of codes. Examples are in the schema of all problems, one per code. */
export class SharedErrors {
  readonly #format: ErrorFormat;
  readonly #responses = new Map<string, string>();
  readonly #examples = new Map<string, Record<string, unknown>>();

  constructor(format: ErrorFormat) {
    this.#format = format;
  }

  /** References by status. */
  of(errors: readonly RaisedError[]): Record<string, object> {
    const byStatus = Object.groupBy(errors, ({ status }) => String(status));
    return Object.fromEntries(Object.entries(byStatus).map(([status, group]) => [status, this.#share(status, group ?? [])]));
  }

  #share(status: string, group: readonly RaisedError[]): object {
    for (const error of group) this.#examples.set(`${error.code} ${status}`, errorExample(error, this.#format));
    const text = JSON.stringify(errorResponse(group, this.#format));
    // The name follows from the content: it does not change when another operation is added.
    const [only, second] = group.map(({ code }) => code);
    const name = only !== undefined && second === undefined ? pascalCase(only) : `E${status}_${shortDigest(text)}`;
    const isOther = this.#responses.has(name) && this.#responses.get(name) !== text;
    const unique = isOther ? `${name}_${shortDigest(text)}` : name;
    this.#responses.set(unique, text);
    return { $ref: `#/components/responses/${unique}` };
  }

  responses(): Readonly<Record<string, object>> {
    return Object.fromEntries([...this.#responses].map(([name, text]) => [name, JSON.parse(text) as object]));
  }

  /** By code, then by status. */
  examples(): readonly object[] {
    return [...this.#examples].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, example]) => example);
  }
}

/** Short, and the same for the same text. */
export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 6);
