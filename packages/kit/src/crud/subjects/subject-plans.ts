import { databasesOf, modulesIn } from '../../app/data/migration-modules.ts';
import type { App, ResourceDeclaration } from '../../app/declare/module.ts';
import type { Model } from '../../db/declare/model.ts';
import type { SubjectKind } from '../../db/subjects/subject.ts';
import { type SubjectPlan, subjectPlan } from '../../db/subjects/subject-plan.ts';
import { scopeColumn } from '../declare/scope-rule.ts';
import { isResource } from '../declare/resource.ts';
import { mountedResourceOf } from '../serve/controller.ts';

/** The tables with rows of people or tenants in one database. */
export interface AppSubjectPlan {
  /** The alias of the database. */
  readonly using: string;
  readonly plan: SubjectPlan;
  /** Tables of the application that belong to nobody of this kind. */
  readonly without: readonly string[];
}

/** What the models, and the resources of the app, say about whose rows are where. Needs no database. */
export function subjectPlans(app: App, kind: SubjectKind): readonly AppSubjectPlan[] {
  const declared = declaredScopes(app);
  return aliasesOf(app).map((using) => {
    const models = modulesIn(app, using).flatMap((module) => module.models ?? []);
    // Who owns a row may not be whom it is about, so the model says so itself; a row of a tenant is the tenant's.
    const elsewhere = new Map(
      kind === 'tenant' ? declared.flatMap(({ model, tenant }) => (tenant === undefined ? [] : [[model.name, tenant]])) : [],
    );
    const plan = subjectPlan(kind, models, elsewhere);
    const known = new Set(plan.tables.map((table) => table.model.name));
    const own = modulesIn(app, using).filter(({ name }) => name !== 'kit');
    const without = own.flatMap((module) => (module.models ?? []).map(({ name }) => name)).filter((name) => !known.has(name));
    return { using, plan, without };
  });
}

/** Aliases of the databases that modules have tables in. */
export function aliasesOf(app: App): string[] {
  return ['default', ...new Set(app.modules.flatMap(databasesOf).filter((alias) => alias !== 'default'))];
}

/** A resource, and the columns that bound its rows. */
export interface DeclaredScope {
  readonly name: string;
  readonly model: Model;
  readonly owner: string | undefined;
  readonly tenant: string | undefined;
}

/** Of the resources of the app and of its controllers. */
export function declaredScopes(app: App): readonly DeclaredScope[] {
  const mounted = app.controllers.flatMap((controller) => mountedResourceOf(controller)?.policy.resource ?? []);
  return [
    ...new Set<ResourceDeclaration>([...app.resources, ...app.modules.flatMap((module) => module.resources ?? []), ...mounted]),
  ].flatMap((each) => {
    if (!isResource(each)) return [];
    const { owner, tenant } = each.options;
    return [{ name: each.name, model: each.model, owner: scopeColumn(owner), tenant: scopeColumn(tenant) }];
  });
}
