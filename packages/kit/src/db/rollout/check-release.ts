import { columnType } from '../sql/ddl.ts';
import type { ColumnDefinition, TableDefinition } from '../declare/table-definition.ts';
import { type MigrationModule, planMigrations } from '../migrations/plan.ts';

/** What the code of a version reads and writes: the tables of its models, as `kit migrate schema` prints them. */
export interface ReleaseSchema {
  readonly format: 1;
  readonly tables: Readonly<Record<string, TableDefinition>>;
}

export interface ReleaseReport {
  /** Statements of the version before fail while both run. */
  readonly breaks: readonly string[];
  /** Statements of the version before may fail, by the rows that they write. */
  readonly warnings: readonly string[];
}

export function releaseSchema(modules: readonly MigrationModule[]): ReleaseSchema {
  const tables = modules.flatMap(({ models = [] }) => models.map(({ table }) => [table.name, table] as const));
  return { format: 1, tables: Object.fromEntries(tables.toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

/** Null when the text is not what {@link releaseSchema} gave. */
export function parseReleaseSchema(text: string): ReleaseSchema | null {
  try {
    const found = JSON.parse(text) as Partial<ReleaseSchema> | null;
    return found?.format === 1 && typeof found.tables === 'object' ? (found as ReleaseSchema) : null;
  } catch {
    return null;
  }
}

/** What the version before can no longer do once the migrations of these modules are applied. Needs no database. */
export function checkRelease(before: ReleaseSchema, modules: readonly MigrationModule[]): ReleaseReport {
  const { end } = planMigrations(modules);
  const breaks: string[] = [];
  const warnings: string[] = [];
  for (const table of Object.values(before.tables)) {
    const after = end.get(table.name);
    if (after === undefined) {
      breaks.push(`Table "${table.name}" is dropped or renamed, and the version before uses it. ${LATER('the model')}`);
      continue;
    }
    for (const [name, column] of Object.entries(table.columns)) {
      const found = Object.hasOwn(after.columns, name) ? after.columns[name] : undefined;
      if (found === undefined)
        breaks.push(`Column "${table.name}.${name}" is dropped or renamed, and the version before reads it. ${LATER('the column')}`);
      else compareColumn(`Column "${table.name}.${name}"`, column, found, breaks, warnings);
    }
    for (const [name, { nullable, dbDefault }] of Object.entries(after.columns))
      if (!Object.hasOwn(table.columns, name) && !nullable && dbDefault === undefined)
        breaks.push(
          `Column "${table.name}.${name}" is new and required, and the version before inserts rows without it. Add it nullable or with a default, fill it with a back-fill, and require it in the next release.`,
        );
    warnings.push(...newRules(table, after));
  }
  return { breaks, warnings };
}

const LATER = (what: string): string => `Remove ${what} from the code in this release, and drop it in the next one.`;

function compareColumn(place: string, before: ColumnDefinition, after: ColumnDefinition, breaks: string[], warnings: string[]): void {
  const [was, is] = [columnType(before, 'postgres'), columnType(after, 'postgres')];
  if (before.kind !== after.kind || (was !== is && !isWider(before, after)))
    breaks.push(`${place} changes from ${was} to ${is}, and the version before reads and writes ${was}.`);
  const removed = (before.values ?? []).filter((value) => after.values?.includes(value) === false);
  if (removed.length > 0)
    breaks.push(`${place} no longer accepts ${removed.map((each) => `"${each}"`).join(', ')}, which the version before writes.`);
  if (before.nullable && !after.nullable)
    warnings.push(`${place} requires a value now: the version before must set it in every insert and must not set it to null.`);
  if (!before.nullable && after.nullable) warnings.push(`${place} may be null now, and the version before expects a value.`);
  if (before.dbDefault !== undefined && after.dbDefault === undefined && !after.nullable)
    breaks.push(`${place} has no default any more, and the version before inserts rows without it.`);
  const added = (after.values ?? []).filter((value) => before.values?.includes(value) === false);
  if (added.length > 0)
    warnings.push(`${place} can be ${added.map((each) => `"${each}"`).join(', ')} now, which the version before does not know.`);
}

/** Longer texts and numbers with more digits before the point contain every value of before. */
function isWider(before: ColumnDefinition, after: ColumnDefinition): boolean {
  if (before.kind === 'text') return after.max === undefined || (before.max !== undefined && after.max >= before.max);
  if (before.kind !== 'decimal') return false;
  const [scale, wider] = [before.scale ?? 0, after.scale ?? 0];
  return wider === scale && (after.precision ?? 0) >= (before.precision ?? 0);
}

function newRules(before: TableDefinition, after: TableDefinition): string[] {
  const indexes = after.indexes.filter(({ name, unique }) => unique && !before.indexes.some((each) => each.name === name && each.unique));
  const checks = Object.keys(after.checks).filter((name) => !Object.hasOwn(before.checks, name));
  return [
    ...indexes.map(({ name }) => `Unique index "${name}" of "${after.name}" is new: the version before may write rows that it rejects.`),
    ...checks.map((name) => `Check "${name}" of "${after.name}" is new: the version before may write rows that it rejects.`),
  ];
}
