import { createHash } from 'node:crypto';

/** PostgreSQL truncates longer names silently. */
const NAME_MAX = 63;
const FORM = /^[a-z][a-z0-9_]*$/;

/** Hidden columns of either database, and names that are traps in JavaScript objects. */
const RESERVED_COLUMNS = new Set(['rowid', 'oid', 'tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid', 'constructor', 'prototype']);

/** Why `name` cannot be a table, or undefined when it can. */
export function tableNameFault(name: string): string | undefined {
  if (name.startsWith('sqlite_') || name.startsWith('pg_')) return 'names starting with sqlite_ or pg_ belong to the database';
  return nameFault(name);
}

export function columnNameFault(name: string): string | undefined {
  return RESERVED_COLUMNS.has(name) ? 'the name is reserved' : nameFault(name);
}

function nameFault(name: string): string | undefined {
  if (!FORM.test(name)) return 'names are snake_case: a small letter, then small letters, digits and underscores';
  return name.length > NAME_MAX ? `names have at most ${NAME_MAX} characters` : undefined;
}

/** A name made of parts, shortened with a hash when PostgreSQL would cut it. */
export function derivedName(...parts: readonly string[]): string {
  const name = parts.join('_');
  if (name.length <= NAME_MAX) return name;
  return `${name.slice(0, NAME_MAX - 9)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
