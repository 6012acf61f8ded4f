import { columnJsonSchema } from '../../db/declare/column-json.ts';
import { resolveReference } from '../../db/declare/column.ts';
import { inputSchema, patchSchema } from '../../db/declare/model-schema.ts';
import type { ModelColumn } from '../../db/sql/model-statements.ts';
import { marksSensitive } from '../../db/declare/sensitive-members.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { compileUnknownFields, type UnknownFieldCheck } from '../../http/json/unknown-fields.ts';
import { fieldError } from '../../http/input/read-input.ts';
import { type JsonSchema, jsonSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { keyText, readKey } from '../parameters/parameter-value.ts';
import { type Policy, withoutKey } from '../policy/policy.ts';
import { type Address, withAddress } from './with-address.ts';
import { markWritable } from '../policy/rule-marks.ts';
import type { Item } from '../declare/item.ts';
import { isMembers } from '../../options/value-rule.ts';

/** One item of a body, validated: its values, or what is wrong with it. */
export interface ReadItem {
  readonly values: Item;
  /** Names of the members the client sent. */
  readonly sent: readonly string[];
  readonly at: FieldError['location'];
  /** Where the values were, when several rows share them. Default: at the row. */
  readonly valuesAt?: FieldError['location'];
  /** The value of the lookup column, as text; absent on create. */
  readonly key?: string;
  readonly version?: number;
  /** Only where items are judged one by one. */
  readonly faults?: readonly FieldError[];
}

export interface ItemOptions {
  readonly policy: Policy;
  /** The column that names rows. */
  readonly lookup: ModelColumn;
  /** How the address of a new row is made. */
  readonly address: Address;
  /** Items that name a row must carry the version that was read. */
  readonly requiresVersion?: boolean;
}

/** Reads the items of a body that has several. Faults of the schema have their places: `['body', 'items', 37, 'quantity']`. */
export class ItemReader {
  readonly json: JsonSchema;
  readonly #schema: Schema;
  readonly #sensitive: JsonSchema | undefined;
  readonly #findUnknown: UnknownFieldCheck | null;
  readonly #options: ItemOptions;
  readonly #kind: 'create' | 'keyed';

  constructor(options: ItemOptions, kind: 'create' | 'keyed', columns: readonly string[]) {
    const { policy, lookup, address, requiresVersion = false } = options;
    const chosen = policy.inputColumns(columns);
    this.#options = options;
    this.#kind = kind;
    this.#schema = kind === 'create' ? withAddress(inputSchema(chosen), policy, address) : patchSchema(withoutKey(policy, chosen));
    const values = markWritable(policy, jsonSchemaOf(this.#schema, 'input')) as JsonSchema & { readonly properties?: JsonSchema };
    const version = policy.options.version as string | undefined;
    this.json =
      kind === 'create'
        ? values
        : {
            type: 'object',
            properties: {
              [lookup.name]: keyJson(policy, lookup),
              ...(version === undefined
                ? {}
                : { [version]: { type: 'integer', description: 'The version you last read. If it is outdated, the response is 412.' } }),
              ...values.properties,
            },
            required: [lookup.name, ...(requiresVersion && version !== undefined ? [version] : [])],
          };
    this.#sensitive = marksSensitive(this.json) ? this.json : undefined;
    this.#findUnknown = compileUnknownFields(this.json);
  }

  async read(given: unknown, at: FieldError['location']): Promise<ReadItem> {
    if (!isMembers(given))
      return { values: {}, sent: [], at, faults: [{ location: at, code: 'invalid_type', message: 'must be an object' }] };
    const faults: FieldError[] = [];
    this.#findUnknown?.(given, [...at], faults);
    const members: Item = { ...given };
    const keyed = this.#kind === 'create' ? {} : this.#takeKey(members, at, faults);
    const result = await this.#schema['~standard'].validate(members);
    const isKnown = faults.some(({ code }) => code === 'unknown_field');
    for (const issue of result.issues ?? [])
      if (!(isKnown && issue.code === 'unknown_field')) faults.push(fieldError(at, members, issue, this.#sensitive));
    const values = result.issues === undefined ? (result.value as Item) : {};
    return { values, sent: Object.keys(members), at, ...keyed, ...(faults.length > 0 ? { faults } : {}) };
  }

  #takeKey(members: Item, at: FieldError['location'], faults: FieldError[]): { readonly key?: string; readonly version?: number } {
    const { lookup, policy } = this.#options;
    const name = policy.options.version as string | undefined;
    const { [lookup.name]: key, ...rest } = members;
    for (const each of Object.keys(members)) if (!(each in rest)) delete members[each];
    const taken: { key?: string; version?: number } = {};
    const text = keyText(resolveReference(lookup.settings), key);
    if (text !== undefined) taken.key = text;
    else if (key === undefined) faults.push({ location: [...at, lookup.name], code: 'required', message: 'Required.' });
    else faults.push({ location: [...at, lookup.name], code: 'invalid_type', message: 'must be the key of a row' });
    if (name !== undefined && members[name] !== undefined) {
      const version = members[name];
      delete members[name];
      if (typeof version === 'number' && Number.isInteger(version)) taken.version = version;
      else faults.push({ location: [...at, name], code: 'invalid_type', message: 'must be an integer' });
    }
    return taken;
  }
}

/** Every place of a key that is there more than once, however it is written: `7` and `"7"` are one. */
export function repeatedKeys(lookup: ModelColumn, keys: readonly (string | undefined)[]): number[] {
  const settings = resolveReference(lookup.settings);
  const texts = keys.map((key) => {
    const read = key === undefined ? undefined : readKey(settings, key);
    // What is no key at all names nothing, twice or not, and is reported as that.
    return read === undefined || read.fault !== undefined ? key : String(lookup.encode(read.value));
  });
  const counts = new Map<string, number>();
  for (const text of texts) if (text !== undefined) counts.set(text, (counts.get(text) ?? 0) + 1);
  return texts.flatMap((text, index) => (text !== undefined && (counts.get(text) as number) > 1 ? [index] : []));
}

export function keyJson(policy: Policy, lookup: ModelColumn): JsonSchema {
  const settings = policy.settingsOf(lookup.name);
  return { ...columnJsonSchema({ ...settings, nullable: false, readOnly: false }, 'input'), pattern: undefined, default: undefined };
}
