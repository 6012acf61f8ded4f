import type { AnyColumn } from '../declare/column.ts';
import type { Erasing } from '../declare/personal-column.ts';
import type { Model } from '../declare/model.ts';
import { isAcyclic, orderTables } from './order-tables.ts';
import type { SubjectKind, SubjectPath, SubjectTable } from './subject.ts';

export interface SubjectPlan {
  readonly kind: SubjectKind;
  /** Rows that refer to others come before those. */
  readonly tables: readonly SubjectTable[];
  /** What keeps a person or tenant from being erased, in sentences. */
  readonly faults: readonly string[];
}

/** Columns that say whose a row is and are declared elsewhere than in the model, by table: those of resources. */
export type DeclaredElsewhere = ReadonlyMap<string, string>;

interface Growing extends SubjectTable {
  readonly paths: SubjectPath[];
}

/**
 * Which tables have rows of a person or a tenant, and how they are found: from the models alone. A row that the database deletes with another one
 * (`onDelete: 'cascade'`) belongs to whom that one belongs to.
 */
export function subjectPlan(kind: SubjectKind, models: readonly Model[], elsewhere: DeclaredElsewhere = new Map()): SubjectPlan {
  const found = new Map<string, Growing>();
  const faults: string[] = [];
  const grow = (model: Model, path: SubjectPath, isRoot = false): void => {
    const known = found.get(model.name);
    if (known === undefined) found.set(model.name, { model, paths: [path], isRoot });
    else known.paths.push(path);
  };
  for (const model of models)
    for (const [name, column] of Object.entries(model.columns)) {
      const erase = erasingOf(kind, column) ?? (elsewhere.get(model.name) === name ? 'delete' : undefined);
      if (erase === undefined || targetOf(kind, column) !== undefined) continue;
      grow(model, { column: name, erase, through: null }, isKey(model, name));
    }
  // Tables further away are found by those that are known: as often as one was found.
  for (let size = -1; size !== count(found);) {
    size = count(found);
    for (const model of models)
      for (const [name, column] of Object.entries(model.columns)) {
        const target = through(kind, column, found.get(model.name));
        const table = target === undefined ? undefined : found.get(target.table);
        if (target === undefined || table === undefined || table.model === model) continue;
        if (found.get(model.name)?.paths.some((path) => path.column === name) === true || !isAcyclic(table, model)) continue;
        grow(model, { column: name, erase: target.erase ?? inherited(table), through: { table, column: target.column } });
      }
  }
  faults.push(...unreachable(kind, models, found));
  const { tables, faults: cycles } = orderTables([...found.values()]);
  return { kind, tables, faults: [...faults, ...cycles, ...refusals(models, found), ...unreplaceable(found)] };
}

function count(found: ReadonlyMap<string, Growing>): number {
  return [...found.values()].reduce((sum, { paths }) => sum + paths.length, 0);
}

function erasingOf(kind: SubjectKind, { settings }: AnyColumn): Erasing | undefined {
  if (kind === 'tenant') return settings.tenant?.erase;
  // Who wrote a row is not whom it is about.
  return settings.person?.erase ?? (settings.stamp !== undefined && settings.reference === undefined ? 'unlink' : undefined);
}

function isKey({ primaryKey }: Pick<Model, 'primaryKey'>, column: string): boolean {
  return primaryKey.length === 1 && primaryKey[0] === column;
}

/** The other table, where the column refers to a row that is not the person or tenant itself. */
function targetOf(kind: SubjectKind, { settings: { reference } }: AnyColumn): { table: string; column: string } | undefined {
  if (reference === undefined || typeof reference.target === 'string') return undefined;
  const target = reference.target();
  const column = reference.column ?? target.primaryKey[0] ?? '';
  const referred = target.columns[column];
  const isSubject = referred !== undefined && isKey(target, column) && erasingOf(kind, referred) !== undefined;
  return isSubject ? undefined : { table: target.name, column };
}

interface Through {
  readonly table: string;
  readonly column: string;
  readonly erase?: Erasing;
}

/** Where a column says that the row belongs to whom another row belongs to. */
function through(kind: SubjectKind, column: AnyColumn, known: Growing | undefined): Through | undefined {
  const { reference } = column.settings;
  if (reference === undefined || typeof reference.target === 'string') return undefined;
  const marked = erasingOf(kind, column);
  const target = targetOf(kind, column);
  if (marked !== undefined) return target === undefined ? undefined : { ...target, ...(marked === 'delete' ? {} : { erase: marked }) };
  if (reference.onDelete !== 'cascade' || reference.isConstrained === false) return undefined;
  const referred = reference.target();
  // The database deletes it with the other row; what the model says itself comes first.
  if (known?.paths.some(({ erase }) => erase !== 'unlink') === true && target !== undefined) return undefined;
  return { table: referred.name, column: reference.column ?? referred.primaryKey[0] ?? '' };
}

/** Rows below a row that stays, stay. */
function inherited({ paths }: SubjectTable): Erasing {
  const own = paths.filter(({ erase }) => erase !== 'unlink').map(({ erase }) => erase);
  return own.includes('delete') ? 'delete' : (own[0] ?? 'keep');
}

/** Columns that refer to a row which belongs to nobody. */
function unreachable(kind: SubjectKind, models: readonly Model[], found: ReadonlyMap<string, Growing>): string[] {
  return models.flatMap((model) =>
    Object.entries(model.columns).flatMap(([name, column]) => {
      const target = erasingOf(kind, column) === undefined ? undefined : targetOf(kind, column);
      if (target === undefined || found.has(target.table)) return [];
      return [`"${model.name}.${name}" says .${kind}() and refers to "${target.table}", whose rows belong to no ${kind}`];
    }),
  );
}

/** References that refuse the deletion of a row, from rows that stay. */
function refusals(models: readonly Model[], found: ReadonlyMap<string, SubjectTable>): string[] {
  return models.flatMap(({ name: table, columns }) =>
    Object.entries(columns).flatMap(([name, { settings }]) => {
      const { reference } = settings;
      if (reference === undefined || reference.onDelete !== 'restrict' || reference.isConstrained === false) return [];
      const target = typeof reference.target === 'string' ? reference.target : reference.target().name;
      const deleted = found.get(target)?.paths.some(({ erase }) => erase === 'delete') === true;
      // The row goes as well, or the column becomes NULL in it.
      const own =
        found
          .get(table)
          ?.paths.some(
            ({ column, erase }) =>
              erase === 'delete' ||
              (erase === 'unlink' && column === name) ||
              (erase === 'anonymise' && (column === name || settings.personal !== undefined)),
          ) === true;
      if (!deleted || own || (target === table && settings.nullable)) return [];
      return [`rows of "${table}" refer to rows of "${target}" with "${name}" and keep them from being deleted`];
    }),
  );
}

/** Columns of rows that stay, whose value cannot become NULL. */
function unreplaceable(found: ReadonlyMap<string, SubjectTable>): string[] {
  return [...found.values()].flatMap(({ model, paths }) => {
    const kept = new Set(
      paths
        .filter(({ erase, through: other }) => (erase === 'anonymise' || erase === 'unlink') && other === null)
        .map(({ column }) => column),
    );
    const isAnonymised = paths.some(({ erase }) => erase === 'anonymise');
    return Object.entries(model.columns).flatMap(([name, { settings }]) => {
      const isReplaced = kept.has(name) || (isAnonymised && settings.personal !== undefined);
      const { replace } = settings.personal ?? settings.person ?? {};
      return isReplaced && !settings.nullable && replace === undefined
        ? [`"${model.name}.${name}" is not nullable and its row stays: say what it becomes, { erased: … }`]
        : [];
    });
  });
}
