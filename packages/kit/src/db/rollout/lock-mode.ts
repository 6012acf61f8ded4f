/** Locks of tables on PostgreSQL that migrations take, the weakest first. */
export type LockMode = 'SHARE UPDATE EXCLUSIVE' | 'SHARE' | 'SHARE ROW EXCLUSIVE' | 'ACCESS EXCLUSIVE';

/** What waits while a lock is there. */
export type Waits = 'nothing' | 'writes' | 'reads and writes';

const WAITS: Readonly<Record<LockMode | 'writer', Waits>> = {
  'SHARE UPDATE EXCLUSIVE': 'nothing',
  SHARE: 'writes',
  'SHARE ROW EXCLUSIVE': 'writes',
  'ACCESS EXCLUSIVE': 'reads and writes',
  writer: 'writes',
};

const ORDER = Object.keys(WAITS) as readonly (LockMode | 'writer')[];

export function waitsFor(lock: LockMode | 'writer'): Waits {
  return WAITS[lock];
}

export function strongest<L extends LockMode | 'writer'>(a: L, b: L): L {
  return ORDER.indexOf(a) >= ORDER.indexOf(b) ? a : b;
}
