import type { AdminAction, AdminContext } from '../../app/admin/declaration.ts';
import { adminCount } from '../../app/admin/each.ts';
import type { AdminPreview, AdminResult } from '../../app/admin/shapes.ts';
import { undone } from '../../db/engine/undone.ts';
import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { Db } from '../../db/engine/db.ts';

/**
 * Runs the action in transactions that are rolled back: what it reports is what it would do. Effects of one record are there for the next, as
 * when it runs; what was to happen after the commit does not.
 */
function rolledBack(context: AdminContext, run: (context: AdminContext) => Promise<AdminResult>): Promise<AdminResult> {
  const entries = Object.entries(context.databases);
  const distinct = [...new Set(entries.map(([, database]) => database))];
  const inside = (open: readonly Db[]): Promise<AdminResult> => {
    const next = distinct[open.length];
    if (next !== undefined) return undone(next, (tx) => inside([...open, tx]));
    const of = (database: Db): Db => open[distinct.indexOf(database)] ?? database;
    const databases = Object.fromEntries(entries.map(([name, database]) => [name, of(database)]));
    const savepoint = open.reduce<NonNullable<AdminContext['savepoint']>>(
      (inner, tx) => (work) => tx.transaction(() => inner(work), CONFLICT_RETRIES),
      (work) => work(),
    );
    return run({ ...context, db: of(context.db), databases, savepoint });
  };
  return inside([]);
}

type Previewed = readonly [action: AdminAction, context: AdminContext, ids: readonly string[], fields: Readonly<Record<string, unknown>>];

/** What the action says itself, what its dry run says, or both. */
export async function previewOf(...[action, context, ids, fields]: Previewed): Promise<AdminPreview> {
  const own = (await action.preview?.(context, ids, fields)) ?? null;
  if (action.dryRun === undefined && own !== null) return own;
  const tried = await dryRun(action, context, ids, fields);
  if (own === null) return tried;
  const tone = TONES.find((each) => each === own.tone || each === tried.tone) ?? tried.tone;
  return { ...tried, tone, note: own.message };
}

/** The worse first. */
const TONES: readonly AdminPreview['tone'][] = ['bad', 'warning', 'info', 'good', 'neutral'];

/** What the action would do to these records: how many, and why not the others. */
async function dryRun(
  action: AdminAction,
  context: AdminContext,
  ids: readonly string[],
  fields: Readonly<Record<string, unknown>>,
): Promise<AdminPreview> {
  const { failures = [] } = await rolledBack(context, (inside) => action.run(inside, ids, fields));
  const able = ids.length - failures.length;
  const will = `${adminCount(able, ['record', 'records'])} will be ${action.dryRun ?? 'changed'}`;
  const tone = failures.length === 0 ? 'good' : able === 0 ? 'bad' : 'warning';
  return { tone, message: failures.length === 0 ? `${will}.` : `${will}, ${failures.length} cannot.`, able, failures };
}
