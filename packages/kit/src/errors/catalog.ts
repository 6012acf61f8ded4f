import { KitError, type FieldError } from './kit-error.ts';
import { InvalidOptions, type OptionRules, readOptions, refuseUnknownNames } from '../options/read-options.ts';
import { filledText, isMembers, objectWith, recordOf, required, text, wholeNumber, wrongValue } from '../options/value-rule.ts';

export interface ErrorEntry {
  /** The HTTP status. */
  readonly status: number;
  /** The public sentence, unless the place that throws gives a better one. */
  readonly detail: string;
  /** A short name of the error. Default: made of the code. */
  readonly title?: string;
  /** What the caller can do about it; printed by `kit explain`. */
  readonly remedy?: string;
  /** Sent as `Retry-After`, for errors that pass. */
  readonly retryAfterSeconds?: number;
  /** Further members of the response, set with `extensions`: a JSON Schema each. The OpenAPI document and generated clients have them. */
  readonly members?: ErrorMembers;
}

export type ErrorMembers = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface ErrorDetails<Member extends string = string> {
  readonly detail?: string | undefined;
  readonly errors?: readonly FieldError[] | undefined;
  readonly extensions?: { readonly [M in Member]?: unknown } | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly message?: string | undefined;
  readonly cause?: unknown;
}

const entryRules: OptionRules<ErrorEntry> = {
  status: required(wholeNumber(400, 599)),
  detail: required(filledText),
  title: text,
  remedy: text,
  retryAfterSeconds: wholeNumber(1),
  members: recordOf(objectWith('a JSON Schema: { type: "integer", description: "…" }')),
};
const detailNames: ReadonlySet<string> = new Set(
  Object.keys({
    detail: true,
    errors: true,
    extensions: true,
    headers: true,
    message: true,
    cause: true,
  } satisfies Record<keyof ErrorDetails, true>),
);

/** A row of a catalog, callable: `throw coreErrors.not_found({ detail: 'No such order.' })`. */
export interface ErrorDefinition<Member extends string = string> {
  (details?: ErrorDetails<Member>): KitError;
  /** Tells definitions apart from other functions. */
  readonly isErrorDefinition: true;
  /** The module whose catalog has it. */
  readonly module: string;
  /** The code on the wire. */
  readonly code: string;
  /** The HTTP status. */
  readonly status: number;
  /** The public sentence, where the place that throws gives no better one. */
  readonly detail: string;
  /** A few words for the code. */
  readonly title: string;
  /** What the caller can do about it. */
  readonly remedy: string | undefined;
  /** Further members of the response: a JSON Schema each. */
  readonly members: ErrorMembers;
}

/** Where an entry declares members, its errors carry no others. */
type DefinitionOf<Entry> = Entry extends { readonly members: infer Members }
  ? ErrorDefinition<Extract<keyof Members, string>>
  : ErrorDefinition;

export type ErrorCatalog = Readonly<Record<string, ErrorDefinition>>;

const codeGrammar = /^[a-z][a-z0-9_]{0,63}$/;
const catalogs = new Map<string, ErrorCatalog>();

/**
 * Declares a module's errors. The key is the code on the wire: a promise to clients, never renamed.
 * `kit explain` and docs/reference/errors.md have every catalog.
 *
 * @example
 * ```ts
 * const orderErrors = defineErrors('orders', {
 *   out_of_stock: { status: 409, detail: 'The item is out of stock.', remedy: 'Order less, or wait.' },
 * });
 * throw orderErrors.out_of_stock();
 * ```
 */
export function defineErrors<const C extends Record<string, ErrorEntry>>(
  module: string,
  catalog: C,
): { readonly [K in keyof C]: DefinitionOf<C[K]> } {
  const definitions: Record<string, ErrorDefinition> = {};
  if (!isMembers(catalog))
    throw new InvalidOptions([wrongValue('defineErrors()', 'the catalog', catalog, '{ out_of_stock: { status: 409, detail: "…" } }')]);
  for (const [code, entry] of Object.entries(catalog)) definitions[code] = define(module, code, entry);
  catalogs.set(module, Object.freeze(definitions));
  return definitions as { readonly [K in keyof C]: DefinitionOf<C[K]> };
}

/** Every catalog declared so far, sorted by module name. */
export function errorCatalogs(): readonly { readonly module: string; readonly errors: ErrorCatalog }[] {
  return [...catalogs].map(([module, errors]) => ({ module, errors })).sort((a, b) => (a.module < b.module ? -1 : 1));
}

export function isErrorDefinition(value: unknown): value is ErrorDefinition {
  return typeof value === 'function' && (value as Partial<ErrorDefinition>).isErrorDefinition === true;
}

function define(module: string, code: string, entry: ErrorEntry): ErrorDefinition {
  if (!codeGrammar.test(code)) throw new TypeError(`error code "${code}" of module "${module}" must be snake_case, at most 64 characters`);
  readOptions(`defineErrors("${module}"), ${code}`, entry, entryRules);
  const title = entry.title ?? titleOf(code);
  const retryAfter = entry.retryAfterSeconds === undefined ? undefined : { 'retry-after': String(entry.retryAfterSeconds) };
  const passing = ({ headers }: ErrorDetails) => (retryAfter === undefined ? {} : { headers: { ...retryAfter, ...headers } });
  const create = (details: ErrorDetails = {}): KitError => {
    refuseUnknownNames(`${code}()`, details, detailNames);
    return new KitError({ ...details, ...passing(details), code, status: entry.status, title, detail: details.detail ?? entry.detail });
  };
  const facts = {
    isErrorDefinition: true,
    module,
    code,
    status: entry.status,
    detail: entry.detail,
    title,
    remedy: entry.remedy,
    members: entry.members ?? {},
  } as const;
  return Object.freeze(Object.assign(create, facts));
}

function titleOf(code: string): string {
  const words = code.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
