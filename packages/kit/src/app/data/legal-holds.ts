import type { Model } from '../../db/declare/model.ts';
import type { Db } from '../../db/engine/db.ts';
import { listLegalHolds } from '../../db/subjects/erasure-state.ts';
import { exceptHeldSql, tablesOfModule } from '../../db/subjects/held-rows.ts';
import type { Subject } from '../../db/subjects/subject.ts';
import { appsOfDatabase } from './apps-of-database.ts';

/** The people and tenants whose rows must stay as they are. They are in the default database of the app, whichever one this is. */
export async function heldSubjects(db: Db): Promise<readonly Subject[]> {
  const app = appsOfDatabase(db.database)[0]?.db ?? db.database;
  const database = app === db.database ? db : app;
  const [found] = await database.query<{ found: unknown }>(
    database.dialect === 'sqlite'
      ? `select count(*) as found from sqlite_master where type = 'table' and name = 'kit_legal_holds'`
      : `select to_regclass('kit_legal_holds') is not null as found`,
  );
  // A program may use a module's tables alone.
  if (!found?.found) return [];
  return (await listLegalHolds(database)).map(({ kind, subject_id: id }) => ({ kind, id }));
}

/** The condition by which a module's retention leaves out the rows of `holds`; empty where there is none. */
export function exceptHeld(holds: readonly Subject[], model: Model, alias: string, values: unknown[]): string {
  return exceptHeldSql(holds, tablesOfModule(model), model, alias, values);
}
