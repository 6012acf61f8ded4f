import type { App } from '../../app/declare/module.ts';
import { heldSubjects } from '../../app/data/legal-holds.ts';
import { modulesIn } from '../../app/data/migration-modules.ts';
import type { Model } from '../../db/declare/model.ts';
import type { BeforeErase } from '../../db/subjects/erase-rows.ts';
import type { Whose } from '../../db/subjects/held-rows.ts';
import { retainBatch, type RetainedTable } from '../../db/subjects/retention.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import type { SubjectPlan } from '../../db/subjects/subject-plan.ts';
import type { Held } from '../write/purge.ts';
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
      return [{ database, model, retention, whose: whoseOf(model, plan, tenants[index]?.plan) }];
    });
  });
}

function whoseOf(model: Model, people: SubjectPlan | undefined, tenants: SubjectPlan | undefined): Whose {
  const person = people?.tables.find((table) => table.model === model);
  const tenant = tenants?.tables.find((table) => table.model === model);
  return { ...(person === undefined ? {} : { person }), ...(tenant === undefined ? {} : { tenant }) };
}

/** Who is held, and whose the rows of a model are: for what removes rows otherwise. */
export async function heldOf(app: App, model: Model): Promise<Held> {
  const planOf = (kind: SubjectKind) =>
    subjectPlans(app, kind).find(({ plan }) => plan.tables.some((table) => table.model === model))?.plan;
  return { holds: await heldSubjects(app.db), whose: whoseOf(model, planOf('person'), planOf('tenant')) };
}

/** A batch of one table; see `retainBatch`. Files go with their rows. */
export function retainRows(app: App, table: RetainedTable, options: { readonly now?: boolean } = {}): Promise<number | null> {
  const beforeErase: BeforeErase = async (tx, model, rows, erasing) => {
    for (const module of app.modules) await module.beforeErase?.(tx, model, rows, erasing);
  };
  return retainBatch(table, { database: app.db, beforeErase, afterErase: tellErased(app), ...options });
}
