import type { Db } from '../engine/db.ts';
import { fullTextTriggers } from '../declare/full-text.ts';
import { quoteName as q } from '../declare/names.ts';
import { type Rebuild, rebuildStatements } from './sqlite-steps.ts';

/**
 * Rebuilds a table inside the migration's transaction (foreign keys are off): create, copy, count, drop, rename, and
 * restore the indexes and triggers of the old table, those made by hand included.
 */
export async function rebuildTable(tx: Db, rebuild: Rebuild): Promise<void> {
  const { before, after } = rebuild;
  const steps = rebuildStatements(rebuild);
  const attached = await tx.query<{ name: string; sql: string }>(
    `select name, sql from sqlite_master where tbl_name = $1 and type in ('index', 'trigger') and sql is not null`,
    [before.name],
  );
  const declared = new Set([
    ...before.indexes.map((index) => index.name),
    ...(before.fullText ?? []).flatMap((each) => Object.keys(fullTextTriggers(before, each))),
  ]);
  await tx.query(steps.create);
  await tx.query(steps.fill);
  const [counts] = await tx.query<{ old_rows: number; new_rows: number }>(
    `select (select count(*) from ${q(before.name)}) as old_rows, (select count(*) from ${q(steps.temporary)}) as new_rows`,
  );
  if (counts === undefined || counts.old_rows !== counts.new_rows) {
    throw new Error(`rebuilding "${before.name}" copied ${counts?.new_rows} of ${counts?.old_rows} rows`);
  }
  await tx.query(steps.drop);
  // If the rename fails, the end of the transaction switches this off again.
  await tx.query('pragma legacy_alter_table = on');
  await tx.query(steps.rename);
  await tx.query('pragma legacy_alter_table = off');
  for (const statement of [...steps.indexes, ...steps.fullText]) await tx.query(statement);
  for (const { name, sql } of attached) if (!declared.has(name) && !after.indexes.some((index) => index.name === name)) await tx.query(sql);
}

/** Every reference must find its row, or nothing of the migration stays. */
export async function checkForeignKeys(tx: Db): Promise<void> {
  const broken = await tx.query<{ table: string; parent: string }>('pragma foreign_key_check');
  if (broken.length === 0) return;
  const pairs = [...new Set(broken.map(({ table, parent }) => `${table} → ${parent}`))];
  throw new Error(`it would leave ${broken.length} rows that refer to rows or tables that are gone (${pairs.join(', ')})`);
}
