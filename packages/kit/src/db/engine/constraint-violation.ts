/** Which rule of the database a statement broke. */
export interface ConstraintViolation {
  /** `foreign_key`: a value refers to no row. `restrict`: a row cannot go, because others refer to it. */
  readonly kind: 'unique' | 'foreign_key' | 'restrict' | 'not_null' | 'check';
  readonly table?: string;
  /** The columns of the rule, where the database says them. */
  readonly columns?: readonly string[];
  /** The rule's name, where the database says it. */
  readonly constraint?: string;
}

const POSTGRES_KINDS: Readonly<Record<string, ConstraintViolation['kind']>> = {
  23505: 'unique',
  23503: 'foreign_key',
  // From PostgreSQL 18 on; before, RESTRICT breaks as 23503 does.
  23001: 'restrict',
  23502: 'not_null',
  23514: 'check',
};
/** Extended result codes of SQLITE_CONSTRAINT; a primary key is a unique rule too. */
const SQLITE_KINDS: Readonly<Record<number, ConstraintViolation['kind']>> = {
  2067: 'unique',
  1555: 'unique',
  787: 'foreign_key',
  1299: 'not_null',
  275: 'check',
};

/** What is known of an error beyond what the database said: the repository knows the model. */
const described = new WeakMap<object, ConstraintViolation>();

export function describeViolation(error: object, violation: ConstraintViolation): void {
  described.set(error, violation);
}

/** Reads a driver's error; undefined when it is something else. Values of the row are never part of the result. */
export function constraintViolation(error: unknown): ConstraintViolation | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const known = described.get(error);
  if (known !== undefined) return known;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number' && SQLITE_KINDS[errcode] !== undefined)
    return fromSqlite(SQLITE_KINDS[errcode], (error as unknown as Error).message);
  // RESTRICT is checked by a trigger of SQLite's own.
  if (errcode === 1811 && (error as unknown as Error).message.includes('FOREIGN KEY')) return { kind: 'restrict' };
  if (typeof code === 'string' && POSTGRES_KINDS[code] !== undefined) return fromPostgres(POSTGRES_KINDS[code], error);
  return undefined;
}

function fromSqlite(kind: ConstraintViolation['kind'], message: string): ConstraintViolation {
  const rule = /constraint failed: (.*)$/.exec(message)?.[1] ?? '';
  if (kind === 'check') return { kind, constraint: rule };
  const index = /^index '(.*)'$/.exec(rule)?.[1];
  if (index !== undefined) return { kind, constraint: index };
  const places = rule.split(', ').map((place) => place.split('.'));
  const [table] = places[0] ?? [];
  if (table === undefined || places.some((place) => place.length !== 2)) return { kind };
  return { kind, table, columns: places.map(([, column]) => column ?? '') };
}

function fromPostgres(kind: ConstraintViolation['kind'], error: object): ConstraintViolation {
  const { table, constraint, column, detail = '' } = error as Record<string, string | undefined>;
  if (kind === 'restrict' || (kind === 'foreign_key' && isStillReferenced(detail, table)))
    return { kind: 'restrict', ...(constraint === undefined ? {} : { constraint }) };
  const columns = column === undefined ? /\(([^)]*)\)=\(/.exec(detail)?.[1]?.split(', ') : [column];
  const names = columns?.map((name) => name.replaceAll('"', ''));
  return {
    kind,
    ...(table === undefined ? {} : { table }),
    ...(constraint === undefined ? {} : { constraint }),
    // An index on an expression has no columns to name.
    ...(names?.every((name) => /^[a-z_][a-z0-9_]*$/i.test(name)) === true ? { columns: names } : {}),
  };
}

/** PostgreSQL names the table that refers in the detail, in whatever language; a missing row is said of the table referred to. */
function isStillReferenced(detail: string, table: string | undefined): boolean {
  if (detail.includes('is still referenced')) return true;
  if (detail.includes('is not present') || table === undefined) return false;
  return detail.slice(detail.lastIndexOf(')')).includes(table);
}

/** `if (isUniqueViolation(error, 'email')) throw conflict(…)`; without a column, any unique rule. */
export function isUniqueViolation(error: unknown, column?: string): boolean {
  const violation = constraintViolation(error);
  return violation?.kind === 'unique' && (column === undefined || violation.columns?.includes(column) === true);
}
