import type { Model } from '../../../db/declare/model.ts';
import type { Where } from '../../../db/sql/where/where.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import { didYouMean } from '../../../options/did-you-mean.ts';
import type { Fault } from '../../../options/fault.ts';
import { Permission, type PermissionContext } from '../../../permissions/permission.ts';
import type { GrantQuestion } from '../declare/grant-backend.ts';
import type { Asker } from '../declare/asker.ts';
import { isExempt, knownAsker } from '../caller/caller-subjects.ts';
import { inTenant, ownedOrGranted, rowPlan } from './granted-condition.ts';
import { askedBackend } from '../declare/grant-backend.ts';
import { declarationOf } from '../declare/grants-state.ts';
import { actionsOfModel, modelOfActions, type ObjectActions } from '../declare/object-actions.ts';
import { encodedKey } from '../declare/object-chain.ts';
import { sameId } from '../../../auth/people/same-id.ts';

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
 * it is a condition. Without `view` the object is a 404, with `view` and without the action a 403 that names it. `source` is the declaration
 * of `objectActions()` or its model; on controllers of a resource it is the resource's.
 *
 * @example
 * ```ts
 * class OrderController extends Controller {
 *   send = route.post('/:id/send', { permission: hasGrant('change', orderActions) }, async ({ db, params, authorize }) => {
 *     const order = await authorize(await find(db, orders, params.id));
 *     await mailInvoice(db, order.id);
 *   });
 * }
 * ```
 */
export function hasGrant<A extends string = string>(action: NoInfer<A>, source?: Model | ObjectActions<A>): Permission {
  const model = source === undefined ? undefined : modelOfActions(source as Model | ObjectActions);
  if (typeof action !== 'string' || action === '') throw new TypeError("hasGrant() takes the name of an action: hasGrant('change').");
  const modelFor = (context: PermissionContext): ObjectActions => {
    const found = model ?? modelsOfRoutes.get((context as { readonly route?: object }).route ?? context);
    if (found === undefined)
      throw new Error(`hasGrant('${action}') needs a model: hasGrant('${action}', orderActions), where orderActions is objectActions(…).`);
    return declarationOf(context.db, found);
  };
  const questionOf = async (context: PermissionContext): Promise<RowQuestion> => {
    const asker = await knownAsker(context.db, { user: context.user, tenant: await context.tenant }, undefined, context);
    return { db: context.db, asker, declaration: modelFor(context), permission: context };
  };
  /** By request: what was decided about the object last, for the denial that follows. */
  const decided = new WeakMap<object, { readonly object: unknown; readonly decision: Promise<Decision> }>();
  const decide = (context: PermissionContext, object: unknown): Promise<Decision> => {
    const decision = questionOf(context).then((question) => decideRow(question, asRow(object), action));
    decided.set(context, { object, decision });
    return decision;
  };
  const lastDecision = (context: PermissionContext, object: unknown): Promise<Decision> => {
    const last = decided.get(context);
    return last !== undefined && last.object === object ? last.decision : decide(context, object);
  };
  const permission = new Permission({
    name: `hasGrant(${action})`,
    kind: 'has_grant',
    requires: () => requiredColumns(model),
    evaluate: (context, object) => {
      const { user } = context;
      if (user !== null && !user.is_active) return false;
      // Superusers hold every action, but in their tenant only.
      if (object === undefined) return user?.is_superuser === true && modelFor(context).tenant === undefined ? true : 'unknown';
      return decide(context, object).then(({ asked, view }) => asked && view);
    },
    absent: async (context) => {
      await questionOf(context).then((question) => decideRow(question, {}, action));
    },
    rows: async (context) => {
      const question = await questionOf(context);
      const { declaration, asker, db } = question;
      const of = async (wanted: string): Promise<Where | boolean> =>
        declaration.backend === undefined
          ? ownedOrGranted(db.dialect, declaration, asker, wanted)
          : inTenant(declaration, asker, await askedBackend.condition(declaration.backend, question, wanted));
      const [asked, view] = [await of(action), await of('view')];
      if (asked === false || view === false) return false;
      return { and: [asked, view].filter((each) => each !== true) };
    },
    denial: async (context, object) => {
      if (context.user === null) return coreErrors.not_authenticated();
      if (object === undefined || !(await lastDecision(context, object)).view) return coreErrors.not_found();
      return coreErrors.permission_denied({
        detail: `You can view this object, but you do not have the action "${action}".`,
        extensions: { action },
      });
    },
  });
  actionsAsked.set(permission, { action, model });
  return permission;
}

/** The columns that {@link decideRow} reads. A backend may read every column. */
function requiredColumns(model: Model | undefined): readonly string[] | undefined {
  const declaration = model === undefined ? undefined : actionsOfModel(model);
  if (declaration === undefined || declaration.backend !== undefined) return undefined;
  return [declaration.key.name, declaration.owner, declaration.tenant].filter((name) => name !== undefined);
}

type Row = Readonly<Record<string, unknown>>;

function asRow(object: unknown): Row {
  return typeof object === 'object' && object !== null ? (object as Row) : {};
}

/** Whether the asker may do what was asked, and whether it may view the object. */
interface Decision {
  readonly asked: boolean;
  readonly view: boolean;
}

const NOTHING: Decision = { asked: false, view: false };
const EVERYTHING: Decision = { asked: true, view: true };

interface RowQuestion extends GrantQuestion {
  readonly declaration: ObjectActions;
}

/**
 * Decides in one statement, which also reads the owner and the tenant that the loaded row may lack. An object that does not exist takes the same
 * statement. Superusers and owners stay in their tenant, too.
 */
async function decideRow(question: RowQuestion, row: Row, action: string): Promise<Decision> {
  const { db, declaration, asker } = question;
  const { user } = asker;
  const { owner, tenant, key, backend } = declaration;
  if ((user !== null && !user.is_active) || !declaration.actions.has(action)) return NOTHING;
  const isExempted = await isExempt(declaration, asker);
  const holdsAll = (ownerId: unknown) =>
    user !== null && (isExempted || user.is_superuser || (owner !== undefined && ownerId !== undefined && sameId(ownerId, user.id)));
  const isTenantKnown = tenant === undefined || row[tenant] !== undefined;
  if (isTenantKnown && holdsAll(row[owner ?? '']) && isOfTenant(declaration, row[tenant ?? ''], asker)) return EVERYTHING;
  const plan = rowPlan(db.dialect, declaration, asker, action);
  if (plan === undefined) return NOTHING;
  plan.values.unshift(encodedKey(declaration, row[key.name] ?? null) ?? null);
  const [stored] = await db.query<{ owner: unknown; tenant: unknown; asked: number; view: number }>(plan.text, plan.values);
  // A row of an open transaction is not stored yet: what was loaded of it counts.
  if (!isOfTenant(declaration, isTenantKnown ? row[tenant ?? ''] : stored?.tenant, asker)) return NOTHING;
  if (holdsAll(row[owner ?? ''] ?? stored?.owner)) return EVERYTHING;
  if (backend === undefined) return { asked: stored?.asked === 1, view: (action === 'view' ? stored?.asked : stored?.view) === 1 };
  const view = await askedBackend.decision(backend, question, row, 'view');
  return { asked: view && (action === 'view' || (await askedBackend.decision(backend, question, row, action))), view };
}

function isOfTenant({ tenant: column }: ObjectActions, stored: unknown, { tenant }: Asker): boolean {
  if (column === undefined) return true;
  return tenant === null ? stored === null || stored === '' : sameId(stored, tenant);
}

/** For start-up: the model of a permission that names one must have actions, and the action must be one of them. */
export function grantFault({
  action,
  model,
}: {
  readonly action: string;
  readonly model: Model | undefined;
}): Pick<Fault, 'message' | 'hint'> | undefined {
  if (model === undefined)
    return {
      message: `hasGrant('${action}') has no model.`,
      hint: `Pass the declaration: hasGrant('${action}', objectActions(model, …)).`,
    };
  const declaration = actionsOfModel(model);
  if (declaration === undefined)
    return {
      message: `hasGrant('${action}'): the model "${model.name}" has no actions.`,
      hint: `Declare objectActions(${model.name}, …).`,
    };
  if (declaration.actions.has(action)) return undefined;
  const known = [...declaration.actions];
  const hint = didYouMean(action, known).trim() || `Known: ${known.join(', ')}.`;
  return { message: `hasGrant('${action}'): "${model.name}" has no such action.`, hint };
}
