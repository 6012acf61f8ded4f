import { CONFLICT_RETRIES } from '../../db/engine/conflict-retries.ts';
import type { AdminContext, AttachedFile } from '../../app/admin/declaration.ts';
import { scopeColumn } from '../../crud/declare/scope-rule.ts';
import type { Db } from '../../db/engine/db.ts';
import { find, type Key } from '../../db/rows/repository.ts';
import type { Plan } from '../screen-plan.ts';
import type { ScreenRow as Row } from '../screen-words.ts';

/** Runs a write, and `attachFiles` in the same transaction when the form sent files. */
export async function writeWithFiles(
  db: Db,
  plan: Plan,
  context: AdminContext,
  fields: Row,
  write: (transaction: { readonly tx?: Db }) => Promise<Row>,
): Promise<Row> {
  if (filesIn(plan, context, fields).length === 0) return write({});
  return db.transaction(async (tx) => {
    const row = await write({ tx });
    await attachFiles(tx, plan, context, fields, row);
    return row;
  }, CONFLICT_RETRIES);
}

/** The files that a form sent are given to the owner of the row that refers to them. */
export async function attachFiles(tx: Db, plan: Plan, context: AdminContext, fields: Row, row: Row): Promise<void> {
  const names = filesIn(plan, context, fields);
  if (names.length === 0) return;
  const owner = await ownerOf(tx, plan, row);
  for (const name of names) await context.uploads?.attach(tx, context, { id: String(fields[name]), location: ['body', name], owner });
}

function filesIn({ shown }: Plan, { uploads }: AdminContext, fields: Row): string[] {
  if (uploads === undefined) return [];
  return shown.flatMap(({ name, settings: { reference } }) => {
    const target = typeof reference?.target === 'function' ? reference.target().name : reference?.target;
    return target === uploads.table && typeof fields[name] === 'string' ? [name] : [];
  });
}

async function ownerOf(tx: Db, plan: Plan, row: Row): Promise<AttachedFile['owner']> {
  const { owner, tenant } = plan.resource.options;
  const column = scopeColumn(owner);
  const tenantColumn = scopeColumn(tenant);
  if (column === undefined) return null;
  const stored: Row | undefined = await find(tx, plan.model, row[plan.keyName] as Key);
  // Keys are texts or numbers.
  const value = (name: string) => stored?.[name] as string | number | bigint | null | undefined;
  const id = value(column) ?? null;
  if (id === null) return null;
  return { id: String(id), tenantKey: tenantColumn === undefined ? null : String(value(tenantColumn) ?? '') };
}
