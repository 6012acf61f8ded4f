import { createHash } from 'node:crypto';
import type { ErrorFormat } from '../errors/render.ts';
import type { RaisedError } from '../http/exchange/compiled-route.ts';
import { errorExample, errorResponse, type MembersByCode } from './error-responses.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { pascalCase } from './schema-names.ts';

/**
 * Error responses of a document: one component per status and set of codes. Examples are in the schema of all problems, one per code. Members of a
 * code are a component where several responses have them.
 */
export class SharedErrors {
  readonly #format: ErrorFormat;
  readonly #members: MembersByCode;
  readonly #responses = new Map<string, { readonly text: string; readonly group: readonly RaisedError[] }>();
  readonly #examples = new Map<string, Record<string, unknown>>();

  constructor(format: ErrorFormat, members: MembersByCode) {
    this.#format = format;
    this.#members = members;
  }

  /** References by status. */
  of(errors: readonly RaisedError[]): Record<string, object> {
    const byStatus = Object.groupBy(errors, ({ status }) => String(status));
    return Object.fromEntries(Object.entries(byStatus).map(([status, group]) => [status, this.#share(status, group ?? [])]));
  }

  #share(status: string, group: readonly RaisedError[]): object {
    for (const error of group) this.#examples.set(`${error.code} ${status}`, errorExample(error, this.#format));
    // The name follows from the content: it does not change when another operation is added.
    const text = JSON.stringify(group);
    const [only, second] = group.map(({ code }) => code);
    const name = only !== undefined && second === undefined ? pascalCase(only) : `E${status}_${shortDigest(text)}`;
    const isOther = this.#responses.has(name) && this.#responses.get(name)?.text !== text;
    const unique = isOther ? `${name}_${shortDigest(text)}` : name;
    this.#responses.set(unique, { text, group });
    return { $ref: `#/components/responses/${unique}` };
  }

  responses(): Readonly<Record<string, object>> {
    const shared = this.members();
    return Object.fromEntries(
      [...this.#responses].map(([name, { group }]) => [
        name,
        errorResponse(group, this.#format, this.#members, (members) => members in shared),
      ]),
    );
  }

  /** Members that several responses have. */
  members(): Readonly<Record<string, JsonSchema>> {
    const uses = [...this.#responses.values()].flatMap(({ group }) =>
      Array.from(new Set(group.flatMap(({ code }) => this.#members.get(code)?.name ?? []))),
    );
    const shared = [...this.#members.values()].filter(({ name }) => uses.indexOf(name) !== uses.lastIndexOf(name));
    return Object.fromEntries(shared.map(({ name, schema }) => [name, schema]));
  }

  /** By code, then by status. */
  examples(): readonly object[] {
    return [...this.#examples].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, example]) => example);
  }
}

/** Short, and the same for the same text. */
export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 6);
