import type { Db } from '../../db/db.ts';
import type { Model } from '../../db/model.ts';
import type { Where } from '../../db/where/where.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { Permission, type PermissionContext } from '../../permissions/permission.ts';
import { tableBackend } from './backends/table-backend.ts';
import type { GrantQuestion } from './backends/grant-backend.ts';
import type { Asker } from './asker.ts';
import { knownAsker } from './caller-subjects.ts';
import { inTenant, ownedOrGranted } from './granted-condition.ts';
import { declarationOf } from './grants-state.ts';
import { isForeign } from './holdings.ts';
import { actionsOfModel, type ObjectActions } from './object-actions.ts';
import { objectChain } from './object-chain.ts';
import { sameId } from '../../auth/same-id.ts';

/** The models of routes whose permission does not name one: found once, at start-up. */
const modelsOfRoutes = new WeakMap<object, Model>();

export function bindRoute(route: object, model: Model): void {
  modelsOfRoutes.set(route, model);
}

const actionsAsked = new WeakMap<Permission, { readonly action: string; readonly model: Model | undefined }>();

/** What the `hasGrant` leaves of a permission ask for. */
export function askedGrants(permission: Permission): readonly { readonly action: string; readonly model: Model | undefined }[] {
  const own = actionsAsked.get(permission);
  return [...(own === undefined ? [] : [own]), ...permission.parts.flatMap(askedGrants)];
}

/**
 * The caller holds the action on the loaded object: as its owner, by a grant, a group or a parent. Unknown until `authorize(object)`; in a list
 * it is a condition. Without `view` the object is a 404, with `view` and without the action a 403 that names it. `model` is the model of the
 * object; on controllers of a resource it is the resource's.
 */
export function hasGrant(action: string, model?: Model): Permission {
  if (typeof action !== 'string' || action === '') throw new TypeError("hasGrant() takes the name of an action: hasGrant('change').");
  const modelFor = (context: PermissionContext): ObjectActions => {
    const found = model ?? modelsOfRoutes.get((context as { readonly route?: object }).route ?? context);
    if (found === undefined) throw new Error(`hasGrant('${action}') does not know the model: hasGrant('${action}', orders).`);
    return declarationOf(context.db, found);
  };
  const questionOf = async (context: PermissionContext): Promise<GrantQuestion & { readonly declaration: ObjectActions }> => {
    const asker = await knownAsker(context.db, { user: context.user, tenant: await context.tenant });
    return { db: context.db, asker, declaration: modelFor(context), permission: context };
  };
  const holds = async (context: PermissionContext, object: unknown, wanted: string): Promise<boolean> => {
    const question = await questionOf(context);
    const { declaration } = question;
    const { user } = question.asker;
    if (typeof object !== 'object' || object === null || !declaration.actions.has(wanted)) return false;
    const row = object as Readonly<Record<string, unknown>>;
    // Superusers and owners stay in their tenant, too.
    if (!(await isOfTenant(question, row))) return false;
    if (user?.is_active === true && user.is_superuser) return true;
    const { owner, backend = tableBackend } = declaration;
    if (owner !== undefined && user?.is_active === true && sameId(row[owner], user.id)) return true;
    return backend.decide(question, row, wanted);
  };
  const permission = new Permission({
    name: `hasGrant(${action})`,
    kind: 'has_grant',
    evaluate: (context, object) => {
      const { user } = context;
      if (user !== null && !user.is_active) return false;
      // Superusers hold every action, but in their tenant only.
      if (object === undefined) return user?.is_superuser === true && modelFor(context).tenant === undefined ? true : 'unknown';
      return both(holds(context, object, action), action === 'view' ? undefined : () => holds(context, object, 'view'));
    },
    rows: async (context) => {
      const question = await questionOf(context);
      const { declaration, asker, db } = question;
      const of = async (wanted: string): Promise<Where | boolean> =>
        declaration.backend === undefined
          ? ownedOrGranted(db.dialect, declaration, asker, wanted)
          : inTenant(declaration, asker, await declaration.backend.condition(question, wanted));
      const [asked, view] = [await of(action), await of('view')];
      if (asked === false || view === false) return false;
      return { and: [asked, view].filter((each) => each !== true) };
    },
    denial: async (context, object) => {
      if (context.user === null) return coreErrors.not_authenticated();
      if (object === undefined || !(await holds(context, object, 'view'))) return coreErrors.not_found();
      return coreErrors.permission_denied({ detail: `You may see this, but not do "${action}" to it.`, extensions: { action } });
    },
  });
  actionsAsked.set(permission, { action, model });
  return permission;
}

/** The object belongs to the asker's tenant. A row that was read without its tenant is asked for it. */
async function isOfTenant(
  { db, declaration, asker }: { readonly db: Db; readonly declaration: ObjectActions; readonly asker: Asker },
  row: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const { tenant, key } = declaration;
  if (tenant === undefined) return true;
  const stored = row[tenant];
  if (stored !== undefined) return stored === null ? asker.tenant === null : asker.tenant !== null && sameId(stored, asker.tenant);
  const [link] = await objectChain(db, declaration, row[key.name], 0);
  return link !== undefined && !isForeign(link, asker);
}

async function both(first: Promise<boolean>, second: (() => Promise<boolean>) | undefined): Promise<boolean> {
  return (await first) && (second === undefined || (await second()));
}

/** For start-up: the model of a permission that names one must have actions, and the action must be one of them. */
export function grantFault({ action, model }: { readonly action: string; readonly model: Model | undefined }): string | undefined {
  if (model === undefined) return `hasGrant('${action}') does not know its model.`;
  const declaration = actionsOfModel(model);
  if (declaration === undefined) return `hasGrant('${action}'): the model "${model.name}" has no actions.`;
  return declaration.actions.has(action) ? undefined : `hasGrant('${action}'): "${model.name}" has no such action.`;
}
