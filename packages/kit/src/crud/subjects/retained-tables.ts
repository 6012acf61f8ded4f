import type { App } from '../../app/declare/module.ts';
import { modulesIn } from '../../app/data/migration-modules.ts';
import type { BeforeErase } from '../../db/subjects/erase-rows.ts';
import { retainBatch, type RetainedTable } from '../../db/subjects/retention.ts';
import { subjectPlans } from './subject-plans.ts';
import { tellErased } from './tell-erased.ts';

/** The tables of the app with a retention. Needs open databases. */
export function retainedTables(app: App): RetainedTable[] {
  const [people, tenants] = [subjectPlans(app, 'person'), subjectPlans(app, 'tenant')];
  return people.flatMap(({ using, plan }, index) => {
    const database = app.databases[using];
    if (database === undefined) return [];
    const models = modulesIn(app, using).flatMap((module) => module.models ?? []);
    return models.flatMap((model) => {
      const { retention } = model;
      if (retention === undefined) return [];
      const person = plan.tables.find((table) => table.model === model);
      const tenant = tenants[index]?.plan.tables.find((table) => table.model === model);
      const whose = { ...(person === undefined ? {} : { person }), ...(tenant === undefined ? {} : { tenant }) };
      return [{ database, model, retention, whose }];
    });
  });
}

/** A batch of one table; see `retainBatch`. Files go with their rows. */
export function retainRows(app: App, table: RetainedTable, options: { readonly now?: boolean } = {}): Promise<number | null> {
  const beforeErase: BeforeErase = async (tx, model, rows, erasing) => {
    for (const module of app.modules) await module.beforeErase?.(tx, model, rows, erasing);
  };
  return retainBatch(table, { database: app.db, beforeErase, afterErase: tellErased(app), ...options });
}
