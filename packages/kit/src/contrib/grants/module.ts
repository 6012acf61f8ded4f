import type { App, Module } from '../../app/declare/module.ts';
import type { UserChange } from '../../app/declare/registry.ts';
import type { GroupDirectory } from '../../auth/people/group-directory.ts';
import type { User } from '../../auth/people/principal.ts';
import type { Database, Db } from '../../db/engine/db.ts';
import type { Model } from '../../db/declare/model.ts';
import type { Fault } from '../../options/fault.ts';
import { type OptionRules, readOptions } from '../../options/read-options.ts';
import type { Permission } from '../../permissions/permission.ts';
import { aFunction, guard, instanceOf, listOf, objectWith, required } from '../../options/value-rule.ts';
import { grantsAdmin } from './admin.ts';
import { grantsCommand } from './commands.ts';
import { grantErrors } from './errors.ts';
import { grantsState } from './declare/grants-state.ts';
import { initial } from './migrations/0001_initial.ts';
import { tenantIndex } from './migrations/0002_tenant_index.ts';
import { grantModel } from './models.ts';
import { ObjectActions } from './declare/object-actions.ts';
import { askedGrants, bindRoute, grantFault } from './rows/permission.ts';
import { recordGrants } from './rows/record-grant.ts';
import { deleteGrantsOf, deleteGrantsOn } from './rows/store.ts';
import { keyText } from '../../db/subjects/erase-rows.ts';
import { grantResource } from './serve/grant-resource.ts';
import { userSubject } from './declare/subject.ts';

export interface ObjectGrantsOptions {
  /** What `objectActions(…)` returned, for every model with grants. */
  readonly objects: readonly ObjectActions[];
  /** Who is in which group. Default: what the accounts module, or another one, provides. */
  readonly groups?: GroupDirectory;
  /** Whether a user belongs to a tenant: grants to users of other tenants are refused. Required when objects have tenants. */
  readonly isInTenant?: (db: Db, user: User, tenantKey: string) => boolean | Promise<boolean>;
}

const rules: OptionRules<ObjectGrantsOptions> = {
  objects: required(listOf(instanceOf(ObjectActions, 'what objectActions(…) returned'))),
  groups: objectWith('a group directory', 'groupsOf', 'findById', 'findByName'),
  isInTenant: guard(aFunction),
};

/**
 * Grants on single objects, for users and groups.
 *
 * @example
 * ```ts
 * createApp({ modules: [accounts(), objectGrants({ objects: [orderActions] })], mount });
 * ```
 */
export function objectGrants(options: ObjectGrantsOptions): Module {
  readOptions('objectGrants()', options, rules);
  const objects = new Map(options.objects.map((each) => [each.type, each]));
  /** By the name that audit entries have for them: the table, or the resource. */
  const targets = new Map(objects);
  let database: Database | undefined;
  return {
    name: 'grants',
    models: [grantModel],
    migrations: [initial, tenantIndex],
    errors: grantErrors,
    commands: [grantsCommand],
    resources: [grantResource],
    admin: grantsAdmin(() => targets),
    provides: () => ({ userChanges: [forgetUser], groupChanges: [forgetGroup] }),
    checks: [
      {
        name: 'object_grants',
        run: (app) => [...options.objects.flatMap((each) => each.faults()), ...tenantFaults(options), ...routeFaults(app)],
      },
    ],
    install(app) {
      for (const { name, model, options: declared } of resourcesOf(app)) {
        const declaration = objects.get(model.name);
        if (declaration?.model !== model) continue;
        targets.set(name, declaration);
        const { owner, tenant } = declared;
        declaration.bindResource(typeof owner === 'string' ? owner : owner?.column, tenant);
        declaration.ownerUnless = typeof owner === 'string' ? undefined : owner?.unless;
      }
    },
    // What is granted on a row goes with it.
    async beforeErase(tx, model, rows, erasing) {
      if (erasing !== 'delete' || tx.database !== database) return;
      for (const row of rows) await deleteGrantsOn(tx, model.name, keyText(model, row));
    },
    setup(app) {
      const { clock, registry, users, rules: named } = app;
      grantsState.bind(app.db, {
        clock,
        registry,
        rules: named,
        users,
        groups: options.groups ?? registry.groups,
        isInTenant: options.isInTenant,
        objects,
      });
      database = app.db;
    },
    stop() {
      if (database !== undefined) grantsState.release(database);
    },
  };
}

/** A user that is gone has no grants. Called when users are activated and deactivated, too: those keep theirs. */
async function forgetUser(tx: Db, userId: string, change?: UserChange): Promise<void> {
  const { users } = grantsState.of(tx);
  if (users === null || (await users.findById(tx, userId)) !== null) return;
  await forget(tx, userSubject(userId), change);
}

async function forgetGroup(tx: Db, groupId: string): Promise<void> {
  await forget(tx, `group:${groupId}`);
}

async function forget(tx: Db, subject: string, change?: UserChange): Promise<void> {
  const removed = await deleteGrantsOf(tx, subject);
  await recordGrants(
    tx,
    removed.map((before) => ({ before, after: null })),
    { by: change?.by ?? 'grants', requestId: change?.requestId },
  );
}

/** Only the application knows which users belong to a tenant. */
function tenantFaults({ objects, isInTenant }: ObjectGrantsOptions): Fault[] {
  const first = objects.find(({ tenant, backend }) => tenant !== undefined && backend === undefined);
  if (first === undefined || isInTenant !== undefined) return [];
  return [
    {
      id: 'E024',
      message: `objectGrants(): "${first.type}" has a tenant, and isInTenant is missing: an object could be granted to a user of another tenant.`,
      hint: 'Give isInTenant: (db, user, tenantKey) => boolean; () => true says that every user belongs to every tenant.',
    },
  ];
}

interface DeclaredResource {
  readonly name: string;
  readonly model: Model;
  readonly options: { readonly owner?: string | { readonly column: string; readonly unless?: Permission }; readonly tenant?: string };
}

function resourcesOf({ controllers, resources }: App): DeclaredResource[] {
  const mounted = controllers.flatMap((controller) => (controller as { readonly crudResource?: DeclaredResource }).crudResource ?? []);
  return [...mounted, ...(resources as readonly object[] as readonly DeclaredResource[])];
}

/** `hasGrant('change')` on a controller of a resource is about its model; elsewhere it has to be said. */
function routeFaults(app: App): Fault[] {
  return app.routes.flatMap((route) => {
    const asked = askedGrants(route.permission);
    if (asked.length === 0) return [];
    const controller = app.controllers.find(({ constructor }) => constructor.name === route.controller);
    const model = (controller as { readonly crudResource?: DeclaredResource } | undefined)?.crudResource?.model;
    if (model !== undefined) bindRoute(route, model);
    return asked.flatMap(({ action, model: named }): Fault[] => {
      const fault = grantFault({ action, model: named ?? model });
      return fault === undefined ? [] : [{ ...fault, id: 'E024', message: `${route.controller}.${route.field}: ${fault.message}` }];
    });
  });
}
