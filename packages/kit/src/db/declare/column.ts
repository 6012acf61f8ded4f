import type { Schema } from '../values/standard-schema.ts';
import type { ColumnDefinition, ColumnKind, DatabaseDefault, OnDelete, Reference } from './table-definition.ts';
import { uuidv7 } from '../values/uuidv7.ts';
import type { Clock } from '../clock.ts';
import type { PersonalOptions, PersonOptions, TenantOptions, WhoseSettings } from './personal-column.ts';
import { personalSettings, personSettings, tenantSettings } from './personal-column.ts';
import { type EncryptedOf, type EncryptedOptions, encryptedSettings, type EncryptedSettings } from './encrypted-column.ts';
import { type OptionRules, readOptions, requireArguments } from '../../options/read-options.ts';
import { aFunction, filledText, instanceOf, listOf, oneOf, rule, sentenceRule, text, wholeNumber } from '../../options/value-rule.ts';

/** The table a reference points to: a model (as a function, so that declarations may be in any order) or a table's name. */
export interface ReferenceTarget {
  readonly name: string;
  readonly primaryKey: readonly string[];
  readonly columns: Readonly<Record<string, AnyColumn>>;
}

/** Everything a declaration says about a column; {@link ColumnDefinition} is the part that reaches the database. */
export interface ColumnSettings extends WhoseSettings {
  /** The kind of its values. */
  readonly kind: ColumnKind;
  /** Whether it may be null. */
  readonly nullable: boolean;
  /** Whether it is the primary key, or a part of it. */
  readonly primaryKey: boolean;
  /** Whether no two rows have the same value. */
  readonly unique: boolean;
  /** Whether clients cannot send it. */
  readonly readOnly: boolean;
  /** Whether its values are masked in logs, in the audit log and in the admin site. */
  readonly sensitive: boolean;
  /** Neither accepted from clients nor sent to them. */
  readonly internal?: boolean;
  /** Stored encrypted; `kind` is that of the plaintext. */
  readonly encrypted?: EncryptedSettings;
  /** The encrypted column whose search values this column contains. */
  readonly searchOf?: string;
  /** Decides about access, or is managed by a module: read-only, unless a resource names who may write it. */
  readonly guarded?: boolean;
  /** The smallest number or the shortest text. */
  readonly min?: number;
  /** The greatest number or the longest text. */
  readonly max?: number;
  /** A regular expression that text must match. */
  readonly pattern?: string;
  /** A format of JSON Schema that text must have, such as `email`. */
  readonly format?: string;
  /** Digits of a decimal. */
  readonly precision?: number;
  /** Digits of a decimal after the point. */
  readonly scale?: number;
  /** The values of an enum. */
  readonly values?: readonly string[];
  /** The elements of an array. */
  readonly of?: ColumnSettings;
  /** The schema of the values of a JSON column. */
  readonly schema?: Schema | Readonly<Record<string, unknown>>;
  /** The value of a new row that has none, from the clock of the database. */
  readonly default?: (clock: Clock) => unknown;
  /** Set again by every update. */
  readonly touch?: (clock: Clock) => unknown;
  /** Every update adds 1 in SQL, so that two writers never get the same number. */
  readonly increment?: boolean;
  /** Holds the id of the user who did this to the row. */
  readonly stamp?: 'created_by' | 'updated_by' | 'deleted_by';
  /** The default of the column in the database. */
  readonly dbDefault?: DatabaseDefault;
  /** The model or table it refers to, and what happens when the other row is deleted. */
  readonly reference?: {
    /** The model, as a function, or the name of the table. */
    readonly target: string | (() => ReferenceTarget);
    /** Default: the primary key. */
    readonly column?: string;
    /** What becomes of the row when the other row is deleted. */
    readonly onDelete: OnDelete;
    /** False: the database does not check it. */
    readonly isConstrained?: false;
  };
  /** Shown in documents and in the admin site. */
  readonly description?: string;
}

declare const types: unique symbol;

/** A column under declaration. `S`: its value in code. `O`: an insert may leave it out. `W`: a client may send it. */
export class Column<S, O extends boolean = false, W extends boolean = true> {
  declare readonly [types]: { readonly value: S; readonly optional: O; readonly writable: W };
  readonly settings: ColumnSettings;

  constructor(settings: ColumnSettings) {
    this.settings = settings;
  }

  /** The primary key, or a part of it. */
  pk(): Column<S, O, O extends true ? false : W> {
    return this.#with({ primaryKey: true });
  }

  /** The column can be null, and may be left out of an insert. */
  nullable(): Column<S | null, true, W> {
    return this.#with({ nullable: true });
  }

  /** No two rows have the same value. */
  unique(): Column<S, O, W> {
    return this.#with({ unique: true });
  }

  /** Filled in by the toolkit when an insert leaves it out. */
  default(value: S | (() => S)): Column<S, true, W> {
    return this.#with({ default: typeof value === 'function' ? () => (value as () => S)() : () => value });
  }

  /** Filled in by the database when an insert leaves it out: a value, `'now'` for timestamps, `'random'` for uuids. */
  dbDefault(value: S extends Date ? 'now' : Exclude<S, null>): Column<S, true, W> {
    return this.#with({ dbDefault: databaseDefault(this.settings, value) });
  }

  /** Not accepted from clients: set by the application. */
  readOnly(): Column<S, O, false> {
    return this.#with({ readOnly: true });
  }

  /** Never part of an output, masked wherever values are shown. */
  sensitive(): Column<S, O, W> {
    return this.#with({ sensitive: true });
  }

  /**
   * Stored encrypted, bound to its row and column: the database, its backups and its replicas contain no plaintext. Rows in code contain the ciphertext, `reveal()`
   * returns the plaintext. Sensitive: a resource shows it only where `fields` says who sees it. For text, JSON and bytes.
   */
  encrypted(options: EncryptedOptions<S> = {}): Column<EncryptedOf<S>, O, W> {
    const encrypted = encryptedSettings(options);
    return this.#with({ encrypted, sensitive: true, ...(encrypted.replaces === undefined ? {} : { readOnly: true }) });
  }

  /**
   * Says something about the person of the row. When the person is erased and the row stays, the value is replaced: by NULL, or by `erased`. `kit inspect` and the
   * admin site show which columns are personal.
   */
  personal(options: PersonalOptions<S> = {}): Column<S, O, W> {
    return this.#with({ personal: personalSettings(options) });
  }

  /**
   * The row belongs to the user whose id this is, or to the person of the row it refers to: it is in their export, and erased with them. On the key of a table of
   * users, a row is the person.
   */
  person(options: PersonOptions<S> = {}): Column<S, O, W> {
    return this.#with({ person: personSettings(options) });
  }

  /** The row belongs to the tenant whose id this is, or to the tenant of the row it refers to: it is in the tenant's export, and deleted with it. */
  tenant(options: TenantOptions = {}): Column<S, O, W> {
    return this.#with({ tenant: tenantSettings(options) });
  }

  /** Never on the wire: not accepted from clients, not part of any output. The value is not secret; for that see `sensitive`. */
  internal(): Column<S, O, false> {
    return this.#with({ internal: true, readOnly: true });
  }

  /**
   * Decides about access (`is_superuser`), or is managed by a module: not accepted from clients, forms, files or programs of generic CRUD. A
   * resource opens one such column by naming who may write it: `fields: { is_staff: writableBy(isSuperuser) }`.
   */
  guarded(): Column<S, O, false> {
    return this.#with({ guarded: true, readOnly: true });
  }

  /**
   * Refers to a row of another model by its key, without a constraint of the database: relations follow it, and generic CRUD accepts only rows that the
   * caller sees. What becomes of it when the other row is deleted is up to the application.
   */
  refersTo(target: () => ReferenceTarget): Column<S, O, W> {
    requireArguments('refersTo()', { target }, { target: aFunction });
    return this.#with({ reference: { target, onDelete: 'restrict', isConstrained: false } });
  }

  /** Describes the field in the OpenAPI document. */
  describe(description: string): Column<S, O, W> {
    return this.#with({ description });
  }

  /** Narrows the value's type, for brands. */
  $type<X extends S>(): Column<X, O, W> {
    return this as unknown as Column<X, O, W>;
  }

  #with<S2, O2 extends boolean, W2 extends boolean>(change: Partial<ColumnSettings>): Column<S2, O2, W2> {
    return new Column({ ...this.settings, ...change });
  }
}

/** The same column, and clients may send it: what a resource makes of a guarded column that it opens. */
export function opened({ settings }: AnyColumn): AnyColumn {
  return new Column({ ...settings, guarded: false, readOnly: false });
}

/** The columns of a guarded model. */
export type Guarded<C> = { readonly [K in keyof C]: C[K] extends Column<infer S, infer O, boolean> ? Column<S, O, false> : never };

export function guardedColumns<C extends Readonly<Record<string, AnyColumn>>>(columns: C): C {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.guarded()])) as unknown as C;
}

// oxlint-disable-next-line typescript/no-explicit-any -- any value type; unknown would make columns invariant
export type AnyColumn = Column<any, boolean, boolean>;

function databaseDefault(settings: ColumnSettings, value: unknown): DatabaseDefault {
  if (settings.kind === 'timestamp' && value === 'now') return { make: 'now' };
  if (settings.kind === 'uuid' && value === 'random') return { make: 'uuid' };
  if (settings.kind === 'json' || settings.kind === 'array') return { value: JSON.stringify(value) };
  if (typeof value === 'bigint') return { value: value.toString() };
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return { value };
  throw new Error(`A database default for a ${settings.kind} column is a plain value, 'now' or 'random'.`);
}

function column<S>(kind: ColumnKind, more: Partial<ColumnSettings> = {}): Column<S> {
  return new Column<S>({ kind, nullable: false, primaryKey: false, unique: false, readOnly: false, sensitive: false, ...more });
}

export interface TextOptions {
  readonly min?: number;
  readonly max?: number;
  /** A regular expression, as in JSON Schema. */
  readonly pattern?: string;
  /** A JSON Schema format: `email`, `uri`, … */
  readonly format?: string;
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}

interface RefOptions<S> {
  readonly onDelete?: OnDelete;
  /** The target's column; its primary key by default. */
  readonly column?: string;
  /** The value's kind when the target is given by name and its key is not a uuid. */
  readonly type?: Column<S, boolean, boolean>;
}

function jsonColumn<S extends Schema>(schema: S): Column<NonNullable<S['~standard']['types']>['output']>;
function jsonColumn<J = unknown>(schema?: Readonly<Record<string, unknown>>): Column<NoInfer<J>>;
function jsonColumn(schema: Schema | Readonly<Record<string, unknown>> = {}): Column<unknown> {
  return column('json', { schema });
}

const aNumber = rule('a number', (value) => typeof value === 'number' && !Number.isNaN(value));
const boundsRules: OptionRules<Bounds> = { min: aNumber, max: aNumber };
const textRules: OptionRules<TextOptions> = {
  min: wholeNumber(0),
  max: wholeNumber(1),
  pattern: sentenceRule<string>(patternFault),
  format: filledText,
};
const refRules: OptionRules<RefOptions<unknown>> = {
  onDelete: oneOf('restrict', 'cascade', 'set null'),
  column: filledText,
  type: instanceOf(Column, 'a column, such as t.int()'),
};

/** A function, because two models may refer to each other. */
const referenceTarget = rule(
  'a function that returns the model, t.ref(() => users), or the name of its table',
  (value) => typeof value === 'function' || (typeof value === 'string' && value !== ''),
);

function textSettings(options: number | TextOptions): TextOptions {
  return typeof options === 'number' ? { max: options } : readOptions('t.text()', options, textRules);
}

function patternFault(pattern: unknown): string | null {
  try {
    if (typeof pattern === 'string' && new RegExp(pattern, 'u').test('')) return null;
    return typeof pattern === 'string' ? null : 'use the text of a regular expression.';
  } catch (error) {
    return `${(error as Error).message}.`;
  }
}

/**
 * Column kinds. Property name = column name = JSON name.
 *
 * @example
 * ```ts
 * const orders = model('orders', {
 *   id: t.uuidv7().pk(),
 *   owner_id: t.uuid().readOnly(),
 *   total: t.decimal(12, 2),
 *   note: t.text(200).nullable(),
 *   ...timestamps(),
 * });
 * ```
 */
export const t = {
  /** A key made by the toolkit, sortable by creation time. */
  uuidv7: (): Column<string, true> => new Column({ ...column('uuid').settings, default: (clock) => uuidv7(clock) }),
  uuid: (): Column<string> => column('uuid'),
  text: (options: number | TextOptions = {}): Column<string> => column('text', textSettings(options)),
  /** 32 bits. */
  int: (bounds: Bounds = {}): Column<number> => column('int', readOptions('t.int()', bounds, boundsRules)),
  /** 64 bits: `bigint` in code, a string in JSON. */
  bigint: (): Column<bigint> => column('bigint'),
  /** Exact: a string with `scale` decimals in code and in JSON. */
  decimal: (precision: number, scale: number): Column<string> => column('decimal', { precision, scale }),
  float: (bounds: Bounds = {}): Column<number> => column('float', readOptions('t.float()', bounds, boundsRules)),
  bool: (): Column<boolean> => column('bool'),
  /** A `Date` with milliseconds. */
  timestamp: (): Column<Date> => column('timestamp'),
  /** A day without time: `2026-02-28`. */
  date: (): Column<string> => column('date'),
  /** Any JSON, checked by `schema` (a Standard Schema or a JSON Schema) when it comes from a client. */
  json: jsonColumn,
  bytes: (): Column<Uint8Array> => column('bytes'),
  enum: <const V extends readonly string[]>(values: V): Column<V[number]> => {
    requireArguments('t.enum()', { values }, { values: listOf(text) });
    return column('enum', { values });
  },
  array: <S>(of: Column<S, boolean, boolean>): Column<S[]> => {
    requireArguments('t.array()', { of }, { of: rule('a column, such as t.text()', (value) => value instanceof Column) });
    return column('array', { of: of.settings });
  },
  ref: <S = string>(target: string | (() => ReferenceTarget), options: RefOptions<S> = {}): Column<NoInfer<S>> => {
    requireArguments('t.ref()', { target }, { target: referenceTarget });
    return new Column({
      ...(readOptions('t.ref()', options, refRules as OptionRules<RefOptions<S>>).type ?? column<S>('uuid')).settings,
      reference: {
        target,
        onDelete: options.onDelete ?? 'restrict',
        ...(options.column === undefined ? {} : { column: options.column }),
      },
    });
  },
};

/** A reference's value is what its target's column holds; everything else stays as declared. */
export function resolveReference(settings: ColumnSettings): ColumnSettings {
  if (settings.reference === undefined || typeof settings.reference.target === 'string') return settings;
  const { kind, max, precision, scale, values } = targetOf(settings.reference).column.settings;
  return {
    ...settings,
    kind,
    ...(max === undefined ? {} : { max }),
    ...(precision === undefined ? {} : { precision }),
    ...(scale === undefined ? {} : { scale }),
    ...(values === undefined ? {} : { values }),
  };
}

function targetOf(reference: NonNullable<ColumnSettings['reference']>): { table: string; name: string; column: AnyColumn } {
  if (typeof reference.target === 'string') throw new TypeError('a reference by name has no declaration to look at');
  const target = reference.target();
  const [key, ...rest] = target.primaryKey;
  if (reference.column === undefined && rest.length > 0)
    throw new Error(`a reference to "${target.name}" must name one column: its key is composite`);
  const name = reference.column ?? key ?? '';
  const column = target.columns[name];
  if (column === undefined) throw new Error(`a reference points to "${target.name}.${name}", which does not exist`);
  return { table: target.name, name, column };
}

/** The part of a declaration that the database keeps: of an encrypted column, the text of its ciphertext. */
export function columnDefinition(declared: ColumnSettings): ColumnDefinition {
  return declared.encrypted === undefined ? valueDefinition(declared) : { kind: 'text', nullable: declared.nullable };
}

/** What values of code must be, encrypted or not. */
export function valueDefinition(declared: ColumnSettings): ColumnDefinition {
  const { reference } = declared;
  const { kind, nullable, max, precision, scale, values, of, dbDefault } = resolveReference(declared);
  return {
    kind,
    nullable,
    ...(kind === 'text' && max !== undefined ? { max } : {}),
    ...(precision === undefined ? {} : { precision }),
    ...(scale === undefined ? {} : { scale }),
    ...(values === undefined ? {} : { values: [...values] }),
    ...(of === undefined ? {} : { of: columnDefinition(of) }),
    ...(dbDefault === undefined ? {} : { dbDefault }),
    ...(reference === undefined || reference.isConstrained === false ? {} : { references: referenceOf(reference) }),
  };
}

function referenceOf(reference: NonNullable<ColumnSettings['reference']>): Reference {
  const { onDelete } = reference;
  if (typeof reference.target === 'string') return { table: reference.target, column: reference.column ?? 'id', onDelete };
  const { table, name } = targetOf(reference);
  return { table, column: name, onDelete };
}
