/** Which rule of the database a statement broke. */
export interface ConstraintViolation {
  readonly kind: 'unique' | 'foreign_key' | 'not_null' | 'check';
  readonly table?: string;
  /** The columns of the rule, where the database says them. */
  readonly columns?: readonly string[];
  /** The rule's name, where the database says it. */
  readonly constraint?: string;
}

const POSTGRES_KINDS: Readonly<Record<string, ConstraintViolation['kind']>> = {
  23505: 'unique',
  23503: 'foreign_key',
  // A row that others refer to under RESTRICT, from PostgreSQL 18 on.
  23001: 'foreign_key',
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

/** Reads a driver's error; undefined when it is something else. Values of the row are never part of the answer. */
export function constraintViolation(error: unknown): ConstraintViolation | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number' && SQLITE_KINDS[errcode] !== undefined)
    return fromSqlite(SQLITE_KINDS[errcode], (error as unknown as Error).message);
  // RESTRICT is checked by a trigger of SQLite's own.
  if (errcode === 1811 && (error as unknown as Error).message.includes('FOREIGN KEY')) return { kind: 'foreign_key' };
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
  const { table, constraint, column, detail } = error as Record<string, string | undefined>;
  const columns = column === undefined ? /^Key \(([^)]*)\)=/.exec(detail ?? '')?.[1]?.split(', ') : [column];
  return {
    kind,
    ...(table === undefined ? {} : { table }),
    ...(constraint === undefined ? {} : { constraint }),
    ...(columns === undefined ? {} : { columns: columns.map((name) => name.replaceAll('"', '')) }),
  };
}

/** `if (isUniqueViolation(error, 'email')) throw conflict(…)`; without a column, any unique rule. */
export function isUniqueViolation(error: unknown, column?: string): boolean {
  const violation = constraintViolation(error);
  return violation?.kind === 'unique' && (column === undefined || violation.columns?.includes(column) === true);
}
