import { CONFLICT_RETRIES } from '../../../db/engine/conflict-retries.ts';
import type { App } from '../../../app/declare/module.ts';
import type { Db } from '../../../db/engine/db.ts';
import type { Model } from '../../../db/declare/model.ts';
import { isUuid } from '../../../db/values/uuid.ts';
import { coreErrors } from '../../../errors/core-errors.ts';
import type { HandlerContext } from '../../../http/declare/handler-context.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { exchangeOf } from '../../../http/serve/serve-route.ts';
import { route, type Route } from '../../../http/declare/route.ts';
import type { Schema } from '../../../http/declare/schema.ts';
import type { Fault } from '../../../options/fault.ts';
import { hasScopes, isAuthenticated } from '../../../permissions/built-ins.ts';
import { all } from '../../../permissions/permission.ts';
import { knownAsker } from '../caller/caller-subjects.ts';
import { grantErrors } from '../errors.ts';
import type { GivenGrant } from '../grant/grant.ts';
import { actionsOfModel, type ObjectActions } from '../declare/object-actions.ts';
import { holdingsOf } from '../grant/holdings.ts';
import { type GrantBody, GrantList, ShareBody, shownGrant, type ShownGrant } from '../schemas.ts';
import { lockToShare, requireShare, SHARE, shareObject, type SharedObject, unshareObject } from '../grant/share.ts';
import { grantsOn, type GrantRow } from '../rows/store.ts';
import { namesOf } from '../caller/subject-names.ts';

/** A controller of generic operations. */
// oxlint-disable-next-line typescript/no-explicit-any -- any class that CrudController made
type CrudClassLike = (new (...given: any[]) => any) & {
  readonly crudResource: {
    readonly name: string;
    readonly model: unknown;
    readonly options: { readonly tenant?: string | { readonly none?: string } | undefined };
  };
  readonly crudOptions?: { readonly scope?: string | { readonly read: string; readonly write: string } };
};

// oxlint-disable-next-line typescript/no-explicit-any -- handlers of three routes
type Context = HandlerContext<any, any, any, any, any>;

interface CrudLike {
  readonly keyParams: Schema;
  find(context: Context, key: string): Promise<Record<string, unknown>>;
  faults(app: App): readonly Fault[];
}

/** What the mixin adds to a controller. */
export interface SharingRoutes {
  readonly grants: Route;
  readonly share: Route;
  readonly unshare: Route;
}

/** The class with the routes: its statics, and instances that have both. */
export type Shared<B extends CrudClassLike> = Omit<B, 'prototype'> & (new () => InstanceType<B> & SharingRoutes);

/**
 * Adds the sharing of objects to a controller of generic operations: `class Orders extends sharing(OrderController) {}` has GET and PUT
 * `/:id/grants` and DELETE `/:id/grants/:grant_id`. All need `share` on the object; an API key needs the scope `<resource>:share`.
 *
 * @example
 * ```ts
 * class Orders extends CrudController(orderResource, { permission: isAuthenticated }) {}
 * export class OrderController extends sharing(Orders) {}
 * ```
 */
export function sharing<B extends CrudClassLike>(base: B): Shared<B> {
  const { crudResource, crudOptions } = base ?? {};
  if (crudResource === undefined || crudOptions === undefined)
    throw new TypeError('sharing() takes a controller made by CrudController: sharing(OrderController).');
  const model = crudResource.model as Model;
  const declared = (): ObjectActions => {
    const found = actionsOfModel(model);
    if (found === undefined) throw new Error(`sharing(${base.name}): the model "${model.name}" has no actions.`);
    return found;
  };
  const { scope } = crudOptions;
  // Added to the controller's, which holds for every route of the class. Sessions carry no scopes; a key needs the one of sharing, whatever else it has.
  const permission = all(isAuthenticated, hasScopes({ allowUnscoped: true }));
  const facts = { permission, scope: `${typeof scope === 'string' ? scope : model.name}:${SHARE}` };
  const tenant = crudResource.options.tenant;
  const hasTenant = tenant !== undefined && (typeof tenant === 'string' || tenant.none === undefined);
  const raises = [coreErrors.not_found, coreErrors.permission_denied, ...(hasTenant ? [coreErrors.tenant_required] : [])];

  class Sharing extends base {
    grants: Route;
    share: Route;
    unshare: Route;

    // oxlint-disable-next-line typescript/no-explicit-any -- TypeScript asks this signature of a mixin
    constructor(...given: any[]) {
      super(...given);
      const crud = this as unknown as CrudLike;
      const params = crud.keyParams;
      this.grants = route.get(
        '/:id/grants',
        {
          ...facts,
          params,
          response: GrantList,
          raises,
          metadata: { boundedList: 'grants of one object' },
          summary: 'Who the object is shared with',
        },
        async (context) => {
          const id = await keyOf(crud, context);
          const { db } = context;
          requireShare(await holdingsOf(db, declared(), id, await askerOf(db, context)));
          return { items: await shown(db, await grantsOn(db, [{ type: declared().type, id: String(id) }])) };
        },
      );
      this.share = route.put(
        '/:id/grants',
        {
          ...facts,
          params,
          body: ShareBody,
          response: GrantList,
          raises: [...raises, grantErrors.cannot_grant, grantErrors.last_holder, grantErrors.too_many_grants],
          summary: 'Share the object: replaces what each subject had',
        },
        async (context) => {
          const id = await keyOf(crud, context);
          const { body } = context;
          const isBatch = 'items' in body;
          const items = (isBatch ? body.items : [body]).map(givenOf);
          const locationOf = (index: number) => (isBatch ? ['body', 'items', index] : ['body']);
          return context.db.transaction(async (tx) => {
            const object = await lockedFor(tx, declared(), id, context);
            return { items: await shown(tx, await shareObject(tx, object, items, changeOf(context), locationOf)) };
          }, CONFLICT_RETRIES);
        },
      );
      this.unshare = route.delete(
        '/:id/grants/:grant_id',
        {
          ...facts,
          params: withGrantId(params),
          raises: [...raises, grantErrors.cannot_grant, grantErrors.last_holder],
          summary: 'Take a grant away',
        },
        async (context) => {
          const id = await keyOf(crud, context);
          const { grant_id: grantId } = context.params as { readonly grant_id: string };
          await context.db.transaction(async (tx) => {
            const object = await lockedFor(tx, declared(), id, context);
            if (!isUuid(grantId)) throw coreErrors.not_found();
            await unshareObject(tx, object, grantId, changeOf(context));
          }, CONFLICT_RETRIES);
        },
      );
    }

    faults(app: App): readonly Fault[] {
      const inherited = (super.faults as (app: App) => readonly Fault[])(app);
      const declaration = actionsOfModel(model);
      const reason =
        declaration === undefined
          ? `the model "${model.name}" has no actions.`
          : !declaration.actions.has(SHARE)
            ? `"${model.name}" has no action "${SHARE}".`
            : declaration.backend !== undefined
              ? `"${model.name}" is decided by the backend "${declaration.backend.name}", which stores no grants.`
              : undefined;
      return reason === undefined ? inherited : [...inherited, { id: 'E024', message: `sharing(${base.name}): ${reason}` }];
    }
  }
  Object.defineProperty(Sharing, 'name', { value: base.name });
  return Sharing;
}

/** The key of the row that the address names, among those the caller sees: any lookup column, any parent. */
async function keyOf(crud: CrudLike, context: Context): Promise<unknown> {
  const row = await crud.find(context, (context.params as { readonly id: string }).id);
  const [key] = (crud as unknown as { readonly crudResource: { readonly model: Model } }).crudResource.model.primaryKey;
  return row[key as string];
}

async function lockedFor(tx: Db, declaration: ObjectActions, id: unknown, context: Context): Promise<SharedObject> {
  return lockToShare(tx, declaration, id, await askerOf(tx, context));
}

async function askerOf(db: Db, context: Context) {
  return knownAsker(db, await context.caller(), undefined, exchangeOf(context.request));
}

function changeOf({ principal, requestId }: Context) {
  return { by: principal, requestId };
}

function givenOf({ subject, set, actions, expires_at }: GrantBody): GivenGrant {
  return {
    subject,
    ...(set === undefined ? {} : { set }),
    ...(actions === undefined ? {} : { actions }),
    expiresAt: expires_at === undefined || expires_at === null ? null : new Date(expires_at),
  };
}

async function shown(db: Db, rows: readonly GrantRow[]): Promise<ShownGrant[]> {
  const names = await namesOf(
    db,
    rows.map(({ subject }) => subject),
  );
  return rows.map((row) => shownGrant(row, names.get(row.subject) ?? null));
}

/** The address of an object, and the grant in it. */
function withGrantId(params: Schema): Schema {
  const grantId = jsonSchema({ type: 'object', properties: { grant_id: { type: 'string' } }, required: ['grant_id'] });
  type Half = 'input' | 'output';
  const half = (schema: Schema, which: Half, options: never) =>
    (schema['~standard'].jsonSchema as unknown as Record<Half, (options: never) => Record<string, unknown>>)[which](options);
  const joined = (which: Half) => (options: never) => {
    const [own, more] = [half(params, which, options), half(grantId, which, options)];
    return {
      ...own,
      properties: { ...(own['properties'] as object), ...(more['properties'] as object) },
      required: [...((own['required'] as string[] | undefined) ?? []), 'grant_id'],
    };
  };
  return {
    '~standard': {
      version: 1,
      vendor: 'kit',
      validate: async (value: unknown) => {
        const { grant_id, ...rest } = value as Record<string, unknown>;
        const read = await params['~standard'].validate(rest);
        return read.issues === undefined ? { value: { ...(read.value as object), grant_id } } : read;
      },
      jsonSchema: { input: joined('input'), output: joined('output') },
    },
  } as unknown as Schema;
}
