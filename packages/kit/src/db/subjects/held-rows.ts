import type { Model } from '../declare/model.ts';
import { heldCondition, type HeldTables, type Whose } from './held-statement.ts';
import type { Subject, SubjectTable } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';

export type { HeldTables } from './held-statement.ts';

/**
 * A condition for rows that a legal hold keeps: those of the people and tenants themselves, and those that such rows refer to, however far above and also in a circle.
 * Without them the database would delete the others, too, or change them, or refuse. Undefined where there can be none. Its values are added to `values`.
 */
export function heldSql(holds: readonly Subject[], tables: HeldTables, model: Model, alias: string, values: unknown[]): string | undefined {
  return holds.length === 0 ? undefined : heldCondition(holds, tables, model, alias, values);
}

/** ` and not …` for rows that a legal hold keeps: no retention removes those. */
export function exceptHeldSql(holds: readonly Subject[], tables: HeldTables, model: Model, alias: string, values: unknown[]): string {
  const held = heldSql(holds, tables, model, alias, values);
  // NULL is no answer: a row of nobody is not held.
  return held === undefined ? '' : ` and not coalesce(${held}, false)`;
}

const known = new WeakMap<Model, HeldTables>();

/** As the model itself and those that it refers to have it: of a module's table, whose rows no resource of the app decides about. */
export function tablesOfModule(model: Model): HeldTables {
  let tables = known.get(model);
  if (tables !== undefined) return tables;
  const models = [...reached(model)];
  const plans = { person: subjectPlan('person', models), tenant: subjectPlan('tenant', models) };
  tables = { models, whose: (each) => whoseIn(each, plans.person.tables, plans.tenant.tables) };
  known.set(model, tables);
  return tables;
}

/** Whose the rows of a model are, by the plans of both kinds. */
export function whoseIn(model: Model, people: readonly SubjectTable[], tenants: readonly SubjectTable[]): Whose {
  const [person, tenant] = [people, tenants].map((tables) => tables.find((table) => table.model === model));
  return { ...(person === undefined ? {} : { person }), ...(tenant === undefined ? {} : { tenant }) };
}

function reached(model: Model, found = new Set<Model>()): Set<Model> {
  if (found.has(model)) return found;
  found.add(model);
  for (const { settings } of Object.values(model.columns))
    if (typeof settings.reference?.target === 'function') reached(settings.reference.target() as unknown as Model, found);
  return found;
}
