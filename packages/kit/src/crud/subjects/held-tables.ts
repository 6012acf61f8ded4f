import { heldSubjects } from '../../app/data/legal-holds.ts';
import { appsOfDatabase } from '../../app/data/apps-of-database.ts';
import { modulesIn } from '../../app/data/migration-modules.ts';
import type { App } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import { quoteName as q } from '../../db/declare/names.ts';
import type { Db } from '../../db/engine/db.ts';
import { heldSql, type HeldTables, whoseIn } from '../../db/subjects/held-rows.ts';
import { statementsOf } from '../../db/sql/model-statements.ts';
import type { Held } from '../write/purge.ts';
import { subjectPlans } from './subject-plans.ts';

/** The tables in one database of the app, and whose their rows are. */
export function heldTables(app: App, using: string): HeldTables {
  const [people, tenants] = (['person', 'tenant'] as const).map(
    (kind) => subjectPlans(app, kind).find((each) => each.using === using)?.plan.tables ?? [],
  );
  return {
    models: modulesIn(app, using).flatMap((module) => module.models ?? []),
    whose: (model) => whoseIn(model, people ?? [], tenants ?? []),
  };
}

/** Who is held, and whose the rows of a database are: for what removes rows otherwise. */
export function heldOf(app: App, using: string): Held {
  return { holds: () => heldSubjects(app.db), tables: heldTables(app, using) };
}

/** Whether a legal hold keeps a row, or one that would go with it. A program without an app has no holds. */
export async function isRowHeld(tx: Db, model: Model, key: string): Promise<boolean> {
  const app = appsOfDatabase(tx.database)[0];
  if (app === undefined) return false;
  const values: unknown[] = [];
  const held = heldSql(await heldSubjects(tx), heldTables(app, tx.using), model, 'r', values);
  if (held === undefined) return false;
  const { table, key: columns } = statementsOf(model);
  const text = `select 1 as found from ${table} r where r.${q(columns[0]?.name ?? '')} = $${values.push(key)} and ${held} limit 1`;
  return (await tx.query(text, values)).length > 0;
}
