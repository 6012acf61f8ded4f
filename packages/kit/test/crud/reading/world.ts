import { type Combination, isGranted } from './combination.ts';

export interface Area {
  readonly id: string;
  readonly org: string;
  readonly name: string;
  readonly code: string | null;
  readonly terms: number | null;
  readonly deleted_at?: Date | null;
}
export interface Row {
  readonly id: string;
  readonly org: string;
  readonly owner_id: string;
  readonly area_id: string | null;
  readonly slug: string;
  readonly title: string;
  readonly code: string | null;
  readonly size: number | null;
  readonly price: string | null;
  readonly flag: boolean;
  readonly status: 'open' | 'paid' | 'void';
  readonly at: Date | null;
  readonly note: string | null;
  readonly margin: string | null;
  readonly deleted_at?: Date | null;
}
export interface Part {
  readonly id: string;
  readonly row_id: string;
  readonly sku: string;
  readonly amount: number;
  readonly cancelled: boolean;
  readonly deleted_at?: Date | null;
}
/** The raw rows of one combination, and who was granted what. */
export interface World {
  readonly areas: readonly Area[];
  readonly rows: readonly Row[];
  readonly parts: readonly Part[];
  /** Subjects by the key of the row. */
  readonly granted: ReadonlyMap<string, readonly Subject[]>;
  /** Subjects by the key of the area. */
  readonly grantedAreas: ReadonlyMap<string, readonly Subject[]>;
}
/** `team` is the group that bob is in. */
export type Subject = 'ann' | 'team' | 'authenticated' | 'public';

export interface Person {
  readonly id: string;
  readonly username: string;
  readonly is_staff: boolean;
}
/** `ann`, `bob` and the staff member `sue` are of the tenant `north`, `cid` is of `south`. */
export const NAMES = ['ann', 'bob', 'sue', 'cid'] as const;
export type Name = (typeof NAMES)[number];
export const tenantOf = (name: string): string => (name === 'cid' ? 'south' : 'north');

const id = (group: number, index: number) => `01890000-0000-7000-8${String(group).padStart(3, '0')}-${String(index).padStart(12, '0')}`;
const pick = <V>(values: readonly V[], index: number): V => values[index % values.length] as V;
const ROWS = 24;
const when = new Date(Date.UTC(2026, 0, 1));

export function worldOf(combination: Combination, people: ReadonlyMap<string, Person>): World {
  const isSoft = combination.deletion === 'soft';
  const deleted = (isDeleted: boolean) => (isSoft ? { deleted_at: isDeleted ? when : null } : {});
  const areas: Area[] = [
    { id: id(1, 0), org: 'north', name: 'Acre', code: 'X1', terms: 30, ...deleted(false) },
    { id: id(1, 1), org: 'south', name: 'Acorn', code: 'X2', terms: null, ...deleted(false) },
    { id: id(1, 2), org: 'north', name: 'Acid', code: null, terms: 10, ...deleted(true) },
    { id: id(1, 3), org: 'north', name: 'Basin', code: 'X1', terms: 0, ...deleted(false) },
  ];
  const rows = Array.from({ length: ROWS }, (_, index): Row => {
    const owner = pick(['ann', 'bob', 'cid', 'ann', 'sue', 'bob', 'ann'] as const, index);
    return {
      id: id(2, index),
      org: index === 8 ? 'south' : index === 9 ? 'north' : tenantOf(owner),
      owner_id: (people.get(owner) as Person).id,
      // Most rows are below the first area, so that a list below a parent has several pages.
      area_id: combination.parent === 'no' && index % 6 === 5 ? null : pick(areas, index % 3 === 0 ? (index / 3) % 4 : 0).id,
      slug: `s${String((index * 7) % ROWS).padStart(2, '0')}`,
      title: pick(['alpha', 'Beta', 'beta gamma', 'Ähre', 'zeta 100%', 'alpha beta', '=1+1'], index * 3),
      code: pick(['X1', 'X2', null, 'X3'], index),
      size: pick([5, 1, null, 3, 5], index),
      price: pick(['9.50', '10.00', null, '-1.25', '100.00', '9.50'], index),
      flag: index % 2 === 0,
      status: pick(['open', 'paid', 'void', 'open'], index),
      at: index % 4 === 1 ? null : new Date(Date.UTC(2026, 0, 1 + ((index * 5) % 9))),
      note: index % 5 === 2 ? null : `note ${index}`,
      margin: pick(['1.00', '12.50', null, '2.00', '5.00'], index * 2),
      ...deleted(index % 11 === 7),
    };
  });
  const parts = rows.flatMap((row, index) =>
    Array.from({ length: index % 5 }, (_, at): Part => ({
      id: id(3, index * 10 + at),
      row_id: row.id,
      sku: `p${at}`,
      amount: (at * 3 + index) % 7,
      cancelled: at === 1,
      ...deleted(at === 3),
    })),
  );
  const granted = new Map<string, readonly Subject[]>();
  if (isGranted(combination))
    for (const [index, row] of rows.entries()) {
      const subjects: Subject[] = [];
      // A user of another tenant is no subject of the row.
      // What areas give must show.
      if (combination.scope === 'inherited' && index % 2 === 0) continue;
      if (index % 3 !== 1 && (combination.tenant === 'no' || row.org === 'north')) subjects.push('ann');
      if (index % 4 !== 2) subjects.push('team');
      if (index % 7 === 5) subjects.push('authenticated');
      if (index % 8 === 6) subjects.push('public');
      granted.set(row.id, subjects);
    }
  const grantedAreas = new Map<string, readonly Subject[]>();
  if (combination.scope === 'inherited')
    for (const [index, subjects] of [['team'], ['authenticated'], ['ann'], ['ann', 'public']].entries())
      grantedAreas.set(areas[index]!.id, subjects as Subject[]);
  return { areas, rows, parts, granted, grantedAreas };
}
