import type { App } from '../../app/declare/module.ts';
import type { BeforeErase } from '../../db/subjects/erase-rows.ts';
import { retainBatch, type RetainedTable } from '../../db/subjects/retention.ts';
import { heldTables } from './held-tables.ts';
import { aliasesOf } from './subject-plans.ts';
import { tellErased } from './tell-erased.ts';

/** The tables of the app with a retention. Needs open databases. */
export function retainedTables(app: App): RetainedTable[] {
  return aliasesOf(app).flatMap((using) => {
    const database = app.databases[using];
    if (database === undefined) return [];
    const tables = heldTables(app, using);
    return tables.models.flatMap((model) =>
      model.retention === undefined ? [] : [{ database, model, retention: model.retention, tables }],
    );
  });
}

/** A batch of one table; see `retainBatch`. Files go with their rows. */
export function retainRows(app: App, table: RetainedTable, options: { readonly now?: boolean } = {}): Promise<number | null> {
  const beforeErase: BeforeErase = async (tx, model, rows, erasing) => {
    for (const module of app.modules) await module.beforeErase?.(tx, model, rows, erasing);
  };
  return retainBatch(table, { database: app.db, beforeErase, afterErase: tellErased(app), ...options });
}
