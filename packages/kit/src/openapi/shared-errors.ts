import { createHash } from 'node:crypto';
import type { ErrorFormat } from '../errors/render.ts';
import type { RaisedError } from '../http/exchange/compiled-route.ts';
import { errorResponse, type MembersByCode } from './error-responses.ts';
import type { JsonSchema } from '../http/declare/schema.ts';
import { pascalCase } from './schema-names.ts';

/**
 * Error responses of a document: one component per status and set of codes. The sentence of each code is in the schema of all problems. Members of a
 * code are a component where several responses have them.
 */
export class SharedErrors {
  readonly #format: ErrorFormat;
  readonly #members: MembersByCode;
  readonly #responses = new Map<string, { readonly text: string; readonly group: readonly RaisedError[] }>();
  readonly #details = new Map<string, Map<string, string>>();

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
    const details = this.#details.get(status) ?? new Map<string, string>();
    this.#details.set(status, details);
    for (const { code, detail } of group) details.set(code, detail);
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

  /** The sentence of each code by its status, which takes half the bytes of an example for each. */
  details(): Readonly<Record<string, Readonly<Record<string, string>>>> {
    const inOrder = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);
    return Object.fromEntries(
      [...this.#details].toSorted(inOrder).map(([status, codes]) => [status, Object.fromEntries([...codes].toSorted(inOrder))]),
    );
  }
}

/** Short, and the same for the same text. */
export const shortDigest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 6);
