import { type AnyColumn, Column } from './column.ts';
import { type EncryptedSettings, searchColumnName } from './encrypted-column.ts';
import type { Columns } from './rows.ts';
import { suggestion } from './table-definition.ts';
import type { ModelOptions } from './table-from-columns.ts';

/** The columns of a declaration, each encrypted one that can be searched with the column of its search values after it. */
export function withSearchColumns<C extends Columns>(columns: C): C {
  const isMissing = (name: string, { settings }: AnyColumn) =>
    settings.encrypted?.search !== undefined && columns[searchColumnName(name)] === undefined;
  if (!Object.entries(columns).some(([name, column]) => isMissing(name, column))) return columns;
  return Object.fromEntries(
    Object.entries(columns).flatMap(([name, column]): [string, AnyColumn][] =>
      isMissing(name, column) ? [[name, column], searchColumn(name, column)] : [[name, column]],
    ),
  ) as unknown as C;
}

function searchColumn(name: string, { settings: { nullable } }: AnyColumn): [string, AnyColumn] {
  const roles = { primaryKey: false, unique: false, readOnly: true, internal: true, sensitive: true };
  return [searchColumnName(name), new Column({ kind: 'text', nullable, ...roles, searchOf: name })];
}

/** Keys that have one text in every form: in code, in JSON and in both databases. */
const KEY_KINDS = new Set(['uuid', 'text', 'int', 'bigint', 'enum', 'date']);
const PLAINTEXT_KINDS = new Set(['text', 'json', 'bytes']);

/** What is wrong with the encrypted columns of a declaration. */
export function encryptionFaults(columns: Columns, primaryKey: readonly string[], options: ModelOptions): string[] {
  const encrypted = Object.entries(columns).flatMap(([name, { settings }]) =>
    settings?.encrypted === undefined ? [] : [{ name, settings, encrypted: settings.encrypted }],
  );
  if (encrypted.length === 0) return [];
  const faults = primaryKey.flatMap((name) => keyFaults(name, columns[name]));
  const ids = encrypted.map(({ name, encrypted: { id = name } }) => id);
  for (const [index, { name, settings, encrypted: given }] of encrypted.entries()) {
    const { kind, primaryKey: isKey, unique, reference, dbDefault } = settings;
    const add = (problem: string) => void faults.push(`column "${name}": ${problem}`);
    if (!PLAINTEXT_KINDS.has(kind)) add(`a ${kind} column cannot be encrypted: use t.text(), t.json() or t.bytes()`);
    if (isKey || primaryKey.includes(name)) add('a primary key cannot be encrypted');
    if (reference !== undefined) add('a reference cannot be encrypted');
    if (dbDefault !== undefined) add('the database cannot encrypt a default: use .default()');
    if (ids.indexOf(ids[index] as string) !== index) add(`has the same encryption id as another column: "${ids[index]}"`);
    faults.push(...searchFaults(name, kind, given, columns), ...replacedFaults(name, settings, columns));
    const isIndexed = (options.indexes ?? []).some((each) => each.columns.some((column) => column.replace(/^-/, '') === name));
    if ((unique || isIndexed) && given.search === undefined)
      add("an index needs search values: every ciphertext is different. Use .encrypted({ search: 'equality' })");
    if ((options.indexes ?? []).some((each) => each.columns.includes(`-${name}`))) add('an encrypted column has no order for an index');
    const mentions = [...Object.values(options.checks ?? {}), ...(options.indexes ?? []).flatMap(({ where }) => where ?? [])];
    if (mentions.some((sql) => new RegExp(`\\b${name}\\b(?! is (not )?null)`, 'i').test(sql)))
      add('a condition of the database cannot read an encrypted value, only whether it is null');
    if ((options.fullText ?? []).some((each) => each.columns.includes(name))) add('full-text search cannot read an encrypted value');
  }
  return faults;
}

function keyFaults(name: string, column: AnyColumn | undefined): string[] {
  if (column === undefined) return [];
  const { kind, dbDefault, reference } = column.settings;
  // Its kind is that of the column referred to, which may be declared later.
  if (reference !== undefined) return [];
  if (dbDefault !== undefined)
    return [`the key "${name}" is made by the database, and encrypted values are bound to it: use a key the toolkit makes, t.uuidv7()`];
  return KEY_KINDS.has(kind) ? [] : [`encrypted values cannot be bound to the key "${name}": it is a ${kind}`];
}

/** The plaintext column that an encrypted one replaces. */
function replacedFaults(name: string, { kind, nullable, encrypted }: AnyColumn['settings'], columns: Columns): string[] {
  const { replaces } = encrypted ?? {};
  if (replaces === undefined) return [];
  const known = Object.keys(columns);
  const plain = columns[replaces]?.settings;
  const at = `column "${name}":`;
  if (plain === undefined) return [`${at} replaces refers to an unknown column "${replaces}"${suggestion(replaces, known)}`];
  const faults: string[] = [];
  if (plain.encrypted !== undefined) faults.push(`${at} "${replaces}", which it replaces, is encrypted itself`);
  if (plain.kind !== kind) faults.push(`${at} is a ${kind}, and "${replaces}", which it replaces, is a ${plain.kind}`);
  if (known.indexOf(replaces) > known.indexOf(name)) faults.push(`${at} declare it after "${replaces}", which it replaces`);
  if (!nullable) faults.push(`${at} make it .nullable() until every row is encrypted`);
  if (!plain.nullable) faults.push(`${at} make "${replaces}" .nullable(), so that the next release can leave it out`);
  if (plain.dbDefault !== undefined)
    faults.push(`${at} the database fills "${replaces}", and cannot encrypt what it fills in: use .default() there`);
  return faults;
}

function searchFaults(name: string, kind: string, { search, tenant, normalize }: EncryptedSettings, columns: Columns): string[] {
  const at = `column "${name}":`;
  if (search === undefined)
    return tenant === undefined && normalize === undefined ? [] : [`${at} tenant and normalize are for search: add search: 'equality'`];
  const faults: string[] = [];
  const known = Object.keys(columns);
  if (kind === 'json') faults.push(`${at} JSON has no equality, so it cannot be searched`);
  const taken = columns[searchColumnName(name)];
  if (taken !== undefined && taken.settings.searchOf !== name)
    faults.push(`${at} its search values need the column name "${searchColumnName(name)}"`);
  if (tenant !== undefined && columns[tenant] === undefined)
    faults.push(`${at} tenant refers to an unknown column "${tenant}"${suggestion(tenant, known)}`);
  else if (tenant !== undefined && columns[tenant]?.settings.encrypted !== undefined)
    faults.push(`${at} the tenant column "${tenant}" is encrypted itself`);
  return faults;
}
