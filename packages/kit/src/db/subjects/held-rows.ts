import type { Model } from '../declare/model.ts';
import type { Subject, SubjectTable } from './subject.ts';
import { subjectPlan } from './subject-plan.ts';
import { rowsSql } from './subject-where.ts';

/** Whose the rows of a table are, by kind. */
export type Whose = Readonly<Partial<Record<Subject['kind'], SubjectTable>>>;

/** ` and not …` for each hold that rows of the table may be under: no retention removes those. Its values are added to `values`. */
export function exceptHeldSql(holds: readonly Subject[], whose: Whose, alias: string, values: unknown[]): string {
  return holds
    .flatMap(({ kind, id }) => {
      const table = whose[kind];
      const held = table === undefined ? undefined : rowsSql(table, id, alias, values);
      // NULL is no answer: a row of nobody is not held.
      return held === undefined ? [] : [` and not coalesce(${held}, false)`];
    })
    .join('');
}

const known = new WeakMap<Model, Whose>();

/** As the model itself and those that it refers to have it: of a module's table, whose rows no resource of the app decides about. */
export function whoseRows(model: Model): Whose {
  let whose = known.get(model);
  if (whose !== undefined) return whose;
  const models = [...reached(model)];
  const [person, tenant] = (['person', 'tenant'] as const).map((kind) =>
    subjectPlan(kind, models).tables.find((table) => table.model === model),
  );
  known.set(model, (whose = { ...(person === undefined ? {} : { person }), ...(tenant === undefined ? {} : { tenant }) }));
  return whose;
}

function reached(model: Model, found = new Set<Model>()): Set<Model> {
  if (found.has(model)) return found;
  found.add(model);
  for (const { settings } of Object.values(model.columns))
    if (typeof settings.reference?.target === 'function') reached(settings.reference.target() as unknown as Model, found);
  return found;
}
